// Package rentalapi speaks the protocol of the Dedicated Server Rental API, once
// for every resource: the token, the budgets of requests, the pauses that the API
// asks for, the envelope, errors, paging and the bounds on what an answer may be.
// It knows nothing of single resources and keeps no data.
package rentalapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Settings say where the API is and how it may be asked.
type Settings struct {
	BaseURL   *url.URL          // ends in /api/v1
	Transport http.RoundTripper // must make one request of one call: no connections kept, no HTTP/2 (see NewTransport)
	Timeout   time.Duration     // of one request, answer included
	Limits    Limits
}

// Client asks the API. It lives as long as the process; Configure changes it.
type Client struct {
	userAgent string
	settings  atomic.Pointer[Settings]
	budgets   budgets
	metrics   *metrics

	mu     sync.Mutex
	scopes map[*Scope]bool // those in use, for the metrics
}

// New returns a client that introduces itself with userAgent. It must be
// configured before it is used.
func New(userAgent string, s Settings) *Client {
	c := &Client{
		userAgent: userAgent,
		budgets:   budgets{limits: s.Limits, byKey: map[digest]*budget{}},
		metrics:   newMetrics(),
		scopes:    map[*Scope]bool{},
	}
	c.settings.Store(&s)
	return c
}

// Configure puts new settings in force for all later requests. Requests made
// under the old ones still count.
func (c *Client) Configure(s Settings) {
	c.settings.Store(&s)
	c.budgets.resize(s.Limits)
}

// Token returns the API token of an account as it is now. Its errors must not
// tell the token.
type Token func() (string, error)

// Scope is whom requests are made for: the public, or one account.
type Scope struct {
	client  *Client
	account string
	token   Token // nil for the public scope

	mu     sync.Mutex
	budget *budget // the last one used, for the metrics
}

// Scope returns the scope of an account, or the public one where both are empty.
// It must be closed when it is no longer used.
func (c *Client) Scope(account string, token Token) *Scope {
	s := &Scope{client: c, account: account, token: token}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scopes[s] = true
	return s
}

// Close ends the use of a scope: its metrics disappear.
func (s *Scope) Close() {
	c := s.client
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.scopes, s)
	c.metrics.forget(s.account)
}

// Fingerprint identifies the scope's present token without telling it; the same
// token has the same fingerprint while the process lives.
func (s *Scope) Fingerprint() ([32]byte, error) {
	token, err := s.read()
	return digestOf(token), err
}

func (s *Scope) read() (string, error) {
	if s.token == nil {
		return "", nil
	}
	return s.token()
}

// open makes one request inside the scope's budget and hands over the body of a
// 200, and what identifies the token that was sent. The caller must call done,
// which ends the request, with the error that reading the body gave; done returns
// that error with its reason.
func (s *Scope) open(ctx context.Context, c class, endpoint string, query url.Values) (body io.Reader, sent digest, done func(error) error, err error) {
	token, err := s.read()
	if err != nil {
		s.client.metrics.errors.WithLabelValues(endpoint, string(Unauthorized)).Inc()
		s.client.metrics.token(s.account, true)
		return nil, sent, nil, &Error{Endpoint: endpoint, Reason: Unauthorized, Err: err}
	}
	sent = digestOf(token)
	budget := s.client.budgets.of(sent)
	s.mu.Lock()
	s.budget = budget
	s.mu.Unlock()
	release, err := budget.acquire(ctx, c)
	if err != nil {
		return nil, sent, nil, err
	}
	settings := s.client.settings.Load()
	started := time.Now()
	reqCtx, cancel := context.WithTimeout(ctx, settings.Timeout)
	resp, err := s.send(reqCtx, settings, token, endpoint, query) //nolint:bodyclose // finish closes it

	finish := func(fault *Error) error {
		if resp != nil {
			resp.Body.Close()
		}
		cancel()
		release()
		if ctx.Err() != nil { // we are ending: no fault of the API
			return ctx.Err()
		}
		s.client.metrics.observe(endpoint, resp, fault, time.Since(started))
		if fault == nil {
			return nil
		}
		return fault
	}
	if err != nil {
		return nil, sent, nil, finish(broken(reqCtx, endpoint, 0, err))
	}
	fault := s.judge(resp, budget, endpoint)
	if fault != nil {
		return nil, sent, nil, finish(fault)
	}
	return resp.Body, sent, func(err error) error {
		if err == nil {
			return finish(nil)
		}
		var read *readError
		if errors.As(err, &read) {
			return finish(broken(reqCtx, endpoint, resp.StatusCode, read.err))
		}
		fault := &Error{Endpoint: endpoint, Reason: Decode, Code: resp.StatusCode, Err: err}
		if errors.Is(err, ErrTooLarge) {
			fault.Reason = TooLarge
		}
		return finish(fault)
	}, nil
}

func (s *Scope) send(ctx context.Context, settings *Settings, token, endpoint string, query url.Values) (*http.Response, error) {
	target := *settings.BaseURL
	target.Path = strings.TrimSuffix(target.Path, "/") + endpoint
	target.RawPath = ""
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", s.client.userAgent)
	req.Header.Set("Accept", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	// RoundTrip follows no redirect: a redirect would be a request that no budget
	// has seen, and might carry the token elsewhere.
	return settings.Transport.RoundTrip(req)
}

// judge reads status and limit headers: it pauses the scope where the answer
// asks for that, and returns an error for all that is not a 200.
func (s *Scope) judge(resp *http.Response, b *budget, endpoint string) *Error {
	now := time.Now()
	var until time.Time
	if pause, cause := pauseAsked(resp, now); pause > 0 {
		until = now.Add(pause)
		b.pause(until, cause)
	}
	if s.account != "" {
		s.client.metrics.limits(s.account, resp.Header)
		s.client.metrics.token(s.account, resp.StatusCode == http.StatusUnauthorized)
	}
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	fault := &Error{Endpoint: endpoint, Reason: Status, Code: resp.StatusCode, Until: until, Err: errorBody(resp)}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		fault.Reason = Unauthorized
	case http.StatusTooManyRequests:
		fault.Reason = RateLimited
	case http.StatusServiceUnavailable:
		fault.Reason = Unavailable
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		fault.Err = errors.New("redirects are not followed: set api.base_url to the API's final address")
	}
	return fault
}

// Describe implements prometheus.Collector.
func (c *Client) Describe(ch chan<- *prometheus.Desc) {
	c.metrics.describe(ch)
	ch <- backoffUntil.Desc()
}

// Collect implements prometheus.Collector.
func (c *Client) Collect(ch chan<- prometheus.Metric) {
	c.metrics.collect(ch)
	now := time.Now()
	latest := map[string]time.Time{} // while an account is replaced it may have two scopes
	c.mu.Lock()
	for s := range c.scopes {
		s.mu.Lock()
		b := s.budget
		s.mu.Unlock()
		if b == nil {
			continue
		}
		if until, ok := b.pausedUntil(now); ok && until.After(latest[s.account]) {
			latest[s.account] = until
		}
	}
	c.mu.Unlock()
	for account, until := range latest {
		m, err := backoffUntil.Metric(float64(until.UnixMilli())/1000, account)
		if err != nil {
			m = prometheus.NewInvalidMetric(backoffUntil.Desc(), fmt.Errorf("account: %w", err))
		}
		ch <- m
	}
}
