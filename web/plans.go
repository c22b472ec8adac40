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

// planRow is a plan in the tables of plans and of watches. The second shows the fields
// of the first block only.
type planRow struct {
	ID, Name, USD, Locations string
	Order                    string // address of the order form; empty if it is not known
	Stock                    stock
	usd                      float64

	EUR, CPU, Memory, Storage, GPU string
	LastInStock, Alternative       string
}

// watchRow is a watch with the plans that match it.
type watchRow struct {
	Name, Plans, InStock, Hits string
	Problem                    string // why it cannot have a hit
	Matches                    table[planRow]
}

// stock is whether a plan is in stock. It sorts as it is shown.
type stock int

// States of stock.
const (
	available stock = iota
	unknownStock
	soldOut
)

// stockOf returns the state that a gauge says; nil is unknown.
func stockOf(inStock *float64) stock {
	switch {
	case inStock == nil:
		return unknownStock
	case *inStock == 0:
		return soldOut
	}
	return available
}

// String describes the state.
func (s stock) String() string { return [...]string{"in stock", "unknown", "sold out"}[s] }

// Class returns the CSS class of the state.
func (s stock) Class() string { return [...]string{"good", "wait", "wait"}[s] }

// newPlanRow returns a plan without its hardware.
func (v *view) newPlanRow(id string, inStock *float64) planRow {
	price := v.value("plan_price_usd_per_month", id)
	p := planRow{ID: text(id), Name: v.planName(id), Order: v.label("order", "plan_links_info", id), USD: money(price), Locations: v.locationsOf(id), usd: math.Inf(1)}
	if price != nil {
		p.usd = *price
	}
	p.Stock = stockOf(inStock)
	return p
}

// locationsOf returns the locations that offer a plan. A plan without any is offered
// nowhere, unless locations can be missing because they are not understood.
func (v *view) locationsOf(plan string) string {
	h := v.collectors[key{"plans"}]
	if len(v.offered[plan]) == 0 && h != nil && !h.MayBeInvalid("availability") {
		return "offered nowhere"
	}
	return join(v.offered[plan], maxOffered)
}

// cutPlans keeps the first plans: those in stock, then by price.
func cutPlans(rows []planRow, n int) table[planRow] {
	slices.SortFunc(rows, func(a, b planRow) int {
		return cmp.Or(cmp.Compare(a.Stock, b.Stock), cmp.Compare(a.usd, b.usd), strings.Compare(a.ID, b.ID))
	})
	return cut(rows, n)
}

// Plans returns the plans, those in stock first.
func (v *view) Plans() table[planRow] {
	rows := make([]planRow, 0, len(v.samples["plan_info"]))
	for _, info := range v.samples["plan_info"] {
		id := info.Label("plan")
		p := v.newPlanRow(id, v.value("plan_in_stock", id))
		p.EUR, p.Memory = money(v.value("plan_price_eur_per_month", id)), gibibytes(v.value("plan_memory_bytes", id))
		p.CPU = number(v.value("plan_cpu_cores", id)) + " / " + number(v.value("plan_cpu_threads", id))
		p.Storage = text(info.Label("storage"))
		p.GPU = text(strings.TrimSpace(info.Label("gpu_model") + " " + info.Label("gpu_memory")))
		p.LastInStock = "not since the start"
		if p.Stock == available {
			p.LastInStock = "now"
		} else if last := v.value("plan_last_in_stock_timestamp_seconds", id); last != nil {
			p.LastInStock = duration(v.now.Sub(at(*last))) + " ago"
		}
		p.Alternative = none
		if alternative := v.label("alternative", "plan_availability_info", id); alternative != "" {
			p.Alternative = v.planName(alternative)
		}
		rows = append(rows, p)
	}
	return cutPlans(rows, maxRows)
}

// Watches returns the watches by name.
func (v *view) Watches() table[watchRow] {
	matches, hits := v.group("watch_plan_in_stock"), v.group("watch_hits_total")
	rows := make([]watchRow, 0, len(v.Configured.Watches))
	for _, w := range v.Configured.Watches {
		name := w.Name
		plans, total := make([]planRow, 0, len(matches[name])), 0.0
		for _, match := range matches[name] {
			inStock := match.Value()
			plans = append(plans, v.newPlanRow(match.Label("plan"), &inStock))
		}
		for _, plan := range hits[name] {
			total += plan.Value()
		}
		row := watchRow{
			Name: text(name), Plans: number(v.value("watch_plans", name)), InStock: number(v.value("watch_plans_in_stock", name)),
			Hits: none, Matches: cutPlans(plans, maxWatchMatches),
		}
		if v.value("watch_plans", name) != nil {
			row.Hits = number(&total)
		}
		_, row.Problem = v.watchProblem(w)
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b watchRow) int { return strings.Compare(a.Name, b.Name) })
	return cut(rows, maxRows)
}
