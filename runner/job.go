package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-kit/log"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// job is one collector of one account: its loop, and what it fetched last. A job whose
// context has ended installs nothing any more. The runner's mu guards what changes.
type job struct {
	resource *collector.Resource
	account  *account
	runner   *Runner
	stop     context.CancelFunc

	timer    *time.Timer // fires when the next fetch begins
	schedule schedule
	logger   stateLogger

	health   Health
	snapshot collector.Snapshot // the last response that was not an older copy, also if it has expired
	changes  collector.Changes  // all changes up to that response
}

// newJob returns a job that fetches after delay.
func (r *Runner) newJob(a *account, res collector.Resource, t collector.Timing, delay time.Duration) *job {
	logger := log.With(r.logger, "collector", res.Name)
	if a.name != "" {
		logger = log.With(logger, "account", a.name)
	}
	r.api.InitErrorCounters(res.Path)
	return &job{
		resource: &res, account: a, runner: r, stop: func() {},
		timer: time.NewTimer(delay), logger: stateLogger{logger: logger},
		schedule: schedule{cacheTime: res.MinInterval},
		health:   Health{Collector: res.Name, Account: a.name, Timing: t, Next: time.Now().Add(delay)},
	}
}

// run fetches again and again until ctx ends.
func (j *job) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.timer.C:
			j.attempt(ctx)
		}
	}
}

// errTooSlow is the error of a fetch that waits to make a request when its interval ends.
var errTooSlow = &rentalapi.Error{
	Reason: rentalapi.Timeout, Err: errors.New("timed out before all requests were made"),
	Hint: "the rate limit, or the API, is too slow for the interval",
}

// errTokenChanged is the error of a fetch of whose requests the last ones, or newer ones of the account,
// had another token: they may belong to different provider accounts.
var errTokenChanged = fmt.Errorf("token: changed between two requests: %w", rentalapi.ErrIncomplete)

// attempt fetches once, and installs the response or records the failure, unless ctx ends. A fetch
// that takes longer than its interval fails.
func (j *job) attempt(ctx context.Context) {
	r, client, began := j.runner, j.account.client, time.Now()
	r.mu.Lock()
	j.health.Next = time.Time{}
	fetchCtx, cancel := context.WithTimeoutCause(ctx, j.health.Interval, errTooSlow)
	r.mu.Unlock()
	defer cancel()
	snap, err := j.resource.Fetch(fetchCtx, client, j.account.name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil { // cut off, not failed
		return
	}
	if err == nil && snap.Token != client.LastToken() {
		err = errTokenChanged
	}
	if err == nil {
		err = j.checkSize(snap)
	}
	h, ended := &j.health, time.Now()
	h.Err, h.Duration = err, ended.Sub(began)
	if err == nil {
		if j.shown() && snap.IsOlder(j.snapshot) { // nothing changes
			snap.MadeAtLatest = time.Time{} // the interval decides, not when another cache expires
		} else {
			j.install(snap, wallClock())
		}
		h.LastSuccess, h.Incomplete = wallClock(), false
		j.logger.recordSuccess(h.Invalid)
	} else {
		h.Failure, h.FailedAt = err, wallClock()
		r.api.CountFailure(j.resource.Path, err)
		h.Incomplete = h.Incomplete || rentalapi.ErrorOf(err).Reason == rentalapi.Incomplete
		j.logger.recordFailure(err)
	}
	r.Publisher.Changed()
	j.reschedule(began, ended, snap.MadeAtLatest)
}

// checkSize returns an error if the data of all accounts together would take more than three fifths of the
// memory limit, with a snapshot of this one. Public data has bounds of its own.
func (j *job) checkSize(snap collector.Snapshot) error {
	most, size := debug.SetMemoryLimit(-1)/5*3, int64(snap.Bytes)
	for _, a := range j.runner.accounts[1:] {
		for _, other := range a.jobs {
			if other != j {
				size += int64(other.snapshot.Bytes)
			}
		}
	}
	if size <= most || j.account.name == "" {
		return nil
	}
	return fmt.Errorf("data: more than %d MiB of all accounts: needs shards, or a larger GOMEMLIMIT: %w", most>>20, rentalapi.ErrTooLarge)
}

// wallClock returns the time without monotonic reading.
func wallClock() time.Time { return time.Now().Round(0) }

// reschedule sets when to fetch again after a fetch whose response was made at madeAtLatest at the
// latest; zero if that is unknown.
func (j *job) reschedule(began, ended, madeAtLatest time.Time) {
	interval, longestRetry := j.health.CurrentInterval(), j.health.Interval
	if interval < longestRetry { // a restock is waited for
		longestRetry = min(longestRetry, maxSoonRetry)
		j.schedule.startJitter = 0
	}
	if j.health.Err != nil {
		j.setNext(j.schedule.recordFailure(j.health.Err, interval, longestRetry, ended))
		return
	}
	if ended.Sub(began) > interval { // a fetch that took so long counts from its end
		began = ended
	}
	j.setNext(j.schedule.recordSuccess(interval, began, madeAtLatest))
}

// maxSetBack is by how much the wall clock may be set back without effect. Data that was taken later
// in the future has expired: its age is not known.
const maxSetBack = time.Minute

// shown returns whether there is data that has not expired.
func (j *job) shown() bool {
	now := wallClock()
	return now.Before(j.health.expires()) && j.health.Taken.Sub(now) < maxSetBack
}

// fetchExpired fetches data at once that has expired although fetches succeed: the wall clock was
// set, or only older copies came.
func (j *job) fetchExpired() {
	if !j.health.Taken.IsZero() && j.health.Err == nil && !j.shown() {
		j.setLatest(time.Now())
	}
}

// setTiming changes the intervals and the maximum age; data and schedule are kept. The next
// fetch comes at the new interval from now at the latest.
func (j *job) setTiming(t collector.Timing) {
	if j.health.Timing != t {
		j.health.Timing = t
		j.setLatest(time.Now().Add(j.health.CurrentInterval()))
	}
}

// setLatest brings the next fetch forward if it would begin later, unless one is under way.
func (j *job) setLatest(at time.Time) {
	if j.health.Next.After(at) {
		j.setNext(at)
	}
}

// setNext sets when the next fetch begins.
func (j *job) setNext(at time.Time) {
	j.health.Next = at
	j.timer.Reset(time.Until(at))
}
