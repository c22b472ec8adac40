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
	r, h, wasShown := j.runner, &j.health, j.shown()
	if snap.Data.Account != nil {
		r.checkIdentity(j, snap)
	}
	isWatched := j.account.name == "" && snap.Data != (collector.Data{})
	if isWatched {
		r.stepWatches() // what was known until some data expired is no change
	}
	if !wasShown || snap.Token != j.snapshot.Token { // another token is perhaps that of another provider account
		j.changes = j.changes.Forget()
	}
	j.changes = j.changes.Step(j.resource, j.account.name, snap, now)
	r.kept -= j.kept()
	j.snapshot = snap.WithoutItems()
	r.kept += j.kept()
	h.Taken, h.MadeAt, h.Invalid = now, snap.MadeAt, snap.Invalid
	h.SoldOut = j.changes.SoldOut
	var events []collector.Event
	if isWatched {
		events = r.stepWatches() // the first ones, so that many changes do not hide a hit
	}
	r.report(append(events, j.changes.Events...), j.account.name)
	j.changes.Events = nil
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
		level.Warn(r.options.Logger).Log("msg", "account has become another provider account", "account", j.account.name, "before", before.ID, "now", id)
		for _, other := range j.account.jobs {
			if other.snapshot.Token != snap.Token {
				other.health.Taken = time.Time{} // as if it had expired
				other.setLatest(time.Now())
			}
		}
	}
	for _, other := range r.accounts {
		if known := other.known().Data.Account; other != j.account && known != nil && known.ID == id {
			level.Warn(r.options.Logger).Log("msg", "same provider account configured more than once", "account", j.account.name, "first", other.name)
			return
		}
	}
}

// warnOfSunset logs what the provider says about the end of the API, unless a collector knows it.
func (r *Runner) warnOfSunset(text string) {
	if text != "" && !slices.ContainsFunc(r.jobs(), func(j *job) bool { return j.health.Sunset == text }) {
		level.Warn(r.options.Logger).Log("msg", "API announces its end", "headers", text)
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
		level.Info(r.options.Logger).Log(line...)
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

// stepWatches matches the watches with the present public data, and returns their events. For the one
// that goes beyond collector.MaxMatches, and all after it, it is as if the data were not known.
func (r *Runner) stepWatches() (events []collector.Event) {
	public, matches, unmatched := r.public().known(), 0, 0
	for i, before := range r.watches {
		w := before.Step(public, wallClock())
		if matches += w.Matches(); matches > collector.MaxMatches {
			public = collector.Known{}
			w, unmatched = before.Step(public, wallClock()), unmatched+1
		}
		r.watches[i] = w
		events = append(events, w.Events()...)
	}
	if unmatched > 0 && r.unmatched == 0 {
		level.Warn(r.options.Logger).Log("msg", "watches match too many plans, and some are not shown", "watches", unmatched, "limit", collector.MaxMatches)
	}
	r.unmatched = unmatched
	return events
}

// Watches returns the watches with what they have matched, in the order of the configuration.
func (r *Runner) Watches() []collector.Watched {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.watches)
}
