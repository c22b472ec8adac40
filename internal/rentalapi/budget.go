package rentalapi

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// window is the time over which the provider counts requests, and a second
	// more for clocks that disagree.
	window = 61 * time.Second

	// patience is how long a request waits for a pause that the API asked for.
	// Whoever would wait longer is told so at once and comes back later.
	patience = 10 * time.Second
)

// class tells requests that keep data fresh from those that read old history.
type class int

const (
	regular class = iota // a refresh that people wait for
	bulk                 // one page of a long walk: may use only what refreshes leave over
)

// A budget is the right to make requests in one scope: never more than limit of
// them in any window, counted at the provider's side however long they travel.
//
// A request holds its place from before it is sent until one window after it
// ended. The provider saw it somewhere in between. So of all requests that the
// provider sees within one window, each one held its place when the last of them
// was sent, and there are only limit places. A token bucket cannot promise that:
// it counts when requests leave, not when they arrive, and adds its burst.
type budget struct {
	mu      sync.Mutex
	limit   int
	bulk    int           // of these, how many may be of class bulk
	flying  [2]int        // requests under way, by class
	ended   []place       // requests that ended within the last window, oldest first
	blocked time.Time     // nothing is sent before this time
	cause   string        // why
	changed chan struct{} // closed and replaced when waiting may have become shorter
}

// place is what a finished request still occupies.
type place struct {
	class class
	until time.Time
}

func newBudget(limit, bulk int) *budget {
	return &budget{limit: limit, bulk: bulk, changed: make(chan struct{})}
}

// acquire waits for a place and takes it; release gives it back when the request
// has ended. It fails with a *PausedError where the API asked for a pause that is
// longer than patience, and with the context's error.
func (b *budget) acquire(ctx context.Context, c class) (release func(), err error) {
	for ctx.Err() == nil {
		b.mu.Lock()
		now := time.Now()
		wait, changed := b.wait(now, c), b.changed
		if wait <= 0 {
			b.flying[c]++
			b.mu.Unlock()
			return func() { b.release(c) }, nil
		}
		pause := b.blocked.Sub(now)
		paused := &PausedError{Until: b.blocked, Cause: b.cause}
		b.mu.Unlock()
		if pause > patience {
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

// wait returns how long a request of the class has to wait from now on; 0 where
// it may go. Where only a request under way is in the way, it is a window: its
// end closes changed.
func (b *budget) wait(now time.Time, c class) time.Duration {
	expired := 0
	for expired < len(b.ended) && !b.ended[expired].until.After(now) {
		expired++
	}
	b.ended = b.ended[expired:]
	if pause := b.blocked.Sub(now); pause > 0 {
		return pause
	}
	held := b.flying[regular] + b.flying[bulk] + len(b.ended)
	if held >= b.limit {
		return b.untilFree(now, held-b.limit, func(class) bool { return true })
	}
	if c == regular {
		return 0
	}
	isBulk := func(c class) bool { return c == bulk }
	held = b.flying[bulk]
	for _, p := range b.ended {
		if isBulk(p.class) {
			held++
		}
	}
	if held >= b.bulk {
		return b.untilFree(now, held-b.bulk, isBulk)
	}
	return 0
}

// untilFree returns when more than surplus of the ended places that match will be free.
func (b *budget) untilFree(now time.Time, surplus int, match func(class) bool) time.Duration {
	for _, p := range b.ended {
		if !match(p.class) {
			continue
		}
		if surplus == 0 {
			return p.until.Sub(now)
		}
		surplus--
	}
	return window
}

func (b *budget) release(c class) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying[c]--
	b.ended = append(b.ended, place{c, time.Now().Add(window)})
	b.announce()
}

// pause stops all requests of the scope until the time given, unless a longer
// pause is under way already.
func (b *budget) pause(until time.Time, cause string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until.After(b.blocked) {
		b.blocked, b.cause = until, cause
		b.announce()
	}
}

// resize sets new limits; requests made under the old ones keep their places.
func (b *budget) resize(limit, bulk int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit, b.bulk = limit, bulk
	b.announce()
}

func (b *budget) announce() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// pausedUntil returns the end of a pause that the API asked for, and false where there is none.
func (b *budget) pausedUntil(now time.Time) (time.Time, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.blocked, b.blocked.After(now)
}

// budgets are all budgets of the process: one for the public scope and one for
// each token, whichever account shows it. They outlive reloads. A token is known
// here by its digest only.
type budgets struct {
	mu     sync.Mutex
	limits Limits
	byKey  map[digest]*budget
}

// digest names a scope: the token's hash, or zero for the public scope.
type digest [sha256.Size]byte

func digestOf(token string) digest {
	if token == "" {
		return digest{}
	}
	return sha256.Sum256([]byte(token))
}

// of returns the budget of a token, or of the public scope. None is ever dropped:
// they are small, and a token that comes back must find what it has used.
func (bs *budgets) of(key digest) *budget {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.byKey[key]
	if b == nil {
		b = newBudget(bs.limits.of(key))
		bs.byKey[key] = b
	}
	return b
}

func (bs *budgets) resize(l Limits) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.limits = l
	for key, b := range bs.byKey {
		b.resize(l.of(key))
	}
}

// Limits are the requests that may be made in any 60 seconds.
type Limits struct {
	Public      int // without token, from this address
	Account     int // with one token
	AccountBulk int // of those, for pages of history at most
}

// of returns the limit and the bulk share of a scope. Nothing public is bulk.
func (l Limits) of(key digest) (limit, bulk int) {
	if key == (digest{}) {
		return l.Public, l.Public
	}
	return l.Account, l.AccountBulk
}
