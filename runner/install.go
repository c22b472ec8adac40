package runner

import (
	"slices"
	"strconv"
	"time"

	"github.com/go-kit/log/level"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
)

// install does everything that follows from a response that is no older copy, in this order. The caller
// holds mu, so that each step sees what all earlier responses led to; likewise below.
func (j *job) install(snap collector.Snapshot, now time.Time) {
	r, h, isPublic := j.runner, &j.health, j.account.name == ""
	if snap.Data.Account != nil {
		r.checkIdentity(j, snap)
	}
	if isPublic {
		r.stepWatches() // that data expired is no change
	}
	if !j.shown() || snap.Token != j.snapshot.Token { // another token is perhaps that of another provider account
		j.changes.Forget()
	}
	events := j.changes.Step(j.resource, j.account.name, &snap, now)
	j.snapshot = snap
	h.Taken, h.MadeAt, h.Invalid, h.SoldOut = now, snap.MadeAt, snap.Invalid, j.changes.SoldOut
	if isPublic {
		events = append(r.stepWatches(), events...) // hits first, so that many changes do not hide one
	}
	r.report(events, j.account.name)
}

// checkIdentity warns if the provider's account in a snapshot is another one than before, and drops
// what was fetched with another token. It warns, too, if another account is the same provider
// account: sums over accounts count it twice.
func (r *Runner) checkIdentity(j *job, snap collector.Snapshot) {
	before, id := j.snapshot.Data.Account, snap.Data.Account.ID
	if before != nil && before.ID == id {
		return
	}
	if before != nil {
		level.Warn(r.logger).Log("msg", "account has become another provider account", "account", j.account.name, "before", before.ID, "now", id)
		for _, other := range j.account.jobs {
			if other.snapshot.Token != snap.Token {
				other.health.Taken = time.Time{} // as if it had expired
				other.setLatest(time.Now())
			}
		}
	}
	for _, other := range r.accounts {
		if provider := other.data().Account; other != j.account && provider != nil && provider.ID == id {
			level.Warn(r.logger).Log("msg", "same provider account configured more than once", "account", j.account.name, "first", other.name)
			return
		}
	}
}

// The maximum number of events of one response, and of those that are kept.
const maxReported, maxKept = 20, 100

// report logs the events of one response, and keeps them for the page.
func (r *Runner) report(events []collector.Event, account string) {
	if more := len(events) - maxReported; more > 0 {
		events = events[:maxReported+1]
		events[maxReported].Message, events[maxReported].Keys = "more changes", [][2]string{{"changes", strconv.Itoa(more)}}
	}
	for _, e := range events {
		if account != "" {
			e.Keys = slices.Concat([][2]string{{"account", account}}, e.Keys)
		}
		line := []any{"msg", e.Message}
		for _, key := range e.Keys {
			line = append(line, key[0], key[1])
		}
		level.Info(r.logger).Log(line...)
		r.events = slices.Concat([]collector.Event{e}, r.events)
	}
	r.events = r.events[:min(len(r.events), maxKept)]
}

// Events returns the last events, the newest first.
func (r *Runner) Events() []collector.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events
}

// stepWatches matches the watches with the present public data, and returns their events.
func (r *Runner) stepWatches() []collector.Event {
	events, unmatched := collector.StepWatches(r.watches, r.accounts[0].data().Data, wallClock())
	if unmatched > 0 && r.unmatched == 0 {
		level.Warn(r.logger).Log("msg", "watches match too many plans, and some are not shown", "watches", unmatched, "limit", collector.MaxMatches)
	}
	r.unmatched = unmatched
	return events
}

// Watches returns the watches, in the order of the configuration.
func (r *Runner) Watches() []collector.Watch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spec.Watches
}
