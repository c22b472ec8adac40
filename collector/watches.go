package collector

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
)

// Watch selects plans that somebody waits for: those that meet every criterion that
// is given. The values of one criterion are alternatives.
type Watch struct {
	Name     string   `yaml:"name"`  // unique, 1 to 256 bytes of UTF-8; value of the label watch
	Plans    []string `yaml:"plans"` // ids
	Families []string `yaml:"families"`
	// One location that offers the plan must meet these together: ids, regions as the
	// provider words them, and codes of two letters.
	Locations []string `yaml:"locations"`
	Regions   []string `yaml:"regions"`
	Countries []string `yaml:"countries"`
	GPU       *bool    `yaml:"gpu"`
	ECC       *bool    `yaml:"ecc"` // of the memory
	// Parts of the provider's texts, in any case of letters.
	CPUModels      []string `yaml:"cpu_models"`
	GPUModels      []string `yaml:"gpu_models"`
	Storage        []string `yaml:"storage"`
	Ports          []string `yaml:"ports"`
	ExcludePlans   []string `yaml:"exclude_plans"` // ids
	MinCores       *float64 `yaml:"min_cores"`     // bounds are inclusive
	MinThreads     *float64 `yaml:"min_threads"`
	MinBaseGHz     *float64 `yaml:"min_base_ghz"`
	MinMemoryGiB   *float64 `yaml:"min_memory_gib"`
	MaxUSDPerMonth *float64 `yaml:"max_usd_per_month"` // prices exclude VAT
	MaxEURPerMonth *float64 `yaml:"max_eur_per_month"`
}

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

// Inputs returns the collectors that the watch needs. Plans name their locations by id
// only, so that regions and countries need more.
func (w Watch) Inputs() []string {
	if len(w.Regions)+len(w.Countries) > 0 {
		return []string{"plans", "locations"}
	}
	return []string{"plans"}
}

// Description says in words which plans match, such as "any plan offered in
// Europe, 64 GiB or more, up to 100.00 USD a month".
func (w Watch) Description() string {
	words, in := "any plan", " offered in "
	if len(w.Plans) > 0 {
		words = "plan " + strings.Join(w.Plans, " or ")
	}
	if len(w.Families) > 0 {
		words += " of family " + strings.Join(w.Families, " or ")
	}
	for _, alternatives := range [][]string{w.Locations, w.Regions, w.Countries} {
		if len(alternatives) > 0 {
			words += in + strings.Join(alternatives, " or ")
			in = " and in "
		}
	}
	if w.GPU != nil {
		words += map[bool]string{true: ", with a GPU", false: ", without a GPU"}[*w.GPU]
	}
	add := func(format string, bound *float64) {
		if bound != nil {
			words += fmt.Sprintf(format, *bound)
		}
	}
	add(", %.15g cores or more", w.MinCores)
	add(", %.15g GiB or more", w.MinMemoryGiB)
	add(", up to %.2f USD a month", w.MaxUSDPerMonth)
	add(", up to %.2f EUR a month", w.MaxEURPerMonth)
	return words
}

// truth is whether a criterion is met, in three-valued logic: min is AND, max is OR.
type truth int

const (
	mismatch truth = iota
	unknown        // not known, which is no match either
	match
)

// criterion returns whether a criterion is met: always if it is not given, and unknown if what
// it is about is not known.
func criterion(given, known bool, met func() bool) truth {
	switch {
	case !given:
		return match
	case !known:
		return unknown
	case met():
		return match
	}
	return mismatch
}

// matches returns whether a plan meets all criteria.
func (w Watch) matches(p *plan, locations LocationData) truth {
	return min(
		oneOf(w.Plans, p.ID),
		oneOf(w.Families, p.Family),
		w.offered(p, locations),
		criterion(w.GPU != nil, !p.gpuUnknown, func() bool { return *w.GPU == (p.GPU != nil) }),
		within(p.CPU.Cores, w.MinCores, nil),
		within(p.Memory.SizeGB, w.MinMemoryGiB, nil), // the provider's GB are binary
		within(p.Price.Monthly.USD, nil, w.MaxUSDPerMonth),
		within(p.Price.Monthly.EUR, nil, w.MaxEURPerMonth),
	)
}

// offered returns whether one location that offers the plan meets all criteria for
// locations.
func (w Watch) offered(p *plan, locations LocationData) truth {
	given := len(w.Locations)+len(w.Regions)+len(w.Countries) > 0
	result := criterion(given, p.Availability.Locations != nil, func() bool { return false })
	for _, id := range p.Availability.Locations {
		l := locations[id]
		result = max(result, min(oneOf(w.Locations, string(id)), oneOf(w.Regions, l.Region), oneOf(w.Countries, l.CountryCode)))
	}
	return result
}

// oneOf returns whether a value is one of the alternatives, in any case of letters,
// or there are none.
func oneOf(alternatives []string, value string) truth {
	return criterion(len(alternatives) > 0, value != "", func() bool {
		return slices.ContainsFunc(alternatives, func(a string) bool { return strings.EqualFold(a, value) })
	})
}

// within returns whether a value is at least and at most a bound; nil is no bound.
func within[T ~float64](value *T, least, most *float64) truth {
	return criterion(least != nil || most != nil, value != nil, func() bool {
		return (least == nil || float64(*value) >= *least) && (most == nil || float64(*value) <= *most)
	})
}

// Watched is a watch with what it has matched. It is immutable.
type Watched struct {
	Watch
	created time.Time
	hits    map[string]float64 // by id of a plan that had one
	lastHit time.Time
	plans   []*plan               // that match
	before  map[string]lastListed // by id of a plan; nil if the data is not known
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
	w.plans, w.before = nil, nil
	if plans == nil || locations == nil && len(w.Inputs()) > 1 {
		return w
	}
	locations = cmp.Or(locations, &LocationData{})
	w.before, w.hits = maps.Clone(before), maps.Clone(w.hits)
	if before == nil {
		w.before = map[string]lastListed{}
	}
	maps.DeleteFunc(w.before, func(_ string, l lastListed) bool { return now.Sub(l.at) >= rememberFor })
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
