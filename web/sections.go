package web

import (
	"cmp"
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

// Since returns when the stock of a plan or a configuration, as kind says, became what it is;
// zero if it has not changed since the start.
func (v *view) Since(kind string, id ...string) time.Time {
	switch v.Value(kind+"_in_stock", id...) {
	case 1:
		return v.Time(kind+"_last_restock_timestamp_seconds", id...)
	case 0:
		return v.Time(kind+"_last_sellout_timestamp_seconds", id...)
	}
	return time.Time{}
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

// States returns the components of a location by state, operational last. The state of those
// that the status lacks is unknown, and of all of them if it has none.
func (v *view) States(location string) []words {
	components := map[string][]string{} // by state
	for _, s := range v.Find("component_state", location) {
		components[s.Label("state")] = append(components[s.Label("state")], s.Label("component"))
	}
	for _, c := range v.Row("status", "").Missing {
		if c.Location == location {
			components["unknown"] = append(components["unknown"], c.Name)
		}
	}
	if len(components) == 0 {
		return []words{{"unknown", "warn"}}
	}
	var rows []words
	for state, names := range components {
		slices.Sort(names)
		rows = append(rows, words{text(state) + ": " + join(names, 12), stateClass(state)})
	}
	slices.SortFunc(rows, func(a, b words) int {
		return cmp.Or(compareClasses(a.Class, b.Class), strings.Compare(a.Text, b.Text))
	})
	return rows
}

// Balance returns an account's balance. Its class follows the alert ServerRentalBalanceLow.
func (v *view) Balance(account string) words {
	balance, class := v.Value("account_balance_usd", account), ""
	switch {
	case balance < 0:
		class = "bad"
	case balance < 0.1*v.Value("account_cost_usd_per_month", account):
		class = "warn"
	}
	return words{money(balance), class}
}

// renewalsAhead is the time from today for which the page lists renewals.
const renewalsAhead = 14 * day

type renewal struct {
	Day                   time.Time
	Account, Server, Host string
}

// Funded returns until when an account's balance pays its servers. Its class follows the alert
// ServerRentalRenewalsUnfunded.
func (v *view) Funded(account string) (funded words) {
	until := v.Time("account_funded_until_timestamp_seconds", account)
	switch {
	case until.IsZero():
		return words{Text: none}
	case v.Incomplete(account):
		funded.Text = "at most " + v.Date(until)
	case until.Before(midnight(v.Now).AddDate(collector.HorizonYears, 0, 0)):
		funded.Text = v.Date(until)
	default:
		funded.Text = "10 years or more"
	}
	switch left := until.Sub(v.Now); {
	case left < 2*day:
		funded.Class = "bad"
	case left < 7*day:
		funded.Class = "warn"
	}
	return funded
}

// Incomplete returns whether a server of an account, or its price or date, may be missing.
func (v *view) Incomplete(account string) bool {
	return v.Row("servers", account).Invalid.Items > 0
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
