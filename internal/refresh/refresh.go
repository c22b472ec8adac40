// Package refresh decides when to fetch and what to keep. A Source fetches its value
// in the background at an interval, keeps the last good one for a bounded time, and
// backs off after errors. Readers never wait.
package refresh

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// ErrUnchanged is returned by a fetch that succeeded and whose value must not replace the
// present one: that stays, and expires as if there had been no fetch.
var ErrUnchanged = errors.New("refresh: unchanged")

// Fetch gets a value, and tells when newer ones come to exist; the Phase of ErrUnchanged
// counts, too. It is never called twice at the same time. Its context ends with the source.
type Fetch[T any] func(ctx context.Context) (T, Phase, error)

// Settings of a source.
type Settings struct {
	// Interval is the time from one fetch to the next, start to start; from its end if
	// a fetch took longer. It is greater than 0.
	Interval time.Duration
	MaxAge   time.Duration // how long a value is kept after it was fetched; at least Interval, or it expires before the next
}

// State is the state of a source's attempts.
type State struct {
	Finished    bool          // an attempt ended, with or without an error
	Err         error         // of the last attempt that ended; nil if it succeeded
	LastSuccess time.Time     // zero before the first
	Taken       time.Time     // when the value was fetched; zero if there has been none
	Duration    time.Duration // of the last attempt that ended
	Next        time.Time     // when the next one begins; past or zero while one is under way
	Settings
}

// Source keeps one value fresh. Its methods may be used by any goroutine.
type Source[T any] struct {
	fetch Fetch[T]
	onEnd func(updated bool)
	phase Phase // of the last attempt

	mu    sync.Mutex
	timer *time.Timer // of the next attempt
	state State
	value T
}

// New returns a source that begins to fetch when Run is called. It calls onEnd after each
// attempt; updated is whether it replaced the value.
func New[T any](s Settings, fetch Fetch[T], onEnd func(updated bool)) *Source[T] {
	return &Source[T]{fetch: fetch, onEnd: onEnd, timer: time.NewTimer(math.MaxInt64), state: State{Settings: s}}
}

// Run fetches after delay and then at the interval until ctx ends; see schedule.
func (s *Source[T]) Run(ctx context.Context, delay time.Duration) {
	var sched schedule
	s.advance(time.Now().Add(delay))
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.timer.C:
		}
		began := time.Now()
		err := s.Once(ctx)
		if ctx.Err() != nil {
			return
		}
		interval := s.State().Interval
		if time.Since(began) > interval { // a fetch that took so long counts from its end
			began = time.Now()
		}
		if err != nil {
			s.advance(sched.afterFailure(err, interval, time.Now()))
		} else {
			s.advance(sched.afterSuccess(interval, began, s.phase))
		}
	}
}

// Once fetches a single time and stores the outcome.
func (s *Source[T]) Once(ctx context.Context) error {
	began := time.Now()
	s.mu.Lock()
	s.state.Next = time.Time{}
	s.mu.Unlock()
	value, phase, err := s.fetch(ctx)
	if ctx.Err() != nil { // cut off, not failed
		return err
	}
	updated := err == nil
	if errors.Is(err, ErrUnchanged) {
		err = nil
	}
	now := time.Now()
	s.mu.Lock()
	s.phase = phase
	s.state.Finished, s.state.Err, s.state.Duration = true, err, now.Sub(began)
	if err == nil {
		s.state.LastSuccess, s.state.Next = now, time.Time{}
	}
	if updated {
		s.value, s.state.Taken = value, now
	}
	s.mu.Unlock()
	s.onEnd(updated)
	return err
}

// Value returns the last good value and when it expires, and false if there is none
// that is younger than the maximum age.
func (s *Source[T]) Value() (value T, expires time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	expires = s.state.Taken.Add(s.state.MaxAge)
	if s.state.Taken.IsZero() || !time.Now().Before(expires) {
		return value, time.Time{}, false
	}
	return s.value, expires, true
}

// State returns the state of the source's attempts.
func (s *Source[T]) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// ApplySettings changes the settings; value and schedule are kept. A fetch that the
// new interval makes due comes at the new interval from now at the latest.
func (s *Source[T]) ApplySettings(settings Settings) {
	s.mu.Lock()
	changed := s.state.Settings != settings
	s.state.Settings = settings
	s.mu.Unlock()
	if changed {
		s.advance(time.Now().Add(settings.Interval))
	}
}

// RetryNow makes a source whose last attempt failed try again at once, or after the
// attempt that is under way if that fails, too.
func (s *Source[T]) RetryNow() {
	if s.State().Err != nil {
		s.advance(time.Now())
	}
}

// advance makes the next attempt begin at a time at the latest. A success of the one that
// is under way overrides it.
func (s *Source[T]) advance(latest time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Next.IsZero() || latest.Before(s.state.Next) {
		s.state.Next = latest
		s.timer.Reset(time.Until(latest))
	}
}
