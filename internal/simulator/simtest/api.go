// Package simtest is the test harness of this repository: a simulated provider,
// the exporter's binary as a process, and assertions. It is imported by tests only.
package simtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"server_rental_exporter/internal/memnet"
	"server_rental_exporter/internal/simulator"
)

// Tokens of the accounts main and lab, which every [API] starts with. Tests that
// issue more tokens use the prefix "secret-", which [AssertNoSecrets] looks for.
const (
	MainToken = "secret-token-of-main"
	LabToken  = "secret-token-of-lab"
)

// Tokens returns the tokens of the accounts main and lab by account name.
func Tokens() map[string]string { return map[string]string{"main": MainToken, "lab": LabToken} }

// API is a simulated provider that listens on loopback or in memory. Tests can
// observe and override its answers. It is closed at the end of the test.
type API struct {
	*simulator.Simulator
	URL *url.URL         // base URL, such as http://127.1.2.3:4711/api/v1
	Net *memnet.Listener // nil on loopback

	t      testing.TB
	server *http.Server
	served chan struct{}  // closed when the server has ended
	conns  sync.WaitGroup // connections of the server

	mu        sync.Mutex
	onRequest func(path string, query url.Values)
	overrides map[string]http.HandlerFunc // by path
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
	a.Net = memnet.Listen()
	a.serve(a.Net)
	return a
}

func newAPI(t testing.TB, o simulator.Options, host string) *API {
	a := &API{t: t, served: make(chan struct{}), overrides: map[string]http.HandlerFunc{}}
	a.URL = &url.URL{Scheme: "http", Host: host, Path: strings.TrimRight(cmp.Or(o.Prefix, "/api/v1"), "/")}
	o.Middleware = a.chain(o.Middleware)
	a.Simulator = simulator.New(o)
	a.Change(func(w *simulator.World) {
		for name, token := range Tokens() {
			w.Accounts[token] = simulator.ExampleAccount(name, time.Now())
		}
	})
	return a
}

func (a *API) serve(l net.Listener) {
	a.server = &http.Server{Handler: a, ErrorLog: log.New(failingWriter{a.t}, "", 0), ConnState: func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			a.conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			a.conns.Done()
		}
	}}
	go func() {
		defer close(a.served)
		if err := a.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.t.Errorf("simulated provider: %v", err)
		}
	}()
	a.t.Cleanup(a.Close)
}

// Close stops the provider at once and waits for its handlers.
func (a *API) Close() {
	_ = a.server.Close() // the listener may be closed already
	<-a.served
	a.conns.Wait()
}

// failingWriter fails the test if net/http logs something, such as a panic.
type failingWriter struct{ t testing.TB }

func (w failingWriter) Write(p []byte) (int, error) {
	w.t.Errorf("simulated provider: %s", p)
	return len(p), nil
}

// Dial connects to the provider. In memory, every address leads to it.
func (a *API) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if a.Net != nil {
		return a.Net.Dial(ctx, network, address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// Client returns a client for requests to the provider. It uses a new connection
// for each request and does not follow redirects.
func (a *API) Client() *http.Client { return newClient(a.Dial) }

// chain returns the API's own middleware in front of another one, which may be nil.
func (a *API) chain(other func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	if other == nil {
		return a.middleware
	}
	return func(next http.Handler) http.Handler { return a.middleware(other(next)) }
}

func (a *API) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.EscapedPath(), a.URL.Path)
		a.mu.Lock()
		hook, override := a.onRequest, a.overrides[path]
		if override == nil {
			override = a.overrides[""]
		}
		a.mu.Unlock()
		if hook != nil {
			hook(path, r.URL.Query())
		}
		if override != nil {
			override(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// OnRequest calls f before each request is answered, in place of an earlier f.
// f may be called by several goroutines at once.
func (a *API) OnRequest(f func(path string, query url.Values)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onRequest = f
}

// Override answers requests for a path ("/plans") with h until remove is called.
// The empty path is every path without an override of its own. Overridden
// requests do not count against the rate limits.
func (a *API) Override(path string, h http.HandlerFunc) (remove func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.overrides[path] = h
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.overrides, path)
	}
}

// Reply returns a handler that sends a fixed answer. The header may be nil.
func Reply(status int, header http.Header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// RequestsFor returns the received requests for a path, in order.
func (a *API) RequestsFor(path string) []simulator.Request {
	return slices.DeleteFunc(a.Requests(), func(r simulator.Request) bool { return r.Path != path })
}

// CountByPath counts the requests by path, without the first since of them.
func (a *API) CountByPath(since int) map[string]int {
	counts := map[string]int{}
	for _, r := range a.Requests()[since:] {
		counts[r.Path]++
	}
	return counts
}

// CountByToken counts the requests by token, "" for none.
func (a *API) CountByToken() map[string]int {
	counts := map[string]int{}
	for _, r := range a.Requests() {
		counts[r.Token]++
	}
	return counts
}

// Idle reports whether every request was answered.
func (a *API) Idle() bool {
	return !slices.ContainsFunc(a.Requests(), func(r simulator.Request) bool { return r.Status == 0 })
}

// AssertNoRequests asserts that no request of an exporter followed the first since
// requests. Those of other programs are logged.
func (a *API) AssertNoRequests(since int) {
	a.t.Helper()
	for _, r := range a.Requests()[since:] {
		report, agent := a.t.Logf, r.Header.Get("User-Agent")
		if strings.HasPrefix(agent, "server_rental_exporter/") {
			report = a.t.Errorf
		}
		report("request of %s %q with token %q from %s: status %d", r.Path, agent, r.Token, r.RemoteAddr, r.Status)
	}
}

// ConfigFile writes a configuration of the exporter into dir, with a token file
// for each account, and returns its path. The tokens are given by account name;
// more is appended YAML.
func (a *API) ConfigFile(dir string, tokens map[string]string, more string) string {
	a.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "api: {base_url: %q}\n", a.URL)
	if len(tokens) > 0 {
		b.WriteString("accounts:\n")
	}
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		WriteFile(a.t, filepath.Join(dir, name+".token"), tokens[name]+"\n")
		fmt.Fprintf(&b, "  - {name: %s, token_file: %s.token}\n", name, name)
	}
	return WriteFile(a.t, filepath.Join(dir, "rental.yml"), b.String()+more)
}
