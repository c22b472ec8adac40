package rentalapi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"
)

// Priority tells requests that keep data fresh from those that read old history.
type Priority int

// The priorities of requests.
const (
	Regular Priority = iota // a refresh that people wait for
	Bulk                    // one page of a long walk: uses only what refreshes leave over
)

// limiters are all limiters of the process: one for the public scope and one for
// each token, whichever account uses it. They outlive reloads.
type limiters struct {
	mu      sync.Mutex // of the limiters, too
	limits  Limits
	byToken map[Fingerprint]*limiter
}

// Fingerprint identifies a token without revealing it: its hash. The same token has the same
// fingerprint; the public scope has that of no token.
type Fingerprint [sha256.Size]byte

func fingerprint(token string) Fingerprint { return sha256.Sum256([]byte(token)) }

// get returns the limiter of a token, or of the public scope. A new one replaces those that
// have nothing to remember: a token that comes back must find what it has used. So a limiter
// must not be used any more once mu was unlocked, unless it has a slot that is occupied.
func (ls *limiters) get(token Fingerprint, now time.Time) *limiter {
	l := ls.byToken[token]
	if l == nil {
		maps.DeleteFunc(ls.byToken, func(_ Fingerprint, l *limiter) bool {
			l.expire(now)
			return len(l.slots) == 0 && !l.blocked.After(now)
		})
		l = &limiter{mu: &ls.mu, changed: make(chan struct{})}
		l.limit, l.bulk = ls.limits.of(token)
		ls.byToken[token] = l
	}
	return l
}

// acquire waits for a slot of a token and takes it; release must be called when the request
// has ended. It fails with an *Error if the API asked for a pause that is longer than maxWait,
// and with the context's error.
func (ls *limiters) acquire(ctx context.Context, token Fingerprint, path string) (*limiter, *slot, error) {
	const p = Regular
	for ctx.Err() == nil {
		ls.mu.Lock()
		now := time.Now()
		l := ls.get(token, now)
		wait, changed := l.wait(now, p), l.changed
		if wait <= 0 {
			s := &slot{priority: p, outcome: underWay, sent: now, until: now.Add(math.MaxInt64)}
			l.slots, l.sent = append(l.slots, s), now
			if p == Bulk {
				l.nextBulk = now.Add(bulkSpacing)
			}
			ls.mu.Unlock()
			return l, s, nil
		}
		blocked, cause := l.blocked, l.cause
		ls.mu.Unlock()
		if blocked.Sub(now) > maxWait {
			err := fmt.Errorf("no request made: %s; waiting until %s", cause, blocked.UTC().Format(time.RFC3339))
			return nil, nil, &Error{Path: path, Reason: Paused, Until: blocked, Err: err}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(wait):
		}
	}
	return nil, nil, ctx.Err()
}

// pausedUntil returns the end of a pause that the API asked for, zero if there is none.
func (ls *limiters) pausedUntil(token Fingerprint, now time.Time) time.Time {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.byToken[token]; l != nil && l.blocked.After(now) {
		return l.blocked
	}
	return time.Time{}
}

// apply sets new limits, and may end all pauses; requests made under the old limits keep
// their slots.
func (ls *limiters) apply(limits Limits, endPauses bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.limits = limits
	for token, l := range ls.byToken {
		l.limit, l.bulk = limits.of(token)
		if endPauses {
			l.blocked = time.Time{}
		}
		l.notify()
	}
}

// Limits are the requests that may be made in any 60 seconds; less than 1 means 1.
type Limits struct {
	Public      int // without token, from this address
	Account     int // with one token
	AccountBulk int // of those, the most with priority Bulk
}

// of returns the limit and the bulk share of a scope. Nothing public is bulk.
func (l Limits) of(token Fingerprint) (limit, bulk int) {
	if token == fingerprint("") {
		return max(1, l.Public), 1
	}
	return max(1, l.Account), max(1, l.AccountBulk)
}
