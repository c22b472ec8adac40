package simulator

import (
	"math"
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
	times := l.admitted[key]
	for len(times) > 0 && now.Sub(times[0]) >= window {
		times = times[1:]
	}
	admitted := len(times) < l.limit
	if admitted {
		times = append(times, now)
	}
	l.admitted[key] = times
	return quota{admitted, l.limit, l.limit - len(times), times[0].Add(window).Sub(now)}
}

// seconds rounds up, so that a client that waits this long is admitted.
func seconds(d time.Duration) string {
	return strconv.Itoa(int(math.Ceil(d.Seconds())))
}
