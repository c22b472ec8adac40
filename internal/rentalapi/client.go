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
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
)

// Settings say where the API is and how requests are made.
type Settings struct {
	BaseURL   *url.URL          // ends in /api/v1
	Transport http.RoundTripper // makes one request per call: no kept connections, no HTTP/2 (see NewTransport)
	Timeout   time.Duration     // of one request, response included; greater than 0
	Limits    Limits
}

// API makes requests to the API. It lives as long as the process.
type API struct {
	// Collector has the metrics of requests, whose number of series does not grow with
	// accounts. Those of accounts are in Client.AddMetrics.
	prometheus.Collector

	requests, errors *prometheus.CounterVec
	duration         *prometheus.HistogramVec

	userAgent   string
	settings    atomic.Pointer[Settings]
	limiters    limiters
	largeBodies chan struct{} // one element for each large response that is read
}

// New returns a client that sends userAgent with each request.
func New(userAgent string, s Settings) *API {
	counter := func(d *metric.Definition) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.Labels)
	}
	c := &API{
		userAgent:   userAgent,
		limiters:    limiters{limits: s.Limits, byToken: map[Fingerprint]*limiter{}},
		largeBodies: make(chan struct{}, maxLargeBodies),
		requests:    counter(requestsTotal),
		errors:      counter(errorsTotal),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: requestDuration.Name, Help: requestDuration.Help, Unit: requestDuration.BaseUnit(),
			Buckets:                         []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour,
		}, requestDuration.Labels),
	}
	all := prometheus.NewRegistry()
	all.MustRegister(c.requests, c.duration, c.errors)
	c.Collector = all
	c.settings.Store(&s)
	return c
}

// ApplySettings puts new settings in force for all later requests; a new base URL only
// for scopes that are made later. Earlier requests still count against the new limits.
// If the base URL has a new host, all pauses end: the old host asked for them.
func (c *API) ApplySettings(s Settings) {
	before := c.settings.Swap(&s)
	c.limiters.apply(s.Limits, before.BaseURL.Host != s.BaseURL.Host)
}

// Token returns the present API token of an account. Its errors must not contain
// the token.
type Token func() (string, error)

// Client makes the requests of one account, or public ones. All requests of a scope
// share one rate limit with whatever else uses the same token.
type Client struct {
	client  *API
	account string
	token   Token    // of the public scope: an empty one
	baseURL *url.URL // fixed, so that a token is sent only where it was configured for

	mu    sync.Mutex
	sent  Fingerprint  // of the last token that was used; zero before
	seen  *Fingerprint // at the last call of TokenChanged, or at the first request; nil before
	state AccountState // without PausedUntil, which is that of the limiter
}

// Client returns the scope of an account, or the public one without account and token. Its
// requests go to the present base URL, also after another one was set.
func (c *API) Client(account string, token Token) *Client {
	if token == nil {
		token = func() (string, error) { return "", nil }
	}
	return &Client{client: c, account: account, token: token, baseURL: c.settings.Load().BaseURL}
}

// TokenChanged returns whether the token is another one than at the last call or, for the
// first call, at the first request, or can be read again.
func (s *Client) TokenChanged() bool {
	_, now, err := s.readToken()
	s.mu.Lock()
	defer s.mu.Unlock()
	before := cmp.Or(s.seen, &now)
	s.seen = &now
	return err == nil && *before != now
}

// readToken returns the token and its fingerprint; with an error, those of no token.
func (s *Client) readToken() (string, Fingerprint, error) {
	token, err := s.token()
	if err != nil {
		token = ""
	}
	return token, fingerprint(token), err
}

// Reject counts a response that the caller cannot use, and returns why as an *Error.
// The reason is Incomplete or TooLarge if err wraps ErrIncomplete or ErrTooLarge, and
// else Decode.
func (s *Client) Reject(path string, err error) error {
	return s.fail(path, newError(Decode, err))
}

// fail counts a request that gave no data, and returns why.
func (s *Client) fail(path string, e *Error) error {
	e.Path = path
	s.client.CountError(path, e.Reason)
	return e
}

// Get implements Getter. It waits for the scope's rate limit first. Its error is an *Error,
// or that of ctx if that has ended.
func (s *Client) Get(ctx context.Context, path string, query url.Values, read func(io.Reader) error) (Response, error) {
	token, sent, err := s.readToken()
	s.mu.Lock()
	s.seen = cmp.Or(s.seen, &sent)
	if err == nil {
		s.sent = sent
	}
	s.mu.Unlock()
	if err != nil {
		reason := Connection // too many open files say nothing about the token
		if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
			reason = Unauthorized
			s.record(true, nil)
		}
		return Response{}, s.fail(path, newError(reason, fmt.Errorf("token file: %w", err)))
	}
	limiter, slot, err := s.client.limiters.acquire(ctx, sent, path)
	if err != nil {
		return Response{Token: sent}, err
	}

	settings := s.client.settings.Load()
	reqCtx, cancel := context.WithTimeout(ctx, settings.Timeout)
	defer cancel()
	started := time.Now()
	// cutOff is why the response did not arrive in full, failure why it cannot be used.
	resp, outcome, cutOff := s.send(reqCtx, settings.Transport, path, query, token)
	defer limiter.release(slot, outcome)
	response, code, failure := Response{Token: sent}, "error", (*Error)(nil)
	if cutOff == nil {
		defer resp.Body.Close()
		code = "other" // each is a series
		if http.StatusText(resp.StatusCode) != "" {
			code = strconv.Itoa(resp.StatusCode)
		}
		until := s.readHeader(resp, &response, limiter)
		body := &body{ctx: reqCtx, r: resp.Body, slots: s.client.largeBodies}
		if resp.StatusCode != http.StatusOK {
			failure = statusError(resp, until)
		} else if err := read(body); err != nil {
			failure, cutOff = newError(Decode, err), body.err
		}
	}
	if cutOff != nil {
		failure = transportError(reqCtx, settings.Timeout, cutOff)
	}

	if ctx.Err() != nil { // no failure of the API
		return response, ctx.Err()
	}
	s.client.CountRequest(path, code, time.Since(started))
	if failure != nil {
		return response, s.fail(path, failure)
	}
	return response, nil
}
