package simtest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Response is a complete response.
type Response struct {
	Status int
	Header http.Header
	Body   string // as sent
}

// newClient returns a client that uses a new connection for each request, so that
// it never repeats one, and that neither decompresses nor follows redirects.
func newClient(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Do sends a request without a body; header is names and values in turn. If the
// body ends early, the part that was received is returned with the error.
func Do(client *http.Client, method, url string, header ...string) (Response, error) {
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		return Response{}, err
	}
	setHeader(r, header)
	resp, err := client.Do(r)
	if err != nil {
		return Response{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return Response{resp.StatusCode, resp.Header, string(body)}, err
}

// Get sends a GET request, which must get a response, on a new connection.
func Get(t testing.TB, url string, header ...string) Response {
	t.Helper()
	r, err := Do(newClient(nil), http.MethodGet, url, header...)
	if err != nil {
		t.Fatalf("GET %s: %v", url, err)
	}
	return r
}

// ServeGet returns a handler's response to a GET request, without a network.
func ServeGet(h http.Handler, pathAndQuery string, header ...string) Response {
	r := httptest.NewRequest(http.MethodGet, pathAndQuery, nil)
	setHeader(r, header)
	return serve(h, r)
}

// serve returns a handler's response to a request.
func serve(h http.Handler, r *http.Request) Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return Response{w.Code, w.Header(), w.Body.String()}
}

func setHeader(r *http.Request, header []string) {
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
}

// Exposition parses the metrics of a response.
func (r Response) Exposition(t testing.TB) Exposition {
	t.Helper()
	if r.Status != http.StatusOK {
		t.Fatalf("metrics: got status %d, want 200: %.500s", r.Status, r.Body)
	}
	return ParseExposition(t, r.Body, r.Header.Get("Content-Type"))
}
