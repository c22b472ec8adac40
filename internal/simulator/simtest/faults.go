package simtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Kind is a kind of fault.
type Kind int

// The kinds of faults.
const (
	Respond   Kind = iota // sends Fault.Status, Fault.Header and Fault.Body
	Delay                 // waits for Fault.Delay, then responds as usual
	Hang                  // sends nothing until the client or the server closes the connection
	Drop                  // closes the connection without a response; a Go client repeats a GET on a reused connection
	Truncated             // sends half of the correct body, then closes the connection
	Garbage               // sends 200 with bytes that are not JSON
	Trickle               // sends the correct body at one byte per second
	Redirect              // sends 302 to the Location in Fault.Header
)

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	return []string{"respond", "delay", "hang", "drop", "truncated", "garbage", "trickle", "redirect"}[k]
}

// Fault is a rule: a faulty behavior, and the requests that it applies to. They count
// against the rate limits like all others, if Handler is nil.
type Fault struct {
	Path  string // "/plans"; "" is every path
	Token string // only requests with this token; "" is any or none
	Times int    // maximum number of requests; 0 is no maximum

	Kind   Kind
	Status int           // of Respond; 0 is the status of the correct response
	Header http.Header   // added to every response, replaces headers of the same name
	Body   []byte        // of Respond; nil is the documented error body for a Status of 400 and above, otherwise the correct body
	Delay  time.Duration // of Delay

	// Handler responds instead, if it is not nil.
	Handler http.HandlerFunc
}

// Faults are faults that are active. The zero value has none.
type Faults struct {
	mu     sync.Mutex
	active []*activeFault // the first one that matches a request applies
	hooks  []func(path string, query url.Values)
}

// Inject activates a fault until remove is called. If several faults match a request,
// one with a path goes before one for every path, and a newer one before an older one.
// remove does not affect requests that came before.
func (fs *Faults) Inject(f Fault) (remove func()) {
	f.Header, f.Body = f.Header.Clone(), bytes.Clone(f.Body)
	added := &activeFault{Fault: f}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.active = slices.Insert(fs.active, 0, added)
	slices.SortStableFunc(fs.active, func(x, y *activeFault) int {
		return min(len(y.Path), 1) - min(len(x.Path), 1)
	})
	return func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		fs.active = slices.DeleteFunc(fs.active, func(a *activeFault) bool { return a == added })
	}
}

// RemoveAll removes all faults, and what OnRequest added.
func (fs *Faults) RemoveAll() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.active, fs.hooks = nil, nil
}

// Override injects a handler for a path ("/plans"), or for every path.
func (fs *Faults) Override(path string, h http.HandlerFunc) (remove func()) {
	return fs.Inject(Fault{Path: path, Handler: h})
}

// OnRequest calls f before the response to each request. Several goroutines may call it at
// once.
func (fs *Faults) OnRequest(f func(path string, query url.Values)) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.hooks = append(fs.hooks, f)
}

// Reply returns a handler that sends a fixed response. The header may be nil.
func Reply(status int, header http.Header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

type activeFault struct {
	Fault
	used int // number of requests
}

// take returns the hooks, and the fault that applies to a request, nil for none.
func (fs *Faults) take(r Request) (hooks []func(string, url.Values), found *Fault) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range fs.active {
		if (f.Path == "" || f.Path == r.Path) && (f.Token == "" || f.Token == r.Token) && (f.Times == 0 || f.used < f.Times) {
			f.used++
			return slices.Clone(fs.hooks), &f.Fault
		}
	}
	return slices.Clone(fs.hooks), nil
}

// middleware applies the faults.
func (fs *Faults) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := newRequest(r)
		hooks, f := fs.take(request)
		for _, call := range hooks {
			call(request.Path, request.Query)
		}
		switch {
		case f == nil:
			next.ServeHTTP(w, r)
		case f.Handler != nil:
			f.Handler(w, r)
		default:
			f.apply(exchange{w, r}, request, next)
		}
	})
}

func (f *Fault) apply(x exchange, req Request, next http.Handler) {
	if f.Kind == Delay {
		x.wait(f.Delay)
	}
	c := serve(next, x.r)
	maps.Copy(c.Header, f.Header)
	switch f.Kind {
	case Respond:
		x.send(f.replace(c, req))
	case Hang:
		<-x.r.Context().Done()
		panic(http.ErrAbortHandler)
	case Drop:
		panic(http.ErrAbortHandler)
	case Truncated:
		x.begin(c)
		x.write(c.Body[:len(c.Body)/2])
		panic(http.ErrAbortHandler)
	case Garbage:
		x.send(Response{http.StatusOK, c.Header, "\x00\xff<!doctype html> this is not JSON {{{"})
	case Trickle:
		x.trickle(c)
	case Redirect:
		x.send(Response{http.StatusFound, c.Header, ""})
	default:
		x.send(c)
	}
}

// replace applies a Respond fault to the correct response.
func (f *Fault) replace(c Response, req Request) Response {
	if f.Status != 0 {
		c.Status = f.Status
	}
	switch {
	case f.Body != nil:
		c.Body = string(f.Body)
	case f.Status >= http.StatusBadRequest:
		body, _ := json.Marshal(map[string]any{"error": map[string]string{ // strings can be encoded
			"code": errorCode(f.Status), "message": "the request could not be answered; see GET " + req.Path, "docs": "https://rental.example/docs/api#errors",
		}})
		c.Body = string(body)
	}
	return c
}

// errorCode returns a documented code for a status, and for an undocumented
// status its name in snake case.
func errorCode(status int) string {
	documented := map[int]string{400: "invalid_parameter", 401: "invalid_token", 429: "rate_limited", 503: "unavailable"}
	return cmp.Or(documented[status], strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_"))
}

// exchange sends the response to one request.
type exchange struct {
	w http.ResponseWriter
	r *http.Request
}

// send sends a complete response. A failed write means that the client closed the
// connection, which is not an error of the server.
func (x exchange) send(c Response) {
	x.begin(c)
	_, _ = io.WriteString(x.w, c.Body)
}

// begin sends status and headers.
func (x exchange) begin(c Response) {
	maps.Copy(x.w.Header(), c.Header)
	x.w.Header().Set("Content-Length", strconv.Itoa(len(c.Body)))
	x.w.WriteHeader(c.Status)
}

// write sends a part of a body immediately. It aborts if the client is gone.
func (x exchange) write(part string) {
	_, err := io.WriteString(x.w, part)
	if err == nil {
		err = http.NewResponseController(x.w).Flush()
	}
	if err != nil || x.r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
}

// wait sleeps. It aborts if the client is gone.
func (x exchange) wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-x.r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

// trickle sends one byte of the body per second.
func (x exchange) trickle(c Response) {
	x.begin(c)
	for i := range len(c.Body) {
		x.write(c.Body[i : i+1])
		x.wait(time.Second)
	}
}
