package web

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"server_rental_exporter/collector"
)

// maxComponents is the maximum number of components of each state of a location.
const maxComponents = 12

type offer struct {
	*sample
	Stock words
	price float64 // infinite if it is not known
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
		stock := words{"unknown", "wait"}
		switch v.Value(kind+"_in_stock", id...) {
		case 1:
			stock = words{"in stock", "good"}
		case 0:
			stock = words{"sold out", "wait"}
		}
		price := v.Value(kind+"_price_usd_per_month", id...)
		if math.IsNaN(price) {
			price = math.Inf(1)
		}
		rows = append(rows, offer{s, stock, price})
	}
	slices.SortStableFunc(rows, func(a, b offer) int {
		return cmp.Or(strings.Compare(a.Stock.Text, b.Stock.Text), cmp.Compare(a.price, b.price))
	})
	return rows
}

// Offered returns the locations that offer a plan. Without any it is offered nowhere,
// unless they can be missing because an item of the response is invalid.
func (v *view) Offered(plan string) string {
	var locations []string
	for _, s := range v.Find("plan_offered", plan) {
		locations = append(locations, s.Label("location"))
	}
	if len(locations) == 0 && v.Collector("plans", "").Invalid.Items == 0 {
		return "offered nowhere"
	}
	return join(locations, 8)
}

// NoMatch returns why a watch has no plans to show.
func (v *view) NoMatch(w collector.Watch) string {
	_, problem := v.watchProblem(w)
	return cmp.Or(problem, "unknown")
}

// Hits returns the number of a watch's hits, of all plans.
func (v *view) Hits(watch string) float64 {
	total := 0.0
	for _, plan := range v.Find("watch_hits_total", watch) {
		total += plan.Value()
	}
	return total
}

// componentState is the components of a location that have the same state.
type componentState struct {
	State, Class, Components string
}

// locationName returns the city of a location and its id.
func (v *view) locationName(id string) string {
	if v.Label("city", "location_info", id) == "" {
		return text(id)
	}
	return v.NameOf("city", "location_info", id) + " (" + text(id) + ")"
}

// Locations returns the ids of the locations of both collectors by name.
func (v *view) Locations() []string {
	var ids []string
	for _, s := range slices.Concat(v.samples["component_state"], v.samples["location_info"]) {
		ids = append(ids, s.Label("location"))
	}
	slices.Sort(ids)
	ids = slices.Compact(ids) // before the names, of which two may be the same
	slices.SortStableFunc(ids, func(a, b string) int { return strings.Compare(v.locationName(a), v.locationName(b)) })
	return ids
}

// States returns the components of a location by state, operational last.
func (v *view) States(location string) []componentState {
	components := map[string][]string{}
	for _, s := range v.Find("component_state", location) {
		components[s.Label("state")] = append(components[s.Label("state")], s.Label("component"))
	}
	rows := make([]componentState, 0, len(components))
	for state, names := range components {
		slices.Sort(names)
		rows = append(rows, componentState{text(state), stateClass(state), join(names, maxComponents)})
	}
	slices.SortFunc(rows, func(a, b componentState) int {
		return cmp.Or(compareClasses(a.Class, b.Class), strings.Compare(a.State, b.State))
	})
	return rows
}
