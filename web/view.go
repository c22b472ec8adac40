package web

import (
	"slices"
	"strings"
	"time"

	"server_rental_exporter/collector"
)

type sample = collector.Sample

// view is what the sections of the overview are made of: the published metrics of one
// moment, and the state of the collectors. All data of the provider comes from the
// metrics, so that the overview shows none that is not in /metrics. The template calls
// the exported methods.
type view struct {
	now        time.Time
	Configured Configured
	Tried      bool // every collector was
	health     []health
	collectors map[[2]string]*health // by name and account
	accounts   []string              // that have collectors, in their order
	samples    map[string][]*sample  // by name without namespace, sorted by labels
}

func newView(state []health, samples map[string][]*sample, c Configured, now time.Time) *view {
	v := &view{now: now, Configured: c, Tried: true, health: state, collectors: map[[2]string]*health{}, samples: samples}
	for i, h := range state {
		v.collectors[[2]string{h.Collector, h.Account}] = &state[i]
		v.Tried = v.Tried && h.Finished
		if h.Account != "" && !slices.Contains(v.accounts, h.Account) {
			v.accounts = append(v.accounts, h.Account)
		}
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
	for _, s := range v.find("server_info", account) {
		id := s.Label("server")
		if collector.Billed(v.Label("status", "server_status", account, id)) && v.Value(metric, account, id) == nil {
			n++
		}
	}
	return n
}

// find returns the samples of a metric whose first labels have these values.
func (v *view) find(name string, values ...string) []*sample {
	all := v.samples[name]
	compare := func(s *sample, values []string) int {
		for i, value := range values {
			if order := strings.Compare(s.Label(s.Definition().Labels[i]), value); order != 0 {
				return order
			}
		}
		return 0
	}
	first, _ := slices.BinarySearchFunc(all, values, compare)
	n := first
	for n < len(all) && compare(all[n], values) == 0 {
		n++
	}
	return all[first:n]
}

// is reports whether the only sample that find returns has a value.
func (v *view) is(value float64, name string, values ...string) bool {
	found := v.Value(name, values...)
	return found != nil && *found == value
}

// Value returns the value of the only sample that find returns; nil if there is none.
func (v *view) Value(name string, values ...string) *float64 {
	if found := v.find(name, values...); len(found) > 0 {
		value := found[0].Value()
		return &value
	}
	return nil
}

// Label returns a label of the only sample that find returns; empty if there is none.
func (v *view) Label(label, name string, values ...string) string {
	if found := v.find(name, values...); len(found) > 0 {
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

// age says how old the data of a collector is, or why there is none.
func (v *view) age(name, account string) (words, class string, known bool) {
	h := v.collectors[[2]string{name, account}]
	if h == nil {
		return "the collector is disabled", "warn", false
	}
	words, class = describeState(*h, v.now)
	if known = !isExpired(*h, v.now); known {
		words = duration(dataAge(*h, v.now)) + " old, " + words
	}
	return words, class, known
}

// Age says how old the data of a public collector is.
func (v *view) Age(name string) string {
	words, _, _ := v.age(name, "")
	return words
}

// Unknown says of which accounts a collector has no data, and why; empty if it has the
// data of all.
func (v *view) Unknown(name string) string {
	var accounts []string
	for _, account := range v.accounts {
		if why, _, known := v.age(name, account); !known {
			accounts = append(accounts, text(account)+": "+why)
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
