package collector

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"server_rental_exporter/internal/metric"
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

// Watched is a watch with what it has matched. It is immutable.
type Watched struct {
	Watch
	Unmet  []Unmet // by the last data that had a plan
	Events []Event // of the last step

	known   bool                // whether the data was known at the last step
	stepped time.Time           // when it was last known
	matches []*plan             // those that match now
	seen    map[string]sighting // by id of a plan
}

// sighting is what a watch knows of a plan that was listed within the last hour. One that
// returns as it was is no hit.
type sighting struct {
	since, listed time.Time // when it was first, and last, listed
	is            truth     // whether it matched in stock then
	hits          float64
	lastHit       *timestamp // nil until then
}

// NewWatched returns a watch that has seen no data yet.
func NewWatched(w Watch) Watched { return Watched{Watch: w} }

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
	wasKnown := w.known
	w.known = plans != nil && (locations != nil || len(w.Inputs()) == 1)
	before := w.seen
	w.matches, w.Events, w.seen = nil, nil, make(map[string]sighting, len(before))
	if !w.known {
		for id, s := range before { // what is known later is no change
			s.is = unknown
			w.seen[id] = s
		}
		return w
	}
	locations, criteria := cmp.Or(locations, &LocationData{}), w.criteria()
	if len(plans.Items) > 0 {
		w.Unmet = unmet(criteria, plans.Items, *locations)
	}
	for _, p := range plans.Items {
		matches := matches(criteria, p, *locations)
		if matches == match {
			w.matches = append(w.matches, p)
		}
		s, listed := before[p.ID]
		if !listed || now.Sub(s.listed) >= rememberFor && s.listed.Before(w.stepped) {
			s = sighting{since: now}
			if !wasKnown {
				s.is = unknown // else a mismatch: the plan is new
			}
		}
		s.listed = now
		switch is := min(matches, holds(p.Availability.InStock != nil, p.inStock)); {
		case is == match && s.is == mismatch:
			at := timestamp(now.Unix())
			s.hits, s.lastHit = s.hits+1, &at
			hit := p.item()
			w.Events = append(w.Events, Event{"watch hit", slices.Concat([][2]string{{"watch", w.Name}}, hit.keys, hit.detail)})
			s.is = is
		case is != unknown:
			s.is = is
		}
		w.seen[p.ID] = s
	}
	for id, s := range before {
		if _, listed := w.seen[id]; !listed && now.Sub(s.listed) < rememberFor && len(w.seen) < maxRemembered {
			w.seen[id] = s
		}
	}
	w.stepped = now
	return w
}

// WatchMetrics returns the metrics of the watches whose data is known.
func WatchMetrics(watches []Watched) []*metric.Sample {
	b := &metric.Builder{}
	for _, w := range watches {
		if !w.known {
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
		for id, s := range w.seen {
			if matching[id] || s.hits > 0 { // a counter of a plan that matches no longer stays
				b.AddCreated(watchHits, s.hits, s.since, w.Name, id)
				metric.AddOptional(b, watchLastHit, s.lastHit, w.Name, id)
			}
		}
		b.Add(watchPlans, float64(len(w.matches)), w.Name)
		b.Add(watchPlansInStock, float64(inStock), w.Name)
	}
	return b.Metrics()
}
