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

// A fetch follows a moment of its phase by 0.5 to 1.5 times this, less where the period is
// short, so that exporters with the same phase do not fetch at the same time.
const phaseDelay = 400 * time.Millisecond

// A newer value that does not exist yet when it should moves later fetches by
// lateStep, at most by maxLate in all. Each fetch undoes a small part of that.
const (
	lateStep = time.Second
	maxLate  = 3 * time.Second
	lateLoss = 256 // the part is 1/lateLoss
)

// maxTrust is for how many fetches in a row a known phase is used although each value
// is so new that it may have been made for the fetch, which has no phase.
const maxTrust = 10

// Phase is a sequence of moments at which newer values come to exist. The zero Phase
// is not known.
type Phase struct {
	Next   time.Time     // the first one after the value of the last fetch
	Period time.Duration // from one to the next
}

// schedule decides when a source fetches next. The interval decides how often. Where
// the phase is known, it decides when: just after a newer value can exist.
type schedule struct {
	rand      *rand.Rand // nil for the global one
	failures  int
	succeeded bool
	trust     int           // 0 where the phase is not known
	early     time.Duration // how much earlier fetches were so far than the interval alone would have them
	late      time.Duration // how much later than the phase says newer values exist
}

// jitter returns a random duration between 0 and longest.
func (s *schedule) jitter(longest time.Duration) time.Duration {
	if s.rand == nil {
		return rand.N(longest + 1)
	}
	return time.Duration(s.rand.Int64N(int64(longest) + 1))
}

// afterFailure returns when to fetch again: when the error says so, else after a
// delay that doubles with every failure in a row; both with jitter.
func (s *schedule) afterFailure(err error, interval time.Duration, now time.Time) time.Time {
	s.failures++
	var known retryAter
	if errors.As(err, &known) && known.RetryAt().After(now) {
		return known.RetryAt().Add(s.jitter(min(interval/10, firstRetry)))
	}
	delay := min(firstRetry, max(interval/8, time.Millisecond))
	longest := min(interval, maxRetry)
	for i := 1; i < s.failures && delay < longest; i++ {
		delay *= 2
	}
	delay = min(delay, longest)
	return now.Add(delay - delay/10 + s.jitter(delay/5))
}

// afterSuccess returns when to fetch after a fetch that began at began. Without a
// phase that is an interval later; the first time with a jitter of up to 10 percent,
// so that sources and exporters that start together do not stay in step.
func (s *schedule) afterSuccess(interval time.Duration, began time.Time, phase Phase) time.Time {
	first, anew := !s.succeeded, !s.succeeded || s.failures > 0
	s.succeeded, s.failures = true, 0
	wait := phase.Next.Sub(began)
	switch {
	case phase.Period <= 0 || wait <= -2*maxLate || wait >= 2*phase.Period:
		s.trust = 0
	case wait <= 0: // the value should have been replaced just before
		s.late = min(s.late+lateStep, maxLate)
		wait += phase.Period
		s.trust = maxTrust
	case wait < phase.Period:
		s.trust = maxTrust
	default: // the value may have been made for this fetch
		s.trust = max(s.trust-1, 0)
	}
	switch {
	case s.trust > 0:
		return began.Add(s.inPhase(interval, wait, phase.Period, anew))
	case first:
		return began.Add(interval + s.jitter(interval/10))
	default:
		return began.Add(interval)
	}
}

// inPhase returns how long to wait for the moment of the phase that is nearest to when
// the interval alone would fetch, where the next moment is wait away. The fetch that
// gets into phase anew may be early; others make up for it where they are early.
func (s *schedule) inPhase(interval, wait, period time.Duration, anew bool) time.Duration {
	s.early = max(-period/2, min(s.early, period/2)) // periods and intervals may have changed
	if wait < (period+s.early)/2 {                   // never two fetches close together
		wait += period
	}
	if rest := interval + s.early - wait + period/2; rest > 0 {
		wait += rest / period * period
	}
	delay := min(phaseDelay, period/8)
	s.late -= s.late / lateLoss
	wait += s.late + delay/2 + s.jitter(delay)
	if s.early += interval - wait; anew {
		s.early = 0
	}
	return wait
}
