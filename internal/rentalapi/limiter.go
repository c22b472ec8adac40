package rentalapi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Burst is how many requests go out at once. It is small so that a process which is killed
// and started again every few seconds stays within what the API allows.
const Burst = 4

// maxWait is how long a request waits for the end of a backoff that the API asked for. One
// that would wait longer fails at once and is retried later.
const maxWait = 10 * time.Second

// Limits are the requests that may be sent in any 60 seconds; more than Burst.
type Limits struct {
	Public  int // without token, from this address
	Account int // with one token
}

// refill returns the requests per second for a token, or for public requests. A limiter sends at
// most Burst + refill*t requests in t seconds, which is the limit for 60 seconds. If the limit
// changes meanwhile, that is at most the highest limit in force.
func (l Limits) refill(token Fingerprint) rate.Limit {
	limit := l.Account
	if token == fingerprint("") {
		limit = l.Public
	}
	return rate.Limit(limit-Burst) / 60
}

// Fingerprint identifies a token without revealing it: its hash. That of public requests is
// the hash of no token.
type Fingerprint [sha256.Size]byte

func fingerprint(token string) Fingerprint { return sha256.Sum256([]byte(token)) }

// limiter is the rate limit of one token, or of public requests.
type limiter struct {
	*rate.Limiter
	backoff time.Time // nothing is sent before this time
	cause   string    // why
}

// limiters are all limiters of the process: one for public requests and one for each token,
// whichever account uses it. They outlive reloads.
type limiters struct {
	mu      sync.Mutex // of the limiters, too
	limits  Limits
	byToken map[Fingerprint]*limiter
}

// get returns the limiter of a token. If it is new, those that are as good as new are
// dropped. The caller must hold mu for as long as it uses the limiter.
func (ls *limiters) get(token Fingerprint, now time.Time) *limiter {
	l := ls.byToken[token]
	if l == nil {
		maps.DeleteFunc(ls.byToken, func(_ Fingerprint, l *limiter) bool {
			return l.TokensAt(now) >= Burst && !l.backoff.After(now)
		})
		l = &limiter{Limiter: rate.NewLimiter(ls.limits.refill(token), Burst)}
		ls.byToken[token] = l
	}
	return l
}

// wait returns when a request with a token may be sent. It fails with an *Error if the API
// asked for a backoff that is longer than maxWait, and with the context's error.
func (ls *limiters) wait(ctx context.Context, token Fingerprint, path string) error {
	for ctx.Err() == nil {
		delay, err := ls.take(token, path)
		if err != nil || delay == 0 {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
	return ctx.Err()
}

// take counts a request that may be sent now, or returns how long to wait before the next
// call.
func (ls *limiters) take(token Fingerprint, path string) (time.Duration, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	now := time.Now()
	l := ls.get(token, now)
	if delay := l.backoff.Sub(now); delay > maxWait {
		err := fmt.Errorf("no request made: %s; waiting until %s", l.cause, l.backoff.UTC().Format(time.RFC3339))
		return 0, &Error{Path: path, Reason: Paused, Until: l.backoff, Err: err}
	} else if delay > 0 {
		return delay, nil
	}
	reserved := l.ReserveN(now, 1)
	delay := reserved.DelayFrom(now)
	if delay > 0 {
		reserved.CancelAt(now) // the limit may change, or a backoff begin, while it waits
	}
	return delay, nil
}

// full returns whether as many requests with a token may be sent at once as ever.
func (ls *limiters) full(token Fingerprint) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	now := time.Now()
	return ls.get(token, now).TokensAt(now) >= Burst
}

// backOff stops all requests with a token until the time given, unless a longer backoff has
// begun already.
func (ls *limiters) backOff(token Fingerprint, until time.Time, cause string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.get(token, time.Now()); until.After(l.backoff) {
		l.backoff, l.cause = until, cause
	}
}

// backoffUntil returns the end of a backoff, zero if there is none.
func (ls *limiters) backoffUntil(token Fingerprint, now time.Time) time.Time {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.byToken[token]; l != nil && l.backoff.After(now) {
		return l.backoff
	}
	return time.Time{}
}

// apply sets new limits, and may end all backoffs. What was sent before still counts.
func (ls *limiters) apply(limits Limits, endBackoffs bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.limits = limits
	now := time.Now()
	for token, l := range ls.byToken {
		l.SetLimitAt(now, limits.refill(token))
		if endBackoffs {
			l.backoff = time.Time{}
		}
	}
}
