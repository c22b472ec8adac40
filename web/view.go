package web

import (
	"slices"
	"time"

	"server_rental_exporter/collector"
)

// sample is a published sample.
type sample = collector.Sample

// view is what the sections of the overview are made of: the published metrics of one
// moment, and the state of the collectors. All data of the provider comes from the
// metrics, so that the overview shows none that is not in /metrics.
type view struct {
	now      time.Time
	health   []health
	accounts []string             // that have collectors, in their order
	samples  map[string][]*sample // by name without namespace
	offered  map[string][]string  // locations by plan

	// index has the samples that find looked for, by name and first labels.
	index map[string]map[labels]*sample
}

// labels are the values of the first labels of a metric; those that it lacks are empty.
type labels [2]string

func newView(state []health, samples map[string][]*sample, now time.Time) *view {
	v := &view{now: now, health: state, samples: samples, offered: map[string][]string{}, index: map[string]map[labels]*sample{}}
	for _, h := range state {
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
	return v
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
		v.index[name] = make(map[labels]*sample, len(v.samples[name]))
		for _, s := range v.samples[name] {
			var key labels
			for i := range values {
				key[i] = s.Label(s.Definition().Labels[i])
			}
			v.index[name][key] = s
		}
	}
	var key labels
	copy(key[:], values)
	return v.index[name][key]
}

// value returns the value of the sample that find returns; nil if there is none.
func (v *view) value(name string, values ...string) *float64 {
	if s := v.find(name, values...); s != nil {
		value := s.Value()
		return &value
	}
	return nil
}

// label returns a label of the sample that find returns; empty if there is none.
func (v *view) label(label, name string, values ...string) string {
	if s := v.find(name, values...); s != nil {
		return s.Label(label)
	}
	return ""
}

// nameOf returns a name from a label of an info metric, or the last of the values.
func (v *view) nameOf(label, name string, values ...string) string {
	if found := v.label(label, name, values...); found != "" {
		return text(found)
	}
	return text(values[len(values)-1])
}

// planName returns the name of a plan, or its id.
func (v *view) planName(id string) string { return v.nameOf("name", "plan_info", id) }

// serverName returns the host name of a server, or its id.
func (v *view) serverName(account, id string) string {
	return v.nameOf("hostname", "server_info", account, id)
}

// freshness says how old the data of a public collector is, or why there is none.
func (v *view) freshness(name string) string {
	for _, h := range v.health {
		if h.Collector != name {
			continue
		}
		state, _ := describeState(h, v.now)
		if h.LastSuccess.IsZero() || !v.now.Before(h.LastSuccess.Add(h.MaxAge)) {
			return "No data: " + state + "."
		}
		age := v.now.Sub(h.LastSuccess)
		if h.ResponseAge != nil {
			age += *h.ResponseAge
		}
		return "Data is " + duration(age) + " old; " + state + "."
	}
	return "No data: the collector " + name + " is disabled."
}
