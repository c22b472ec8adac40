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

// Kind is a way to misbehave.
type Kind int

// The kinds of faults.
const (
	Respond   Kind = iota // answers Fault.Status with Fault.Header and Fault.Body
	Delay                 // waits for Fault.Delay, then answers as usual
	Hang                  // gives no answer until the client leaves or the server closes
	Drop                  // closes the connection without an answer; a Go client repeats a GET on a connection it had used before
	Truncated             // sends half of the right body, then closes the connection
	Garbage               // answers 200 with bytes that are no JSON
	Endless               // answers 200 with a JSON string that never ends, as fast as it is read
	Trickle               // sends the right body a byte a second
	Redirect              // answers 302 to the Location in Fault.Header
)

// String names the kind in lower case, for the names of tests.
func (k Kind) String() string {
	names := strings.Fields("respond delay hang drop truncated garbage endless trickle redirect")
	if k < 0 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Fault is a way to misbehave and the requests that it befalls. These are
// counted against the limits like any other.
type Fault struct {
	Path  string     // "/plans"; "" is every path
	Token string     // only requests with this token; "" is any or none
	Query url.Values // only requests with these values in the query; nil is any query
	Times int        // how many requests it befalls; 0 is all until it is removed

	Kind   Kind
	Status int           // of Respond; 0 is the status of the right answer
	Header http.Header   // set on any answer, over the usual ones
	Body   []byte        // of Respond; nil is the documented error body of a Status from 400 up, below that the right body
	Delay  time.Duration // of Delay
}

// Inject has the simulator misbehave until remove is called. Where several
// faults fit a request, the first injected befalls it. remove does not end
// what is happening to a request already.
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
	own := &activeFault{Fault: f}
	fs.active = append(fs.active, own)
	return func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		fs.active = slices.DeleteFunc(fs.active, func(a *activeFault) bool { return a == own })
	}
}

// claim finds the fault that befalls a call, and counts it.
func (fs *faults) claim(c *call) (Fault, bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, a := range fs.active {
		if (a.Times == 0 || a.hits < a.Times) && a.befalls(c) {
			a.hits++
			return a.Fault, true
		}
	}
	return Fault{}, false
}

func (f *Fault) befalls(c *call) bool {
	for name, values := range f.Query {
		if !slices.Equal(c.query[name], values) {
			return false
		}
	}
	return (f.Path == "" || f.Path == c.path) && (f.Token == "" || f.Token == c.token)
}

func (s *Simulator) misbehave(x exchange, c *call, f Fault) {
	if f.Kind == Delay {
		x.wait(f.Delay)
	}
	a := s.answer(c)
	maps.Copy(a.header, f.Header)
	switch f.Kind {
	case Respond:
		x.send(f.instead(a, c))
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
		x.send(answer{http.StatusOK, a.header, []byte("\x00\xff<!doctype html> this is no JSON {{{")})
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

// instead is what Respond makes of the right answer.
func (f *Fault) instead(a answer, c *call) answer {
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

// errorCode is the document's code of a status. Those it does not know get
// the status' own name.
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
