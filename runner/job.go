package runner

import (
	"context"
	"errors"
	"math"
	"slices"
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
	MaxAge   time.Duration // how long data is kept after it was fetched; at least twice the interval
	// SoldOutInterval is instead of Interval while the last response has an item that is sold
	// out; 0 if there is none.
	SoldOutInterval time.Duration
}

// State is the state of a collector's fetches. Its times have no monotonic reading, which
// stands still while a machine is suspended: ages are by the wall clock.
type State struct {
	Finished    bool              // a fetch ended, with or without an error
	Err         error             // of the last fetch that ended; nil if it succeeded
	LastSuccess time.Time         // zero before the first
	Taken       time.Time         // when the data that is shown was fetched; zero if there has been none
	Duration    time.Duration     // of the last fetch that ended
	Next        time.Time         // when the next one begins; past or zero while one is under way
	Incomplete  bool              // whether the newest response that could be read was incomplete
	Invalid     rentalapi.Invalid // of the response that was shown last
	Timing                        // as configured; longer if the data demands it
}

// job is one collector of one account: its loop, and what it fetched last. A job whose
// context has ended installs nothing any more.
type job struct {
	resource *collector.Resource
	account  *account // when the job was made: its name, its client and its jitter stay
	runner   *Runner
	logger   stateLogger
	fetcher  collector.Fetcher
	stop     context.CancelFunc

	tried atomic.Bool // a fetch, or the first page of a long history, has ended
	timer *time.Timer // of the next fetch

	mu         sync.Mutex // guards the rest; the last lock that is taken
	configured Timing
	state      State              // without Timing
	urgent     bool               // a fetch is under way, and not at a further page
	snapshot   collector.Snapshot // of the last response that was not an older copy; also if it has expired
	history    collector.History  // up to that response
}

func (r *Runner) newJob(a *account, res *collector.Resource, t Timing) *job {
	logger := log.With(r.options.Logger, "collector", res.Name)
	if a.name != "" {
		logger = log.With(logger, "account", a.name)
	}
	r.API.InitErrorCounters(res.Path)
	j := &job{
		resource: res, account: a, runner: r, logger: stateLogger{logger: logger},
		stop: func() {}, timer: time.NewTimer(math.MaxInt64), configured: t,
	}
	j.fetcher = collector.Fetcher{Resource: res, Account: a.name, API: a.client, OnPage: j.onPage}
	return j
}

// run fetches after delay, and then again and again until ctx ends; see schedule.
func (j *job) run(ctx context.Context, delay time.Duration) {
	s := schedule{cacheTime: j.resource.MinInterval, late: time.Duration(j.account.jitter * float64(j.health().Interval))}
	next := time.Now().Add(delay)
	for {
		j.setNext(next)
		select {
		case <-ctx.Done():
			return
		case <-j.timer.C:
		}
		began := time.Now()
		madeBy, err := j.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		interval, waiting := j.interval()
		now := time.Now()
		if err != nil {
			retry := j.health().Interval
			if waiting {
				retry = min(retry, maxWaitingRetry)
			}
			next = s.afterFailure(err, retry, now)
			continue
		}
		if waiting {
			s.late = 0
		}
		if now.Sub(began) > interval { // a fetch that took so long counts from its end
			began = now
		}
		next = s.afterSuccess(interval, began, madeBy)
	}
}

// attempt fetches once, and installs the response or records the failure. It returns when
// the provider made the response at the latest; zero if that is not known.
func (j *job) attempt(ctx context.Context) (madeBy time.Time, err error) {
	began := time.Now()
	j.begin()
	snap, err := j.fetcher.Fetch(ctx)
	if ctx.Err() != nil { // cut off, not failed
		return time.Time{}, ctx.Err()
	}
	if err == nil && snap.Token != j.account.client.LastToken() {
		err = collector.ErrTokenChanged
	}
	if _, counted := errors.AsType[*rentalapi.Error](err); err != nil && !counted {
		err = j.account.client.Reject(j.resource.Path, err)
	}
	lines := j.finish(ctx, snap, err, time.Since(began))
	switch {
	case ctx.Err() != nil:
		return time.Time{}, ctx.Err()
	case err != nil:
		j.logger.recordFailure(err)
	default:
		j.logger.recordSuccess(j.health().Invalid)
	}
	lines.write(j.runner.options.Logger)
	return snap.MadeBy, err
}

// finish installs a response, or records why there is none, unless ctx has ended. It returns
// what is to be logged besides.
func (j *job) finish(ctx context.Context, snap collector.Snapshot, err error, took time.Duration) (lines logLines) {
	j.runner.installing.Lock()
	defer j.runner.installing.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	now := wallClock()
	if err == nil {
		lines = j.install(snap, now)
	}
	j.record(err, took, now)
	j.tried.Store(true) // after the groups were marked as changed
	return lines
}

