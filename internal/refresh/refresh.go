// Package refresh decides when to fetch and what to keep. A Source fetches its value
// in the background at an interval, keeps the last good one for a bounded time, and
// backs off after errors. Readers never wait.
package refresh

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// ErrUnchanged is returned by a fetch that succeeded and whose value must not replace the
// present one: that stays, and expires as if there had been no fetch.
var ErrUnchanged = errors.New("refresh: unchanged")

// Fetch gets a value. It is never called twice at the same time. Its context ends
// with the source.
type Fetch[T any] func(ctx context.Context) (T, error)

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
	Duration    time.Duration // of the last attempt that ended
	Next        time.Time     // when the next one begins; past or zero while one is under way
	Settings
}

// Options of a source; each may be nil.
type Options[T any] struct {
	// OnChange is called after each attempt, and after the settings changed. Updated is
	// whether the value, or the time at which it expires, may be another one.
	OnChange func(updated bool)
	// PhaseOf returns when newer values than the one given come to exist. The fetch
	// that returned it counts from began.
	PhaseOf func(value T, began time.Time) Phase
	// Rand is the source of the jitter of Run; nil means the global one.
	Rand *rand.Rand
}

// Source keeps one value fresh. Its methods may be used by any goroutine.
type Source[T any] struct {
	options Options[T]
	fetch   Fetch[T]
	wake    chan struct{} // a retry is wanted, or the settings changed

	mu    sync.Mutex
	retry bool // fetch now
	state State
	value T
	taken time.Time // when the value was; zero if there is none
}

// New returns a source that begins to fetch when Run is called.
func New[T any](s Settings, fetch Fetch[T], o Options[T]) *Source[T] {
	return &Source[T]{options: o, fetch: fetch, wake: make(chan struct{}, 1), state: State{Settings: s}}
}

// Run fetches after delay and then at the interval until ctx ends; see schedule.
func (s *Source[T]) Run(ctx context.Context, delay time.Duration) {
	sched := schedule{rand: s.options.Rand}
	next := time.Now().Add(delay)
	for {
		if !s.sleep(ctx, next) {
			return
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
			next = sched.afterFailure(err, interval, time.Now())
		} else {
			next = sched.afterSuccess(interval, began, s.phase(began))
		}
		s.setNext(next)
	}
}

func (s *Source[T]) setNext(next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Next = next
}

// phase returns the phase of the value that was fetched last.
func (s *Source[T]) phase(began time.Time) Phase {
	if s.options.PhaseOf == nil {
		return Phase{}
	}
	s.mu.Lock()
	value := s.value
	s.mu.Unlock()
	return s.options.PhaseOf(value, began)
}

// sleep waits until next or RetryNow; ApplySettings makes it compute next again.
func (s *Source[T]) sleep(ctx context.Context, next time.Time) bool {
	for {
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
			return ctx.Err() == nil
		case <-s.wake:
			timer.Stop()
		}
		s.mu.Lock()
		retry, interval := s.retry && s.state.Err != nil, s.state.Interval // an attempt may have succeeded meanwhile
		s.retry = false
		s.mu.Unlock()
		if retry {
			return true
		}
		if latest := time.Now().Add(interval); latest.Before(next) {
			next = latest
			s.setNext(next)
		}
	}
}

// Once fetches a single time and stores the outcome.
func (s *Source[T]) Once(ctx context.Context) error {
	s.setNext(time.Time{})
	began := time.Now()
	value, err := s.fetch(ctx)
	if ctx.Err() != nil { // cut off, not failed
		return err
	}
	unchanged := errors.Is(err, ErrUnchanged)
	if unchanged {
		err = nil
	}
	now := time.Now()
	s.mu.Lock()
	s.state.Finished, s.state.Err, s.state.Duration = true, err, now.Sub(began)
	if err == nil {
		s.state.LastSuccess = now
	}
	if err == nil && !unchanged {
		s.value, s.taken = value, now
	}
	s.mu.Unlock()
	s.changed(err == nil)
	return err
}

func (s *Source[T]) changed(updated bool) {
	if s.options.OnChange != nil {
		s.options.OnChange(updated)
	}
}

// Value returns the last good value and when it expires, and false if there is none
// that is younger than the maximum age.
func (s *Source[T]) Value() (value T, expires time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	expires = s.taken.Add(s.state.MaxAge)
	if s.taken.IsZero() || !time.Now().Before(expires) {
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
	if !changed {
		return
	}
	s.signal()
	s.changed(true)
}

// RetryNow makes a source whose last attempt failed try again at once.
func (s *Source[T]) RetryNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Err != nil {
		s.retry = true
		s.signal()
	}
}

// signal ends a sleep without blocking: a signal that is pending already suffices.
func (s *Source[T]) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
