package rentalapi

import (
	"context"
	"crypto/sha256"
	"maps"
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
// Each request occupies a slot from before it is sent until one window after it
// ended. The provider saw it somewhere in between. So of all requests that the
// provider sees within one window, each one occupied a slot when the last of them
// was sent, and there are only limit slots. A token bucket cannot promise that: it
// counts when requests leave, not when they arrive, and adds its burst.
//
// A provider that stalls may serve a request after it ended without a response. Such a
// request keeps its slot until a window after the response to one that was sent later:
// the provider serves requests in their order, so it has seen the earlier one by then.
// Without a response, the slot is kept for maxUnanswered. If half of the slots may be kept
// so, requests for the others are spread over the time until the first one expires: they
// find out whether the provider responds again.
type limiter struct {
	mu       sync.Mutex
	limit    int
	bulk     int           // of these, how many may have priority Bulk
	inFlight [2]int        // requests under way, by priority
	ended    []slot        // of requests that ended, the first to expire first
	sent     time.Time     // when the last request took its slot
	nextBulk time.Time     // no request with priority Bulk is sent before this time
	blocked  time.Time     // nothing is sent before this time
	cause    string        // why
	changed  chan struct{} // closed and replaced when waiting may have become shorter

	users int // requests that have it, or wait for it; guarded by limiters.mu
}

// slot is what a finished request still occupies.
type slot struct {
	priority   Priority
	unanswered bool
	until      time.Time
}

// outcome is what a finished request tells about the provider.
type outcome int

const (
	notSent    outcome = iota // it was never written to a connection
	unanswered                // the provider may see it later
	answered                  // the provider saw it, and those before
)

func newLimiter(limit, bulk int) *limiter {
	return &limiter{limit: limit, bulk: bulk, changed: make(chan struct{})}
}

// acquire waits for a slot and takes it; release must be called when the request has
// ended. It fails with a *PausedError if the API asked for a pause that is longer
// than maxWait, and with the context's error.
func (l *limiter) acquire(ctx context.Context, c Priority) (release func(outcome), err error) {
	for ctx.Err() == nil {
		l.mu.Lock()
		now := time.Now()
		wait, changed := l.wait(now, c), l.changed
		if wait <= 0 {
			l.inFlight[c]++
			l.sent = now
			if c == Bulk {
				l.nextBulk = now.Add(bulkSpacing)
			}
			l.mu.Unlock()
			return func(o outcome) { l.release(c, now, o) }, nil
		}
		pause := l.blocked.Sub(now)
		paused := &PausedError{Until: l.blocked, Cause: l.cause}
		l.mu.Unlock()
		if pause > maxWait {
			return nil, paused
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil, ctx.Err()
}

// wait returns how long a request of the priority has to wait from now on; at most 0 if
// it may be sent. If only requests under way block it, that is a window: their end
// closes changed.
func (l *limiter) wait(now time.Time, c Priority) time.Duration {
	expired := 0
	for expired < len(l.ended) && !l.ended[expired].until.After(now) {
		expired++
	}
	l.ended = l.ended[expired:]
	if pause := l.blocked.Sub(now); pause > 0 {
		return pause
	}
	held := l.inFlight[Regular] + l.inFlight[Bulk] + len(l.ended)
	if held >= l.limit {
		return l.untilFree(now, held-l.limit, func(Priority) bool { return true })
	}
	if c == Regular {
		return l.untilProbe(now, l.limit-held)
	}
	isBulk := func(c Priority) bool { return c == Bulk }
	held = l.inFlight[Bulk]
	for _, p := range l.ended {
		if isBulk(p.priority) {
			held++
		}
	}
	if held >= l.bulk {
		return l.untilFree(now, held-l.bulk, isBulk)
	}
	return max(l.nextBulk.Sub(now), l.untilProbe(now, l.limit-held))
}

// untilProbe returns how long to wait because requests are unanswered; free is the number
// of free slots.
func (l *limiter) untilProbe(now time.Time, free int) time.Duration {
	var oldest time.Time
	count := 0
	for _, s := range l.ended {
		if s.unanswered {
			if count == 0 {
				oldest = s.until
			}
			count++
		}
	}
	if count == 0 || 2*(count+l.inFlight[Regular]+l.inFlight[Bulk]) < l.limit {
		return 0
	}
	return l.sent.Add(oldest.Sub(l.sent) / time.Duration(free+1)).Sub(now)
}

// untilFree returns how long until more than surplus of the matching slots are free.
func (l *limiter) untilFree(now time.Time, surplus int, match func(Priority) bool) time.Duration {
	for _, p := range l.ended {
		if !match(p.priority) {
			continue
		}
		if surplus == 0 {
			return p.until.Sub(now)
		}
		surplus--
	}
	return window
}

// release ends a request that was sent at the time given.
func (l *limiter) release(c Priority, sent time.Time, o outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight[c]--
	now := time.Now()
	for i, s := range l.ended {
		if o == answered && s.unanswered && !s.until.After(sent.Add(maxUnanswered)) { // it ended before
			l.ended[i] = slot{priority: s.priority, until: now.Add(window)}
		}
	}
	s := slot{priority: c, unanswered: o == unanswered, until: now.Add(window)}
	if s.unanswered {
		s.until = now.Add(maxUnanswered)
	}
	l.ended = append(l.ended, s)
	slices.SortStableFunc(l.ended, func(a, b slot) int { return a.until.Compare(b.until) })
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

// endPause ends the pause that is under way, if there is one.
func (l *limiter) endPause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.blocked, l.cause = time.Time{}, ""
	l.notify()
}

// applyLimits sets new limits; requests made under the old ones keep their slots.
func (l *limiter) applyLimits(limit, bulk int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit, l.bulk = limit, bulk
	l.notify()
}

func (l *limiter) notify() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// pausedUntil returns the end of a pause that the API asked for, and false if there is none.
func (l *limiter) pausedUntil(now time.Time) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.blocked, l.blocked.After(now)
}

// unused tells whether no slot is occupied and no pause is under way.
func (l *limiter) unused(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	occupied := func(s slot) bool { return s.until.After(now) }
	return !l.blocked.After(now) && !slices.ContainsFunc(l.ended, occupied)
}

// limiters are all limiters of the process: one for the public scope and one for
// each token, whichever account uses it. They outlive reloads.
type limiters struct {
	mu      sync.Mutex
	limits  Limits
	byToken map[Fingerprint]*limiter
}

// Fingerprint identifies a token without revealing it: its hash, or zero for no
// token. The same token has the same fingerprint.
type Fingerprint [sha256.Size]byte

func fingerprint(token string) Fingerprint {
	if token == "" {
		return Fingerprint{}
	}
	return sha256.Sum256([]byte(token))
}

// get returns the limiter of a token, or of the public scope; put must be called when the
// request has ended. A new one replaces those that have nothing to remember: a token that
// comes back must find what it has used.
func (ls *limiters) get(token Fingerprint) *limiter {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	b := ls.byToken[token]
	if b == nil {
		maps.DeleteFunc(ls.byToken, func(_ Fingerprint, l *limiter) bool { return l.users == 0 && l.unused(time.Now()) })
		b = newLimiter(ls.limits.of(token))
		ls.byToken[token] = b
	}
	b.users++
	return b
}

func (ls *limiters) put(l *limiter) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.users--
}

func (ls *limiters) applyLimits(l Limits) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.limits = l
	for token, b := range ls.byToken {
		b.applyLimits(l.of(token))
	}
}

func (ls *limiters) endPauses() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, b := range ls.byToken {
		b.endPause()
	}
}

// Limits are the requests that may be made in any 60 seconds. Each is at least 1:
// with 0, requests wait for ever.
type Limits struct {
	Public      int // without token, from this address
	Account     int // with one token
	AccountBulk int // of those, the most with priority Bulk
}

// of returns the limit and the bulk share of a scope. Nothing public is bulk.
func (l Limits) of(token Fingerprint) (limit, bulk int) {
	if token == (Fingerprint{}) {
		return l.Public, l.Public
	}
	return l.Account, l.AccountBulk
}
