package collector

import (
	"cmp"
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

var watchChanges = &changeKind{
	changes: []change{
		{of: attrStock, to: "true", event: "watch hit", total: watchHits, last: watchLastHit},
		{of: attrPresence, to: isGone, event: "plan removed"}, // once more, with the watch
	},
	absent:    values{attrStock: "false"}, // added in stock is a hit
	remembers: maxKept / 50,
}

// Watched is a watch with its matches and hits. Before the first step, only the watch is set.
type Watched struct {
	Watch

	matching []*plan
	changes  Changes // its items are the plans that match, or may match; restocks are hits
}

// MaxMatches bounds the plans that match, or may match, all watches together. Each takes up to three
// samples.
const MaxMatches = 20_000

// StepWatches matches watches with the present public data, and returns the events: a hit for each plan in
// stock that began to match; none if the data, or the stock of the plan, was unknown just before. A value
// that is not understood neither begins nor ends a match. For the watch that goes beyond MaxMatches, and
// all after it, it is as if the data were unknown; unmatched is the number of these. StepWatches must be
// called whenever plans or locations change or expire.
func StepWatches(watches []*Watched, public Data, now time.Time) (events []Event, unmatched int) {
	plans, locations, matches := public.Plans, cmp.Or(public.Locations, &LocationData{}), 0
	for _, w := range watches {
		isKnown := plans != nil && (public.Locations != nil || len(w.Inputs()) == 1)
		if isKnown && matches <= MaxMatches {
			items, others := w.items(plans.Items, *locations)
			if matches += len(items); matches <= MaxMatches {
				events = append(events, w.changes.step(watchChanges, items, others, plans.Count > len(plans.Items), now)...)
				continue
			}
		}
		if isKnown {
			unmatched++
		}
		w.matching = nil
		w.changes.Forget()
	}
	return events, unmatched
}

// items sets which plans match, and returns those that match or may match, and the ids of all others.
func (w *Watched) items(plans []*plan, locations LocationData) (items []item, others map[string]bool) {
	w.matching, others = nil, map[string]bool{}
	for _, p := range plans {
		i := p.item()
		i.labels, i.keys = []string{w.Name, p.ID}, slices.Concat([][2]string{{"watch", w.Name}}, i.keys)
		switch w.match(p, locations) {
		case isMet:
			w.matching = append(w.matching, p)
		case isUnmet: // if it matches again, that is a hit
			others[i.id] = true
			continue
		case isUnknown:
			if p.inStock() {
				i.values[attrStock] = ""
			}
		}
		items = append(items, i)
	}
	return items, others
}

// WatchMetrics returns the metrics of the watches whose data is present.
func WatchMetrics(watches []*Watched) []*metric.Sample {
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
