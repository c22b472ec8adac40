package runner

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"server_rental_exporter/collector"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// watched returns the series of the watches, without the common parts of their names.
func (h *harness) watched() map[string]float64 {
	h.t.Helper()
	found := map[string]float64{}
	for series, v := range h.scrape().WithPrefix("server_rental_watch_") {
		name, _, _ := strings.Cut(series, "{")
		key := strings.TrimPrefix(strings.TrimPrefix(name, "server_rental_watch_"), "plan_in_stock")
		for _, label := range []string{"watch", "plan"} {
			if v := simtest.Label(series, label); v != "" {
				key = strings.TrimSpace(key + " " + v)
			}
		}
		found[key] = v
	}
	return found
}

// hits returns the hits of all plans by watch.
func (h *harness) hits() map[string]float64 {
	h.t.Helper()
	sums := map[string]float64{}
	for series, n := range h.values(def("watch_hits_total")) {
		watch, _, _ := strings.Cut(series, " ")
		sums[watch] += n
	}
	return sums
}

// created returns when each watch's counter started.
func (h *harness) created() map[string]time.Time {
	h.t.Helper()
	h.set.Publisher.Publish()
	families, err := h.registry.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	created := map[string]time.Time{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "server_rental_watch_hits_total" {
				created[m.GetLabel()[1].GetValue()] = m.GetCounter().GetCreatedTimestamp().AsTime()
			}
		}
	}
	return created
}

// setPlan changes a plan of the provider.
func (h *harness) setPlan(id string, value any, path ...string) {
	h.Change(func(w *simulator.World) {
		for _, p := range w.Plans {
			if simulator.Text(p, "id") == id {
				simulator.Put(p, value, path...)
			}
		}
	})
}

// watch configures the plans and locations collectors with watches.
func watch(watches ...collector.Watch) Config {
	c := configure(time.Minute, 5*time.Minute, "plans", "locations")
	c.Watches = watches
	return c
}

func cheapInEurope() collector.Watch {
	return collector.Watch{Name: "cheap", Regions: []string{"Europe"}, MinMemoryGiB: ptr(64.0), MaxUSDPerMonth: ptr(100.0)}
}

func TestWatchMetrics(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.setPlan("xeon-e-2388g", nil, "availability", "in_stock")
		h.setPlan("epyc-4464p", nil, "price", "monthly", "usd") // unknown is no match
		h.run(watch(cheapInEurope(), collector.Watch{Name: "none", Plans: []string{"epyc"}}, collector.Watch{Name: "gpu", GPU: ptr(true), Locations: []string{"lax"}}))
		h.settle()
		h.assertEqual("series", h.watched(), map[string]float64{
			"cheap ryzen-5-3600": 0, "cheap ryzen-5-7600": 1, "plans cheap": 3, "plans_in_stock cheap": 1,
			"hits_total cheap ryzen-5-3600": 0, "hits_total cheap ryzen-5-7600": 0, "hits_total cheap xeon-e-2388g": 0,
			"plans none": 0, "plans_in_stock none": 0,
			"gpu gpu-rtx-4000-ada": 1, "plans gpu": 1, "plans_in_stock gpu": 1, "hits_total gpu gpu-rtx-4000-ada": 0,
		})
		h.assertEqual("requests", h.CountByPath(0), map[string]int{"/plans": 1, "/locations": 1})
		h.Override("", simtest.Reply(http.StatusServiceUnavailable, nil, ""))
		h.runFor(6 * time.Minute)
		h.assertEqual("series after max_age", h.watched(), map[string]float64{})
	})
}

