package refresh

import (
	"errors"
	"math/rand/v2"
	"time"
)

// retryAter is an error that knows when a retry can succeed.
type retryAter interface{ RetryAt() time.Time }

// The first delay after a failure, and the longest; both at most the interval.
const (
	firstRetry = 8 * time.Second
	maxRetry   = 5 * time.Minute
)

// turnoverDelay is the delay of a fetch after a turnover, with 50 percent jitter, so
// that exporters of one provider do not fetch at the same time.
const turnoverDelay = 400 * time.Millisecond

// A value that is not there at its turnover moves later fetches by lateStep, by maxLate
// in total.
const (
	lateStep = time.Second
	maxLate  = 3 * time.Second
)

// Phase is a sequence of turnovers: moments at which newer values come to exist. The
// zero Phase is not known.
type Phase struct {
	Next   time.Time     // the first turnover after the value of the last fetch was made
	Period time.Duration // from one turnover to the next
}

// schedule decides when a source fetches next. The interval decides how often, the
// turnovers decide when:
//
//	due  = due + interval
//	next = the turnover nearest to due, at least half a period after the last fetch
//	       + late + delay
//
// due and next stay close together, so fetches are an interval apart on average. If no
// turnover is known, next = last fetch + interval.
type schedule struct {
	failures int           // in a row
	due      time.Time     // when the interval alone would have fetched; zero before the first success
	turnover time.Time     // a known turnover; zero if none is
	late     time.Duration // how long after their turnovers values are there
}

// jitter returns a random duration between 0 and longest.
func jitter(longest time.Duration) time.Duration { return rand.N(longest + 1) }

// afterFailure returns when to fetch again: when the error says so, else after a
// delay that doubles with every failure in a row; both with jitter.
func (s *schedule) afterFailure(err error, interval time.Duration, now time.Time) time.Time {
	s.failures++
	var known retryAter
	if errors.As(err, &known) && known.RetryAt().After(now) {
		return known.RetryAt().Add(jitter(min(interval/10, firstRetry)))
	}
	delay := min(firstRetry, max(interval/8, time.Millisecond))
	delay = min(delay<<min(s.failures-1, 16), interval, maxRetry)
	return now.Add(delay - delay/10 + jitter(delay/5))
}

// afterSuccess returns when to fetch after a fetch that began at began. The first time
// without a turnover has a jitter of 10 percent, so that sources that start together do
// not stay in step.
func (s *schedule) afterSuccess(interval time.Duration, began time.Time, phase Phase) time.Time {
	first, anew := s.due.IsZero(), s.due.IsZero() || s.failures > 0
	s.failures = 0
	s.observe(phase, began)
	early := max(-interval/2, min(s.due.Sub(began), interval/2)) // the interval may have changed
	if anew {
		early = 0
	}
	s.due = began.Add(early + interval)
	if s.turnover.IsZero() {
		next := began.Add(interval)
		if first {
			next = next.Add(jitter(interval / 10))
		}
		return next
	}
	period := phase.Period
	next := s.turnover.Add(s.due.Sub(s.turnover).Round(period))
	for next.Sub(began) < period/2 {
		next = next.Add(period)
	}
	if anew { // the first fetch at a turnover may be early
		s.due = next
	}
	delay := min(turnoverDelay, period/8)
	return next.Add(s.late + delay/2 + jitter(delay))
}

// observe learns from the phase of a value when turnovers are, and how late values are.
func (s *schedule) observe(phase Phase, began time.Time) {
	s.late -= s.late / 256 // at an interval of a minute, half is forgotten in three hours
	wait := phase.Next.Sub(began)
	switch {
	case phase.Period <= 0 || wait <= -2*maxLate || wait >= 2*phase.Period:
		s.turnover = time.Time{} // not known
	case wait <= 0: // the value should have been replaced just before
		s.late = min(s.late+lateStep, maxLate)
		s.turnover = phase.Next
	case wait < phase.Period:
		s.turnover = phase.Next
	default: // a value as new as that may have been made for the fetch: it tells no turnover
	}
}
