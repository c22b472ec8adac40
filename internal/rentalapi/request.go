package rentalapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	maxBodyBytes  = 32 << 20 // of a response that is read; one with more fails
	maxErrorBytes = 16 << 10 // of a status other than 200; the rest is not read
)

// send sends a request and reads the header of its response.
func (s *Client) send(ctx context.Context, transport http.RoundTripper, path string, query url.Values, token string) (*http.Response, outcome, error) {
	target := *s.baseURL
	target.Path += path
	if target.RawPath != "" { // a prefix with escaped characters
		target.RawPath += path
	}
	target.RawQuery = query.Encode()
	header := http.Header{"User-Agent": {s.client.userAgent}, "Accept": {"application/json"}}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	var written atomic.Bool // it has a connection, TLS handshake included
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { written.Store(true) }})
	req := (&http.Request{Method: http.MethodGet, URL: &target, Header: header}).WithContext(ctx)
	// RoundTrip follows no redirect: that would be a request that no limiter has
	// counted, and might send the token elsewhere.
	resp, err := transport.RoundTrip(req)
	switch {
	case err == nil:
		return resp, answered, nil
	case written.Load():
		return nil, unanswered, err
	}
	return nil, notSent, err
}

// readHeader keeps when and how old a response is, and what it says about the limits. It
// returns the end of the pause that the response asks for, zero if it does not.
func (s *Client) readHeader(resp *http.Response, r *Response, l *limiter) (until time.Time) {
	r.Received = time.Now()
	r.Date, _ = http.ParseTime(resp.Header.Get("Date"))
	if seconds, err := strconv.ParseUint(strings.TrimSpace(resp.Header.Get("Age")), 10, 31); err == nil {
		r.Age = new(time.Duration(seconds) * time.Second)
	}
	if s.account != "" {
		s.record(resp.StatusCode == http.StatusUnauthorized, resp.Header)
	}
	if delay, cause := retryDelay(resp, cmp.Or(r.Date, r.Received)); delay > 0 {
		until = r.Received.Add(delay)
		l.pause(until, cause)
	}
	return until
}

// statusError is the error of a status other than 200. Of the API's own codes it has only
// those that are documented: anything else might repeat what was sent.
func statusError(resp *http.Response, until time.Time) *Error {
	reasons := map[int]Reason{http.StatusUnauthorized: Unauthorized, http.StatusTooManyRequests: RateLimited, http.StatusServiceUnavailable: Unavailable}
	e := &Error{Reason: cmp.Or(reasons[resp.StatusCode], Status), Code: resp.StatusCode, Until: until}
	documented := []string{"invalid_parameter", "unauthorized", "invalid_token", "not_found", "method_not_allowed", "rate_limited", "unavailable"}
	var body struct{ Error struct{ Code string } }
	err := json.NewDecoder(io.LimitReader(resp.Body, maxErrorBytes)).Decode(&body)
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		e.Err = errors.New("redirects are not followed: set api.base_url to the API's final address")
	case err == nil && slices.Contains(documented, body.Error.Code):
		e.Err = errors.New(body.Error.Code)
	}
	return e
}

const (
	maxSmallBody   = 512 << 10 // bytes that every response may have at any time
	maxLargeBodies = 4         // responses that may have more at a time
)

// body reads the body of a response. Beyond maxSmallBody it waits until few enough others
// do so: with many accounts, all could be as large as a response may be.
type body struct {
	ctx   context.Context // ends with the request
	r     io.Reader
	slots chan struct{}
	read  int
	held  bool
	err   error // why the body did not arrive in full
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (n int, err error) {
	if b.read > maxSmallBody && !b.held {
		select {
		case b.slots <- struct{}{}:
			b.held = true
			context.AfterFunc(b.ctx, func() { <-b.slots })
		case <-b.ctx.Done():
			b.err = b.ctx.Err()
			return 0, b.err
		}
	}
	n, err = b.r.Read(p)
	b.read += n
	if err != io.EOF {
		b.err = err
	}
	if b.read > maxBodyBytes {
		err = ErrTooLarge
	}
	return n, err
}