// TestWatchHits changes the provider's data and counts hits. The metrics are
// published at the end of each case only, so that everything before is between two
// scrapes.
func TestWatchHits(t *testing.T) {
	const plan = "ryzen-5-7600" // matches, in stock
	stock := []string{"availability", "in_stock"}
	usd := []string{"price", "monthly", "usd"}
	set := func(value any, path ...string) func(*harness) {
		return func(h *harness) { h.setPlan(plan, value, path...) }
	}
	// fail lets requests fail for some time, and changes the data at its end.
	fail := func(d time.Duration, change func(*harness), paths ...string) func(*harness) {
		return func(h *harness) {
			for _, path := range paths {
				remove := h.Override(path, simtest.Reply(http.StatusInternalServerError, nil, ""))
				defer remove()
			}
			h.runFor(d)
			change(h)
			h.runFor(2 * time.Minute)
		}
	}
	nothing := func(*harness) {}
	restock := set(true, stock...)
	var removed sync.Map // by harness: the cases run in parallel
	remove := func(h *harness) {
		h.Change(func(w *simulator.World) {
			i := slices.IndexFunc(w.Plans, func(p simulator.Object) bool { return simulator.Text(p, "id") == plan })
			removed.Store(h, w.Plans[i])
			w.Plans = slices.Delete(w.Plans, i, i+1)
		})
	}
	taken := func(h *harness) simulator.Object {
		p, _ := removed.Load(h)
		return p.(simulator.Object)
	}
	add := func(h *harness) {
		h.Change(func(w *simulator.World) { w.Plans = append(w.Plans, taken(h)) })
	}
	region := func(name string) func(*harness) {
		return func(h *harness) {
			h.Change(func(w *simulator.World) {
				for _, l := range w.Locations {
					if simulator.Text(l, "id") == "nyc" {
						l["region"] = name
					}
				}
			})
		}
	}
	for _, c := range []struct {
		name  string
		steps []func(*harness) // a fetch follows each
		hits  float64
	}{
		{"nothing changes", []func(*harness){nothing}, 0},
		{"sold out", []func(*harness){set(false, stock...)}, 0},
		{"restock of a minute", []func(*harness){set(false, stock...), set(true, stock...), set(false, stock...)}, 1},
		{"two restocks", []func(*harness){set(false, stock...), set(true, stock...), set(false, stock...), set(true, stock...)}, 2},
		{"price above the bound and back", []func(*harness){set(100.01, usd...), set(100, usd...)}, 1},
		{"price change within the bound", []func(*harness){set(1, usd...), set(99, usd...)}, 0},
		{"offered elsewhere and back", []func(*harness){set([]string{"tyo"}, "availability", "locations"), set([]string{"fra"}, "availability", "locations")}, 1},
		{"price within the bound while sold out", []func(*harness){set(false, stock...), set(200, usd...), set(50, usd...)}, 0},
		{"removed and added", []func(*harness){remove, add}, 1},
		{"added, sold out", []func(*harness){remove, func(h *harness) { simulator.Put(taken(h), false, stock...); add(h) }}, 0},
		{"a location's region changes", []func(*harness){set([]string{"nyc"}, "availability", "locations"), region("Europe")}, 1},

		{"stock unknown between", []func(*harness){set(nil, stock...), set(true, stock...)}, 0},
		{"price unknown between", []func(*harness){set(nil, usd...), set(50, usd...)}, 0},
		{"region unknown between", []func(*harness){set([]string{"nyc"}, "availability", "locations"), region("Europe"), region(""), region("Europe")}, 1},
		{"price unknown, then too high", []func(*harness){set(nil, usd...), set(200, usd...), set(50, usd...)}, 1},
		{"stock unknown, sold out, back", []func(*harness){set(nil, stock...), set(false, stock...), set(nil, stock...), set(true, stock...)}, 1},

		{"plans fail, same data", []func(*harness){fail(time.Minute, nothing, "/plans")}, 0},
		{"locations fail, same data", []func(*harness){fail(time.Minute, nothing, "/locations")}, 0},
		{"restock while plans fail", []func(*harness){set(false, stock...), fail(time.Minute, restock, "/plans")}, 1},
		{"restock while locations fail", []func(*harness){set(false, stock...), fail(time.Minute, restock, "/locations")}, 1},
		{"restock while plans are expired", []func(*harness){set(false, stock...), fail(6*time.Minute, restock, "/plans")}, 0},
		{"restock while locations are expired", []func(*harness){set(false, stock...), fail(6*time.Minute, restock, "/locations")}, 0},
		{"restock while both are expired", []func(*harness){set(false, stock...), fail(6*time.Minute, restock, "/plans", "/locations")}, 0},
		{"restock after plans were expired", []func(*harness){set(false, stock...), fail(6*time.Minute, nothing, "/plans"), restock}, 1},
	} {
		subtest(t, c.name, func(t *testing.T, h *harness) {
			h.run(watch(cheapInEurope()))
			h.settle()
			created := h.created()
			for _, step := range c.steps {
				step(h)
				h.runFor(70 * time.Second)
				h.runFor(70 * time.Second) // plans and locations
			}
			h.runFor(time.Hour) // after a failure
			h.assertEqual("hits", h.hits(), map[string]float64{"cheap": c.hits})
			h.assertEqual("created", h.created(), created)
		})
	}
}

