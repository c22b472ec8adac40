// Package rentalapi implements the protocol of the Dedicated Server Rental API, once
// for every resource: tokens, rate limits, Retry-After, the envelope, errors, paging
// and bounds on responses. It returns typed objects and pages, knows nothing about
// single resources and keeps no data.
package rentalapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
)

// Settings say where the API is and how requests are made.
type Settings struct {
	BaseURL   *url.URL          // ends in /api/v1
	Transport http.RoundTripper // a Transport
	Timeout   time.Duration     // bound on one request, response included; greater than 0
	Limits    Limits
}

// API makes requests to the API. It lives as long as the process.
type API struct {
	userAgent string
	settings  atomic.Pointer[Settings]

	requests, errors *prometheus.CounterVec
	duration         *prometheus.HistogramVec

	permits sync.Map // maps what they are for to a *semaphore.Weighted

	mu       sync.Mutex // guards the rest, and what is known of the accounts
	limiters map[Fingerprint]*limiter
}

// New returns an API that sends userAgent with each request. It registers the metrics of
// requests, whose number of series does not grow with accounts. Those of an account are
// returned by Client.AddMetrics.
func New(userAgent string, s Settings, metrics prometheus.Registerer) *API {
	a := &API{userAgent: userAgent, limiters: map[Fingerprint]*limiter{}}
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
	for token, l := range a.limiters {
		l.SetLimit(s.Limits.refill(token))
		if before.BaseURL.Host != s.BaseURL.Host {
			l.backoff = Error{}
		}
	}
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

	turn  *semaphore.Weighted // for its large responses
	files *semaphore.Weighted // for what may wait for a file
	hangs sync.Map            // maps a path to whether its last request timed out

	// These are guarded by the mutex of the API.
	sent             Fingerprint // the last token that was read
	rejected         *bool       // whether the API last refused the token; nil if that is not known
	limit, remaining *float64    // the RateLimit headers; nil if not known
}

// Client returns the client of an account, or the public one without account and token. Its
// requests go to the present base URL, also after another one was set.
func (a *API) Client(account string, token Token) *Client {
	c := &Client{api: a, account: account, token: token, baseURL: a.settings.Load().BaseURL, files: semaphore.NewWeighted(maxFiles)}
	c.turn = a.permitsFor("large responses of accounts", 1)
	if token == nil {
		c.token, c.turn = func() (string, error) { return "", nil }, a.permitsFor("large public responses", 1)
	}
	return c
}

// LastToken identifies the token of the newest request.
func (c *Client) LastToken() Fingerprint {
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	return c.sent
}

// CountFailure counts that a fetch of a path gave no data.
func (a *API) CountFailure(path string, err error) {
	a.errors.WithLabelValues(path, string(ErrorOf(err).Reason)).Inc()
}

// Get implements Getter. It waits for the rate limit first. A request holds its permit until read has
// returned: what waits to be decoded is memory, too.
func (c *Client) Get(ctx context.Context, path string, query url.Values, read func(*json.Decoder) error) (r Response, err error) {
	token, permit, err := c.wait(ctx, path)
	if err != nil {
		return r, err
	}
	defer permit.Release(1)
	r.Token = fingerprint(token)
	settings, began, code := c.api.settings.Load(), time.Now(), "error"
	reqCtx, cancel := context.WithTimeout(ctx, settings.Timeout)
	defer cancel()
	var waiting stage
	reqCtx = httptrace.WithClientTrace(reqCtx, waiting.trace(func() { c.countLate(r.Token, began) }))
	resp, err := within(reqCtx, c, func() (*http.Response, error) {
		return settings.Transport.RoundTrip(c.newRequest(reqCtx, path, query, token))
	})
	if err != nil {
		err = connectionError(reqCtx, err, &waiting)
	} else {
		code = strconv.Itoa(resp.StatusCode)
		err = c.read(reqCtx, resp, &r, &waiting, read)
		_ = resp.Body.Close()
	}
	if errors.Is(ctx.Err(), context.Canceled) { // cut off, not failed
		return r, ctx.Err()
	}
	c.hangs.Store(path, err != nil && ErrorOf(err).Reason == Timeout)
	c.api.requests.WithLabelValues(path, code).Inc()
	c.api.duration.WithLabelValues(path).Observe(time.Since(began).Seconds())
	return r, err
}

// maxFiles bounds what one account left to itself because it waits for a file; so many collectors an
// account has at most.
const maxFiles = 16

var errFile = errors.New("reading a file: timed out")

// within returns what f returns, which may read a file that blocks, and knows no end: a second after that
// of ctx, it is left to itself.
func within[T any](ctx context.Context, c *Client, f func() (T, error)) (value T, err error) {
	if !c.files.TryAcquire(1) {
		return value, errFile
	}
	done, stuck := make(chan func() (T, error), 1), make(chan struct{})
	go func() {
		defer c.files.Release(1)
		value, err := f()
		done <- func() (T, error) { return value, err }
	}()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, func() { close(stuck) }) })()
	select {
	case result := <-done:
		return result()
	case <-stuck:
		return value, errFile
	}
}

// readToken returns the present token. One that cannot be read is as good as refused.
func (c *Client) readToken(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.api.settings.Load().Timeout)
	defer cancel()
	token, err := within(ctx, c, c.token)
	if err == nil {
		return token, nil
	}
	c.hangs.Store(path, errors.Is(err, errFile))
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	c.rejected = new(true)
	return "", &Error{Reason: Unauthorized, Err: fmt.Errorf("token file: %w", err)}
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

// read keeps what the header says, and calls read with the JSON of a 200.
func (c *Client) read(ctx context.Context, resp *http.Response, r *Response, waiting *stage, read func(*json.Decoder) error) error {
	r.Received = time.Now()
	r.Date, _ = http.ParseTime(resp.Header.Get("Date"))
	if seconds := headerNumber(resp.Header, "Age"); seconds != nil {
		r.Age = new(time.Duration(*seconds) * time.Second)
	}
	var until time.Time
	if delay := retryDelay(resp, cmp.Or(r.Date, r.Received)); delay > 0 {
		until = r.Received.Add(delay)
	}
	failure := statusError(resp.StatusCode, until)
	backoff := *failure
	if resp.StatusCode == http.StatusOK || failure.Reason != RateLimited && resp.Header.Get("Retry-After") == "" {
		backoff.Reason, backoff.Err = RateLimited, errors.New("RateLimit-Remaining: 0")
	}
	c.record(resp, r.Token, backoff)
	if resp.StatusCode != http.StatusOK {
		return failure
	}
	body := connection{resp.Body, func(err error) *Error { return connectionError(ctx, err, waiting) }}
	return decodeContent(ctx, body, c.turn, read)
}

// statusError returns the error of a status other than 200. It has nothing of the body, which might
// repeat what was sent.
func statusError(status int, until time.Time) *Error {
	reasons := map[int]Reason{401: Unauthorized, 429: RateLimited, 503: Unavailable}
	e := &Error{Reason: cmp.Or(reasons[status], Status), Until: until, Err: fmt.Errorf("status %d", status)}
	if status >= 300 && status < 400 {
		e.Hint = "redirects are not followed: set api.base_url to the API's final address"
	}
	return e
}
