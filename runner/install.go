package runner

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-kit/log/level"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/rentalapi"
)

// install does everything that follows from a response, in this order. The caller holds
// installing, so that each step sees what all earlier responses led to.
func (j *job) install(snap collector.Snapshot, took time.Duration, now time.Time) {
	r := j.runner
	shown, _, ok := j.shown()
	if ok && snap.IsOlder(shown) { // the fetch succeeded, and nothing changes
		j.logger.recordSuccess(shown.Invalid)
		j.record(nil, took, now)
		return
	}
	r.forgetExpired(now)
	j.mu.Lock()
	before, id := providerID(j.snapshot), providerID(snap)
	if before != "" && id != before {
		j.state.FormerID = cmp.Or(j.state.FormerID, before)
	}
	if id == j.state.FormerID { // the first one is back
		j.state.FormerID = ""
	}
	j.snapshot, j.state.Taken = snap, now
	j.mu.Unlock()
	j.record(nil, took, now)

	j.logger.recordSuccess(snap.Invalid)
	r.warnOfIdentity(j, before, id)

	events := snap.Events
	if !ok { // it is the first sight of the data, or the former has expired
		events = nil
	}
	r.groups.resources[j.resource.Name].Changed()
	switch {
	case snap.Data == (collector.Data{}):
	case j.account.name == "":
		events = slices.Concat(r.stepWatches(now), events) // so that many changes do not hide a hit
		r.groups.watches.Changed()
	default:
		r.groups.funding.Changed()
	}
	r.report(events, j.account.name, now)
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
	j.runner.groups.state.Changed() // after the state, or a publication in between would miss it
}

// adviseNotFound returns what to do about a job whose endpoint does not exist: if no public
// endpoint exists, or no other of the account where none is fetched, the base URL is wrong.
func (r *Runner) adviseNotFound(failed *job) string {
	const wrongURL, disable = "api.base_url is probably wrong", "disable the collector if the API does not have this endpoint"
	accounts := *r.current.Load()
	advice, of := wrongURL, accounts[0]
	for _, a := range accounts {
		if len(of.jobs) == 0 && a.name == failed.account.name { // the job knows it as it was before a reload
			of = a
		}
	}
	for _, j := range of.jobs {
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

// Event is a change that the exporter saw.
type Event struct {
	collector.Event
	Time time.Time
}

// The maximum number of events of one response, and of those that are kept.
const maxReported, maxKept = 20, 100

// report logs events of one response, and keeps them for the page.
func (r *Runner) report(events []collector.Event, account string, now time.Time) {
	if more := len(events) - maxReported; more > 0 {
		events = append(slices.Clone(events[:maxReported]), collector.Event{Message: "more changes", Keys: [][2]string{{"changes", strconv.Itoa(more)}}})
	}
	for _, e := range events {
		if account != "" {
			e.Keys = slices.Concat([][2]string{{"account", account}}, e.Keys)
		}
		line := []any{"msg", e.Message}
		for _, key := range e.Keys {
			line = append(line, key[0], key[1])
		}
		level.Info(r.options.Logger).Log(line...)
		r.events = append(r.events, Event{e, now})
	}
	r.events = slices.Clone(r.events[max(0, len(r.events)-maxKept):])
}

// Events returns the last events, the newest first.
func (r *Runner) Events() []Event {
	r.installing.Lock()
	defer r.installing.Unlock()
	newest := slices.Clone(r.events)
	slices.Reverse(newest)
	return newest
}

// forgetExpired steps the watches if data has expired since the last step: what is known of
// it later is no change.
func (r *Runner) forgetExpired(now time.Time) {
	if !r.watchesUntil.IsZero() && !now.Before(r.watchesUntil) {
		r.stepWatches(now)
	}
}

// stepWatches matches the watches with the present public data, and returns their events. It
// warns of values that no plan has, each once.
func (r *Runner) stepWatches(now time.Time) (events []collector.Event) {
	public := (*r.current.Load())[0].known()
	for i, w := range r.watches {
		r.watches[i] = w.Step(public, now)
		for _, v := range r.watches[i].Unmet {
			if !slices.Contains(w.Unmet, v) {
				level.Warn(r.options.Logger).Log("msg", "no plan has this value", "watch", w.Name, "criterion", v.Criterion, "value", v.Value)
			}
		}
		events = append(events, r.watches[i].Events...)
	}
	r.watchesUntil = public.Until
	return events
}

// Watches returns the watches with what they have matched, in the order of the configuration.
func (r *Runner) Watches() []collector.Watched {
	r.installing.Lock()
	defer r.installing.Unlock()
	return slices.Clone(r.watches)
}
