// Package refresh decides when to fetch and what to keep. A Source asks for its
// value in the background at an interval, keeps the last good one for a bounded
// time, and backs off when asking fails. Readers never wait.
package refresh

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// ErrMore is returned by a fetch that made progress and has more to do before it
// has a value: it is called again at once, and counts as one attempt with what follows.
var ErrMore = errors.New("refresh: more to fetch")

// retryAter is an error that knows when trying again is of use.
type retryAter interface{ RetryAt() time.Time }

// The first delay after a failure, and the longest; both no longer than the interval.
const (
	firstRetry   = 8 * time.Second
	longestRetry = 5 * time.Minute
)

// Fetch gets a value. It is never called twice at the same time. Its context
// ends with the source.
type Fetch[T any] func(ctx context.Context) (T, error)

// Settings of a source.
type Settings struct {
	Interval time.Duration // from one fetch to the next, start to start; where one has several steps, from its last
	MaxAge   time.Duration // how long a value may be shown after it was fetched
}

// State is what a source knows of its own attempts.
type State struct {
	Tried       bool          // an attempt ended, or made its first progress
	Finished    bool          // an attempt ended, well or not
	Ended       time.Time     // when the last attempt ended; zero before the first
	Err         error         // of the last attempt that ended; nil if it succeeded
	LastSuccess time.Time     // zero before the first
	Duration    time.Duration // of the last attempt that ended
	Next        time.Time     // when the next one begins; past or zero while one is under way
	Settings
}

// Source keeps one value fresh. Its methods may be used by any goroutine.
type Source[T any] struct {
	// Renewed is called after the value was replaced. It may be nil, and is set
	// before the source is used.
	Renewed func()

	fetch Fetch[T]
	now   chan struct{} // fetch now
	reset chan struct{} // the settings changed

	mu    sync.Mutex
	state State
	began time.Time // of the attempt under way; zero where there is none
	value T
	have  bool
}

// New returns a source that begins to fetch when Run is called.
func New[T any](s Settings, fetch Fetch[T]) *Source[T] {
	return &Source[T]{
		fetch: fetch,
		now:   make(chan struct{}, 1),
		reset: make(chan struct{}, 1),
		state: State{Settings: s},
	}
}

// Run fetches after delay and then at the interval until ctx ends. The second
// fetch is up to a tenth of an interval late, by chance, so that sources and
// exporters that start together do not ask together for ever.
func (s *Source[T]) Run(ctx context.Context, delay time.Duration) {
	began := time.Now()
	next := began.Add(delay)
	for failures := 0; ; {
		if !s.sleep(ctx, next) {
			return
		}
		scheduled := time.Now()
		err := s.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		interval := s.State().Interval
		switch {
		case errors.Is(err, ErrMore):
			next = time.Now()
			continue
		case err != nil:
			failures++
			next = retry(err, failures, interval, time.Now())
		default:
			failures = 0
			next = scheduled.Add(interval)
			if !began.IsZero() {
				next = next.Add(rand.N(interval/10 + 1))
				began = time.Time{}
			}
		}
		s.mu.Lock()
		s.state.Next = next
		s.mu.Unlock()
	}
}

// sleep waits until next, or until Wake; Set makes it look at the interval again.
func (s *Source[T]) sleep(ctx context.Context, next time.Time) bool {
	for {
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
			return ctx.Err() == nil
		case <-s.now:
			timer.Stop()
			return true
		case <-s.reset:
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

// retry returns when to ask again after a failure: when the error says so, else
// after a delay that doubles with every failure in a row; both with jitter.
func retry(err error, failures int, interval time.Duration, now time.Time) time.Time {
	var known retryAter
	if errors.As(err, &known) && known.RetryAt().After(now) {
		return known.RetryAt().Add(rand.N(min(interval/10, firstRetry) + 1))
	}
	delay := min(firstRetry, max(interval/8, time.Millisecond))
	longest := min(interval, longestRetry)
	for i := 1; i < failures && delay < longest; i++ {
		delay *= 2
	}
	delay = min(delay, longest)
	return now.Add(delay - delay/10 + rand.N(delay/5+1))
}

// Once fetches a single time, to its end.
func (s *Source[T]) Once(ctx context.Context) error {
	for {
		err := s.attempt(ctx)
		if !errors.Is(err, ErrMore) || ctx.Err() != nil {
			return err
		}
	}
}

// attempt calls fetch once and keeps the outcome.
func (s *Source[T]) attempt(ctx context.Context) error {
	s.mu.Lock()
	s.state.Next = time.Time{}
	if s.began.IsZero() {
		s.began = time.Now()
	}
	s.mu.Unlock()
	value, err := s.fetch(ctx)
	if ctx.Err() != nil { // cut off, not failed
		return err
	}
	s.keep(value, err)
	if err == nil && s.Renewed != nil {
		s.Renewed()
	}
	return err
}

// keep takes in the outcome of a fetch.
func (s *Source[T]) keep(value T, err error) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Tried = true
	if errors.Is(err, ErrMore) {
		return
	}
	s.state.Finished, s.state.Ended = true, now
	s.state.Duration = now.Sub(s.began)
	s.state.Err = err
	s.began = time.Time{}
	if err == nil {
		s.value, s.have = value, true
		s.state.LastSuccess = now
	}
}

// Value returns the last good value, and false where there is none that is
// younger than the maximum age.
func (s *Source[T]) Value() (T, bool) {
	value, _, ok := s.Last()
	return value, ok
}

// Last is Value with the time at which the value was fetched.
func (s *Source[T]) Last() (value T, at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var none T
	if s.have && time.Since(s.state.LastSuccess) > s.state.MaxAge {
		s.value, s.have = none, false
	}
	return s.value, s.state.LastSuccess, s.have
}

// State returns what the source knows of its attempts.
func (s *Source[T]) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Set changes the settings; value and schedule are kept. A fetch that the new
// interval makes due comes at the new interval from now at the latest.
func (s *Source[T]) Set(settings Settings) {
	s.mu.Lock()
	changed := s.state.Settings != settings
	s.state.Settings = settings
	s.mu.Unlock()
	if changed {
		signal(s.reset)
	}
}

// Wake makes a source whose last attempt failed try again now.
func (s *Source[T]) Wake() {
	if s.State().Err != nil {
		signal(s.now)
	}
}

// signal leaves a message; one that is there already says the same.
func signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
