package web

import (
	"slices"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/runner"
)

// view is what the sections of the overview are made of: the published metrics, the
// state of the collectors, and what several sections look up in them.
type view struct {
	now       time.Time
	health    []runner.Health
	accounts  []string // that have collectors, in their order
	samples   samples
	byAccount map[string]samples

	planInfo, prices map[string]*collector.Sample            // by plan
	offered          map[string][]string                     // locations by plan
	locationInfo     map[string]*collector.Sample            // by location
	componentState   map[string][]*collector.Sample          // by location
	servers          map[string]map[string]*collector.Sample // info by account and server
	rejected         map[string]*collector.Sample            // token, by account
}

func newView(health []runner.Health, s samples, now time.Time) *view {
	v := &view{
		now: now, health: health, samples: s, byAccount: map[string]samples{},
		planInfo: s.by("plan_info", "plan"), prices: s.by("plan_price_usd_per_month", "plan"), offered: map[string][]string{},
		locationInfo: s.by("location_info", "location"), componentState: s.group("component_state", "location"),
		servers:  map[string]map[string]*collector.Sample{},
		rejected: s.by("exporter_api_token_rejected", "account"),
	}
	for _, h := range health {
		if h.Account != "" && v.byAccount[h.Account] == nil {
			v.accounts = append(v.accounts, h.Account)
			v.byAccount[h.Account] = samples{}
		}
	}
	for name, all := range s {
		for _, one := range all {
			if own := v.byAccount[one.Label("account")]; own != nil {
				own[name] = append(own[name], one)
			}
		}
	}
	for account, own := range v.byAccount {
		v.servers[account] = own.by("server_info", "server")
	}
	for plan, offers := range s.group("plan_offered", "plan") {
		for _, o := range offers {
			v.offered[plan] = append(v.offered[plan], o.Label("location"))
		}
		slices.Sort(v.offered[plan])
	}
	return v
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

// since is a duration until now from a timestamp metric.
func (v *view) since(seconds float64) time.Duration { return v.now.Sub(at(seconds)) }
