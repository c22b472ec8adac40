package rentalapi

import (
	"slices"
	"sync"
	"time"
)

const (
	// window is the time over which the provider counts requests, and a second
	// more for clocks that disagree.
	window = 61 * time.Second

	// maxUnanswered is how long a provider may take to serve a request whose connection
	// was closed without a response. Nothing says that it will not: this is a guess.
	maxUnanswered = 30 * time.Minute

	// maxWait is how long a request waits for the end of a pause that the API asked
	// for. One that would wait longer fails at once and is retried later.
	maxWait = 10 * time.Second

	// bulkSpacing is the time from one request with priority Bulk to the next. A
	// restarted process does not know what its predecessor requested: the spacing keeps
	// a process that is killed every few seconds within the provider's limit.
	bulkSpacing = 1500 * time.Millisecond
)

// A limiter keeps the rate limit of one scope: never more than limit requests in any
// window, counted at the provider's side however long they travel.
//
// Each request occupies a slot from before it is sent until one window after it ended. A
// request without a response keeps its slot until a window after the response to one that
// was sent later, or for maxUnanswered. If half of the slots may be kept so, requests for
// the others are spread over the time until the first one expires: they find out whether
// the provider responds again. docs/design.md proves that this suffices.
type limiter struct {
	mu       *sync.Mutex // of all limiters
	limit    int
	bulk     int           // of these, how many may have priority Bulk
	slots    []*slot       // those that are occupied, the first to expire first
	sent     time.Time     // when the last request took its slot
	nextBulk time.Time     // no request with priority Bulk is sent before this time
	blocked  time.Time     // nothing is sent before this time
	cause    string        // why
	changed  chan struct{} // closed and replaced when waiting may have become shorter
}

// slot is what a request occupies.
type slot struct {
	priority Priority
	outcome  outcome
	sent     time.Time
	until    time.Time // far in the future while the request is under way
}

// outcome is what a request tells about the provider.
type outcome int

const (
	notSent    outcome = iota // it was never written to a connection
	underWay                  // it has not ended
	unanswered                // the provider may see it later
	answered                  // the provider saw it, and those before
)

// wait returns how long to wait before asking again whether a request of the priority may
// be sent, if nothing changes; at most 0 if it may be sent now.
func (l *limiter) wait(now time.Time, p Priority) time.Duration {
	l.expire(now)
	if pause := l.blocked.Sub(now); pause > 0 {
		return pause
	}
	wait := untilFree(now, l.slots, l.limit)
	if wait == 0 {
		wait = l.untilProbe(now)
	}
	if p == Bulk {
		bulk := slices.DeleteFunc(slices.Clone(l.slots), func(s *slot) bool { return s.priority != Bulk })
		wait = max(wait, l.nextBulk.Sub(now), untilFree(now, bulk, l.bulk))
	}
	return wait
}

func (l *limiter) expire(now time.Time) {
	l.slots = slices.DeleteFunc(l.slots, func(s *slot) bool { return !s.until.After(now) })
}

// untilFree returns how long until fewer than limit slots are occupied.
func untilFree(now time.Time, slots []*slot, limit int) time.Duration {
	if len(slots) < limit {
		return 0
	}
	return min(slots[len(slots)-limit].until.Sub(now), window)
}

// untilProbe returns how long to wait because requests are unanswered.
func (l *limiter) untilProbe(now time.Time) time.Duration {
	var oldest *slot
	kept := 0 // slots that are unanswered, or may become so
	for _, s := range l.slots {
		if s.outcome == unanswered && oldest == nil {
			oldest = s
		}
		if s.outcome == unanswered || s.outcome == underWay {
			kept++
		}
	}
	if oldest == nil || 2*kept < l.limit {
		return 0
	}
	free := l.limit - len(l.slots)
	return l.sent.Add(oldest.until.Sub(l.sent) / time.Duration(free+1)).Sub(now)
}

// release ends a request.
func (l *limiter) release(s *slot, o outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	s.outcome, s.until = o, now.Add(window)
	if o == unanswered {
		s.until = now.Add(maxUnanswered)
	}
	for _, earlier := range l.slots {
		endedBefore := !earlier.until.After(s.sent.Add(maxUnanswered))
		if o == answered && earlier.outcome == unanswered && endedBefore {
			earlier.outcome, earlier.until = answered, s.until
		}
	}
	slices.SortStableFunc(l.slots, func(a, b *slot) int { return a.until.Compare(b.until) })
	l.notify()
}

// pause stops all requests of the scope until the time given, unless a longer
// pause is under way already.
func (l *limiter) pause(until time.Time, cause string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.blocked) {
		l.blocked, l.cause = until, cause
		l.notify()
	}
}

func (l *limiter) notify() {
	close(l.changed)
	l.changed = make(chan struct{})
}
