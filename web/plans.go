package web

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"server_rental_exporter/collector"
)

// Bounds of the section.
const (
	maxPlans   = 50
	maxOffered = 8 // locations of each plan
)

// planRow is a row of the table of plans.
type planRow struct {
	ID, Name                  string
	Stock                     stock
	USD, EUR                  string
	CPU, Memory, Storage, GPU string
	Locations                 string
	LastInStock, Alternative  string
	usd                       float64
}

// stock is whether a plan is in stock. It sorts as it is shown.
type stock int

// States of stock.
const (
	available stock = iota
	unknownStock
	soldOut
)

// String describes the state.
func (s stock) String() string { return [...]string{"in stock", "unknown", "sold out"}[s] }

// Class is the CSS class of the state.
func (s stock) Class() string { return [...]string{"good", "wait", "wait"}[s] }

func stockOf(s *collector.Sample) stock {
	switch {
	case s == nil:
		return unknownStock
	case s.Value() == 1:
		return available
	default:
		return soldOut
	}
}

// unknownLast is a price to sort by.
func unknownLast(price *float64) float64 {
	if price == nil {
		return math.Inf(1)
	}
	return *price
}

// planName is the name of a plan, or its id.
func (v *view) planName(id string) string {
	if name := label(v.planInfo[id], "name"); name != "" {
		return text(name)
	}
	return text(id)
}

// plans returns the plans: in stock first, then by price.
func (v *view) plans() table[planRow] {
	s := v.samples
	stock, eur := s.by("plan_in_stock", "plan"), s.by("plan_price_eur_per_month", "plan")
	cores, threads := s.by("plan_cpu_cores", "plan"), s.by("plan_cpu_threads", "plan")
	memory, availability := s.by("plan_memory_bytes", "plan"), s.by("plan_availability_info", "plan")
	lastInStock := s.by("plan_last_in_stock_timestamp_seconds", "plan")
	rows := make([]planRow, 0, len(s["plan_info"]))
	for _, info := range s["plan_info"] {
		id := info.Label("plan")
		p := planRow{
			ID: text(id), Name: v.planName(id), Stock: stockOf(stock[id]),
			USD: money(value(v.prices[id])), EUR: money(value(eur[id])),
			CPU:    number(value(cores[id])) + " / " + number(value(threads[id])),
			Memory: gibibytes(value(memory[id])), Storage: text(info.Label("storage")),
			GPU:       text(strings.TrimSpace(info.Label("gpu_model") + " " + info.Label("gpu_memory"))),
			Locations: join(v.offered[id], maxOffered), LastInStock: "not since the start", Alternative: none,
			usd: unknownLast(value(v.prices[id])),
		}
		switch last := lastInStock[id]; {
		case p.Stock == available:
			p.LastInStock = "now"
		case last != nil:
			p.LastInStock = duration(v.since(last.Value())) + " ago"
		}
		if alternative := label(availability[id], "alternative"); alternative != "" {
			p.Alternative = v.planName(alternative)
		}
		rows = append(rows, p)
	}
	slices.SortFunc(rows, func(a, b planRow) int {
		return cmp.Or(cmp.Compare(a.Stock, b.Stock), cmp.Compare(a.usd, b.usd), strings.Compare(a.ID, b.ID))
	})
	return cut(rows, maxPlans)
}
