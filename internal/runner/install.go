package runner

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-kit/log/level"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/rentalapi"
)

// install does everything that follows from a response, in this order. The caller holds
// installing, so that each step sees what all earlier responses led to.
func (j *job) install(snap collector.Snapshot, took time.Duration, now time.Time) {
	r := j.runner
	r.groups.state.Changed()
	shown, _, ok := j.shown()
	if ok && snap.IsOlder(shown) { // the fetch succeeded, and nothing changes
		j.logger.recordSuccess(shown.Invalid)
		j.record(nil, took, now)
		return
	}
	r.forgetExpired(now)
	j.mu.Lock()
	before := providerID(j.snapshot)
	j.snapshot, j.state.Taken = snap, now
	j.mu.Unlock()
	j.record(nil, took, now)
	if snap.Commit != nil {
		snap.Commit()
	}

	j.logger.recordSuccess(snap.Invalid)
	r.warnOfIdentity(j, before, providerID(snap))

	r.groups.resources[j.resource.Name].Changed()
	switch {
	case snap.Data == (collector.Data{}):
	case j.account.name == "":
		r.stepWatches(now)
		r.groups.watches.Changed()
	default:
		r.groups.funding.Changed()
	}
}

// fail records that a fetch failed, and returns why, with what an operator can do about it.
// It counts an error that the client did not return.
func (j *job) fail(err error, took time.Duration, now time.Time) error {
	var failure *rentalapi.Error
	if !errors.As(err, &failure) {
		err = j.account.client.Reject(j.resource.Path, err)
	}
	if errors.As(err, &failure) && failure.Code == http.StatusNotFound {
		err = fmt.Errorf("%w; %s", err, j.runner.adviseNotFound(j))
	}
	j.logger.recordFailure(err)
	j.record(err, took, now)
	j.runner.groups.state.Changed()
	return err
}

// record keeps the outcome of a fetch.
func (j *job) record(err error, took time.Duration, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state.Finished, j.state.Err, j.state.Duration = true, err, took
	if err == nil {
		j.state.LastSuccess, j.state.Incomplete = now, false
	}
	if failure, ok := errors.AsType[*rentalapi.Error](err); ok && failure.Reason == rentalapi.Incomplete {
		j.state.Incomplete = true
	}
}

// adviseNotFound returns what to do about a job whose endpoint does not exist: if no public
// endpoint exists, the base URL is wrong.
func (r *Runner) adviseNotFound(failed *job) string {
	const wrongURL, disable = "api.base_url is probably wrong", "disable the collector if the API does not have this endpoint"
	advice := wrongURL
	for _, j := range (*r.current.Load())[0].jobs {
		state, _ := j.health()
		failure, ok := errors.AsType[*rentalapi.Error](state.Err)
		switch notFound := ok && failure.Code == http.StatusNotFound; {
		case j == failed || notFound:
		case state.Finished:
			return disable
		default:
			advice = wrongURL + ", or " + disable
		}
	}
	return advice
}

// providerID returns the provider's id of the account; empty if the snapshot does not tell it.
func providerID(s collector.Snapshot) string {
	if s.Data.Account == nil {
		return ""
	}
	return s.Data.Account.ID
}

// warnOfIdentity warns if an account is another provider account than before, or also that
// of another account: sums over accounts count it twice then.
func (r *Runner) warnOfIdentity(j *job, before, id string) {
	if id == before {
		return
	}
	if before != "" {
		level.Warn(r.options.Logger).Log("msg", "account has become another provider account", "account", j.account.name, "before", before, "now", id)
	}
	for _, other := range r.jobs() {
		if _, snap := other.health(); other.account.name != j.account.name && providerID(snap) == id {
			level.Warn(r.options.Logger).Log("msg", "same provider account configured more than once", "account", j.account.name, "first", other.account.name)
			return
		}
	}
}

// forgetExpired steps the watches if data has expired since the last step: what is known of
// it later is no change.
func (r *Runner) forgetExpired(now time.Time) {
	if !r.watchesUntil.IsZero() && !now.Before(r.watchesUntil) {
		r.stepWatches(now)
	}
}

// stepWatches matches the watches with the present public data.
func (r *Runner) stepWatches(now time.Time) {
	public := (*r.current.Load())[0].known()
	for i, w := range r.watches {
		r.watches[i] = w.Step(public, now)
	}
	r.watchesUntil = public.Until
}
