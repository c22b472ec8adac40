package web

import (
	"cmp"
	"math"
	"slices"
	"strconv"
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
	Collectors []*collectorRow      // failing ones first: the table shows a limited number
	Accounts   []string             // accounts with collectors; the most urgent ones first
	samples    map[string][]*sample // see Options.Published; nil with --no-web.overview
}

func newView(s Source, o Options, now time.Time) *view {
	v := &view{Source: s, Options: o, Now: now}
	for _, h := range s.Health() {
		v.Collectors = append(v.Collectors, v.newRow(h))
		if h.Account != "" {
			v.Accounts = append(v.Accounts, h.Account)
		}
	}
	v.Accounts = slices.Compact(v.Accounts)
	slices.SortStableFunc(v.Collectors, func(a, b *collectorRow) int { return compareClasses(a.Class, b.Class) })
	if o.Published != nil {
		v.samples = o.Published()
		slices.SortStableFunc(v.Accounts, func(a, b string) int { // those of which it is not known first
			const until = "account_funded_until_timestamp_seconds"
			return cmp.Compare(v.Value(until, a), v.Value(until, b))
		})
	}
	return v
}

// collectorRow is the state of a collector.
type collectorRow struct {
	health
	words           // state
	Of     string   // the account, to be added to a text
	Causes []string // causes of invalid items; they name the items only with the overview
}

func (v *view) newRow(h health) *collectorRow {
	r := &collectorRow{health: h}
	if h.Account != "" {
		r.Of = " (" + text(h.Account) + ")"
	}
	for _, c := range h.Invalid.Causes {
		if v.Published == nil {
			c.Item = ""
			if strings.HasPrefix(c.Field, "locations.") { // ids of a location and a component follow
				c.Field = "locations"
			}
		}
		r.Causes = append(r.Causes, errorText(c))
	}
	switch {
	case h.Err != nil && h.MadeAt.IsZero():
		r.words = words{"failing, no data", "bad"}
	case h.Err != nil:
		r.words = words{"failing, last data shown", "warn"}
	case h.MadeAt.IsZero():
		r.words = words{"fetching", "wait"}
	case h.Invalid.Items > 0:
		r.words = words{"invalid items: " + strconv.Itoa(h.Invalid.Items), "warn"}
	default:
		r.words = words{"working", "good"}
	}
	return r
}

// Old returns whether a collector fails: its data is not shown as that of now.
func (v *view) Old(name, account string) bool {
	return v.Value("exporter_collector_success", name, account) == 0
}

// Data returns the age of a collector's oldest data, and the accounts in which something is wrong
// with the data. It has a class if that is so anywhere: then items may be missing.
func (v *view) Data(name string) words {
	var parts []string
	oldest, class := time.Duration(-1), ""
	for _, c := range v.Collectors {
		if c.Collector != name {
			continue
		}
		if !c.MadeAt.IsZero() {
			oldest = max(oldest, v.Now.Sub(c.MadeAt), 0)
		}
		if c.Class != "good" {
			parts, class = append(parts, c.Text+c.Of), cmp.Or(class, c.Class)
		}
	}
	if oldest >= 0 {
		parts = slices.Insert(parts, 0, duration(oldest)+" old")
	}
	if len(parts) == 0 {
		return words{"not collected by this exporter; see --collector." + name + " and --shard", "wait"}
	}
	return words{join(parts), class}
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
