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
	Transport http.RoundTripper // from NewTransport: the same one for equal settings
	Timeout   time.Duration     // bound on one request, response included; greater than 0
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
	token   Token    // returns an empty token for public requests
	baseURL *url.URL // fixed, so that a token is sent only where it was configured for

	// These are guarded by the mutex of the API.
	sent             Fingerprint // the last token that was read
	rejected         *bool       // whether the API last refused the token; nil if that is not known
	limit, remaining *float64    // the RateLimit headers; nil if not known
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

// CountFailure counts that a fetch of a path gave no data, unless the reason is Backoff. Later
// requests use new connections.
func (a *API) CountFailure(path string, err error) {
	reason := ReasonOf(err)
	if reason == Backoff {
		return
	}
	a.errors.WithLabelValues(path, string(reason)).Inc()
	a.settings.Load().closeConnections()
}

// Get implements Getter. It waits for the rate limit first. A request whose connection the server
// had closed is repeated once; that waits for the rate limit, too.
func (c *Client) Get(ctx context.Context, path string, query url.Values) (Response, io.ReadCloser, error) {
	token, err := c.token()
	if err != nil {
		c.api.mu.Lock()
		defer c.api.mu.Unlock()
		c.rejected = new(true)
		return Response{}, nil, &Error{Reason: Unauthorized, Err: fmt.Errorf("token file: %w", err)}
	}
	r, body, err := c.attempt(ctx, path, query, token)
	if _, stale := errors.AsType[staleError](err); stale {
		c.api.settings.Load().closeConnections()
		r, body, err = c.attempt(ctx, path, query, token)
	}
	return r, body, err
}

// attempt makes one request. It ends when its body is closed, or by an error.
func (c *Client) attempt(ctx context.Context, path string, query url.Values, token string) (Response, io.ReadCloser, error) {
	r := Response{Token: fingerprint(token)}
	if err := c.wait(ctx, r.Token); err != nil {
		return r, nil, err
	}
	settings, began, code := c.api.settings.Load(), time.Now(), "error"
	reqCtx, cancel := context.WithTimeout(ctx, settings.Timeout)
	end := func() {
		cancel()
		<-c.api.slots
		if ctx.Err() == nil { // else it was cut off
			c.api.requests.WithLabelValues(path, code).Inc()
			c.api.duration.WithLabelValues(path).Observe(time.Since(began).Seconds())
		}
	}
	reqCtx = context.WithValue(reqCtx, connected{}, func() { c.countLate(r.Token, began) })
	resp, err := settings.Transport.RoundTrip(c.newRequest(reqCtx, path, query, token))
	if err != nil {
		_, stale := errors.AsType[staleError](err)
		err = cmp.Or(ctx.Err(), error(connectionError(reqCtx, err)))
		if stale && ReasonOf(err) == Connection {
			err = staleError{err}
		}
		end()
		return r, nil, err
	}
	code = strconv.Itoa(resp.StatusCode)
	b := body{close: sync.OnceValue(func() error {
		defer end()
		return resp.Body.Close()
	})}
	b.Reader, err = c.readHeader(resp, &r, connectionReader{resp.Body, reqCtx})
	if err != nil {
		_ = b.Close()
		return r, nil, err
	}
	return r, b, nil
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

// readHeader keeps what the header says, and returns the JSON of a 200.
func (c *Client) readHeader(resp *http.Response, r *Response, body io.Reader) (io.Reader, error) {
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
		return nil, statusError(resp.StatusCode, until)
	}
	return decodedContent(body, resp.Header.Get("Content-Encoding"))
}

// statusError returns the error of a status other than 200. It has nothing of the body, which might
// repeat what was sent.
func statusError(status int, until time.Time) *Error {
	reasons := map[int]Reason{401: Unauthorized, 429: RateLimited, 503: Unavailable}
	e := &Error{Reason: cmp.Or(reasons[status], Status), Until: until, Err: fmt.Errorf("status %d", status)}
	if status >= 300 && status < 400 && status != http.StatusNotModified {
		e.Err = fmt.Errorf("%w: redirects are not followed: set api.base_url to the API's final address", e.Err)
	}
	return e
}

// connectionReader reads what a connection brings. Its errors are those of connectionError.
type connectionReader struct {
	io.Reader
	ctx context.Context // ends with the request
}

// Read implements io.Reader.
func (c connectionReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = connectionError(c.ctx, err)
	}
	return n, err
}

// body is the JSON of a response. Closing it ends the request.
type body struct {
	io.Reader
	close func() error
}

// Close implements io.Closer.
func (b body) Close() error { return b.close() }
