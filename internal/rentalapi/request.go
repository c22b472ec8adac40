package rentalapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// newRequest returns a request. It must be sent with RoundTrip, which follows no redirect:
// that would be a request that no limiter has counted, and might send the token elsewhere.
func (c *Client) newRequest(ctx context.Context, path string, query url.Values, token string) *http.Request {
	target := c.baseURL.JoinPath(path)
	target.RawQuery = query.Encode()
	header := http.Header{"User-Agent": {c.api.userAgent}, "Accept": {"application/json"}}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return (&http.Request{Method: http.MethodGet, URL: target, Header: header}).WithContext(ctx)
}

// readResponse hands the body of a 200 to read, and keeps what the header says. It returns
// nil or why the response is of no use.
func (c *Client) readResponse(resp *http.Response, body io.Reader, r *Response, read func(io.Reader) error) *Error {
	r.Received = time.Now()
	r.Date, _ = http.ParseTime(resp.Header.Get("Date"))
	if seconds := headerNumber(resp.Header, "Age"); seconds != nil {
		r.Age = new(time.Duration(*seconds) * time.Second)
	}
	if c.account != "" {
		c.record(resp.StatusCode, resp.Header)
	}
	var until time.Time
	if delay, cause := retryDelay(resp, cmp.Or(r.Date, r.Received)); delay > 0 {
		until = r.Received.Add(delay)
		c.api.backOff(r.Token, until, cause)
	}
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, io.LimitReader(body, maxValueBytes)) // a connection is kept only if its response was read
		return statusError(resp.StatusCode, until)
	}
	err := read(body)
	_, noJSON := errors.AsType[*json.SyntaxError](err)
	switch {
	case err == nil:
		return nil
	case noJSON && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html"):
		err = errors.New("response: a web page: api.base_url probably leads to a site and not to the API")
	}
	return newError(Decode, err)
}

// statusError is the error of a status other than 200. It has nothing of the body, which might
// repeat what was sent.
func statusError(status int, until time.Time) *Error {
	e := &Error{Reason: Status, Until: until, Err: fmt.Errorf("status %d", status)}
	switch {
	case status == http.StatusUnauthorized:
		e.Reason = Unauthorized
	case status == http.StatusTooManyRequests:
		e.Reason = RateLimited
	case status == http.StatusServiceUnavailable:
		e.Reason = Unavailable
	case status >= 300 && status < 400:
		e.Err = fmt.Errorf("%w: redirects are not followed: set api.base_url to the API's final address", e.Err)
	}
	return e
}

// body reads the body of a response. Its errors are those of the connection.
type body struct {
	io.Reader
	ctx     context.Context // of the request
	timeout time.Duration   // of the request
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = connectionError(b.ctx, b.timeout, err)
	}
	return n, err
}
