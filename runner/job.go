package runner

import (
	"context"
	"io"
	"math"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-kit/log"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/rentalapi"
)

// Timing says how often a collector fetches, and how long it keeps data.
type Timing struct {
	// Interval is the time from one fetch to the next, start to start; from its end if
	// a fetch took longer. It is greater than 0.
	Interval time.Duration
	MaxAge   time.Duration // how long data is kept after it was fetched; at least Interval, or it expires before the next
	// SoldOutInterval is instead of Interval while the last response has an item that is sold
	// out; 0 if there is none.
	SoldOutInterval time.Duration
}

// State is the state of a collector's fetches.
type State struct {
	Finished    bool          // a fetch ended, with or without an error
	Err         error         // of the last fetch that ended; nil if it succeeded
	LastSuccess time.Time     // zero before the first
	Taken       time.Time     // when the data that is shown was fetched; zero if there has been none
	Duration    time.Duration // of the last fetch that ended
	Next        time.Time     // when the next one begins; past or zero while one is under way
	Incomplete  bool          // whether the newest response that could be read was incomplete
	FormerID    string        // the provider's id of the account, if that has changed since the configuration was applied
	Timing                    // as configured; longer if the data demands it
}

// job is one collector of one account: its loop, and what it fetched last. A job whose
// context has ended installs nothing any more.
type job struct {
	resource *collector.Resource
	account  *account // when the job was made: its name, its client and its jitter stay
	runner   *Runner
	logger   stateLogger
	stop     context.CancelFunc

	tried atomic.Bool // a fetch, or the first page of a long history, has ended
	timer *time.Timer // of the next fetch

	mu         sync.Mutex // guards the rest
	configured Timing
	state      State              // without Timing
	snapshot   collector.Snapshot // of the last response that was not an older copy; also if it has expired
}

func (r *Runner) newJob(a *account, res *collector.Resource, t Timing) *job {
	logger := log.With(r.options.Logger, "collector", res.Name)
	if a.name != "" {
		logger = log.With(logger, "account", a.name)
	}
	r.API.InitErrorCounters(res.Path)
	return &job{
		resource: res, account: a, runner: r, logger: stateLogger{logger: logger},
		stop: func() {}, timer: time.NewTimer(math.MaxInt64), configured: t,
	}
}

// run fetches after delay, and then again and again until ctx ends; see schedule.
func (j *job) run(ctx context.Context, delay time.Duration) {
	var s schedule
	next := time.Now().Add(delay)
	for {
		j.setNext(next)
		select {
		case <-ctx.Done():
			return
		case <-j.timer.C:
		}
		began := time.Now()
		produced, err := j.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		interval, late := j.interval()
		now := time.Now()
		if err != nil {
			state, _ := j.health()
			next = s.afterFailure(err, state.Interval, now)
			continue
		}
		if now.Sub(began) > interval { // a fetch that took so long counts from its end
			began = now
		}
		next = s.afterSuccess(interval, j.resource.MinInterval, late, began, produced)
	}
}

// attempt fetches once, and installs the response or records the failure. It returns when
// the provider made the response at the latest; zero if that is not known.
func (j *job) attempt(ctx context.Context) (produced time.Time, err error) {
	began := time.Now()
	j.setNext(time.Time{})
	_, last := j.health()
	snap, err := j.resource.Fetch(ctx, j, j.account.name, last)
	j.runner.installing.Lock()
	defer j.runner.installing.Unlock()
	if ctx.Err() != nil { // cut off, not failed
		return time.Time{}, ctx.Err()
	}
	now := time.Now()
	if err != nil {
		err = j.fail(err, now.Sub(began), now)
	} else {
		j.install(snap, now.Sub(began), now)
	}
	j.tried.Store(true) // after the groups were marked as changed
	return snap.Age.ProducedBy, err
}

// Get implements rentalapi.Getter. A job that asks for a further page has been tried: a long
// history takes minutes.
func (j *job) Get(ctx context.Context, path string, query url.Values, read func(io.Reader) error) (rentalapi.Response, error) {
	if page := query.Get("page"); page != "" && page != "1" {
		j.tried.Store(true)
	}
	defer j.runner.groups.state.Changed()
	return j.account.client.Get(ctx, path, query, read)
}

// shown returns the snapshot that is shown and when it expires, and false if there is none.
func (j *job) shown() (snap collector.Snapshot, expires time.Time, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	expires = j.state.Taken.Add(j.timing().MaxAge)
	if j.state.Taken.IsZero() || !time.Now().Before(expires) {
		return collector.Snapshot{}, time.Time{}, false
	}
	return j.snapshot, expires, true
}

// timing returns the configured timing, or a longer one that the last snapshot demands: it
// expires after three fetches at the earliest. The caller holds mu.
func (j *job) timing() Timing {
	t, least := j.configured, j.snapshot.AtLeast
	t.Interval, t.MaxAge = max(t.Interval, least), max(t.MaxAge, 3*least)
	return t
}

// health returns the state of the job, and what it fetched last.
func (j *job) health() (State, collector.Snapshot) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.state
	s.Timing = j.timing()
	return s, j.snapshot
}

// interval returns the time from one fetch to the next, and by how much the second fetch is
// late: not at all if a restock is waited for.
func (j *job) interval() (interval, late time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := j.timing()
	if j.snapshot.SoldOut && t.SoldOutInterval > 0 && t.SoldOutInterval < t.Interval {
		return t.SoldOutInterval, 0
	}
	return t.Interval, time.Duration(j.account.jitter * float64(t.Interval))
}

// setTiming changes the intervals and the maximum age; data and schedule are kept. A fetch
// that the new interval makes due comes at the new interval from now at the latest.
func (j *job) setTiming(t Timing) {
	j.mu.Lock()
	changed := j.configured != t
	j.configured, j.state.FormerID = t, ""
	next := j.state.Next
	j.mu.Unlock()
	interval, _ := j.interval()
	if latest := time.Now().Add(interval); changed && next.After(latest) {
		j.setNext(latest)
	}
}

// setNext sets when the next fetch begins; zero while one is under way.
func (j *job) setNext(at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state.Next = at
	if !at.IsZero() {
		j.timer.Reset(time.Until(at))
	}
}
