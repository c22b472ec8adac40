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
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// request is one request that has a slot of its limiter.
type request struct {
	scope    *Scope
	settings *Settings
	limiter  *limiter
	endpoint string
	query    url.Values
	token    string
	response Response
	written  atomic.Bool // it has a connection, TLS handshake included
	outcome  outcome
}

// exchange sends the request and reads the response. It returns the status code, "error" if
// no response came, and "other" for a code that HTTP does not define: each code is a series.
func (r *request) exchange(ctx context.Context, read func(io.Reader) error) (code string, failure *Error) {
	resp, err := r.send(ctx)
	if r.written.Load() {
		r.outcome = unanswered
	}
	if err != nil {
		return "error", r.transportError(ctx, 0, err)
	}
	defer resp.Body.Close()
	r.outcome = answered
	r.response.readHeader(resp.Header)
	code = "other"
	if http.StatusText(resp.StatusCode) != "" {
		code = strconv.Itoa(resp.StatusCode)
	}
	if failure := r.checkResponse(resp); failure != nil {
		return code, failure
	}
	body := &body{ctx: ctx, r: resp.Body, slots: r.scope.client.largeBodies}
	defer body.release()
	switch err := read(body); {
	case err == nil:
		return code, nil
	case body.err != nil:
		return code, r.transportError(ctx, resp.StatusCode, body.err)
	default:
		return code, unusable(r.endpoint, resp.StatusCode, err)
	}
}

func (r *request) send(ctx context.Context) (*http.Response, error) {
	target := *r.scope.baseURL
	target.Path = strings.TrimSuffix(target.Path, "/") + r.endpoint
	if target.RawPath != "" { // a prefix with escaped characters
		target.RawPath = strings.TrimSuffix(target.RawPath, "/") + r.endpoint
	}
	target.RawQuery = r.query.Encode()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { r.written.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", r.scope.client.userAgent)
	req.Header.Set("Accept", "application/json")
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	// RoundTrip follows no redirect: that would be a request that no limiter has
	// counted, and might send the token elsewhere.
	return r.settings.Transport.RoundTrip(req)
}

// checkResponse reads status and limit headers: it pauses the scope if the response
// asks for that, and returns an error unless the status is 200.
func (r *request) checkResponse(resp *http.Response) *Error {
	var until time.Time
	if delay, cause := retryDelay(resp, cmp.Or(r.response.Date, r.response.Received)); delay > 0 {
		until = r.response.Received.Add(delay)
		r.limiter.pause(until, cause)
	}
	if r.scope.account != "" {
		r.scope.record(resp.StatusCode == http.StatusUnauthorized, resp.Header)
	}
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	reasons := map[int]Reason{http.StatusUnauthorized: Unauthorized, http.StatusTooManyRequests: RateLimited, http.StatusServiceUnavailable: Unavailable}
	failure := &Error{
		Endpoint: r.endpoint, Reason: cmp.Or(reasons[resp.StatusCode], Status), Code: resp.StatusCode, Until: until, Err: errorCode(resp),
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		failure.Err = errors.New("redirects are not followed: set api.base_url to the API's final address")
	}
	return failure
}

// unusable is the error of a response that was read and cannot be used.
func unusable(endpoint string, code int, err error) *Error {
	failure := &Error{Endpoint: endpoint, Reason: Decode, Code: code, Err: err}
	switch {
	case errors.Is(err, ErrTooLarge):
		failure.Reason = TooLarge
	case errors.Is(err, ErrIncomplete):
		failure.Reason = Incomplete
	}
	return failure
}

const (
	maxSmallBody   = 512 << 10 // bytes that every response may have at any time
	maxLargeBodies = 4         // responses that may have more at a time
)

// body reads the body of a response. Beyond maxSmallBody it waits until few enough others
// do so: with many accounts, all could be as large as a response may be.
type body struct {
	ctx   context.Context
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
	return n, err
}

func (b *body) release() {
	if b.held {
		<-b.slots
	}
}

// errorCode reads the API's error.code out of a response. Only documented codes are
// reported: anything else might repeat what was sent.
func errorCode(resp *http.Response) error {
	var body struct{ Error struct{ Code string } }
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes))
	if err != nil || json.Unmarshal(raw, &body) != nil {
		return nil
	}
	switch body.Error.Code {
	case "invalid_parameter", "unauthorized", "invalid_token", "not_found", "method_not_allowed", "rate_limited", "unavailable":
		return errors.New(body.Error.Code)
	default:
		return nil
	}
}

// readHeader keeps when and how old the response is.
func (a *Response) readHeader(h http.Header) {
	a.Received = time.Now()
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		a.Date = at
	}
	if seconds, err := strconv.ParseUint(strings.TrimSpace(h.Get("Age")), 10, 31); err == nil {
		age := time.Duration(seconds) * time.Second
		a.Age = &age
	}
}
