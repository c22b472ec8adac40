package simulator

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Request is one received request, answered or not.
type Request struct {
	Time       time.Time
	Path       string // escaped, without the prefix ("/plans"); the whole path if it is outside the prefix
	Query      url.Values
	Token      string // bearer token, "" if there is none; also recorded for public endpoints
	RemoteAddr string
	Header     http.Header
	Status     int // as sent; 0 while unanswered, and if the connection was dropped
}

// Requests returns the received requests in order of arrival, limited to the
// newest Options.KeepRequests. A status is recorded before it is sent.
func (s *Simulator) Requests() []Request { return s.requests.copy() }

// Peak returns the largest number of times within any 60 seconds, both ends
// included: the quantity that the provider limits. The times may be in any order.
func Peak(times []time.Time) int {
	times = slices.SortedFunc(slices.Values(times), time.Time.Compare)
	peak, first := 0, 0
	for last := range times {
		for times[last].Sub(times[first]) > time.Minute {
			first++
		}
		peak = max(peak, last-first+1)
	}
	return peak
}

// requestLog records the newest requests.
type requestLog struct {
	max int

	mu      sync.Mutex
	entries []*Request
}

func newRequestLog(limit, defaultLimit int) *requestLog {
	if limit == 0 {
		limit = defaultLimit
	}
	return &requestLog{max: max(limit, 0)}
}

// add records a request. Its status is that of the returned writer's response.
func (l *requestLog) add(c *call, w http.ResponseWriter, r *http.Request) *loggedWriter {
	e := &Request{
		Time: c.time, Path: c.path, Query: maps.Clone(c.query), Token: c.token,
		RemoteAddr: r.RemoteAddr, Header: r.Header.Clone(),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	l.entries = l.entries[max(len(l.entries)-l.max, 0):]
	return &loggedWriter{ResponseWriter: w, log: l, entry: e}
}

func (l *requestLog) copy() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Request, len(l.entries))
	for i, r := range l.entries {
		out[i] = *r
	}
	return out
}

// loggedWriter records the status of a response in the request log.
type loggedWriter struct {
	http.ResponseWriter
	log   *requestLog
	entry *Request
}

// WriteHeader implements http.ResponseWriter.
func (w *loggedWriter) WriteHeader(status int) {
	w.record(status)
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *loggedWriter) Write(p []byte) (int, error) {
	w.record(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController flush and hijack.
func (w *loggedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// record keeps the first status, which is the one that net/http sends.
func (w *loggedWriter) record(status int) {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	if w.entry.Status == 0 {
		w.entry.Status = status
	}
}