// wallClock returns the time without monotonic reading.
func wallClock() time.Time { return time.Now().Round(0) }

// maxYield returns how long a further page waits at most while other fetches are due: that of a
// walk for its interval, others so that their fetch takes three quarters of its interval.
func (j *job) maxYield() time.Duration {
	if j.resource.PageInterval > 0 {
		return j.resource.PageInterval
	}
	return j.health().Interval * 3 / time.Duration(4*max(1, j.resource.MaxRequests))
}

// onPage is called before a further page is asked for. The first page has been tried: a long
// history takes minutes. Its further pages wait while other fetches of the account are due, and
// leave requests for those that come.
func (j *job) onPage(ctx context.Context) error {
	j.tried.Store(true)
	j.mu.Lock()
	j.urgent = false
	j.mu.Unlock()
	j.runner.groups.state.Changed()
	for end := time.Now().Add(j.maxYield()); j.mustYield() && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return ctx.Err()
}

// mustYield returns whether a further page would delay another fetch of the account: one that is
// due or under way, and not at a further page itself, or one that begins soon.
func (j *job) mustYield() bool {
	if !j.account.client.HasSpare() {
		return true
	}
	for _, a := range *j.runner.current.Load() {
		if a.name == j.account.name {
			return slices.ContainsFunc(a.jobs, func(other *job) bool {
				other.mu.Lock()
				defer other.mu.Unlock()
				return other.urgent || !other.state.Next.IsZero() && !other.state.Next.After(time.Now())
			})
		}
	}
	return false
}

// record keeps the outcome of a fetch.
func (j *job) record(err error, took time.Duration, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.urgent = false
	j.state.Finished, j.state.Err, j.state.Duration = true, err, took
	if err == nil {
		j.state.LastSuccess, j.state.Incomplete = now, false
	}
	if failure, ok := errors.AsType[*rentalapi.Error](err); ok && failure.Reason == rentalapi.Incomplete {
		j.state.Incomplete = true
	}
	j.runner.groups.state.Changed() // after the state, or a publication in between would miss it
}

// forget drops the data, and fetches again at once.
func (j *job) forget() {
	j.mu.Lock()
	j.state.Taken, j.snapshot, j.history = time.Time{}, collector.Snapshot{}, collector.History{}
	j.mu.Unlock()
	j.runner.groups.resources[j.resource.Name].Changed()
	j.setLatest(time.Now())
}

// shown is what is shown of a job.
type shown struct {
	collector.Snapshot
	collector.History
	expires time.Time
}

// shown returns what is shown, and false if that is nothing.
func (j *job) shown() (shown, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	expires := j.state.Taken.Add(j.timing().MaxAge)
	if j.state.Taken.IsZero() || !wallClock().Before(expires) {
		return shown{}, false
	}
	return shown{j.snapshot, j.history, expires}, true
}

// timing returns the configured timing, or a longer one that the last snapshot demands: it
// expires after three fetches at the earliest. The caller holds mu.
func (j *job) timing() Timing {
	t, least := j.configured, j.snapshot.AtLeast
	t.Interval, t.MaxAge = max(t.Interval, least), max(t.MaxAge, 3*least)
	return t
}

// health returns the state of the job.
func (j *job) health() State {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.state
	s.Timing = j.timing()
	return s
}

// interval returns the time from one fetch to the next, and whether a restock is waited for.
func (j *job) interval() (interval time.Duration, waiting bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := j.timing()
	if j.history.SoldOut && t.SoldOutInterval > 0 && t.SoldOutInterval < t.Interval {
		return t.SoldOutInterval, true
	}
	return t.Interval, false
}

// setTiming changes the intervals and the maximum age; data and schedule are kept. A fetch
// that the new interval makes due comes at the new interval from now at the latest.
func (j *job) setTiming(t Timing) {
	j.mu.Lock()
	changed := j.configured != t
	j.configured = t
	j.mu.Unlock()
	if interval, _ := j.interval(); changed {
		j.setLatest(time.Now().Add(interval))
	}
}

// setLatest brings the next fetch forward if it would begin later; not one that is under way.
func (j *job) setLatest(at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.state.Next.After(at) {
		j.state.Next = at
		j.timer.Reset(time.Until(at))
	}
}

// begin notes that a fetch begins.
func (j *job) begin() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.urgent, j.state.Next = true, time.Time{}
}

// setNext sets when the next fetch begins.
func (j *job) setNext(at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state.Next = at
	j.timer.Reset(time.Until(at))
}
