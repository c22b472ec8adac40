package collector

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
)

// Watch selects plans that somebody waits for: those that meet every criterion that
// is given. The values of one criterion are alternatives.
type Watch struct {
	Name            string   // unique, 1 to 256 bytes of UTF-8; value of the label watch
	Plans, Families []string // ids
	// One location that offers the plan must meet these together: ids, regions as the
	// provider words them, and codes of two letters.
	Locations, Regions, Countries  []string
	GPU                            *bool
	MinCores, MinMemoryGiB         *float64 // inclusive
	MaxUSDPerMonth, MaxEURPerMonth *float64 // inclusive, excluding VAT
}

var (
	watchPlans        = metric.Gauge("watch_plans", "Plans that match a watch, in stock or not; 0 where its criteria match nothing.", "the configuration, plans and locations", "watch")
	watchPlansInStock = metric.Gauge("watch_plans_in_stock", "Plans that match a watch and are in stock.", "the configuration, plans and locations", "watch")
	watchPlanInStock  = metric.Gauge("watch_plan_in_stock", "Whether a plan that matches a watch is in stock: 1 or 0.", "Plan availability.in_stock", "watch", "plan").SeriesPer("watch and plan that matches it")
	watchHits         = metric.Counter("watch_hits_total", "Times a plan in stock began to match a watch since the watch was configured, also between two scrapes: it came back in stock, was added in stock, or its price or locations changed.", "the configuration, plans and locations", "watch")
	watchLastHit      = metric.Gauge("watch_last_hit_timestamp_seconds", "When the exporter last counted a hit of a watch; absent until then.", "the exporter", "watch")
)

// watchMetrics derives the watches. They are evaluated whenever an input changes, so
// that no change is missed, however rarely metrics are published.
func watchMetrics() derived {
	return derived{
		inputs:  []string{"plans", "locations"},
		metrics: []*metric.Definition{watchPlans, watchPlansInStock, watchPlanInStock, watchHits, watchLastHit},
		update:  func(s *Set) { s.watches.evaluate(s) },
		collect: func(s *Set, now time.Time) ([]prometheus.Metric, time.Time) { return s.watches.collect(now) },
	}
}

// Inputs returns the collectors that the watch needs. Plans name their locations by id
// only, so that regions and countries need more.
func (w Watch) Inputs() []string {
	if len(w.Regions)+len(w.Countries) > 0 {
		return []string{"plans", "locations"}
	}
	return []string{"plans"}
}

// truth is whether a criterion is met. The least of several tells whether all are
// met, the greatest whether one is.
type truth int

const (
	mismatch truth = iota
	unknown        // not known, which is no match either
	match
)

func truthOf(met bool) truth {
	if met {
		return match
	}
	return mismatch
}

// matches returns whether a plan meets all criteria.
func (w Watch) matches(p *plan, locations map[string]*location) truth {
	return min(
		oneOf(w.Plans, p.ID),
		oneOf(w.Families, p.Family),
		w.offered(p, locations),
		w.matchesGPU(p),
		atLeast(p.CPU.Cores, w.MinCores),
		atLeast(p.Memory.SizeGB, w.MinMemoryGiB), // the provider's GB are binary
		atMost(p.Price.Monthly.USD, w.MaxUSDPerMonth),
		atMost(p.Price.Monthly.EUR, w.MaxEURPerMonth),
	)
}

// offered returns whether one location that offers the plan meets all criteria for
// locations.
func (w Watch) offered(p *plan, locations map[string]*location) truth {
	switch {
	case len(w.Locations)+len(w.Regions)+len(w.Countries) == 0:
		return match
	case p.Availability.Locations == nil:
		return unknown
	}
	result := mismatch
	for _, id := range p.Availability.Locations {
		l := locations[id]
		if l == nil {
			l = &location{}
		}
		result = max(result, min(oneOf(w.Locations, id), oneOf(w.Regions, l.Region), oneOf(w.Countries, l.CountryCode)))
	}
	return result
}

func (w Watch) matchesGPU(p *plan) truth {
	switch {
	case w.GPU == nil:
		return match
	case p.gpuUnknown:
		return unknown
	}
	return truthOf(*w.GPU == (p.GPU != nil))
}

// oneOf returns whether a value is one of the alternatives, in any case of letters,
// or there are none.
func oneOf(alternatives []string, value string) truth {
	switch {
	case len(alternatives) == 0:
		return match
	case value == "":
		return unknown
	}
	return truthOf(slices.ContainsFunc(alternatives, func(a string) bool { return strings.EqualFold(a, value) }))
}

