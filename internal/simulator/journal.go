package simulator

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Request is one request as it arrived, whatever became of it.
type Request struct {
	Time       time.Time
	Path       string // escaped, without the prefix ("/plans"); the whole path where it is outside the prefix
	Query      url.Values
	Token      string // the bearer token, "" without one; on public endpoints too
	RemoteAddr string
	Header     http.Header
	Status     int // as sent; 0 while there is no answer, and where the connection was dropped without one
}

// Requests returns the requests received so far in the order of arrival, the
// newest Options.KeepRequests of them. A status is there before the client
// can see it.
func (s *Simulator) Requests() []Request { return s.journal.copy() }

// Peak returns the most of these times, in any order, that lie within 60 seconds,
// ends included: what the document's limits are about.
func Peak(times []time.Time) int {
	times = slices.SortedFunc(slices.Values(times), time.Time.Compare)
	most, first := 0, 0
	for last := range times {
		for times[last].Sub(times[first]) > time.Minute {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

type journal struct {
	most int

	mu      sync.Mutex
	entries []*Request
}

func newJournal(most, usual int) *journal {
	if most == 0 {
		most = usual
	}
	return &journal{most: max(most, 0)}
}

func (j *journal) add(c *call, r *http.Request) *entry {
	e := &entry{journal: j, request: Request{
		Time: c.at, Path: c.path, Query: maps.Clone(c.query), Token: c.token,
		RemoteAddr: r.RemoteAddr, Header: r.Header.Clone(),
	}}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, &e.request)
	j.entries = j.entries[max(len(j.entries)-j.most, 0):]
	return e
}

func (j *journal) copy() []Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]Request, len(j.entries))
	for i, r := range j.entries {
		out[i] = *r
	}
	return out
}

// entry is the place where a request's status is written once it is known.
type entry struct {
	journal *journal
	request Request
}

func (e *entry) answered(status int) {
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	e.request.Status = status
}
