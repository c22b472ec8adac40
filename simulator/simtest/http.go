package simtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Response is a complete response.
type Response struct {
	Status int
	Header http.Header
	Body   string // body as it was sent, perhaps compressed
}

// Do sends a request without a body; header is names and values in turn. It uses a new
// connection, so that it never repeats a request, and neither decompresses nor follows redirects.
func Do(method, url string, header ...string) (Response, error) {
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		return Response{}, err
	}
	setHeader(r, header)
	resp, err := (&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(r)
	if err != nil {
		return Response{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return Response{resp.StatusCode, resp.Header, string(body)}, err
}

// Get sends a GET request, which must get a response.
func Get(t testing.TB, url string, header ...string) Response {
	t.Helper()
	r, err := Do(http.MethodGet, url, header...)
	if err != nil {
		t.Fatalf("GET %s: %v", url, err)
	}
	return r
}

// Server is an exporter that serves.
type Server struct {
	T   testing.TB
	URL string // such as http://127.0.0.1:4711
}

// WaitReady waits until the exporter has fetched everything once.
func (s *Server) WaitReady() {
	s.T.Helper()
	Eventually(s.T, "ready", func() bool { return s.Get("/-/ready").Status == http.StatusOK })
}

// Get requests a path of the exporter; header is names and values in turn.
func (s *Server) Get(path string, header ...string) Response {
	s.T.Helper()
	return Get(s.T, s.URL+path, header...)
}

// Scrape returns the exporter's metrics.
func (s *Server) Scrape() Exposition {
	s.T.Helper()
	return s.Get("/metrics").Exposition(s.T)
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
