// Package rentalapi implements the protocol of the Dedicated Server Rental API, once
// for every resource: tokens, rate limits, Retry-After, the envelope, errors, paging
// and bounds on responses. It returns typed objects and pages, knows nothing about
// single resources and keeps no data.
package rentalapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Settings say where the API is and how requests are made.
type Settings struct {
	BaseURL   *url.URL          // ends in /api/v1
	Transport http.RoundTripper // makes one request per call: no kept connections, no HTTP/2 (see NewTransport)
	Timeout   time.Duration     // of one request, response included; greater than 0
	Limits    Limits
}

// Client makes requests to the API. It lives as long as the process.
type Client struct {
	*RequestMetrics // those of accounts are in Scope.AddMetrics

	userAgent   string
	settings    atomic.Pointer[Settings]
	limiters    limiters
	largeBodies chan struct{} // one element for each large response that is read
}

// New returns a client that sends userAgent with each request.
func New(userAgent string, s Settings) *Client {
	c := &Client{
		RequestMetrics: NewRequestMetrics(), userAgent: userAgent,
		limiters:    limiters{limits: s.Limits, byToken: map[Fingerprint]*limiter{}},
		largeBodies: make(chan struct{}, maxLargeBodies),
	}
	c.settings.Store(&s)
	return c
}

// ApplySettings puts new settings in force for all later requests; a new base URL only
// for scopes that are made later. Earlier requests still count against the new limits.
// If the base URL has a new host, all pauses end: the old host asked for them.
func (c *Client) ApplySettings(s Settings) {
	before := c.settings.Swap(&s)
	c.limiters.apply(s.Limits, before.BaseURL.Host != s.BaseURL.Host)
}

// Token returns the present API token of an account. Its errors must not contain
// the token.
type Token func() (string, error)

// Scope makes the requests of one account, or public ones. All requests of a scope
// share one rate limit with whatever else uses the same token.
type Scope struct {
	client  *Client
	account string
	token   Token    // of the public scope: an empty one
	baseURL *url.URL // fixed, so that a token is sent only where it was configured for

	mu      sync.Mutex
	limiter *limiter     // the last one used; nil before
	seen    *Fingerprint // by TokenChanged; zero if it could not be read
	state   AccountState // without PausedUntil, which is that of the limiter
}

// Scope returns the scope of an account, or the public one without account and token. Its
// requests go to the present base URL, also after another one was set.
func (c *Client) Scope(account string, token Token) *Scope {
	if token == nil {
		token = func() (string, error) { return "", nil }
	}
	return &Scope{client: c, account: account, token: token, baseURL: c.settings.Load().BaseURL}
}

// TokenChanged returns whether the token is another one than at the last call, or can be
// read again. The first call returns false.
func (s *Scope) TokenChanged() bool {
	token, err := s.token()
	if err != nil {
		token = ""
	}
	now := fingerprint(token)
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.seen
	s.seen = &now
	return err == nil && before != nil && *before != now
}

// Reject counts a response that the caller cannot use, and returns why as an *Error.
// The reason is Incomplete or TooLarge if err wraps ErrIncomplete or ErrTooLarge, and
// else Decode.
func (s *Scope) Reject(endpoint string, err error) error {
	failure := unusable(endpoint, http.StatusOK, err)
	s.client.CountError(endpoint, failure.Reason)
	return failure
}

// Get implements Getter. It waits for the scope's rate limit first. Its error is an *Error,
// or that of ctx if that has ended.
func (s *Scope) Get(ctx context.Context, p Priority, endpoint string, query url.Values, read func(io.Reader) error) (Response, error) {
	token, err := s.token()
	if err != nil {
		failure := &Error{Endpoint: endpoint, Reason: Unauthorized, Err: fmt.Errorf("token file: %w", err)}
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) { // too many open files say nothing about the token
			failure.Reason = Connection
		} else {
			s.record(true, nil)
		}
		s.client.CountError(endpoint, failure.Reason)
		return Response{}, failure
	}
	sent := fingerprint(token)
	limiter := s.client.limiters.get(sent)
	defer s.client.limiters.put(limiter)
	s.mu.Lock()
	s.limiter = limiter
	s.mu.Unlock()
	slot, err := limiter.acquire(ctx, p, endpoint)
	if err != nil {
		return Response{Token: sent}, err
	}
	r := &request{scope: s, settings: s.client.settings.Load(), limiter: limiter, endpoint: endpoint, query: query, token: token}
	defer func() { limiter.release(slot, r.outcome) }()
	r.response.Token = sent
	reqCtx, cancel := context.WithTimeout(ctx, r.settings.Timeout)
	defer cancel()
	started := time.Now()
	code, failure := r.exchange(reqCtx, read)
	if ctx.Err() != nil { // no failure of the API
		return r.response, ctx.Err()
	}
	s.client.CountRequest(endpoint, code, time.Since(started))
	if failure == nil {
		return r.response, nil
	}
	s.client.CountError(endpoint, failure.Reason)
	return r.response, failure
}
