package runner

import (
	"slices"
	"strconv"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"

	"server_rental_exporter/collector"
)

// install does everything that follows from a response, in this order. The caller holds
// installing, so that each step sees what all earlier responses led to. It returns what is to
// be logged.
func (j *job) install(snap collector.Snapshot, now time.Time) logLines {
	r := j.runner
	before, wasShown := j.shown()
	if wasShown && snap.IsOlder(before.Snapshot) { // the fetch succeeded, and nothing changes
		return nil
	}
	r.forgetExpired()
	lines := r.checkIdentity(j, snap)
	j.mu.Lock()
	if snap.IsOlder(j.snapshot) { // only older copies came: nothing has changed since the newer one
		j.history = collector.History{}
	}
	j.history = j.history.Step(j.resource, j.account.name, snap, now)
	j.snapshot, j.state.Taken, j.state.Invalid = snap, now, snap.Invalid
	events := j.history.Events
	j.mu.Unlock()
	if !wasShown { // it is the first sight of the data, or the former has expired
		events = nil
	}
	r.groups.resources[j.resource.Name].Changed()
	switch {
	case snap.Data == (collector.Data{}):
	case j.account.name == "":
		hits, warnings := r.stepWatches()
		events, lines = slices.Concat(hits, events), append(lines, warnings...) // so that many changes do not hide a hit
		r.groups.watches.Changed()
	default:
		r.groups.funding.Changed()
	}
	return append(lines, r.report(events, j.account.name, now)...)
}

// logLines are written when no lock is held: a log that blocks holds up its own collector only.
type logLines []logLine

type logLine struct {
	level func(log.Logger) log.Logger
	line  []any // message, keys and values
}

func (l logLines) write(logger log.Logger) {
	for _, one := range l {
		one.level(logger).Log(one.line...)
	}
}

func warn(line ...any) logLine { return logLine{level.Warn, line} }

// providerID returns the provider's id of the account; empty if the snapshot does not tell it.
func providerID(s collector.Snapshot) string {
	if s.Data.Account == nil {
		return ""
	}
	return s.Data.Account.ID
}

// checkIdentity warns if a snapshot is of another provider account than the one before, and
// drops what was fetched with another token. It warns, too, if another account is the same
// provider account: sums over accounts count it twice.
func (r *Runner) checkIdentity(j *job, snap collector.Snapshot) (lines logLines) {
	j.mu.Lock()
	before, id := providerID(j.snapshot), providerID(snap)
	j.mu.Unlock()
	if id == before {
		return nil
	}
	for _, other := range r.jobs() {
		data, isShown := other.shown()
		switch {
		case other.account.name != j.account.name && isShown && providerID(data.Snapshot) == id:
			lines = append(lines, warn("msg", "same provider account configured more than once", "account", j.account.name, "first", other.account.name))
		case other.account.name == j.account.name && before != "" && data.Token != snap.Token:
			other.forget()
		}
	}
	if before != "" {
		lines = append(logLines{warn("msg", "account has become another provider account", "account", j.account.name, "before", before, "now", id)}, lines...)
	}
	return lines
}

// Event is a change that the exporter saw.
type Event struct {
	collector.Event
	Time time.Time
}

// The maximum number of events of one response, and of those that are kept.
const maxReported, maxKept = 20, 100

// report keeps the events of one response for the page, and returns their lines.
func (r *Runner) report(events []collector.Event, account string, now time.Time) (lines logLines) {
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
		lines = append(lines, logLine{level.Info, line})
		r.events = append(r.events, Event{e, now})
	}
	r.events = slices.Clone(r.events[max(0, len(r.events)-maxKept):])
	return lines
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
func (r *Runner) forgetExpired() {
	if now := wallClock(); !r.watchesUntil.IsZero() && !now.Before(r.watchesUntil) {
		r.stepWatches()
	}
}

// stepWatches matches the watches with the present public data. It returns their events, and
// warnings of values that no plan has, each once.
func (r *Runner) stepWatches() (events []collector.Event, warnings logLines) {
	public := (*r.current.Load())[0].known()
	for i, w := range r.watches {
		r.watches[i] = w.Step(public, wallClock())
		for _, v := range r.watches[i].Unmet {
			if !slices.Contains(w.Unmet, v) {
				warnings = append(warnings, warn("msg", "no plan has this value", "watch", w.Name, "criterion", v.Criterion, "value", v.Value))
			}
		}
		events = append(events, r.watches[i].Events...)
	}
	r.watchesUntil = public.Until
	return events, warnings
}

// Watches returns the watches with what they have matched, in the order of the configuration.
func (r *Runner) Watches() []collector.Watched {
	r.installing.Lock()
	defer r.installing.Unlock()
	return slices.Clone(r.watches)
}
