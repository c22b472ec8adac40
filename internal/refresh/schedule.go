package refresh

import (
	"errors"
	"math/rand/v2"
	"time"
)

// retryAter is an error that knows when a retry can succeed.
type retryAter interface{ RetryAt() time.Time }

// The first delay after a failure, and the longest; both no longer than the interval.
const (
	firstRetry = 8 * time.Second
	maxRetry   = 5 * time.Minute
)

// A fetch follows a moment of its phase by this, so that exporters with the same
// phase do not fetch at the same time.
const (
	minPhaseDelay = 500 * time.Millisecond
	maxPhaseDelay = 1500 * time.Millisecond
)

// A newer value that does not exist yet when it should moves later fetches by
// lateStep, at most by maxLate in all.
const (
	lateStep = time.Second
	maxLate  = 3 * time.Second
)

// Phase is a sequence of moments at which newer values come to exist. The zero Phase
// is not known.
type Phase struct {
	Next   time.Time     // the first one after the value of the last fetch
	Period time.Duration // from one to the next
}

// schedule decides when a source fetches next. The interval decides how often. Where
// the phase is known, it decides when: just after a newer value can exist.
type schedule struct {
	failures  int
	succeeded bool
	carry     time.Duration // intervals less periods so far, where one is no multiple of the other
	late      time.Duration // how much later than the phase says newer values exist
}

// afterFailure returns when to fetch again: when the error says so, else after a
// delay that doubles with every failure in a row; both with jitter.
func (s *schedule) afterFailure(err error, interval time.Duration, now time.Time) time.Time {
	s.failures++
	var known retryAter
	if errors.As(err, &known) && known.RetryAt().After(now) {
		return known.RetryAt().Add(rand.N(min(interval/10, firstRetry) + 1))
	}
	delay := min(firstRetry, max(interval/8, time.Millisecond))
	longest := min(interval, maxRetry)
	for i := 1; i < s.failures && delay < longest; i++ {
		delay *= 2
	}
	delay = min(delay, longest)
	return now.Add(delay - delay/10 + rand.N(delay/5+1))
}

// afterSuccess returns when to fetch after a fetch that began at began. Without a
// phase that is an interval later; the first time with a jitter of up to 10 percent,
// so that sources and exporters that start together do not stay in step.
func (s *schedule) afterSuccess(interval time.Duration, began time.Time, phase Phase) time.Time {
	s.failures = 0
	first := !s.succeeded
	s.succeeded = true
	wait := phase.Next.Sub(began)
	known := phase.Period > 0 && wait <= phase.Period
	switch {
	case known && wait > 0:
		return began.Add(s.inPhase(interval, wait, phase.Period))
	case known && wait > -2*maxLate: // the value should have been replaced just before
		s.late = min(s.late+lateStep, maxLate)
		return began.Add(interval + lateStep)
	case first:
		return began.Add(interval + rand.N(interval/10+1))
	default:
		return began.Add(interval)
	}
}

// inPhase returns how long to wait for the moment of the phase that is nearest to an
// interval from now, where the next moment is wait away.
func (s *schedule) inPhase(interval, wait, period time.Duration) time.Duration {
	if wait < period/2 { // out of phase: never two fetches close together
		wait += period
	}
	periods := max(1, int64((interval+s.carry+period/2)/period))
	s.carry += interval - time.Duration(periods)*period
	return wait + time.Duration(periods-1)*period + s.late + minPhaseDelay + rand.N(maxPhaseDelay-minPhaseDelay)
}
