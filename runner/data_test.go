package runner

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// testServer returns an active server as the provider sends it.
func testServer(renewsAt string, usd float64) simulator.Object {
	return simulator.Object{
		"id": "a", "plan": "p", "location": "fra", "os": "debian-13", "hostname": "a.example", "status": "active", "ipv4": "198.18.0.1",
		"renews_at": renewsAt, "price": simulator.Object{"monthly": simulator.Object{"usd": usd}},
	}
}

// TestActiveServersOverTime starts before the first response and ends after the last.
func TestActiveServersOverTime(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Change(func(w *simulator.World) {
			w.Accounts[simtest.MainToken].Servers = []simulator.Object{testServer("2000-01-20", 50)}
			w.Accounts[simtest.LabToken].Servers = nil
		})
		h.Inject(simtest.Fault{Path: "/servers", Kind: simtest.Delay, Delay: 5 * time.Second, Times: 2})
		config := configure(time.Minute, 10*time.Minute, "servers").withLab()
		h.run(config)
		after := func(d time.Duration, what string, servers int, want error) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			found, err := collector.ActiveServers(h.set.Accounts())
			if len(found) != servers || !errors.Is(err, want) {
				t.Errorf("%s: got %d servers and error %v, want %d and %v", what, len(found), err, servers, want)
			}
		}
		after(time.Second, "before the first response", 0, collector.ErrIncompleteServers)
		after(5*time.Second, "after the first response", 1, nil)
		repair := h.Inject(simtest.Fault{Path: "/servers", Token: simtest.LabToken, Kind: simtest.Respond, Status: 500})
		after(9*time.Minute, "failing", 1, nil)
		after(3*time.Minute, "failing longer than max_age", 0, collector.ErrIncompleteServers)
		repair()
		after(5*time.Minute, "recovered", 1, nil)

		// An incomplete response counts until a complete one, also if requests fail then.
		repair = h.Inject(simtest.Fault{Path: "/servers", Handler: func(w http.ResponseWriter, r *http.Request) {
			body := simtest.Decode(t, []byte(h.Body("/servers", r.Header.Get("Authorization")[len("Bearer "):])))
			simulator.Put(body, 40, "meta", "count")
			_, _ = w.Write(simtest.Encode(t, body))
		}})
		after(90*time.Second, "incomplete", 0, collector.ErrIncompleteServers)
		h.assertEqual("data of an incomplete response", h.values("servers"), map[string]float64{
			"main active": 1, "main suspended": 0, "lab active": 0, "lab suspended": 0,
		})
		repair()
		repair = h.Inject(simtest.Fault{Path: "/servers", Kind: simtest.Hang})
		after(2*time.Minute, "no response after an incomplete one", 0, collector.ErrIncompleteServers)
		repair()
		after(3*time.Minute, "complete again", 1, nil)

		config.Accounts = config.Accounts[:1]
		h.run(config)
		after(time.Second, "without lab", 1, nil)
		delete(config.Collectors, "servers")
		h.run(config)
		after(time.Second, "without the collector", 0, collector.ErrIncompleteServers)
	})
}

// TestFundedUntilExposed asserts that what follows from account and servers changes with
// either, and with the day, and expires with the first of them.
func TestFundedUntilExposed(t *testing.T) {
	withHarness(t, func(_ *testing.T, h *harness) {
		change := func(balance any, servers ...simulator.Object) {
			h.Change(func(w *simulator.World) {
				a := w.Accounts[simtest.MainToken]
				a.Account["balance"], a.Servers = simulator.Object{"usd": balance}, servers
			})
		}
		assertUntil := func(after time.Duration, what, want string) {
			h.t.Helper()
			time.Sleep(after)
			synctest.Wait()
			got := "absent"
			if at, found := h.values("account_funded_until_timestamp_seconds")["main"]; found {
				got = time.Unix(int64(at), 0).UTC().Format(time.DateOnly)
			}
			h.assertEqual(what, got, want)
		}
		cheap := testServer("2000-01-20", 50)
		change(100.0, cheap)
		time.Sleep(23*time.Hour + 52*time.Minute)
		h.run(configure(time.Minute, 10*time.Minute, "account", "servers"))
		assertUntil(0, "at first", "2000-03-20")
		change(100.0, testServer("2000-01-20", 100.01))
		assertUntil(2*time.Minute, "higher price", "2000-01-20")
		change(1e6, cheap)
		assertUntil(2*time.Minute, "horizon", "2010-01-01")
		remove := h.Inject(simtest.Fault{Status: 500})
		assertUntil(6*time.Minute, "horizon after midnight, without a response", "2010-01-02")
		remove()
		change(100.0, cheap)
		assertUntil(2*time.Minute, "balance again", "2000-03-20")
		h.Inject(simtest.Fault{Path: "/account", Kind: simtest.Respond, Status: 500})
		fetched := h.values("exporter_collector_last_success_timestamp_seconds")["account main"]
		assertUntil(9*time.Minute, "balance of nine minutes ago", "2000-03-20")
		assertUntil(2*time.Minute, "balance too old", "absent")
		h.assertEqual("cost", h.values("account_cost_usd_per_month"), map[string]float64{"main": 50})
		h.assertEqual("last success", h.values("exporter_collector_last_success_timestamp_seconds")["account main"], fetched)
		h.assertEqual("data that is shown", len(h.values("exporter_collector_data_timestamp_seconds")), 1)
		h.assertEqual("collectors with invalid items", len(h.values("exporter_collector_invalid_items")), 2)
	})
}

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
	h.Change(func(w *simulator.World) { w.SetStock(id, "", in) })
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
		cheap := collector.Watch{Name: "cheap", Regions: []string{"Europe"}, MinMemoryGiB: new(64.0), MaxUSDPerMonth: new(100.0)}
		gpu := collector.Watch{Name: "gpu", GPU: new(true)}
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
		gpu.GPU = new(false)
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
	})
}

// TestTooManyMatches has eleven watches of 2,000 plans each: one more than may match. Of the first one
// it is not known which do.
func TestTooManyMatches(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Change(func(w *simulator.World) {
			like := w.Plans[0]
			w.Plans = nil
			for i := range 2_000 {
				plan := maps.Clone(like)
				plan["id"], plan["family"] = fmt.Sprint("plan-", i), ""
				w.Plans = append(w.Plans, plan)
			}
		})
		var watches []collector.Watch
		want := map[string]float64{}
		for i := range 11 {
			watches = append(watches, collector.Watch{Name: fmt.Sprint("w", i), GPU: new(false)})
			want[watches[i].Name] = 2_000
		}
		watches[0], want["w0"] = collector.Watch{Name: "w0", Families: []string{"gpu"}}, 0
		delete(want, "w10")
		h.run(watch(watches...))
		h.runFor(3 * time.Minute)
		h.assertEqual("plans that match", h.values("watch_plans"), want)
		h.log.Assert(t, `level=warn msg="watches match too many plans, and some are not shown" watches=1 limit=20000`)
	})
}
