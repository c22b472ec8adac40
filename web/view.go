package web

import (
	"math"
	"slices"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/runner"
)

type sample = collector.Sample

// view is what the page is made of: the state of the collectors, and for the sections
// of the overview the published metrics of one moment. All data of the provider comes
// from the metrics, so that the overview shows none that is not in /metrics. The
// template calls the exported methods.
type view struct {
	Options
	Ready      bool
	Config     Configured
	Now        time.Time
	Watches    []collector.Watched
	Events     []runner.Event  // newest first
	Collectors []*collectorRow // those that fail first: the table shows a limited number
	Accounts   []string        // that have collectors, in their order
	rows       map[rowKey]*collectorRow
	samples    map[string][]*sample // by name without namespace, sorted by labels; nil with --no-web.overview
}

type rowKey struct{ collector, account string }

func newView(s Source, o Options, now time.Time) *view {
	v := &view{Options: o, Ready: s.Ready(), Config: o.Configured(), Now: now, Watches: s.Watches(), Events: s.Events(), rows: map[rowKey]*collectorRow{}}
	for _, h := range s.Health() {
		row := v.newRow(h)
		v.Collectors = append(v.Collectors, row)
		v.rows[rowKey{h.Collector, h.Account}] = row
		if h.Account != "" && !slices.Contains(v.Accounts, h.Account) {
			v.Accounts = append(v.Accounts, h.Account)
		}
	}
	slices.SortStableFunc(v.Collectors, func(a, b *collectorRow) int { return compareClasses(a.Class, b.Class) })
	if v.Overview() {
		v.samples = o.Published()
	}
	return v
}

// Overview returns whether the provider's and the accounts' data is shown.
func (v *view) Overview() bool { return v.Published != nil }

// Find returns the samples of a metric whose first labels have these values.
func (v *view) Find(name string, values ...string) []*sample {
	all := v.samples[name]
	first, _ := slices.BinarySearchFunc(all, values, (*sample).CompareFirst)
	n := first
	for n < len(all) && all[n].CompareFirst(values) == 0 {
		n++
	}
	return all[first:n]
}

// Value returns the value of the only sample that Find returns; NaN if there is none.
func (v *view) Value(name string, values ...string) float64 {
	if found := v.Find(name, values...); len(found) > 0 {
		return found[0].Value()
	}
	return math.NaN()
}

// Time returns the latest of the times that Find returns; zero if there is none.
func (v *view) Time(name string, values ...string) (latest time.Time) {
	for _, s := range v.Find(name, values...) {
		if at := time.UnixMilli(int64(s.Value() * 1000)).UTC(); at.After(latest) {
			latest = at
		}
	}
	return latest
}

// Label returns a label of the only sample that Find returns; empty if there is none.
func (v *view) Label(label, name string, values ...string) string {
	if found := v.Find(name, values...); len(found) > 0 {
		return found[0].Label(label)
	}
	return ""
}

// NameOf returns a name from a label of an info metric, or the last of the values.
func (v *view) NameOf(label, name string, values ...string) string {
	if found := v.Label(label, name, values...); found != "" {
		return text(found)
	}
	return text(values[len(values)-1])
}

// Row returns the row of a collector; the account of a public one is empty.
func (v *view) Row(name, account string) *collectorRow {
	if row, enabled := v.rows[rowKey{name, account}]; enabled {
		return row
	}
	return &collectorRow{Words: "not collected by this exporter", Class: "warn"}
}

// Data says how old a collector's data is at most, and of which accounts it is not known in
// full.
func (v *view) Data(name string) string {
	var parts []string
	oldest := time.Duration(-1)
	for _, account := range v.Accounts {
		c := v.Row(name, account)
		if c.Known {
			oldest = max(oldest, c.Age)
		}
		if c.Class != "good" {
			parts = append(parts, text(account)+": "+c.Words)
		}
	}
	if oldest >= 0 {
		parts = slices.Insert(parts, 0, duration(oldest)+" old")
	}
	return join(parts, 6)
}

// Empty says what it means that the data of a collector lists nothing.
func (v *view) Empty(name string) string {
	for _, account := range v.Accounts {
		if c := v.Row(name, account); !c.Known || c.Invalid.Items > 0 {
			return "unknown"
		}
	}
	return "none"
}
