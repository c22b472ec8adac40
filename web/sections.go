package web

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"server_rental_exporter/collector"
)

// words are a text and its CSS class.
type words struct{ Text, Class string }

// offer is a plan or a saved configuration.
type offer struct {
	*sample
	Stock words
	price float64
}

// Stock returns whether a plan or a configuration, as kind says, is in stock.
func (v *view) Stock(kind string, id ...string) words {
	switch v.Value(kind+"_in_stock", id...) {
	case 1:
		return words{"in stock", "good"}
	case 0:
		return words{"sold out", "wait"}
	}
	return words{"unknown", "wait"}
}

// StockChanged returns when a plan or a configuration, as kind says, last came in stock or sold
// out; zero if that is not known.
func (v *view) StockChanged(kind string, id ...string) time.Time {
	restock, sellout := v.Time(kind+"_last_restock_timestamp_seconds", id...), v.Time(kind+"_last_sellout_timestamp_seconds", id...)
	if restock.After(sellout) {
		return restock
	}
	return sellout
}

// Offers returns the samples that Find returns, of plans or configurations as kind says:
// those in stock first, then by price.
func (v *view) Offers(kind, name string, values ...string) []offer {
	var rows []offer
	for _, s := range v.Find(name, values...) {
		id := []string{s.Label(kind)}
		if account := s.Label("account"); account != "" {
			id = []string{account, s.Label(kind)}
		}
		rows = append(rows, offer{s, v.Stock(kind, id...), v.Value(kind+"_price_usd_per_month", id...)})
	}
	slices.SortStableFunc(rows, func(a, b offer) int { // prices that are not known last: NaN is less than all
		return cmp.Or(strings.Compare(a.Stock.Text, b.Stock.Text), cmp.Compare(-b.price, -a.price))
	})
	return rows
}

// Offered returns the locations that offer a plan.
func (v *view) Offered(plan string) string {
	var locations []string
	for _, s := range v.Find("plan_offered", plan) {
		locations = append(locations, s.Label("location"))
	}
	return join(locations, 8)
}

// StockUnknown returns the number of plans that match a watch and whose stock is unknown.
func (v *view) StockUnknown(watch string) int {
	if len(v.Find("watch_plans", watch)) == 0 {
		return 0
	}
	return int(v.Value("watch_plans", watch)) - len(v.Find("watch_plan_in_stock", watch))
}

// Hits returns the number of hits of a watch, or of one of its plans.
func (v *view) Hits(values ...string) int {
	total := 0.0
	for _, plan := range v.Find("watch_hits_total", values...) {
		total += plan.Value()
	}
	return int(total)
}

// LocationName returns the city of a location and its id.
func (v *view) LocationName(id string) string {
	if v.Label("city", "location_info", id) == "" {
		return text(id)
	}
	return v.NameOf("city", "location_info", id) + " (" + text(id) + ")"
}

// Locations returns the ids of the locations of both collectors.
func (v *view) Locations() []string {
	var ids []string
	for _, s := range slices.Concat(v.samples["component_state"], v.samples["location_info"]) {
		ids = append(ids, s.Label("location"))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// InStockAnywhere returns how many of the plans that a location offers are in stock by the
// catalog, which does not say where; NaN if the catalog is not known.
func (v *view) InStockAnywhere(location string) float64 {
	if !v.Collector("plans", "").Known {
		return math.NaN()
	}
	n := 0.0
	for _, s := range v.samples["plan_offered"] {
		if s.Label("location") == location && v.Value("plan_in_stock", s.Label("plan")) == 1 {
			n++
		}
	}
	return n
}

// States returns the components of a location by state, operational last. The state of a
// component that only other locations have, or that is gone, is unknown.
func (v *view) States(location string) []words {
	components, class := map[string][]string{}, map[string]string{} // by state
	for _, name := range v.components {
		state, severity := "unknown", "warn"
		if found := v.Find("component_state", location, name); len(found) > 0 {
			state = found[0].Label("state")
			severity = stateClass(state)
		}
		components[state], class[state] = append(components[state], name), severity
	}
	var rows []words
	for state, names := range components {
		rows = append(rows, words{text(state) + ": " + join(names, 12), class[state]})
	}
	slices.SortFunc(rows, func(a, b words) int {
		return cmp.Or(compareClasses(a.Class, b.Class), strings.Compare(a.Text, b.Text))
	})
	return rows
}

// renewalsAhead is the time from today for which the page lists renewals.
const renewalsAhead = 14 * day

type renewal struct {
	Day                   time.Time
	Account, Server, Host string
}

// Funded returns until when an account's balance pays its servers. The class is empty unless
// the first renewal that it cannot pay is one of those that the page lists.
func (v *view) Funded(account string) (funded words) {
	until, today := v.Time("account_funded_until_timestamp_seconds", account), midnight(v.Now)
	switch {
	case until.IsZero():
		return words{Text: none}
	case v.Incomplete(account):
		funded.Text = "at most " + v.Date(until)
	case until.Before(v.horizon()):
		funded.Text = v.Date(until)
	default:
		funded.Text = "10 years or more"
	}
	if !until.After(today.Add(renewalsAhead)) {
		funded.Class = "bad"
	}
	return funded
}

// horizon is until when an account is funded that can pay all renewals.
func (v *view) horizon() time.Time { return midnight(v.Now).AddDate(collector.HorizonYears, 0, 0) }

// PayBy returns before when an account must be paid, by coin, so that the payment arrives before
// the first renewal that cannot be paid: as long before it as the coin's payments took at most.
func (v *view) PayBy(account string) (coins []string) {
	until := v.Time("account_funded_until_timestamp_seconds", account)
	if until.IsZero() || !until.Before(v.horizon()) {
		return nil
	}
	for _, s := range v.Find("topup_settlement_seconds", account) {
		at, passed := until.Add(-time.Duration(s.Value()*float64(time.Second))), ""
		if at.Before(v.Now) {
			passed = " (passed)"
		}
		coins = append(coins, "pay with "+text(s.Label("coin"))+" before "+at.Format("2006-01-02 15:04")+passed)
	}
	return coins
}

// Incomplete returns whether a server of an account, or its price or date, may be missing.
func (v *view) Incomplete(account string) bool {
	return v.Collector("servers", account).Invalid.Items > 0
}

// Renewals returns the renewals of billed servers that are overdue or come soon, by day.
func (v *view) Renewals() []renewal {
	var rows []renewal
	today := midnight(v.Now)
	for _, s := range v.samples["server_renews_timestamp_seconds"] {
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
