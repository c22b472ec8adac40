package web

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"server_rental_exporter/collector"
)

// maxOffered is the maximum number of locations of each plan.
const maxOffered = 8

type offer struct {
	*sample
	Stock words
	price float64 // infinite if it is not known
}

// Offers returns at most n of the samples that find returns, of plans or configurations
// as kind says: those in stock first, then by price.
func (v *view) Offers(n int, kind, name string, values ...string) table[offer] {
	found, labels := v.find(name, values...), []string{"plan"}
	if kind == "configuration" {
		labels = []string{"account", "configuration"}
	}
	rows := make([]offer, 0, len(found))
	for _, s := range found {
		id := make([]string, len(labels))
		for i, label := range labels {
			id[i] = s.Label(label)
		}
		o := offer{s, words{"sold out", "wait"}, math.Inf(1)}
		switch inStock := v.Value(kind+"_in_stock", id...); {
		case inStock == nil:
			o.Stock.Text = "unknown"
		case *inStock > 0:
			o.Stock = words{"in stock", "good"}
		}
		if price := v.Value(kind+"_price_usd_per_month", id...); price != nil {
			o.price = *price
		}
		rows = append(rows, o)
	}
	slices.SortStableFunc(rows, func(a, b offer) int {
		return cmp.Or(strings.Compare(a.Stock.Text, b.Stock.Text), cmp.Compare(a.price, b.price))
	})
	return cut(rows, n)
}

func (v *view) Offered(plan string) string {
	var locations []string
	for _, s := range v.find("plan_offered", plan) {
		locations = append(locations, s.Label("location"))
	}
	return join(locations, maxOffered)
}

func (v *view) Watches() table[collector.Watch] { return cut(v.Configured.Watches, maxRows) }

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
