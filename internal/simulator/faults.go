package simulator

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kind is a kind of fault.
type Kind int

// The kinds of faults.
const (
	Respond   Kind = iota // answers Fault.Status with Fault.Header and Fault.Body
	Delay                 // waits for Fault.Delay, then answers as usual
	Hang                  // sends nothing until the client or the server closes the connection
	Drop                  // closes the connection without an answer; a Go client repeats a GET on a reused connection
	Truncated             // sends half of the correct body, then closes the connection
	Garbage               // answers 200 with bytes that are not JSON
	Endless               // answers 200 with a JSON string without an end, as fast as the client reads
	Trickle               // sends the correct body at one byte per second
	Redirect              // answers 302 to the Location in Fault.Header
)

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	names := strings.Fields("respond delay hang drop truncated garbage endless trickle redirect")
	if k < 0 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Fault is a faulty behavior and the requests that it applies to. They count
// against the rate limits like all others.
type Fault struct {
	Path  string     // "/plans"; "" is every path
	Token string     // only requests with this token; "" is any or none
	Query url.Values // only requests with these values in the query; nil is any query
	Times int        // maximum number of requests; 0 is no maximum

	Kind   Kind
	Status int           // of Respond; 0 is the status of the correct answer
	Header http.Header   // added to every answer, replaces headers of the same name
	Body   []byte        // of Respond; nil is the documented error body for a Status of 400 and above, otherwise the correct body
	Delay  time.Duration // of Delay
}

// Inject activates a fault until remove is called. If several faults match a
// request, the one injected first applies. remove does not affect requests that
// are being answered.
func (s *Simulator) Inject(f Fault) (remove func()) {
	f.Header, f.Body, f.Query = f.Header.Clone(), bytes.Clone(f.Body), maps.Clone(f.Query)
	return s.faults.add(f)
}

type faults struct {
	mu     sync.Mutex
	active []*activeFault
}

type activeFault struct {
	Fault
	hits int
}

func (fs *faults) add(f Fault) (remove func()) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	added := &activeFault{Fault: f}
	fs.active = append(fs.active, added)
	return func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		fs.active = slices.DeleteFunc(fs.active, func(a *activeFault) bool { return a == added })
	}
}

// take returns the fault that applies to a call, and counts the hit.
func (fs *faults) take(c *call) (Fault, bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, a := range fs.active {
		if (a.Times == 0 || a.hits < a.Times) && a.matches(c) {
			a.hits++
			return a.Fault, true
		}
	}
	return Fault{}, false
}

func (f *Fault) matches(c *call) bool {
	for name, values := range f.Query {
		if !slices.Equal(c.query[name], values) {
			return false
		}
	}
	return (f.Path == "" || f.Path == c.path) && (f.Token == "" || f.Token == c.token)
}

func (s *Simulator) applyFault(x responder, c *call, f Fault) {
	if f.Kind == Delay {
		x.wait(f.Delay)
	}
	a := s.answer(c)
	maps.Copy(a.header, f.Header)
	switch f.Kind {
	case Respond:
		x.send(f.override(a, c))
	case Hang:
		<-x.r.Context().Done()
		panic(http.ErrAbortHandler)
	case Drop:
		panic(http.ErrAbortHandler)
	case Truncated:
		x.begin(a, len(a.body))
		x.write(a.body[:len(a.body)/2])
		panic(http.ErrAbortHandler)
	case Garbage:
		x.send(answer{http.StatusOK, a.header, []byte("\x00\xff<!doctype html> this is not JSON {{{")})
	case Endless:
		x.endless(a.header)
	case Trickle:
		x.trickle(a)
	case Redirect:
		x.send(answer{http.StatusFound, a.header, nil})
	default:
		x.send(a)
	}
}

// override applies a Respond fault to the correct answer.
func (f *Fault) override(a answer, c *call) answer {
	if f.Status != 0 {
		a.status = f.Status
	}
	switch {
	case f.Body != nil:
		a.body = f.Body
	case f.Status >= http.StatusBadRequest:
		a.body = failure(f.Status, errorCode(f.Status, c), "the request could not be answered; see GET "+c.path).body
	}
	return a
}

// errorCode returns the documented code for a status, and for an undocumented
// status its name in snake case.
func errorCode(status int, c *call) string {
	switch status {
	case http.StatusBadRequest:
		return "invalid_parameter"
	case http.StatusUnauthorized:
		if c.token != "" {
			return "invalid_token"
		}
		return "unauthorized"
	case http.StatusTooManyRequests:
		return "rate_limited"
	case http.StatusServiceUnavailable:
		return "unavailable"
	}
	return strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_")
}