// TestWatchDropped has plans whose id is not usable for some time.
func TestWatchDropped(t *testing.T) {
	const plan = "ryzen-5-7600" // matches, in stock
	withHarness(t, func(t *testing.T, h *harness) {
		h.run(watch(cheapInEurope()))
		h.settle()
		assertHits := func(what string, want float64) {
			t.Helper()
			h.runFor(3 * time.Minute)
			h.assertEqual(what, h.hits(), map[string]float64{"cheap": want})
		}
		h.setPlan(plan, 5, "id")
		assertHits("dropped", 0)
		h.setPlan("", plan, "id")
		assertHits("dropped for a while", 0)

		h.setPlan("gpu-l40s", 5, "id")
		h.setPlan(plan, 200, "price", "monthly", "usd")
		assertHits("another dropped", 0)
		h.setPlan(plan, 50, "price", "monthly", "usd")
		assertHits("price within the bound while another is dropped", 1)
		h.setPlan(plan, "other", "id")
		assertHits("id changed while another is dropped", 2)
		h.setPlan("", "gpu-l40s", "id")
		assertHits("nothing dropped", 2)
		h.setPlan("other", plan, "id")
		assertHits("id changed while nothing is dropped", 3)
	})
}

// TestWatchFirstAnswer has a first answer that does not tell whether a plan in stock
// matches: that the next one does is no hit.
func TestWatchFirstAnswer(t *testing.T) {
	const plan = "ryzen-5-7600" // matches, in stock
	for _, c := range []struct {
		field        string
		first, value any
		firstID      string // of the plan in the first answer
	}{
		{"availability.in_stock", nil, true, plan},
		{"price.monthly.usd", "50", 50, plan},
		{"id", 5, plan, ""},
	} {
		subtest(t, c.field, func(t *testing.T, h *harness) {
			path := strings.Split(c.field, ".")
			h.setPlan(plan, c.first, path...)
			h.run(watch(cheapInEurope()))
			h.settle()
			h.assertEqual("plans before", h.values(def("watch_plans_in_stock")), map[string]float64{"cheap": 1})
			h.setPlan(c.firstID, c.value, path...)
			h.runFor(3 * time.Minute)
			h.assertEqual("plans", h.values(def("watch_plans_in_stock")), map[string]float64{"cheap": 2})
			h.assertEqual("hits", h.hits(), map[string]float64{"cheap": 0})
			h.setPlan(plan, false, "availability", "in_stock")
			h.runFor(3 * time.Minute)
			h.setPlan(plan, true, "availability", "in_stock")
			h.runFor(3 * time.Minute)
			h.assertEqual("hits after a restock", h.hits(), map[string]float64{"cheap": 1})
		})
	}
}

