package web

import (
	"cmp"
	"slices"
	"strings"

	"server_rental_exporter/collector"
)

// Bounds of the section.
const (
	maxWatches      = 50
	maxWatchMatches = 10 // plans of each watch
)

// watchRow is a watch with the plans that match it.
type watchRow struct {
	Name, Plans, InStock, Hits string
	Matches                    table[match]
}

// match is a plan that matches a watch.
type match struct {
	Plan, Price, Locations string
	Stock                  stock
	usd                    float64
}

func (v *view) watches() table[watchRow] {
	inStock := v.samples.by("watch_plans_in_stock", "watch")
	hits := v.samples.by("watch_hits_total", "watch")
	matches := v.samples.group("watch_plan_in_stock", "watch")
	rows := make([]watchRow, 0, len(v.samples["watch_plans"]))
	for _, s := range v.samples["watch_plans"] {
		name := s.Label("watch")
		rows = append(rows, watchRow{
			Name: text(name), Plans: number(value(s)), InStock: number(value(inStock[name])), Hits: number(value(hits[name])),
			Matches: v.matches(matches[name]),
		})
	}
	slices.SortFunc(rows, func(a, b watchRow) int { return strings.Compare(a.Name, b.Name) })
	return cut(rows, maxWatches)
}

// matches returns the plans of a watch: in stock first, then by price.
func (v *view) matches(found []*collector.Sample) table[match] {
	rows := make([]match, 0, len(found))
	for _, s := range found {
		id := s.Label("plan")
		price := value(v.prices[id])
		m := match{Plan: v.planName(id), Price: money(price), Locations: join(v.offered[id], maxOffered), Stock: stockOf(s), usd: unknownLast(price)}
		rows = append(rows, m)
	}
	slices.SortFunc(rows, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.Stock, b.Stock), cmp.Compare(a.usd, b.usd), strings.Compare(a.Plan, b.Plan))
	})
	return cut(rows, maxWatchMatches)
}
