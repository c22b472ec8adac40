package web

import (
	"math"
	"slices"
	"time"

	"server_rental_exporter/collector"
)

type sample = collector.Sample

// view is what the page is made of: the state of the collectors, and for the sections
// of the overview the published metrics of one moment. All data of the provider comes
// from the metrics, so that the overview shows none that is not in /metrics. The
// template calls the exported methods.
type view struct {
	Version, MetricsPath       string
	Discovery, Overview, Ready bool
	Configured                 Configured
	Now                        time.Time
	Tried                      bool // every collector was
	Collectors                 []*collectorRow
	Accounts                   []string                    // that have collectors, in their order
	collectors                 map[[2]string]*collectorRow // by name and account
	samples                    map[string][]*sample        // by name without namespace, sorted by labels; nil with --no-web.overview
}

func newView(c Collectors, o Options, now time.Time) *view {
	v := &view{
		Version: o.Version, MetricsPath: o.MetricsPath, Discovery: o.Discovery != nil, Overview: o.Published != nil, Ready: c.Ready(),
		Configured: o.Configured(), Now: now, collectors: map[[2]string]*collectorRow{},
	}
	v.Tried = v.Ready
	for _, h := range c.Health() {
		row := newCollectorRow(h, now, v.Overview)
		v.Collectors = append(v.Collectors, row)
		v.collectors[[2]string{h.Collector, h.Account}] = row
		v.Tried = v.Tried && h.Finished
		if h.Account != "" && !slices.Contains(v.Accounts, h.Account) {
			v.Accounts = append(v.Accounts, h.Account)
		}
	}
	// Those that fail come first: the table shows a limited number.
	slices.SortStableFunc(v.Collectors, func(a, b *collectorRow) int { return compareClasses(a.Class, b.Class) })
	if v.Overview {
		v.samples = collector.Samples(o.Published)
	}
	return v
}

// Gauges of servers that are missing if the API does not tell them.
const (
	serverPrice   = "server_price_usd_per_month"
	serverRenewal = "server_renews_timestamp_seconds"
)

// Lacking returns the number of an account's billed servers that lack a metric.
func (v *view) Lacking(metric, account string) int {
	n := 0
	for _, s := range v.Find("server_info", account) {
		id := s.Label("server")
		if collector.Billed(v.Label("status", "server_status", account, id)) && len(v.Find(metric, account, id)) == 0 {
			n++
		}
	}
	return n
}

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

// Time returns the value of a timestamp metric; zero if there is none.
func (v *view) Time(name string, values ...string) time.Time { return at(v.Value(name, values...)) }

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

// Collector returns the row of a collector, of a public one without an account.
func (v *view) Collector(name, account string) *collectorRow {
	if row, enabled := v.collectors[[2]string{name, account}]; enabled {
		return row
	}
	return &collectorRow{Words: "the collector is disabled", Class: "warn"}
}

// Unknown says of which accounts a collector has no data, and why; empty if it has the
// data of all.
func (v *view) Unknown(name string) string {
	var accounts []string
	for _, account := range v.Accounts {
		if c := v.Collector(name, account); !c.Known {
			accounts = append(accounts, text(account)+": "+c.Words)
		}
		if n := v.Lacking(serverRenewal, account); name == "servers" && n > 0 {
			accounts = append(accounts, text(account)+": the dates of "+count(n, "server"))
		}
	}
	if len(accounts) == 0 {
		return ""
	}
	return "not known of " + join(accounts, 5)
}
