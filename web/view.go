package web

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

type sample = metric.Sample

// view holds the data of a page: the state of the collectors and, for the overview, the published
// metrics of one moment. The provider's data comes from the metrics alone, so that the overview shows
// none that is not in /metrics. The template calls the exported methods.
type view struct {
	Source
	Options
	Now        time.Time
	Collectors []*collectorRow            // failing ones first: the table shows a limited number
	Accounts   []string                   // accounts with collectors, in their order
	rows       map[string][]*collectorRow // key: name of the collector
	samples    map[string][]*sample       // see Options.Published; nil with --no-web.overview
}

func newView(s Source, o Options, now time.Time) *view {
	v := &view{Source: s, Options: o, Now: now, rows: map[string][]*collectorRow{}}
	for _, h := range s.Health() {
		row := v.newRow(h)
		v.Collectors = append(v.Collectors, row)
		v.rows[h.Collector] = append(v.rows[h.Collector], row)
		if h.Account != "" {
			v.Accounts = append(v.Accounts, h.Account)
		}
	}
	v.Accounts = slices.Compact(v.Accounts)
	slices.SortStableFunc(v.Collectors, func(a, b *collectorRow) int { return compareClasses(a.Class, b.Class) })
	if o.Published != nil {
		v.samples = o.Published()
	}
	return v
}

// collectorRow is the state of a collector.
type collectorRow struct {
	health
	words           // state
	Causes []string // causes of invalid items; they name the items only with the overview
	Errors []string // error of the last fetch, and causes
}

func (v *view) newRow(h health) *collectorRow {
	r := &collectorRow{health: h}
	for _, c := range h.Invalid.Causes {
		if v.Published == nil {
			c.Item = ""
			if strings.HasPrefix(c.Field, "locations.") { // ids of a location and a component follow
				c.Field = "locations"
			}
		}
		r.Causes = append(r.Causes, errorText(c))
	}
	r.Errors = r.Causes
	if err := h.Err; err != nil {
		r.Errors = slices.Insert(slices.Clone(r.Causes), 0, errorText(err))
	}
	switch {
	case h.Err != nil && h.MadeAt.IsZero():
		r.words = words{"failing, no data", "bad"}
	case h.Err != nil:
		r.words = words{"failing, last data shown", "warn"}
	case h.MadeAt.IsZero():
		r.words = words{"fetching", "wait"}
	case h.Invalid.Items > 0:
		r.words = words{"invalid items", "warn"}
	default:
		r.words = words{"working", "good"}
	}
	return r
}

// Data returns the age of a collector's oldest data as text, and the accounts in which something is
// wrong with the data.
func (v *view) Data(name string) string {
	if len(v.rows[name]) == 0 {
		return "not collected by this exporter"
	}
	var parts []string
	oldest := time.Duration(-1)
	for _, c := range v.rows[name] {
		if !c.MadeAt.IsZero() {
			oldest = max(oldest, v.Now.Sub(c.MadeAt), 0)
		}
		switch {
		case c.Class == "good":
		case c.Account == "":
			parts = append(parts, c.Text)
		default:
			parts = append(parts, c.Text+" ("+text(c.Account)+")")
		}
	}
	if oldest >= 0 {
		parts = slices.Insert(parts, 0, duration(oldest)+" old")
	}
	return join(parts)
}

// Empty returns the text for an empty list of a collector: unknown if an item may be missing.
func (v *view) Empty(name string) string {
	incomplete := func(c *collectorRow) bool { return c.MadeAt.IsZero() || c.Invalid.Items > 0 }
	if len(v.rows[name]) == 0 || slices.ContainsFunc(v.rows[name], incomplete) {
		return "unknown"
	}
	return "none"
}

// Find returns the samples of a metric whose first labels have these values. It panics if the metric is
// not defined: a renamed metric must not look like an unknown value.
func (v *view) Find(name string, values ...string) []*sample {
	all, defined := v.samples[name]
	if !defined {
		panic("undefined metric: " + name)
	}
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
		return found[0].Value
	}
	return math.NaN()
}

// Time returns the latest of the times that Find returns; zero if there is none.
func (v *view) Time(name string, values ...string) (latest time.Time) {
	for _, s := range v.Find(name, values...) {
		if at := time.UnixMilli(int64(s.Value * 1000)).UTC(); at.After(latest) {
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
	return text(cmp.Or(v.Label(label, name, values...), values[len(values)-1]))
}
