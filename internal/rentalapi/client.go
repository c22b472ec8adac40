// Package rentalapi implements the protocol of the Dedicated Server Rental API, once
// for every resource: tokens, rate limits, Retry-After, the envelope, errors, paging
// and bounds on responses. It returns typed objects and pages, knows nothing about
// single resources and keeps no data.
package rentalapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Settings say where the API is and how requests are made.
type Settings struct {
	BaseURL   *url.URL          // ends in /api/v1
	Transport http.RoundTripper // of NewTransport; those of settings that are equal are the same
	Timeout   time.Duration     // of one request, response included; greater than 0
	Limits    Limits
}

// API makes requests to the API. It lives as long as the process.
type API struct {
	userAgent string
	settings  atomic.Pointer[Settings]

	requests, errors *prometheus.CounterVec
	duration         *prometheus.HistogramVec

	slots chan struct{} // one element for each request under way

	mu       sync.Mutex // guards the limiters, and what is known of the accounts
	limiters map[Fingerprint]*limiter
}

// New returns an API that sends userAgent with each request. It registers the metrics of
// requests, whose number of series does not grow with accounts. Those of an account are
// returned by Client.AddMetrics.
func New(userAgent string, s Settings, metrics prometheus.Registerer) *API {
	a := &API{userAgent: userAgent, limiters: map[Fingerprint]*limiter{}, slots: make(chan struct{}, maxConnections)}
	a.registerMetrics(metrics)
	a.settings.Store(&s)
	return a
}

// ApplySettings puts new settings in force for all later requests; a new base URL only
// for clients that are made later. Earlier requests still count against the new limits.
// If the base URL has a new host, all backoffs end: the old host asked for them.
func (a *API) ApplySettings(s Settings) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.settings.Swap(&s)
	if before.Transport != s.Transport {
		before.closeConnections()
	}
	for token, l := range a.limiters {
		l.SetLimit(s.Limits.refill(token))
		if before.BaseURL.Host != s.BaseURL.Host {
			l.backoff = time.Time{}
		}
	}
}

// Transport returns the transport in force.
func (a *API) Transport() http.RoundTripper { return a.settings.Load().Transport }

// closeConnections makes later requests use new connections, and so look the name up again.
func (s *Settings) closeConnections() {
	(&http.Client{Transport: s.Transport}).CloseIdleConnections()
}

// Token returns the present API token of an account. It is called before each request. Its
// errors must not contain the token.
type Token func() (string, error)

// Client makes the requests of one account, or public ones. They share one rate limit with
// whatever else uses the same token.
type Client struct {
	api     *API
	account string
	token   Token    // of public requests: an empty one
	baseURL *url.URL // fixed, so that a token is sent only where it was configured for

	// These are guarded by the mutex of the API.
	sent             Fingerprint // of the last token that was read
	rejected         *bool       // whether the API last refused the token; nil if that is not known
	limit, remaining *float64    // of the RateLimit headers; nil if not known
}

// Client returns the client of an account, or the public one without account and token. Its
// requests go to the present base URL, also after another one was set.
func (a *API) Client(account string, token Token) *Client {
	if token == nil {
		token = func() (string, error) { return "", nil }
	}
	return &Client{api: a, account: account, token: token, baseURL: a.settings.Load().BaseURL}
}

// LastToken identifies the token of the newest request.
func (c *Client) LastToken() Fingerprint {
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	return c.sent
}

// Reject counts that a fetch of a path gave no data, and returns why as an *Error. The reason of
// other errors is Incomplete or TooLarge if they wrap ErrIncomplete or ErrTooLarge, else Decode.
func (c *Client) Reject(path string, err error) error {
	e := Error{Reason: Decode, Err: err}
	if known, ok := errors.AsType[*Error](err); ok {
		e = *known
	}
	switch {
	case errors.Is(err, ErrTooLarge):
		e.Reason = TooLarge
	case errors.Is(err, ErrIncomplete):
		e.Reason = Incomplete
	}
	e.Path = path
	if e.Reason != Backoff {
		c.api.errors.WithLabelValues(path, string(e.Reason)).Inc()
	}
	return &e
}

