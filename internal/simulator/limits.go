package simulator

import (
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// window is the length of the sliding window in which requests are counted.
const window = time.Minute

// limiter admits at most limit requests of one key in any window. Rejected
// requests do not count, so a client that waits for Retry-After is admitted.
type limiter struct {
	limit int // negative means no limit

	mu       sync.Mutex
	admitted map[string][]time.Time // times of admitted requests by key, oldest first
}

func newLimiter(limit int) *limiter {
	return &limiter{limit: limit, admitted: map[string][]time.Time{}}
}

// quota is the state of a key after a request.
type quota struct {
	admitted  bool
	limit     int
	remaining int
	reset     time.Duration // until the oldest counted request leaves the window
}

func (l *limiter) take(key string, now time.Time) quota {
	if l.limit < 0 {
		return quota{admitted: true, limit: l.limit}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	admitted := len(l.admitted[key]) < l.limit
	if admitted {
		l.admitted[key] = append(l.admitted[key], now)
	}
	return quota{
		admitted:  admitted,
		limit:     l.limit,
		remaining: l.limit - len(l.admitted[key]),
		reset:     l.admitted[key][0].Add(window).Sub(now),
	}
}

func (l *limiter) expire(now time.Time) {
	for key, times := range l.admitted {
		for len(times) > 0 && now.Sub(times[0]) >= window {
			times = times[1:]
		}
		l.admitted[key] = times
		if len(times) == 0 {
			delete(l.admitted, key)
		}
	}
}

// setHeaders sets the headers of every authenticated response.
func (q quota) setHeaders(h http.Header) {
	if q.limit < 0 {
		return
	}
	h.Set("RateLimit-Limit", strconv.Itoa(q.limit))
	h.Set("RateLimit-Remaining", strconv.Itoa(q.remaining))
	h.Set("RateLimit-Reset", seconds(q.reset))
}

// seconds rounds up, so that a client that waits this long is admitted.
func seconds(d time.Duration) string {
	return strconv.Itoa(int(math.Ceil(d.Seconds())))
}
