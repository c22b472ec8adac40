package collector

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

var (
	watchSet metric.Set

	watchPlans        = watchSet.Gauge("watch_plans", "Plans that match a watch, in stock or not.", "watch")
	watchPlansInStock = watchSet.Gauge("watch_plans_in_stock", "Plans that match a watch and are in stock; absent if that is not known of one of them.", "watch")
	watchPlanInStock  = watchSet.Gauge("watch_plan_in_stock", "Whether a plan that matches a watch is in stock: 1 or 0.", "watch", "plan")
	watchHits         = watchSet.Counter("watch_hits_total", "Hits of a watch by a plan, also between two scrapes: the plan came back in stock, was added in stock, or its price or locations came within the criteria.", "watch", "plan")
	watchLastHit      = watchSet.Gauge("watch_last_hit_timestamp_seconds", "When the exporter last counted a hit of a watch by this plan.", "watch", "plan")
)

// WatchDefinitions lists the metrics of watches.
func WatchDefinitions() []*metric.Definition { return watchSet }

var watchChanges = &changeKind{
	changes: []change{
		{of: attrStock, to: "true", event: "watch hit", total: watchHits, last: watchLastHit},
		{of: attrPresence, to: isGone, event: "plan removed"}, // once more, with the watch
	},
	absent:    values{attrStock: "false"}, // added in stock is a hit
	remembers: maxKept / 50,
}

// Watched is a watch with its matches and hits. It is immutable. Before the first step, only the watch
// is set.
type Watched struct {
	Watch

	matching []*plan
	tracked  int     // plans that match, or may match
	changes  Changes // its items are the plans that match, or may match; restocks are hits
}

// Same returns whether the watch is configured like another one.
func (w Watched) Same(other Watch) bool { return reflect.DeepEqual(w.Watch, other) }

// Step matches the watch with the present data, and counts a hit for each plan in stock that began to
// match; none if the data, or the stock of the plan, was not known just before. A value that is not
// understood neither begins nor ends a match. Step must be called whenever plans or locations change or
// expire.
func (w Watched) Step(public Known, now time.Time) Watched {
	plans, locations := public.Data.Plans, cmp.Or(public.Data.Locations, &LocationData{})
	w.matching, w.tracked = nil, 0
	if plans == nil || public.Data.Locations == nil && len(w.Inputs()) > 1 {
		w.changes = w.changes.Forget()
		return w
	}
	var items []item
	for _, p := range plans.Items {
		i := p.item()
		i.labels, i.keys = []string{w.Name, p.ID}, slices.Concat([][2]string{{"watch", w.Name}}, i.keys)
		switch w.match(p, *locations) {
		case isMet:
			w.matching = append(w.matching, p)
		case isUnmet: // if it matches again, that is a hit
			i = item{id: i.id, isUnmatched: true}
			w.tracked--
		case isUnknown:
			if p.inStock() {
				i.values[attrStock] = ""
			}
		}
		items = append(items, i)
	}
	w.tracked += len(items)
	w.changes = w.changes.step(watchChanges, items, plans.Count > len(plans.Items), now)
	return w
}

// Events returns the events of the last step.
func (w Watched) Events() []Event { return w.changes.Events }

// MaxMatches bounds the matches of all watches together. Each takes up to three samples.
const MaxMatches = 20_000

// Matches returns the number of plans that match, or may match: both are remembered, with their hits.
func (w Watched) Matches() int { return w.tracked }

// WatchMetrics returns the metrics of the watches whose data is known.
func WatchMetrics(watches []Watched) []*metric.Sample {
	b := &metric.Builder{}
	for _, w := range watches {
		if !w.changes.isCurrent {
			continue
		}
		for _, p := range w.matching {
			b.AddBool(watchPlanInStock, p.Availability.InStock, w.Name, p.ID)
		}
		b.Add(watchPlans, float64(len(w.matching)), w.Name)
		addInStock(b, watchPlansInStock, w.matching, w.Name)
		w.changes.addMetrics(b, watchChanges)
	}
	return b.Metrics()
}
