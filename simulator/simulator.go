// Package simulator implements the rental API as an HTTP server: all endpoints, with prefix,
// envelopes, errors, rate limits, headers and paging as documented by the provider. It is
// strict: a query parameter that is not documented is an error. It can simulate activity.
// Faults and a request log are in simtest.
//
// Its JSON is written from the provider's document and shares no code with the
// client, so that the two cannot contain the same mistake. Comments state the
// choices made where that document is silent.
//
// It uses the time package's clock and starts no goroutine, so it works in a
// testing/synctest bubble.
package simulator

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Prefix is how the path of each endpoint begins.
const Prefix = "/api/v1"

// Options configures a simulator. The zero value is the documented service.
type Options struct {
	Accounts  map[string]string // names of example accounts by token
	Unlimited bool              // admits more than the documented rate limits, and sends no RateLimit headers
}

// Simulator serves a [World] over HTTP. It is safe for concurrent use.
type Simulator struct {
	mu       sync.Mutex // held while a response is made
	public   *limiter   // nil for no limit
	accounts *limiter
	world    *World
	cache    map[string]cached
}

// cached is a public response that a provider with a cache sends until it expires.
type cached struct {
	made time.Time
	response
}

// New returns a simulator with the documented catalog of 15 plans and 8
// locations, OS images and an operational status.
func New(o Options) *Simulator {
	c := newCatalog()
	w := &World{
		Plans: c.Plans, Locations: c.Locations, OS: c.OS, Status: operationalStatus(c.Locations, time.Now()),
		Accounts: map[string]*Account{}, SoldOutAt: map[[2]string]bool{}, Failing: map[string]int{},
	}
	for token, name := range o.Accounts {
		w.Accounts[token] = ExampleAccount(name, time.Now())
	}
	recompute(w)
	s := &Simulator{world: w, cache: map[string]cached{}}
	if !o.Unlimited {
		s.public, s.accounts = &limiter{59, map[string][]time.Time{}}, &limiter{120, map[string][]time.Time{}}
	}
	return s
}

// Change calls f with the world while no response is being made. The next
// response contains all changes; generated_at and updated_at are then never older than
// the last change. f must not retain the world.
func (s *Simulator) Change(f func(w *World)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.world)
	s.world.changed = time.Now()
}

// ServeHTTP sends a complete response. A failed write means that the client closed the
// connection, which is not an error of the server.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := s.respond(r)
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// RoundTrip implements http.RoundTripper: it responds in this process, without a network.
func (s *Simulator) RoundTrip(r *http.Request) (*http.Response, error) {
	a := s.respond(r)
	a.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r}, nil
}

// response is what a request gets, before it is sent.
type response struct {
	status int
	header http.Header
	body   []byte
}

// respond checks the method before the token, because 405 is documented for all endpoints.
// Every other response to a known token counts and has its rate limit headers, errors
// included.
func (s *Simulator) respond(r *http.Request) response {
	s.mu.Lock()
	defer s.mu.Unlock()
	res, known := route(r.URL)
	if !known {
		return failure(http.StatusNotFound, "not_found", "unknown endpoint; see GET "+Prefix+"/plans")
	}
	if r.Method != http.MethodGet {
		a := failure(http.StatusMethodNotAllowed, "method_not_allowed", "the API is read-only; use GET /"+res.name)
		a.header.Set("Allow", http.MethodGet)
		return a
	}
	if res.private {
		return s.accountResponse(r, res)
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr) // empty for an in-memory connection
	a := s.limited(s.public.take(address, time.Now()), res, r.URL.RawQuery, nil)
	a.header.Set("Access-Control-Allow-Origin", "*")
	if a.status == http.StatusOK {
		a.header.Set("Cache-Control", "max-age="+seconds(res.maxAge))
	}
	if s.world.SendsAge {
		made := s.world.made(res.maxAge)
		if s.world.Caches {
			made = s.cache[res.name+"?"+r.URL.RawQuery].made
		}
		a.header.Set("Age", strconv.Itoa(int(time.Since(made)/time.Second)))
	}
	return a
}

func (s *Simulator) accountResponse(r *http.Request, res resource) response {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), "Bearer ")
	account := s.world.Accounts[token]
	switch {
	case account == nil && token == "":
		return failure(http.StatusUnauthorized, "unauthorized", "this endpoint needs the header Authorization: Bearer <API_TOKEN>; GET "+Prefix+"/plans needs none")
	case account == nil:
		return failure(http.StatusUnauthorized, "invalid_token", "the API token is unknown or revoked; GET "+Prefix+"/plans needs none")
	}
	q := s.accounts.take(token, time.Now())
	a := s.limited(q, res, r.URL.RawQuery, account)
	if s.accounts != nil {
		a.header.Set("RateLimit-Limit", strconv.Itoa(s.accounts.limit))
		a.header.Set("RateLimit-Remaining", strconv.Itoa(q.remaining))
		a.header.Set("RateLimit-Reset", seconds(q.reset))
	}
	return a
}

// limited returns the response to a request that was counted.
func (s *Simulator) limited(q quota, res resource, query string, account *Account) response {
	if q.admitted {
		return s.content(res, query, account)
	}
	a := failure(http.StatusTooManyRequests, "rate_limited", "too many requests; retry after the delay in the Retry-After header")
	a.header.Set("Retry-After", seconds(q.reset))
	return a
}

// content returns the response to an admitted request.
func (s *Simulator) content(res resource, query string, account *Account) response {
	values, err := url.ParseQuery(query)
	if err != nil || !res.accepts(values) {
		return failure(http.StatusBadRequest, "invalid_parameter", "a parameter is unknown or has an unknown value; use GET /"+res.name)
	}
	if status := s.world.Failing["/"+res.name]; status >= http.StatusBadRequest {
		return simulatedError(status)
	}
	if res.private || !s.world.Caches {
		return res.response(s.world, account, values)
	}
	key := res.name + "?" + query
	if c, ok := s.cache[key]; !ok || time.Since(c.made) >= res.maxAge {
		s.cache[key] = cached{time.Now(), res.response(s.world, nil, values)}
	}
	c := s.cache[key].response
	return response{c.status, maps.Clone(c.header), c.body}
}

// Body returns the body of the response to a GET request of a path ("/topups") with a
// query. Nothing is counted. It panics if there is no such path or account.
func (s *Simulator) Body(pathAndQuery, token string) string {
	path, query, _ := strings.Cut(pathAndQuery, "?")
	res, _ := route(&url.URL{Path: Prefix + path})
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.content(res, query, s.world.Accounts[token]).body)
}

// ErrorBody returns the body of an error that the present data does not cause.
func ErrorBody(status int) []byte { return simulatedError(status).body }

func simulatedError(status int) response {
	code := strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_")
	return failure(status, code, "a simulated error")
}

// failure returns the documented error response.
func failure(status int, code, message string) response {
	return reply(status, Object{"error": Object{"code": code, "message": message, "docs": site + "/docs/api#errors"}})
}

// reply returns a response that is not cached: one with account data, or an error. It panics if
// the body cannot be encoded, because the test that put it into the world is wrong.
func reply(status int, body Object) response {
	text, err := json.Marshal(body)
	if err != nil {
		panic("simulator: the world contains a value without JSON encoding: " + err.Error())
	}
	return response{status, http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}}, text}
}
