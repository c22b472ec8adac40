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
	// OnUpdate is called after the value was replaced, and OnAttempt after each
	// attempt; both also after the settings changed.
	OnUpdate, OnAttempt func()
	// PhaseOf returns when newer values than the one given come to exist. The fetch
	// that returned it counts from began.
	PhaseOf func(value T, began time.Time) Phase
	// Rand is the source of the jitter of Run; nil means the global one.
	Rand *rand.Rand
}

// Source keeps one value fresh. Its methods may be used by any goroutine.
type Source[T any] struct {
	options    Options[T]
	fetch      Fetch[T]
	retryCh    chan struct{} // fetch now
	settingsCh chan struct{} // the settings changed

	mu    sync.Mutex
	state State
	value T
	taken time.Time // when the value was; zero if there is none
}

// New returns a source that begins to fetch when Run is called.
func New[T any](s Settings, fetch Fetch[T], o Options[T]) *Source[T] {
	return &Source[T]{
		options:    o,
		fetch:      fetch,
		retryCh:    make(chan struct{}, 1),
		settingsCh: make(chan struct{}, 1),
		state:      State{Settings: s},
	}
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
		err := s.attempt(ctx)
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
		s.mu.Lock()
		s.state.Next = next
		s.mu.Unlock()
	}
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
		case <-s.retryCh:
			timer.Stop()
			if s.State().Err != nil { // an attempt may have succeeded meanwhile
				return true
			}
		case <-s.settingsCh:
			timer.Stop()
			if latest := time.Now().Add(s.State().Interval); latest.Before(next) {
				next = latest
				s.mu.Lock()
				s.state.Next = next
				s.mu.Unlock()
			}
		}
	}
}

// Once fetches a single time.
func (s *Source[T]) Once(ctx context.Context) error { return s.attempt(ctx) }

// attempt fetches and stores the outcome.
func (s *Source[T]) attempt(ctx context.Context) error {
	s.mu.Lock()
	s.state.Next = time.Time{}
	s.mu.Unlock()
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
	if err == nil {
		call(s.options.OnUpdate)
	}
	call(s.options.OnAttempt)
	return err
}

func call(hook func()) {
	if hook != nil {
		hook()
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
	signal(s.settingsCh)
	call(s.options.OnUpdate) // the value may expire at another time
	call(s.options.OnAttempt)
}

// RetryNow makes a source whose last attempt failed try again at once.
func (s *Source[T]) RetryNow() {
	if s.State().Err != nil {
		signal(s.retryCh)
	}
}

// signal sends without blocking: a signal that is pending already suffices.
func signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
