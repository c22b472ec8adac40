// Package simtest is the test harness of this repository: a simulated provider,
// the exporter's binary as a process, and assertions. It is imported by tests only.
package simtest

import (
	"context"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/simulator"
)

// Tokens of the accounts main and lab, which an [API] starts with by default. Tests that
// issue more tokens use the prefix "secret-", which [AssertNoSecrets] looks for.
const (
	MainToken = "secret-token-of-main"
	LabToken  = "secret-token-of-lab"
)

// Tokens returns the tokens of the accounts main and lab by account name.
func Tokens() map[string]string { return map[string]string{"main": MainToken, "lab": LabToken} }

// API is a simulated provider that listens on loopback or in memory. Tests can
// observe its requests and override its responses. It is closed at the end of the test.
type API struct {
	*simulator.Simulator
	URL *url.URL // base URL, such as http://127.1.2.3:4711/api/v1
	// Dial connects to a provider in memory, to which every address leads.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Settings are more of the section api in configuration files, such as "timeout: 5m".
	Settings string

	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex
	requests []Request
	active   []*Fault // the first one that matches a request applies
	hooks    []func(path string, query url.Values)
}

// Start serves a simulated provider on a loopback address.
func Start(t testing.TB, o simulator.Options) *API {
	t.Helper()
	l := listen(t)
	a := newAPI(t, o, l.Addr().String())
	a.serve(l)
	return a
}

// StartInMemory serves a simulated provider in memory, for use in a
// testing/synctest bubble. Clients connect with [API.Dial].
func StartInMemory(t testing.TB, o simulator.Options) *API {
	t.Helper()
	a := newAPI(t, o, "rental.example")
	n := &network{conns: make(chan net.Conn)}
	n.closed, n.close = context.WithCancel(context.Background())
	a.Dial = n.Dial
	a.serve(n)
	return a
}

func newAPI(t testing.TB, o simulator.Options, host string) *API {
	if o.Accounts == nil {
		o.Accounts = map[string]string{MainToken: "main", LabToken: "lab"}
	}
	return &API{t: t, Simulator: simulator.New(o), URL: &url.URL{Scheme: "http", Host: host, Path: simulator.Prefix}}
}

func (a *API) serve(l net.Listener) {
	config := &http.Server{Handler: a, ErrorLog: log.New(failingWriter{a.t}, "", 0)}
	a.server = &httptest.Server{Listener: l, Config: config}
	a.server.Start()
	a.t.Cleanup(a.Close)
}

// failingWriter fails the test if net/http logs something, such as a panic.
type failingWriter struct{ t testing.TB }

func (w failingWriter) Write(p []byte) (int, error) {
	w.t.Errorf("simulated provider: %s", p)
	return len(p), nil
}

// Close stops the provider at once and waits for its handlers.
func (a *API) Close() {
	_ = a.server.Listener.Close() // first, so that no new connection comes while the others are closed
	a.server.CloseClientConnections()
	a.server.Close()
}

// ConfigFile writes a configuration of the exporter into dir, with a token file
// for each account, and returns its path. The tokens are given by account name;
// settings is appended YAML.
func (a *API) ConfigFile(dir string, tokens map[string]string, settings string) string {
	a.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "api: {base_url: %q, %s}\n", a.URL, a.Settings)
	if len(tokens) > 0 {
		b.WriteString("accounts:\n")
	}
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		WriteFile(a.t, filepath.Join(dir, name+".token"), tokens[name]+"\n")
		fmt.Fprintf(&b, "  - {name: %s, token_file: %s.token}\n", name, name)
	}
	return WriteFile(a.t, filepath.Join(dir, "rental.yml"), b.String()+settings)
}

// Request is one received request, with or without a response.
type Request struct {
	Time   time.Time
	Path   string // escaped, without the prefix ("/plans"); the whole path if it is outside the prefix
	Query  url.Values
	Token  string // bearer token, "" if there is none; also recorded for public endpoints
	Header http.Header
	Status int // status of the response; 0 before it is sent, if the connection was dropped, and if a fault has a handler
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

// network is an in-memory network with one listener, for testing/synctest bubbles: their
// clock stands still while a goroutine is blocked on a real socket. It must be created
// in the bubble that uses it.
type network struct {
	conns  chan net.Conn
	closed context.Context
	close  context.CancelFunc
}

// Dial connects to the listener, and ignores the address. Its signature is that
// of net.Dialer.DialContext.
func (n *network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case n.conns <- server:
		return client, nil
	case <-n.closed.Done():
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (n *network) Close() error {
	n.close()
	return nil
}

// Addr implements net.Listener.
func (n *network) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