// TestWatchLastingErrors has plans that are never understood; a plan that is removed and
// added is a hit nevertheless.
func TestWatchLastingErrors(t *testing.T) {
	const plan = "ryzen-5-7600" // matches, in stock
	for name, broken := range map[string]simulator.Object{
		"without an id":   {"name": "broken"},
		"listed twice":    {"id": "gpu-l40s"},
		"id of no string": {"id": 5},
	} {
		subtest(t, name, func(t *testing.T, h *harness) {
			h.Change(func(w *simulator.World) { w.Plans = append(w.Plans, broken) })
			h.run(watch(cheapInEurope()))
			h.settle()
			h.setPlan(plan, "away", "id")
			h.runFor(3 * time.Minute)
			h.setPlan("away", plan, "id")
			h.runFor(3 * time.Minute)
			h.assertEqual("hits", h.hits(), map[string]float64{"cheap": 2})
		})
	}
}

// TestWatchAbsent asserts that watches have series only while their data is known.
func TestWatchAbsent(t *testing.T) {
	watches := []collector.Watch{{Name: "plans", MinCores: ptr(8.0)}, {Name: "ids", Locations: []string{"fra"}}, {Name: "regions", Regions: []string{"Europe"}}, {Name: "countries", Countries: []string{"DE"}}}
	unavailable := simtest.Reply(http.StatusServiceUnavailable, nil, "")
	for _, c := range []struct {
		name, path    string
		start, failed []string // watches with series
	}{
		{"plans", "/plans", nil, nil},
		{"locations", "/locations", []string{"ids", "plans"}, []string{"ids", "plans"}},
	} {
		subtest(t, c.name, func(t *testing.T, h *harness) {
			present := func() []string { return slices.Sorted(maps.Keys(h.hits())) }
			all := []string{"countries", "ids", "plans", "regions"}
			remove := h.Override(c.path, unavailable)
			h.run(watch(watches...))
			h.settle()
			h.assertEqual("before the first answer", present(), c.start)
			remove()
			h.runFor(10 * time.Minute)
			h.assertEqual("with all data", present(), all)
			remove = h.Override(c.path, unavailable)
			h.runFor(4 * time.Minute)
			h.assertEqual("within max_age", present(), all)
			h.runFor(2 * time.Minute)
			h.assertEqual("after max_age", present(), c.failed)
			remove()
			h.runFor(10 * time.Minute)
			h.assertEqual("recovered", present(), all)
			h.assertEqual("hits", h.hits(), map[string]float64{"countries": 0, "ids": 0, "plans": 0, "regions": 0})

			disabled := watch(watches...)
			delete(disabled.Collectors, c.name)
			h.run(disabled)
			h.assertEqual("disabled", present(), c.failed)
			h.run(watch(watches...))
			h.settle()
			h.assertEqual("enabled", present(), all)
			h.assertEqual("hits", h.hits(), map[string]float64{"countries": 0, "ids": 0, "plans": 0, "regions": 0})
		})
	}
}

// TestWatchExpired asserts that a restock while the plans are expired is no hit where
// nothing else is fetched, so that nothing is evaluated meanwhile.
func TestWatchExpired(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		c := watch(collector.Watch{Name: "gpu", GPU: ptr(true)})
		delete(c.Collectors, "locations")
		h.run(c)
		h.settle()
		remove := h.Override("/plans", simtest.Reply(http.StatusServiceUnavailable, nil, ""))
		h.runFor(6 * time.Minute)
		h.setPlan("gpu-l40s", true, "availability", "in_stock")
		remove()
		h.runFor(10 * time.Minute)
		h.assertEqual("in stock", h.values(def("watch_plans_in_stock")), map[string]float64{"gpu": 2})
		h.assertEqual("hits", h.hits(), map[string]float64{"gpu": 0})
	})
}

