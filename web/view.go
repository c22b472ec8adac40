package web

import (
	"slices"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/metric"
)

// view is what the sections of the overview are made of: the published metrics, the
// state of the collectors, and what several sections look up in them.
type view struct {
	now       time.Time
	health    []collector.Health
	accounts  []string // that have collectors, in their order
	samples   samples
	byAccount map[string]samples

	planInfo, prices map[string]*metric.Sample            // by plan
	offered          map[string][]string                  // locations by plan
	locationInfo     map[string]*metric.Sample            // by location
	componentState   map[string][]*metric.Sample          // by location
	servers          map[string]map[string]*metric.Sample // info by account and server
	rejected         map[string]*metric.Sample            // token, by account
}

func newView(health []collector.Health, s samples, now time.Time) *view {
	v := &view{
		now: now, health: health, samples: s, byAccount: map[string]samples{},
		planInfo: s.by("plan_info", "plan"), prices: s.by("plan_price_usd_per_month", "plan"), offered: map[string][]string{},
		locationInfo: s.by("location_info", "location"), componentState: s.group("component_state", "location"),
		servers:  map[string]map[string]*metric.Sample{},
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
