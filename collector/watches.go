package collector

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
)

var (
	watchPlans        = metric.Gauge("watch_plans", "Plans that match a watch, in stock or not; 0 if its criteria match nothing.", "the configuration, plans and locations", "watch")
	watchPlansInStock = metric.Gauge("watch_plans_in_stock", "Plans that match a watch and are known to be in stock: one whose stock is not known is not counted.", "the configuration, plans and locations", "watch")
	watchPlanInStock  = metric.Gauge("watch_plan_in_stock", "Whether a plan that matches a watch is in stock: 1 or 0.", "Plan availability.in_stock", "watch", "plan")
	watchHits         = metric.Counter("watch_hits_total", "Times a plan in stock began to match a watch since the watch was configured, also between two scrapes: it came back in stock, was added in stock, or its price or locations changed.", "the configuration, plans and locations", "watch", "plan")
	watchLastHit      = metric.Gauge("watch_last_hit_timestamp_seconds", "When the exporter last counted a hit of a watch; absent until then.", "the exporter", "watch")
)

// WatchDefinitions lists the metrics of watches.
func WatchDefinitions() []*metric.Definition {
	return []*metric.Definition{watchPlans, watchPlansInStock, watchPlanInStock, watchHits, watchLastHit}
}

// Watched is a watch with what it has matched. It is immutable.
type Watched struct {
	Watch
	Unmet  []Unmet // by the last data that had a plan
	Events []Event // of the last step

	created time.Time
	hits    map[string]float64 // by id of a plan that had one
	lastHit time.Time
	plans   []*plan               // that match
	before  map[string]lastListed // by id of a plan; nil if the data is not known
	stepped time.Time             // when the data was last known
}

// lastListed is when a plan was last listed, and whether it matched in stock then.
type lastListed struct {
	at time.Time
	is truth
}

// rememberFor is how long a plan that is not listed is remembered: one that returns as it was
// is no hit.
const rememberFor = time.Hour

// NewWatched returns a watch that has seen no data yet.
func NewWatched(w Watch, now time.Time) Watched {
	return Watched{Watch: w, created: now, hits: map[string]float64{}}
}

// Same returns whether the watch is configured like another one.
func (w Watched) Same(other Watch) bool { return reflect.DeepEqual(w.Watch, other) }

// Step matches the watch with the present data, and counts as hits the plans in stock
// that began to match. It must be called whenever the plans or locations change or expire,
// so that no change is missed.
//
// Nothing is counted if it was not known just before whether the plan is in stock and
// matches. A value that is not known neither begins nor ends a match in stock, so that a
// wrong response in between is no hit.
func (w Watched) Step(public Known, now time.Time) Watched {
	plans, locations := public.Data.Plans, public.Data.Locations
	before := w.before
	w.plans, w.before, w.Events = nil, nil, nil
	if plans == nil || locations == nil && len(w.Inputs()) > 1 {
		return w
	}
	locations = cmp.Or(locations, &LocationData{})
	w.before, w.hits = maps.Clone(before), maps.Clone(w.hits)
	if before == nil {
		w.before = map[string]lastListed{}
	}
	maps.DeleteFunc(w.before, func(_ string, l lastListed) bool { return now.Sub(l.at) >= rememberFor && l.at.Before(w.stepped) })
	w.stepped = now
	if len(plans.Items) > 0 {
		w.Unmet = w.unmet(plans.Items, *locations)
	}
	for _, p := range plans.Items {
		matches := w.matches(p, *locations)
		if matches == match {
			w.plans = append(w.plans, p)
		}
		was := w.before[p.ID].is // a mismatch if the plan is new
		if before == nil {
			was = unknown
		}
		is := min(matches, criterion(true, p.Availability.InStock != nil, p.inStock))
		switch {
		case is == unknown:
			is = was
		case is == match && was == mismatch:
			w.lastHit = now
			w.hits[p.ID]++
			hit := p.item()
			w.Events = append(w.Events, Event{"watch hit", slices.Concat([][2]string{{"watch", w.Name}}, hit.keys, hit.detail)})
		}
		w.before[p.ID] = lastListed{now, is}
	}
	return w
}

// WatchMetrics returns the metrics of the watches whose data is known.
func WatchMetrics(watches []Watched) []prometheus.Metric {
	b := &metric.Builder{}
	for _, w := range watches {
		if w.before == nil {
			continue
		}
		inStock := 0
		for _, p := range w.plans {
			if p.inStock() {
				inStock++
			}
			b.AddBool(watchPlanInStock, p.Availability.InStock, w.Name, p.ID)
			if w.hits[p.ID] == 0 {
				b.AddCreated(watchHits, 0, w.created, w.Name, p.ID)
			}
		}
		for id, n := range w.hits { // also of plans that matched between two scrapes only
			b.AddCreated(watchHits, n, w.created, w.Name, id)
		}
		b.Add(watchPlans, float64(len(w.plans)), w.Name)
		b.Add(watchPlansInStock, float64(inStock), w.Name)
		if !w.lastHit.IsZero() {
			b.Add(watchLastHit, float64(w.lastHit.Unix()), w.Name)
		}
	}
	return b.Metrics()
}