// TestWatchReload changes the watches while the data stays.
func TestWatchReload(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		cheap, gpu := cheapInEurope(), collector.Watch{Name: "gpu", GPU: ptr(true)}
		h.run(watch(cheap, gpu))
		h.settle()
		h.setPlan("ryzen-5-7600", false, "availability", "in_stock")
		h.runFor(2 * time.Minute)
		h.setPlan("ryzen-5-7600", true, "availability", "in_stock")
		h.runFor(2 * time.Minute)
		h.assertEqual("hits", h.hits(), map[string]float64{"cheap": 1, "gpu": 0})
		h.assertEqual("created", h.created(), map[string]time.Time{"cheap": start, "gpu": start})
		hit := h.values(def("plan_stock_changed_timestamp_seconds"))["ryzen-5-7600"]
		h.assertEqual("last hit", h.values(def("watch_last_hit_timestamp_seconds")), map[string]float64{"cheap": hit})

		reloaded := time.Now().UTC()
		requests := len(h.Requests())
		gpu.GPU = ptr(false)
		added := collector.Watch{Name: "added", Plans: []string{"epyc-9654"}}
		h.run(watch(added, gpu, cheapInEurope()))
		h.assertEqual("requests", len(h.Requests()), requests)
		h.assertEqual("hits after a change", h.hits(), map[string]float64{"cheap": 1, "gpu": 0, "added": 0})
		h.assertEqual("created after a change", h.created(), map[string]time.Time{"cheap": start, "gpu": reloaded, "added": reloaded})
		h.assertEqual("plans", h.values(def("watch_plans")), map[string]float64{"cheap": 3, "gpu": 13, "added": 1})

		h.assertEqual("last hit after a change", h.values(def("watch_last_hit_timestamp_seconds")), map[string]float64{"cheap": hit})

		h.setPlan("ryzen-5-7600", 101, "price", "monthly", "usd")
		h.setPlan("epyc-9654", true, "availability", "in_stock")
		h.runFor(2 * time.Minute)
		h.assertEqual("hits of all", h.hits(), map[string]float64{"cheap": 1, "gpu": 1, "added": 1})
		restocked := h.values(def("plan_stock_changed_timestamp_seconds"))["epyc-9654"]
		h.assertEqual("last hits of all", h.values(def("watch_last_hit_timestamp_seconds")), map[string]float64{"cheap": hit, "gpu": restocked, "added": restocked})

		cheap.MaxUSDPerMonth = ptr(101.0) // ryzen-5-7600 begins to match by the change
		h.run(watch(cheap))
		h.assertEqual("series after another change", h.watched(), map[string]float64{
			"cheap ryzen-5-3600": 0, "cheap ryzen-5-7600": 1, "cheap xeon-e-2388g": 1, "plans cheap": 3, "plans_in_stock cheap": 2,
			"hits_total cheap ryzen-5-3600": 0, "hits_total cheap ryzen-5-7600": 0, "hits_total cheap xeon-e-2388g": 0,
		})
		h.run(watch())
		h.assertEqual("series without watches", h.watched(), map[string]float64{})
	})
}

// TestWatchOtherAPI changes the provider: plans in stock there are no hits, however fast
// it answers.
func TestWatchOtherAPI(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		c := watch(collector.Watch{Name: "gpu", Plans: []string{"gpu-l40s"}})
		for range 200 { // starting them takes time
			c.Accounts = append(c.Accounts, Account{Name: fmt.Sprint(len(c.Accounts)), Token: func() (string, error) { return "", errors.New("no token") }})
		}
		for i := range 50 {
			h.setPlan("gpu-l40s", i%2 == 1, "availability", "in_stock")
			c.API = fmt.Sprint("provider ", i)
			h.run(c)
			h.settle()
		}
		h.assertEqual("hits", h.hits(), map[string]float64{"gpu": 0})
	})
}

// TestWatchOnce asserts that a single fetch has the watches, too.
func TestWatchOnce(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.once(watch(cheapInEurope()))
		h.assertEqual("hits", h.hits(), map[string]float64{"cheap": 0})
	})
}
