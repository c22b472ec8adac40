package web

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Bounds of cells.
const (
	maxOffered      = 8  // locations of each plan
	maxWatchMatches = 10 // plans of each watch
)

// planRow is a plan in the tables of plans and of watches.
type planRow struct {
	ID    string
	Stock stock
	usd   float64
}

// watchRow is a watch with the plans that match it.
type watchRow struct {
	Name, Hits string
	Problem    string // why it cannot have a hit
	Matches    table[planRow]
}

// stock is whether a plan is in stock, in the order in which it is shown.
type stock struct {
	order       int
	Text, Class string
}

// States of stock.
var (
	available    = stock{0, "in stock", "good"}
	unknownStock = stock{1, "unknown", "wait"}
	soldOut      = stock{2, "sold out", "wait"}
)

// Stock returns the state that a gauge says.
func (v *view) Stock(name string, values ...string) stock {
	switch inStock := v.Value(name, values...); {
	case inStock == nil:
		return unknownStock
	case *inStock == 0:
		return soldOut
	}
	return available
}

// Offered returns the locations that offer a plan. A plan without any is offered
// nowhere, unless locations can be missing because they are not understood.
func (v *view) Offered(plan string) string {
	var locations []string
	for _, s := range v.find("plan_offered", plan) {
		locations = append(locations, s.Label("location"))
	}
	h := v.collectors[key{"plans"}]
	if len(locations) == 0 && h != nil && !h.MayBeInvalid("availability") {
		return "offered nowhere"
	}
	slices.Sort(locations)
	return join(locations, maxOffered)
}

// Plans returns the plans, those in stock first.
func (v *view) Plans() table[planRow] {
	return v.plans(v.samples["plan_info"], maxRows, func(id string) stock { return v.Stock("plan_in_stock", id) })
}

// plans returns the first plans of these samples: those in stock, then by price.
func (v *view) plans(found []*sample, n int, inStock func(id string) stock) table[planRow] {
	rows := make([]planRow, 0, len(found))
	for _, s := range found {
		p := planRow{ID: s.Label("plan"), Stock: inStock(s.Label("plan")), usd: math.Inf(1)}
		if price := v.Value("plan_price_usd_per_month", p.ID); price != nil {
			p.usd = *price
		}
		rows = append(rows, p)
	}
	slices.SortFunc(rows, func(a, b planRow) int {
		return cmp.Or(cmp.Compare(a.Stock.order, b.Stock.order), cmp.Compare(a.usd, b.usd), strings.Compare(a.ID, b.ID))
	})
	return cut(rows, n)
}

// Watches returns the watches by name.
func (v *view) Watches() table[watchRow] {
	rows := make([]watchRow, 0, len(v.Configured.Watches))
	for _, w := range v.Configured.Watches {
		row := watchRow{Name: w.Name, Hits: none, Matches: v.plans(v.find("watch_plan_in_stock", w.Name), maxWatchMatches, func(id string) stock {
			return v.Stock("watch_plan_in_stock", w.Name, id)
		})}
		if v.Value("watch_plans", w.Name) != nil {
			total := 0.0
			for _, plan := range v.find("watch_hits_total", w.Name) {
				total += plan.Value()
			}
			row.Hits = number(&total)
		}
		_, row.Problem = v.watchProblem(w)
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b watchRow) int { return strings.Compare(a.Name, b.Name) })
	return cut(rows, maxRows)
}
