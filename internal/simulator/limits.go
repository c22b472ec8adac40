package simulator

import (
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// window is the time over which requests are counted. It slides: there is no
// moment at which a count starts anew.
const window = time.Minute

// limiter lets at most limit requests of one key through in any window.
// Requests it refuses do not count, so that a client that waits as it is told
// always gets through.
type limiter struct {
	limit int // negative: none

	mu   sync.Mutex
	seen map[string][]time.Time // of admitted requests, oldest first
}

func newLimiter(limit, usual int) *limiter {
	if limit == 0 {
		limit = usual
	}
	return &limiter{limit: limit, seen: map[string][]time.Time{}}
}

// quota is where a key stands after a request.
type quota struct {
	admitted  bool
	limit     int
	remaining int
	reset     time.Duration // until one more request is allowed than now
}

func (l *limiter) take(key string, now time.Time) quota {
	if l.limit < 0 {
		return quota{admitted: true, limit: l.limit}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	admitted := len(l.seen[key]) < l.limit
	if admitted {
		l.seen[key] = append(l.seen[key], now)
	}
	return quota{
		admitted:  admitted,
		limit:     l.limit,
		remaining: l.limit - len(l.seen[key]),
		reset:     l.seen[key][0].Add(window).Sub(now),
	}
}

func (l *limiter) forget(now time.Time) {
	for key, times := range l.seen {
		for len(times) > 0 && now.Sub(times[0]) >= window {
			times = times[1:]
		}
		l.seen[key] = times
		if len(times) == 0 {
			delete(l.seen, key)
		}
	}
}

// describe writes the headers that every authenticated response carries.
func (q quota) describe(h http.Header) {
	if q.limit < 0 {
		return
	}
	h.Set("RateLimit-Limit", strconv.Itoa(q.limit))
	h.Set("RateLimit-Remaining", strconv.Itoa(q.remaining))
	h.Set("RateLimit-Reset", seconds(q.reset))
}

// seconds rounds up: a client that waits so long has waited long enough.
func seconds(d time.Duration) string {
	return strconv.Itoa(int(math.Ceil(d.Seconds())))
}
