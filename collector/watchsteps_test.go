package collector

import (
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// step is what a watch sees, and its hits after that; negative without series.
type step struct {
	plans     catalog
	hits      float64
	wait      time.Duration // before it; a minute by default
	locations *LocationData // nil: fra is in Europe, nyc in North America
	unknown   string        // data that has expired
}

// TestWatchSteps changes plans and locations from one response to the next.
func TestWatchSteps(t *testing.T) {
	cheapInEurope := Watch{Name: "w", Regions: []string{"Europe"}, MaxUSDPerMonth: ptr(100.0)}
	cheap := Watch{Name: "w", MaxUSDPerMonth: ptr(100.0)}
	a, sold, unknown, none := catalog{inStock("a")}, catalog{soldOut("a")}, catalog{listed("a", nil, 50)}, catalog{}
	at := func(usd any) catalog { return catalog{listed("a", true, usd)} }
	american := catalog{inStock("a")}
	american[0] = simtest.Decode(t, simtest.Encode(t, american[0]))
	simulator.Put(american[0], []string{"nyc"}, "availability", "locations")
	european := &LocationData{"fra": {Region: "Europe"}, "nyc": {Region: "Europe"}}
	nowhere := &LocationData{"fra": {Region: "Europe"}, "nyc": {}}
	noID, other := simulator.Object{"id": 5}, soldOut("g")
	for _, c := range []struct {
		name  string
		watch Watch
		steps []step
	}{
		{"restocks", cheapInEurope, []step{{plans: a}, {plans: sold}, {plans: a, hits: 1}, {plans: sold, hits: 1}, {plans: a, hits: 2}}},
		{"prices", cheapInEurope, []step{{plans: at(100.01)}, {plans: at(100), hits: 1}, {plans: at(101), hits: 1}, {plans: at(99), hits: 2}, {plans: at(1), hits: 2}}},
		{"prices while sold out", cheapInEurope, []step{{plans: sold}, {plans: catalog{listed("a", false, 200)}}, {plans: sold}}},
		{"another location", cheapInEurope, []step{{plans: a}, {plans: american}, {plans: a, hits: 1}}},
		{"another region", cheapInEurope, []step{{plans: american}, {plans: american, locations: european, hits: 1}, {plans: american, locations: nowhere, hits: 1}, {plans: american, locations: european, hits: 1}}},

		// A plan that returns as it was less than an hour ago is no hit.
		{"returns", cheapInEurope, []step{{plans: a}, {plans: none}, {plans: a}}},
		{"returns within an hour", cheapInEurope, []step{{plans: a}, {plans: none}, {plans: a, wait: 58 * time.Minute}}},
		{"returns after an hour", cheapInEurope, []step{{plans: a}, {plans: none}, {plans: a, wait: 59 * time.Minute, hits: 1}}},
		{"no data for hours", cheapInEurope, []step{{plans: a}, {plans: a, wait: 90 * time.Minute}}},
		{"was sold out", cheapInEurope, []step{{plans: sold}, {plans: none}, {plans: a, hits: 1}}},
		{"was sold out, and its stock is not known at first", cheapInEurope, []step{{plans: sold}, {plans: none}, {plans: unknown}, {plans: a, hits: 1}}},

		// What is not known neither begins nor ends a match.
		{"stock", cheapInEurope, []step{{plans: a}, {plans: unknown}, {plans: a}}},
		{"price", cheapInEurope, []step{{plans: a}, {plans: at(nil)}, {plans: at(60)}, {plans: at(nil)}, {plans: at(200)}, {plans: a, hits: 1}}},
		{"stock at first", cheapInEurope, []step{{plans: unknown}, {plans: a}, {plans: sold}, {plans: a, hits: 1}}},
		{"an item without id", cheapInEurope, []step{{plans: catalog{a[0], other}}, {plans: catalog{noID, other}}, {plans: catalog{a[0], other}}}},

		// Data that comes back is seen for the first time.
		{"plans expired", cheapInEurope, []step{{unknown: "plans", hits: -1}, {plans: a}, {unknown: "plans", hits: -1}, {plans: a}}},
		{"plans expired while sold out", cheapInEurope, []step{{plans: sold}, {unknown: "plans", hits: -1}, {plans: a}}},
		{"locations expired", cheapInEurope, []step{{plans: sold}, {plans: sold, unknown: "locations", hits: -1}, {plans: a}}},
		{"locations are not needed", cheap, []step{{plans: sold}, {plans: sold, unknown: "locations"}, {plans: a, hits: 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, w, want, got := today, NewWatched(c.watch), []float64{}, []float64{}
			var hitAt float64
			for _, s := range c.steps {
				now = now.Add(max(s.wait, time.Minute))
				known := plansOf(t, s.plans, now).Data
				known.Locations = s.locations
				if s.locations == nil {
					known.Locations = &LocationData{"fra": {Region: "Europe"}, "nyc": {Region: "North America"}}
				}
				switch s.unknown {
				case "plans":
					known.Plans = nil
				case "locations":
					known.Locations = nil
				}
				w = w.Step(Known{Data: known}, now)
				if len(w.Events) > 0 {
					hitAt = float64(now.Unix())
				}
				want, got = append(want, s.hits), append(got, hits(t, w))
			}
			simtest.AssertEqual(t, "hits", got, want)
			last := exposed(t, WatchMetrics([]Watched{w}))[simtest.Series(watchLastHit.Name, "plan", "a", "watch", "w")]
			simtest.AssertEqual(t, "last hit", last, hitAt)
		})
	}
}

// hits returns the hits of a watch; -1 without series.
func hits(t *testing.T, w Watched) float64 {
	t.Helper()
	metrics := WatchMetrics([]Watched{w})
	if len(metrics) == 0 {
		return -1
	}
	sum := 0.0
	for series, n := range exposed(t, metrics) {
		if strings.HasPrefix(series, watchHits.Name+"{") {
			sum += n
		}
	}
	return sum
}
