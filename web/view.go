package web

import (
	"slices"
	"strings"
	"time"

	"server_rental_exporter/collector"
)

// sample is a published sample.
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
	collectors map[key]*health      // by name and account
	accounts   []string             // that have collectors, in their order
	samples    map[string][]*sample // by name without namespace
	offered    map[string][]string  // locations by plan

	suspended         map[string][]string // servers by account
	unpriced, undated map[string]int      // billed servers whose price or next renewal is not known, by account

	// index has the samples that find looked for, by name and first labels.
	index map[string]map[key]*sample
}

// key is the values of the first labels of a metric; those that it lacks are empty.
type key [2]string

func newView(state []health, samples map[string][]*sample, c Configured, now time.Time) *view {
	v := &view{
		now: now, Configured: c, Tried: true, health: state, collectors: map[key]*health{}, samples: samples, offered: map[string][]string{},
		suspended: map[string][]string{}, unpriced: map[string]int{}, undated: map[string]int{}, index: map[string]map[key]*sample{},
	}
	for i, h := range state {
		v.collectors[key{h.Collector, h.Account}] = &state[i]
		v.Tried = v.Tried && h.Finished
		if h.Account != "" && !slices.Contains(v.accounts, h.Account) {
			v.accounts = append(v.accounts, h.Account)
		}
	}
	for plan, offers := range v.group("plan_offered") {
		for _, o := range offers {
			v.offered[plan] = append(v.offered[plan], o.Label("location"))
		}
		slices.Sort(v.offered[plan])
	}
	for _, s := range v.samples["server_info"] {
		v.addServer(s.Label("account"), s.Label("server"))
	}
	return v
}

// addServer notes what is special about a server.
func (v *view) addServer(account, id string) {
	status := v.Label("status", "server_status", account, id)
	if strings.EqualFold(status, "suspended") {
		v.suspended[account] = append(v.suspended[account], v.serverName(account, id))
	}
	if !collector.Billed(status) {
		return
	}
	if v.Value("server_price_usd_per_month", account, id) == nil {
		v.unpriced[account]++
	}
	if v.Value("server_renews_timestamp_seconds", account, id) == nil {
		v.undated[account]++
	}
}

// group returns the samples of a metric by the value of its first label.
func (v *view) group(name string) map[string][]*sample {
	found := map[string][]*sample{}
	for _, s := range v.samples[name] {
		first := s.Label(s.Definition().Labels[0])
		found[first] = append(found[first], s)
	}
	return found
}

// find returns the sample of a metric whose first labels have these values, which tell
// its samples apart; nil if there is none.
func (v *view) find(name string, values ...string) *sample {
	if v.index[name] == nil {
		v.index[name] = make(map[key]*sample, len(v.samples[name]))
		for _, s := range v.samples[name] {
			var k key
			for i := range values {
				k[i] = s.Label(s.Definition().Labels[i])
			}
			v.index[name][k] = s
		}
	}
	var k key
	copy(k[:], values)
	return v.index[name][k]
}

// Value returns the value of the sample that find returns; nil if there is none.
func (v *view) Value(name string, values ...string) *float64 {
	if s := v.find(name, values...); s != nil {
		value := s.Value()
		return &value
	}
	return nil
}

// Label returns a label of the sample that find returns; empty if there is none.
func (v *view) Label(label, name string, values ...string) string {
	if s := v.find(name, values...); s != nil {
		return s.Label(label)
	}
	return ""
}

// Money formats the amount that Value returns.
func (v *view) Money(name string, values ...string) string { return money(v.Value(name, values...)) }

// Number formats the number that Value returns.
func (v *view) Number(name string, values ...string) string { return number(v.Value(name, values...)) }

// NameOf returns a name from a label of an info metric, or the last of the values.
func (v *view) NameOf(label, name string, values ...string) string {
	if found := v.Label(label, name, values...); found != "" {
		return text(found)
	}
	return text(values[len(values)-1])
}

// serverName returns the host name of a server, or its id.
func (v *view) serverName(account, id string) string {
	return v.NameOf("hostname", "server_info", account, id)
}

// age says how old the data of a collector is, or why there is none.
func (v *view) age(name, account string) (words, class string, known bool) {
	h := v.collectors[key{name, account}]
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
		if n := v.undated[account]; name == "servers" && n > 0 {
			accounts = append(accounts, text(account)+": the dates of "+count(n, "server"))
		}
	}
	if len(accounts) == 0 {
		return ""
	}
	return "not known of " + join(accounts, 5)
}
