package runner

import (
	"math/rand/v2"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// The first delay after a failure is an eighth of the interval, at most firstRetry. The longest is
// the configured interval, at most maxRetry; at most maxSoonRetry after a rejected token, so that a new one is
// used soon, and while a restock is waited for.
const (
	firstRetry   = 8 * time.Second
	maxRetry     = 5 * time.Minute
	maxSoonRetry = time.Minute
)

// A fetch comes expiryDelay and up to expiryJitter after a cache expiry, so that exporters of
// one provider do not fetch at the same time. If the response is still the old one then,
// another fetch comes after oldResponseDelay.
const (
	expiryDelay      = 200 * time.Millisecond
	expiryJitter     = 400 * time.Millisecond
	oldResponseDelay = time.Second
)

// schedule decides when a job fetches next. The interval decides how often, and the expiries
// of the provider's cache decide when:
//
//	next   = began + interval
//	expiry = madeAtLatest + n * cacheTime, the first that is at least next - earliest
//
// It fetches shortly after expiry; at next if it is not known when the response was made. So no
// interval becomes shorter by more than earliest.
type schedule struct {
	cacheTime   time.Duration // how long the provider keeps a response; 0 if it keeps none
	startJitter time.Duration // delay of the fetch after the first success, if no expiry is known

	failures int  // failures in a row
	aimed    bool // whether the last fetch followed a cache expiry
}

const earliest = 2 * time.Second

// recordFailure counts a failure, and returns when to fetch again: when the API says so, else after a delay
// that doubles with every failure in a row; both with jitter.
func (s *schedule) recordFailure(err error, interval, longest time.Duration, now time.Time) (next time.Time) {
	delay := min(min(interval/8, firstRetry)<<min(s.failures, 16), longest, maxRetry)
	s.failures++
	s.aimed = false
	failure := rentalapi.ErrorOf(err)
	if failure.Until.After(now) {
		return failure.Until.Add(rand.N(min(interval/10, firstRetry)))
	}
	if failure.Reason == rentalapi.Unauthorized {
		delay = min(delay, maxSoonRetry)
	}
	return now.Add(delay - rand.N(delay/5))
}

// recordSuccess ends a row of failures, and returns when to fetch again after a fetch that began at began.
// The provider made the response at madeAtLatest, which is zero if that is unknown.
func (s *schedule) recordSuccess(interval time.Duration, began, madeAtLatest time.Time) (next time.Time) {
	next = began.Add(interval)
	aimed, jitter := s.aimed, s.startJitter
	s.failures, s.aimed, s.startJitter = 0, false, 0
	if madeAtLatest.IsZero() || s.cacheTime <= 0 || s.cacheTime > interval {
		return next.Add(jitter)
	}
	expiry := madeAtLatest.Add(s.cacheTime)
	if aimed && began.Sub(expiry).Abs() < s.cacheTime/2 { // a new response would expire a cache time later
		return began.Add(oldResponseDelay)
	}
	s.aimed = true
	if wait := next.Add(-earliest).Sub(expiry); wait > 0 {
		expiry = expiry.Add((wait + s.cacheTime - 1).Truncate(s.cacheTime))
	}
	return expiry.Add(expiryDelay + rand.N(expiryJitter))
}