// Get implements Getter. It waits for the rate limit first. Its error is that of read or of ctx,
// or an *Error. A request whose connection the server had closed is repeated once; that waits for
// the rate limit, too.
func (c *Client) Get(ctx context.Context, path string, query url.Values, read func(io.Reader) error) (Response, error) {
	token, err := c.token()
	if err != nil {
		c.api.mu.Lock()
		defer c.api.mu.Unlock()
		c.rejected = new(true)
		return Response{}, &Error{Reason: Unauthorized, Err: fmt.Errorf("token file: %w", err)}
	}
	r, err := c.attempt(ctx, path, query, token, read)
	if _, ok := errors.AsType[staleError](err); ok {
		r, err = c.attempt(ctx, path, query, token, read)
	}
	return r, err
}

// attempt makes one request. After a failure, the next one uses a new connection.
func (c *Client) attempt(ctx context.Context, path string, query url.Values, token string, read func(io.Reader) error) (Response, error) {
	response := Response{Token: fingerprint(token)}
	if err := c.wait(ctx, response.Token); err != nil {
		return response, err
	}
	defer func() { <-c.api.slots }()
	settings := c.api.settings.Load()
	began := time.Now()
	reqCtx, cancel := context.WithTimeout(ctx, settings.Timeout)
	defer cancel()
	code := "error"
	httpResponse, err := settings.Transport.RoundTrip(c.newRequest(reqCtx, path, query, token))
	if err != nil {
		err = connectionError(reqCtx, err)
	} else {
		defer httpResponse.Body.Close()
		code = strconv.Itoa(httpResponse.StatusCode)
		err = c.readResponse(reqCtx, httpResponse, &response, read)
	}
	if err != nil {
		settings.closeConnections()
	}
	if ctx.Err() != nil { // no failure of the API
		return response, ctx.Err()
	}
	c.api.requests.WithLabelValues(path, code).Inc()
	c.api.duration.WithLabelValues(path).Observe(time.Since(began).Seconds())
	return response, err
}

// newRequest returns a request. It must be sent with RoundTrip, which follows no redirect:
// that would be a request that no limiter has counted, and might send the token elsewhere.
func (c *Client) newRequest(ctx context.Context, path string, query url.Values, token string) *http.Request {
	target := c.baseURL.JoinPath(path)
	target.RawQuery = query.Encode()
	header := http.Header{"User-Agent": {c.api.userAgent}, "Accept": {"application/json"}, "Accept-Encoding": {"gzip"}}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return (&http.Request{Method: http.MethodGet, URL: target, Header: header}).WithContext(ctx)
}

// readResponse hands the body of a 200 to read, and keeps what the header says. It returns
// nil or why the response is of no use.
func (c *Client) readResponse(ctx context.Context, resp *http.Response, r *Response, read func(io.Reader) error) error {
	r.Received = time.Now()
	r.Date, _ = http.ParseTime(resp.Header.Get("Date"))
	if seconds := headerNumber(resp.Header, "Age"); seconds != nil {
		r.Age = new(time.Duration(*seconds) * time.Second)
	}
	var until time.Time
	if delay := retryDelay(resp, cmp.Or(r.Date, r.Received)); delay > 0 {
		until = r.Received.Add(delay)
	}
	c.record(resp, r.Token, until)
	if resp.StatusCode != http.StatusOK {
		return statusError(resp.StatusCode, until)
	}
	content, err := decodedContent(body{resp.Body, ctx}, resp.Header.Get("Content-Encoding"))
	if err != nil {
		return err
	}
	return read(content)
}

// statusError is the error of a status other than 200. It has nothing of the body, which might
// repeat what was sent.
func statusError(status int, until time.Time) *Error {
	reasons := map[int]Reason{401: Unauthorized, 429: RateLimited, 503: Unavailable}
	e := &Error{Reason: cmp.Or(reasons[status], Status), Until: until, Err: fmt.Errorf("status %d", status)}
	if status >= 300 && status < 400 && status != http.StatusNotModified {
		e.Err = fmt.Errorf("%w: redirects are not followed: set api.base_url to the API's final address", e.Err)
	}
	return e
}

// body reads the body of a response. Its errors are those of the connection.
type body struct {
	io.Reader
	ctx context.Context // of the request
}

// Read implements io.Reader.
func (b body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = connectionError(b.ctx, err)
	}
	return n, err
}
