package rentalapi

import (
	"crypto/sha256"
	"maps"
	"sync"
	"time"
)

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
	l := ls.byToken[token]
	if l == nil {
		maps.DeleteFunc(ls.byToken, func(_ Fingerprint, l *limiter) bool { return l.users == 0 && l.unused(time.Now()) })
		l = newLimiter(ls.limits.of(token))
		ls.byToken[token] = l
	}
	l.users++
	return l
}

func (ls *limiters) put(l *limiter) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.users--
}

func (ls *limiters) apply(limits Limits, endPauses bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.limits = limits
	for token, l := range ls.byToken {
		limit, bulk := limits.of(token)
		l.apply(limit, bulk, endPauses)
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
	if token == (Fingerprint{}) {
		return max(1, l.Public), 1
	}
	return max(1, l.Account), max(1, l.AccountBulk)
}
