package simtest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"server_rental_exporter/internal/simulator"
)

// Request is one received request, with or without a response.
type Request struct {
	Time   time.Time
	Path   string // escaped, without the prefix ("/plans"); the whole path if it is outside the prefix
	Query  url.Values
	Token  string // bearer token, "" if there is none; also recorded for public endpoints
	Header http.Header
	Status int // as sent; 0 before that, if the connection was dropped, and if a fault has a handler
}

func newRequest(r *http.Request) Request {
	path := r.URL.EscapedPath()
	if rest, found := strings.CutPrefix(path, simulator.Prefix); found && strings.HasPrefix(rest, "/") {
		path = rest
	}
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), "Bearer ")
	return Request{Time: time.Now(), Path: path, Query: r.URL.Query(), Token: token, Header: r.Header.Clone()}
}

// ServeHTTP records a request. Then a fault responds, or the simulator.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := newRequest(r)
	a.mu.Lock()
	n := len(a.requests)
	a.requests = append(a.requests, request)
	a.mu.Unlock()
	f := a.take(request)
	if f.Handler != nil {
		f.Handler(w, r)
		return
	}
	f.apply(w, r, a.Simulator, func(status int) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.requests[n].Status = status
	})
}

// Requests returns the received requests in order of arrival. A status is
// recorded before it is sent.
func (a *API) Requests() []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

// CountByPath counts the requests by path, without the first since of them.
func (a *API) CountByPath(since int) map[string]int {
	counts := map[string]int{}
	for _, r := range a.Requests()[since:] {
		counts[r.Path]++
	}
	return counts
}
