package web

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"server_rental_exporter/collector"
)

// Bounds of cells.
const (
	maxOffered      = 8  // locations of each plan
	maxWatchMatches = 10 // plans of each watch
)

// offer is a plan or a saved configuration.
type offer struct {
	*sample
	Stock words
	price float64 // infinite if it is not known
}

// offers returns the first n of these samples: those in stock first, then by price. The
// values of the labels tell the gauges of one from those of another.
func (v *view) offers(found []*sample, n int, kind string, labels ...string) table[offer] {
	rows := make([]offer, 0, len(found))
	for _, s := range found {
		values := make([]string, len(labels))
		for i, label := range labels {
			values[i] = s.Label(label)
		}
		o := offer{s, words{"sold out", "wait"}, math.Inf(1)}
		switch inStock := v.Value(kind+"_in_stock", values...); {
		case inStock == nil:
			o.Stock.Text = "unknown"
		case *inStock > 0:
			o.Stock = words{"in stock", "good"}
		}
		if price := v.Value(kind+"_price_usd_per_month", values...); price != nil {
			o.price = *price
		}
		rows = append(rows, o)
	}
	slices.SortStableFunc(rows, func(a, b offer) int {
		return cmp.Or(strings.Compare(a.Stock.Text, b.Stock.Text), cmp.Compare(a.price, b.price))
	})
	return cut(rows, n)
}

// Plans returns the plans.
func (v *view) Plans() table[offer] {
	return v.offers(v.samples["plan_info"], maxRows, "plan", "plan")
}

// Matches returns the plans that match a watch.
func (v *view) Matches(watch string) table[offer] {
	return v.offers(v.find("watch_plan_in_stock", watch), maxWatchMatches, "plan", "plan")
}

// Configurations returns the saved configurations.
func (v *view) Configurations() table[offer] {
	return v.offers(v.samples["configuration_info"], maxRows, "configuration", "account", "configuration")
}

// Offered returns the locations that offer a plan. A plan without any is offered
// nowhere, unless locations can be missing because they are not understood.
func (v *view) Offered(plan string) string {
	var locations []string
	for _, s := range v.find("plan_offered", plan) {
		locations = append(locations, s.Label("location"))
	}
	h := v.collectors[[2]string{"plans"}]
	if len(locations) == 0 && h != nil && !h.MayBeInvalid("availability") {
		return "offered nowhere"
	}
	slices.Sort(locations)
	return join(locations, maxOffered)
}

// Watches returns the watches that are configured.
func (v *view) Watches() table[collector.Watch] { return cut(v.Configured.Watches, maxRows) }

// Hits returns the number of hits of a watch.
func (v *view) Hits(watch string) *float64 {
	if v.Value("watch_plans", watch) == nil {
		return nil
	}
	total := 0.0
	for _, plan := range v.find("watch_hits_total", watch) {
		total += plan.Value()
	}
	return &total
}
