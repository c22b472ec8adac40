package collector

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

var (
	watchPlans        = metric.Gauge("watch_plans", "Plans that match a watch, in stock or not; 0 if its criteria match nothing.", "watch")
	watchPlansInStock = metric.Gauge("watch_plans_in_stock", "Plans that match a watch and are known to be in stock.", "watch")
	watchPlanInStock  = metric.Gauge("watch_plan_in_stock", "Whether a plan that matches a watch is in stock: 1 or 0.", "watch", "plan")
	watchHits         = metric.Counter("watch_hits_total", "Times a plan in stock began to match a watch since the exporter first saw both, also between two scrapes: it came back in stock, was added in stock, or its price or locations changed.", "watch", "plan")
	watchLastHit      = metric.Gauge("watch_last_hit_timestamp_seconds", "When the exporter last counted a hit of a watch by this plan; absent until then.", "watch", "plan")
)

// WatchDefinitions lists the metrics of watches.
func WatchDefinitions() []*metric.Definition {
	return []*metric.Definition{watchPlans, watchPlansInStock, watchPlanInStock, watchHits, watchLastHit}
}

// Watched is a watch with what it has matched. It is immutable. Only the watch is set before the
// first step.
type Watched struct {
	Watch
	Unmet  []Unmet // by the last data that had a plan
	Events []Event // of the last step

	matches []*plan // those that match now
	history History // of all plans: one that matches in stock is in stock, and its restocks are the hits
}

// Same returns whether the watch is configured like another one.
func (w Watched) Same(other Watch) bool { return reflect.DeepEqual(w.Watch, other) }

// Step matches the watch with the present data, and counts as hits the plans in stock
// that began to match. It must be called whenever the plans or locations change or expire,
// so that no change is missed.
//
// Nothing is counted if the data, or the stock of the plan, was not known just before. A value
// that is not understood neither begins nor ends a match.
func (w Watched) Step(public Known, now time.Time) Watched {
	plans, locations := public.Data.Plans, cmp.Or(public.Data.Locations, &LocationData{})
	w.matches, w.Events = nil, nil
	if plans == nil || public.Data.Locations == nil && len(w.Inputs()) > 1 {
		w.history = w.history.forgetStock()
		return w
	}
	criteria, items := w.criteria(), []item{}
	if len(plans.Items) > 0 {
		w.Unmet = unmet(criteria, plans.Items, *locations)
	}
	for _, p := range plans.Items {
		i := p.item()
		i.kind, i.keys, i.price = watchEvents, slices.Concat([][2]string{{"watch", w.Name}}, i.keys), nil
		mayMatch := func(c criterion) bool { return c.isUnclear(p, *locations) }
		switch {
		case matches(criteria, p, *locations):
			w.matches = append(w.matches, p)
		case slices.ContainsFunc(criteria, mayMatch):
			if p.inStock() {
				i.stock = nil
			}
		default:
			i.stock = new(bool)
		}
		items = append(items, i)
	}
	w.history = w.history.step(items, plans.Count > len(plans.Items), now)
	w.Events = w.history.Events
	return w
}

// WatchMetrics returns the metrics of the watches whose data is known.
func WatchMetrics(watches []Watched) []*metric.Sample {
	b := &metric.Builder{}
	for _, w := range watches {
		if !w.history.known {
			continue
		}
		inStock, matching := 0, map[string]bool{}
		for _, p := range w.matches {
			matching[p.ID] = true
			if p.inStock() {
				inStock++
			}
			b.AddBool(watchPlanInStock, p.Availability.InStock, w.Name, p.ID)
		}
		for id, r := range w.history.records {
			if matching[id] || r.restocks > 0 { // a counter of a plan that matches no longer stays
				b.AddCreated(watchHits, r.restocks, r.since, w.Name, id)
				metric.AddOptional(b, watchLastHit, r.lastRestock, w.Name, id)
			}
		}
		b.Add(watchPlans, float64(len(w.matches)), w.Name)
		b.Add(watchPlansInStock, float64(inStock), w.Name)
	}
	return b.Metrics()
}
