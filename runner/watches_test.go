package runner

import (
	"strings"
	"testing"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator"
)

// hits returns the hits of all plans by watch.
func (h *harness) hits() map[string]float64 {
	h.t.Helper()
	sums := map[string]float64{}
	for series, n := range h.values("watch_hits_total") {
		watch, _, _ := strings.Cut(series, " ")
		sums[watch] += n
	}
	return sums
}

// setStock changes whether a plan of the provider is in stock.
func (h *harness) setStock(id string, in bool) {
	h.Change(func(w *simulator.World) {
		for _, p := range w.Plans {
			if simulator.Text(p, "id") == id {
				simulator.Put(p, in, "availability", "in_stock")
			}
		}
	})
}

// watch configures the plans and locations collectors with watches.
func watch(watches ...collector.Watch) Spec {
	c := configure(time.Minute, 5*time.Minute, "plans", "locations")
	c.Watches = watches
	return c
}

// TestWatches has a restock of a minute while nobody scrapes, and then changes the
// watches while the data stays.
func TestWatches(t *testing.T) {
	const plan = "ryzen-5-7600" // matches cheap, in stock
	const last = "watch_last_hit_timestamp_seconds"
	withHarness(t, func(_ *testing.T, h *harness) {
		cheap := collector.Watch{Name: "cheap", Regions: []string{"Europe"}, MinMemoryGiB: ptr(64.0), MaxUSDPerMonth: ptr(100.0)}
		gpu := collector.Watch{Name: "gpu", GPU: ptr(true)}
		h.run(watch(cheap, gpu))
		h.runFor(30 * time.Second)
		for _, in := range []bool{false, true, false} {
			h.setStock(plan, in)
			h.sleepUntilAsked("/plans")
		}
		h.settle()
		h.assertEqual("restocks", h.values("plan_restocks_total")[plan], 1.0)
		h.assertEqual("sellouts", h.values("plan_sellouts_total")[plan], 2.0)
		h.assertEqual("hits", h.hits(), map[string]float64{"cheap": 1, "gpu": 0})
		hit := float64(h.requestsFor("/plans")[2].Time.Unix())
		h.assertEqual("last hit", h.values(last), map[string]float64{"cheap " + plan: hit})

		// One watch stays, one changes, one is new.
		requests := len(h.Requests())
		gpu.GPU = ptr(false)
		h.run(watch(collector.Watch{Name: "added", Plans: []string{"epyc-9654"}}, gpu, cheap))
		h.assertEqual("requests", len(h.Requests()), requests)
		h.assertEqual("hits after a change", h.hits(), map[string]float64{"cheap": 1, "gpu": 0, "added": 0})
		h.assertEqual("plans", h.values("watch_plans"), map[string]float64{"cheap": 3, "gpu": 13, "added": 1})
		h.assertEqual("last hit after a change", h.values(last), map[string]float64{"cheap " + plan: hit})
		h.setStock("epyc-9654", true)
		h.runFor(2 * time.Minute)
		h.assertEqual("hits of all", h.hits(), map[string]float64{"cheap": 1, "gpu": 1, "added": 1})

		// Without a collector that it needs, a watch has no series.
		c := watch(cheap, gpu)
		delete(c.Collectors, "locations")
		h.run(c)
		h.assertEqual("plans without locations", h.values("watch_plans"), map[string]float64{"gpu": 13})
		h.run(watch())
		h.assertEqual("plans without watches", h.values("watch_plans"), map[string]float64{})
		h.once(watch(cheap))
		h.assertEqual("hits of a single fetch", h.hits(), map[string]float64{"cheap": 0})
	})
}
