package simtest

import (
	"cmp"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/simulator"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	Respond   Kind = ""          // sends Fault.Status, Fault.Header and Fault.Body
	Delay     Kind = "delay"     // waits for Fault.Delay, then responds as usual
	Hang      Kind = "hang"      // sends nothing until the client or the server closes the connection
	Drop      Kind = "drop"      // closes the connection without a response
	Truncated Kind = "truncated" // sends half of the correct body, then closes the connection
)

// Fault is a rule: a faulty behavior, and the requests that it applies to. They count
// against the rate limits like all others, if Handler is nil.
type Fault struct {
	Path  string // "/plans"; "" is every path
	Token string // only requests with this token; "" is any or none
	Times int    // maximum number of requests; 0 is no maximum

	Kind   Kind
	Status int           // status of Respond; 0 is the status of the correct response
	Header http.Header   // added to every response, replaces headers of the same name
	Body   []byte        // body of Respond; nil is the documented error body for a Status of 400 and above, otherwise the correct body
	Delay  time.Duration // duration of Delay

	// Handler responds instead, if it is not nil.
	Handler http.HandlerFunc
}

// Inject activates a fault until remove is called. If several faults match a request,
// one with a path goes before one for every path, and a newer one before an older one.
// remove does not affect requests that came before.
func (a *API) Inject(f Fault) (remove func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active = slices.Insert(a.active, 0, &f)
	slices.SortStableFunc(a.active, func(x, y *Fault) int { return min(len(y.Path), 1) - min(len(x.Path), 1) })
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.active = slices.DeleteFunc(a.active, func(other *Fault) bool { return other == &f })
	}
}

// RemoveAll removes all faults, and what OnRequest added.
func (a *API) RemoveAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active, a.hooks = nil, nil
}

// OnRequest calls f before the response to each request. Several goroutines may call it at
// once.
func (a *API) OnRequest(f func(path string, query url.Values)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hooks = append(a.hooks, f)
}

// Reply returns a handler that sends a fixed response. The header may be nil.
func Reply(status int, header http.Header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// take calls the hooks, and returns the fault that applies to a request, or the zero
// value, which changes nothing.
func (a *API) take(r Request) *Fault {
	found := &Fault{}
	a.mu.Lock()
	i := slices.IndexFunc(a.active, func(f *Fault) bool {
		return (f.Path == "" || f.Path == r.Path) && (f.Token == "" || f.Token == r.Token)
	})
	if i >= 0 {
		found = a.active[i]
		if found.Times--; found.Times == 0 { // one without a maximum is below 0 from now on
			a.active = slices.Delete(a.active, i, i+1)
		}
	}
	hooks := slices.Clone(a.hooks)
	a.mu.Unlock()
	for _, call := range hooks {
		call(r.Path, r.Query)
	}
	return found
}

// apply sends the faulty response. It calls sends with the status before.
func (f *Fault) apply(w http.ResponseWriter, r *http.Request, next http.Handler, sends func(status int)) {
	if f.Kind == Delay {
		time.Sleep(f.Delay)
	}
	c := serve(next, r)
	switch f.Kind {
	case Respond:
		f.replace(&c)
	case Hang:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case Drop:
		panic(http.ErrAbortHandler)
	}
	maps.Copy(c.Header, f.Header)
	maps.Copy(w.Header(), c.Header)
	w.Header().Set("Content-Length", strconv.Itoa(len(c.Body)))
	sends(c.Status)
	w.WriteHeader(c.Status)
	if f.Kind == Truncated {
		_, _ = io.WriteString(w, c.Body[:len(c.Body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, c.Body) // a failed write means that the client closed the connection
}

// replace applies a Respond fault to the correct response.
func (f *Fault) replace(c *Response) {
	c.Status = cmp.Or(f.Status, c.Status)
	switch {
	case f.Body != nil:
		c.Body = string(f.Body)
	case f.Status >= http.StatusBadRequest:
		c.Body = string(simulator.ErrorBody(f.Status))
	}
}
