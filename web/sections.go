package web

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
)

// words are a text and its CSS class.
type words struct{ Text, Class string }

// offer is a plan or a saved configuration, and whether it is in stock.
type offer struct {
	*sample
	words
	LastSeen string // when the exporter last saw it in stock
	price    float64
}

// Offers returns the samples that Find returns, of plans or configurations as kind says:
// those in stock first, then by price.
func (v *view) Offers(kind, name string, values ...string) []offer {
	var rows []offer
	for _, s := range v.Find(name, values...) {
		account, id := s.Label("account"), []string{s.Label(kind)}
		if account != "" {
			id = slices.Insert(id, 0, account)
		}
		o := offer{s, words{"unknown", "wait"}, "unknown", v.Value(kind+"_price_usd_per_month", id...)}
		switch v.Value(kind+"_in_stock", id...) {
		case 1:
			o.words, o.LastSeen = words{"in stock", "good"}, v.Ago(v.Time("exporter_collector_data_timestamp_seconds", kind+"s", account))
		case 0:
			o.words, o.LastSeen = words{"sold out", "wait"}, v.Ago(v.Time(kind+"_last_sellout_timestamp_seconds", id...))
		}
		rows = append(rows, o)
	}
	slices.SortStableFunc(rows, func(a, b offer) int { // prices that are not known last: NaN is less than all
		return cmp.Or(strings.Compare(a.Text, b.Text), cmp.Compare(-b.price, -a.price))
	})
	return rows
}

// StockUnknown returns the number of plans that match a watch and whose stock is unknown.
func (v *view) StockUnknown(watch string) float64 {
	return v.Value("watch_plans", watch) - float64(len(v.Find("watch_plan_in_stock", watch)))
}

// labels returns the values of a label.
func labels(name string, samples []*sample) []string {
	var values []string
	for _, s := range samples {
		values = append(values, s.Label(name))
	}
	return values
}

// Locations returns the ids of the locations of both collectors.
func (v *view) Locations() []string {
	ids := labels("location", slices.Concat(v.Find("component_state"), v.Find("location_info")))
	slices.Sort(ids)
	return slices.Compact(ids)
}

// States returns the components of a location by state, operational last; unknown if there are none.
func (v *view) States(location string) []words {
	components := map[string][]string{} // key: state
	for _, s := range v.Find("component_state", location) {
		components[s.Label("state")] = append(components[s.Label("state")], s.Label("component"))
	}
	if len(components) == 0 {
		return []words{{"unknown", "wait"}}
	}
	var rows []words
	for state, names := range components {
		slices.Sort(names)
		rows = append(rows, words{text(state) + ": " + join(names), stateClass(state)})
	}
	slices.SortFunc(rows, func(a, b words) int {
		return cmp.Or(compareClasses(a.Class, b.Class), strings.Compare(a.Text, b.Text))
	})
	return rows
}

// renewalsAhead is the time from today for which the page lists renewals.
const renewalsAhead = 14 * day

// Funded returns until when an account's balance pays its servers. It has a class if the balance
// cannot pay the renewals that the page lists.
func (v *view) Funded(account string) words {
	until, today := v.Time("account_funded_until_timestamp_seconds", account), midnight(v.Now)
	if until.IsZero() {
		return words{Text: none}
	}
	funded := words{Text: v.Date(until)}
	if !until.Before(today.AddDate(collector.HorizonYears, 0, 0)) {
		funded.Text = "10 years or more"
	}
	switch {
	case !until.After(today):
		funded.Class = "bad"
	case !until.After(today.Add(renewalsAhead)):
		funded.Class = "warn"
	}
	return funded
}

type renewal struct {
	Day                   time.Time
	Account, Server, Host string
}

// Renewals returns the renewals of billed servers that are overdue or come soon, by day.
func (v *view) Renewals() []renewal {
	var rows []renewal
	today := midnight(v.Now)
	for _, s := range v.Find("server_renews_timestamp_seconds") {
		account, id := s.Label("account"), s.Label("server")
		if !collector.Billed(v.Label("status", "server_status", account, id)) {
			continue
		}
		for _, on := range collector.RenewalDays(midnight(v.Time("server_renews_timestamp_seconds", account, id)), today, today.Add(renewalsAhead)) {
			rows = append(rows, renewal{on, account, id, v.NameOf("hostname", "server_info", account, id)})
		}
	}
	slices.SortFunc(rows, func(a, b renewal) int {
		return cmp.Or(a.Day.Compare(b.Day), strings.Compare(a.Account, b.Account), strings.Compare(a.Host, b.Host))
	})
	return rows
}