func atLeast(value *count, bound *float64) truth {
	switch {
	case bound == nil:
		return match
	case value == nil:
		return unknown
	}
	return truthOf(float64(*value) >= *bound)
}

func atMost(value *price, bound *float64) truth {
	switch {
	case bound == nil:
		return match
	case value == nil:
		return unknown
	}
	return truthOf(float64(*value) <= *bound)
}

// watches are the configured watches with what they matched last.
type watches struct {
	mu     sync.Mutex
	states []*watchState // in the order of the configuration
}

type watchState struct {
	Watch
	created time.Time
	hits    float64
	lastHit time.Time
	plans   []*plan          // that match
	truths  map[string]truth // by id of a plan: whether it matches and is in stock
	unnamed int              // least number of plans without a usable id in an answer
	expires time.Time        // of the data; zero where it is not known
}

// apply changes the watches to those that are configured. One that did not change
// keeps its state.
func (w *watches) apply(configured []Watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.states
	w.states = nil
	for _, c := range configured {
		i := slices.IndexFunc(old, func(st *watchState) bool { return reflect.DeepEqual(st.Watch, c) })
		if i >= 0 {
			w.states = append(w.states, old[i])
		} else {
			w.states = append(w.states, &watchState{Watch: c, created: time.Now()})
		}
	}
}

// evaluate matches all watches with the present data.
func (w *watches) evaluate(s *Set) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for _, sc := range s.snapshot() {
		if sc.account != "" {
			continue
		}
		for _, st := range w.states {
			st.evaluate(sc, now)
		}
	}
}

// evaluate counts the plans in stock that began to match. Nothing is counted where it
// was not known just before whether the plan is in stock and matches. A value that is
// not known neither begins nor ends a match in stock, so that a wrong answer in between
// is no hit.
func (st *watchState) evaluate(public scopeSnapshot, now time.Time) {
	in, expires, ok := public.facts(st.Inputs())
	first := !now.Before(st.expires)
	st.expires = expires
	if !ok {
		return
	}
	before, unnamed := st.truths, in["plans"].plansUnnamed
	if first {
		before, st.unnamed = nil, unnamed
	}
	st.plans, st.truths = nil, map[string]truth{}
	for _, p := range in["plans"].plans {
		matches, available := st.matches(p, in["locations"].locations), unknown
		if p.Availability.InStock != nil {
			available = truthOf(*p.Availability.InStock)
		}
		if matches == match {
			st.plans = append(st.plans, p)
		}
		was, listed := before[p.ID]
		if !listed && (first || unnamed < st.unnamed) { // it may have been an item without an id
			was = unknown
		}
		is := min(matches, available)
		switch {
		case is == unknown:
			is = was
		case is == match && was == mismatch:
			st.hits++
			st.lastHit = now
		}
		st.truths[p.ID] = is
	}
	if unnamed > st.unnamed {
		st.keepAbsent(before)
	}
	st.unnamed = min(unnamed, st.unnamed)
}

// keepAbsent takes plans that are not listed as they were before, because the items
// without an id may be these.
func (st *watchState) keepAbsent(before map[string]truth) {
	for id, was := range before {
		if _, listed := st.truths[id]; !listed && was != mismatch && len(st.truths) < maxItems {
			st.truths[id] = was
		}
	}
}

// collect returns the metrics of the watches whose data is known, and when the first
// data expires.
func (w *watches) collect(now time.Time) (metrics []prometheus.Metric, expires time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	totals, plans := &metric.Builder{}, &metric.Builder{} // a limit is reached by plans only
	for _, st := range w.states {
		if !now.Before(st.expires) {
			continue
		}
		if expires.IsZero() || st.expires.Before(expires) {
			expires = st.expires
		}
		inStock := 0
		for _, p := range st.plans {
			plans.AddBool(watchPlanInStock, p.Availability.InStock, st.Name, p.ID)
			if p.Availability.InStock != nil && *p.Availability.InStock {
				inStock++
			}
		}
		totals.Add(watchPlans, float64(len(st.plans)), st.Name)
		totals.Add(watchPlansInStock, float64(inStock), st.Name)
		totals.AddCreated(watchHits, st.hits, st.created, st.Name)
		if !st.lastHit.IsZero() {
			totals.Add(watchLastHit, float64(st.lastHit.Unix()), st.Name)
		}
	}
	return slices.Concat(totals.Metrics(), plans.Metrics()), expires
}
