package runner

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// Where the saved configuration of a test would be.
const savedPlan, savedLocation = "epyc-7443p", "fra"

// withSaved is withProvider with one saved configuration, and a cache of public responses.
func withSaved(t *testing.T, f func(t *testing.T, h *harness)) {
	t.Helper()
	withProvider(t, simulator.Options{}, func(t *testing.T, h *harness) {
		h.Change(func(w *simulator.World) {
			w.Caches = true
			w.Accounts[simtest.MainToken].Configurations = []simulator.Object{{"id": "cfg_1", "plan": savedPlan, "location": savedLocation}}
			for _, l := range w.Locations {
				w.SetStock(savedPlan, simulator.Text(l, "id"), false)
			}
		})
		time.Sleep(2 * time.Minute) // the cache has it
		f(t, h)
	})
}

func (h *harness) setPlace(in bool) {
	h.Change(func(w *simulator.World) { w.SetStock(savedPlan, savedLocation, in) })
}

// waiting returns a configuration with plans and saved configurations.
func waiting(soldOut time.Duration) Spec {
	c := configure(5*time.Minute, 30*time.Minute, "configurations", "plans")
	c.Collectors["plans"] = collector.Timing{Interval: time.Minute, MaxAge: 5 * time.Minute}
	c.Collectors["configurations"] = collector.Timing{Interval: 5 * time.Minute, MaxAge: 30 * time.Minute, SoldOutInterval: soldOut}
	return c
}

// published returns the samples of a metric as a scrape gets them.
func (h *harness) published(name string) []*metric.Sample {
	return h.set.Publisher.Samples()[name]
}

// assertGap compares the interval in force of the saved configurations, and the time between the next
// two requests for them.
func (h *harness) assertGap(what string, want time.Duration) {
	h.t.Helper()
	h.assertEqual(what, h.lastAsked("/configurations").Add(want), h.lastAsked("/configurations"))
	h.assertEqual(what+": interval", h.values("exporter_collector_interval_seconds")["configurations main"], want.Seconds())
}

// TestSoldOutInterval has a restock, which is published within the interval and a second. An hour
// later nothing is waited for, and reloads change the interval.
func TestSoldOutInterval(t *testing.T) {
	withSaved(t, func(_ *testing.T, h *harness) {
		const interval = 2 * time.Second
		h.OnRequest(func(string, url.Values) { time.Sleep(300 * time.Millisecond) })
		h.run(waiting(interval))
		h.set.Run(h.ctx)
		h.settle()
		asked := h.lastAsked("/configurations")
		h.setPlace(true)
		time.Sleep(time.Until(asked.Add(interval + time.Second)))
		h.assertEqual("in stock", h.published("configuration_in_stock")[0].Value, 1.0)
		h.assertGap("in stock", interval)
		time.Sleep(time.Hour)
		h.assertGap("in stock for an hour", 5*time.Minute)
		h.setPlace(false)
		h.assertGap("sold out", interval)
		h.run(waiting(10 * time.Second))
		h.assertGap("reloaded", 10*time.Second)
		h.run(waiting(0))
		h.assertGap("off", 5*time.Minute)

		h.run(waiting(15 * time.Second))
		remove := h.Inject(simtest.Fault{Path: "/configurations", Status: http.StatusInternalServerError})
		time.Sleep(20 * time.Minute)
		remove()
		recovered := time.Now()
		h.sleepUntilAsked("/configurations")
		if took := time.Since(recovered); took > time.Minute+time.Second {
			h.t.Errorf("asked %v after an outage, want within a minute", took)
		}
	})
}

// TestEventsReported has changes of one response: 20 of them are logged at most, and the page
// gets those. Nothing is reported at first sight, after a reload or expired data.
func TestEventsReported(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		c := configure(time.Minute, 10*time.Minute, "servers", "plans")
		c.Watches = []collector.Watch{{Name: "gpu", Plans: []string{"gpu-l40s", "gpul40s"}}}
		h.setStock("gpu-l40s", false)
		h.run(c.withLab())
		h.settle()
		h.log.Assert(t)
		h.run(c)
		h.runFor(3 * time.Minute)
		h.log.Assert(t)
		h.assertEqual("events", h.set.Events(), []collector.Event(nil))

		h.setStock("gpu-l40s", true)
		changed := h.lastAsked("/plans")
		h.log.Assert(t, `level=info msg="plan in stock" plan=gpu-l40s name="GPU L40S" usd_per_month=1190`, `level=info msg="watch hit" watch=gpu plan=gpu-l40s name="GPU L40S" usd_per_month=1190`)
		h.assertEqual("events, newest first", h.set.Events(), []collector.Event{
			{Time: changed, Message: "plan in stock", Keys: [][2]string{{"plan", "gpu-l40s"}, {"name", "GPU L40S"}, {"usd_per_month", "1190"}}},
			{Time: changed, Message: "watch hit", Keys: [][2]string{{"watch", "gpu"}, {"plan", "gpu-l40s"}, {"name", "GPU L40S"}, {"usd_per_month", "1190"}}},
		})

		h.Change(func(w *simulator.World) {
			w.Accounts[simtest.MainToken].Servers = nil
			for i := range 30 {
				w.Accounts[simtest.MainToken].Servers = append(w.Accounts[simtest.MainToken].Servers, simulator.Object{"id": fmt.Sprint("new_", i), "hostname": "h", "status": "active"})
			}
		})
		h.lastAsked("/servers")
		want := []string{`level=info msg="more changes" account=main changes=10`}
		for i := range maxReported {
			want = append(want, fmt.Sprintf(`level=info msg="server added" account=main server=new_%d hostname=h`, i))
		}
		h.log.Assert(t, append(want, slices.Repeat([]string{`level=warn *"invalid item"*`}, 8)...)...)
		h.assertEqual("events", len(h.set.Events()), maxReported+3)
		for i := range maxKept {
			h.setStock("gpu-l40s", i%2 == 1)
			h.lastAsked("/plans")
		}
		h.log.Take(t)
		h.assertEqual("events kept", len(h.set.Events()), maxKept)

		h.Inject(simtest.Fault{Kind: simtest.Drop})
		time.Sleep(20 * time.Minute)
		h.setStock("gpu-l40s", false)
		h.RemoveAll()
		h.runFor(10 * time.Minute)
		h.assertEqual("events after expired data", h.set.Events()[0].Message, "plan in stock")
		h.assertEqual("restocks", h.values("plan_restocks_total")["gpu-l40s"], 51.0)
		h.assertEqual("sellouts", h.values("plan_sellouts_total")["gpu-l40s"], 50.0)
	})
}

// lastAsked returns when a path was requested next.
func (h *harness) lastAsked(path string) time.Time {
	h.sleepUntilAsked(path)
	h.settle()
	asked := h.requestsFor(path)
	return asked[len(asked)-1].Time
}

// TestSoldOutIntervalDuringPages reads as many pages as a fetch may, each minute. The requests of the
// account's other collectors wait for the rate limit among them.
func TestSoldOutIntervalDuringPages(t *testing.T) {
	withSaved(t, func(t *testing.T, h *harness) {
		h.Change(func(w *simulator.World) {
			a := w.Accounts[simtest.MainToken]
			a.Topups, a.Transactions = simulator.Topups(250, time.Now()), simulator.Transactions(30*rentalapi.MaxPageItems, time.Now())
		})
		h.limits = rentalapi.Limits{Public: 30, Account: 60}
		h.reset()
		h.OnRequest(func(string, url.Values) { time.Sleep(200 * time.Millisecond) })
		c := configure(time.Minute, 10*time.Minute, "account", "servers", "topups", "transactions", "configurations")
		c.Collectors["configurations"] = collector.Timing{Interval: 5 * time.Minute, MaxAge: 30 * time.Minute, SoldOutInterval: 15 * time.Second}
		h.run(c)
		time.Sleep(5 * time.Minute)
		asked := h.requestsFor("/configurations")
		for i, r := range asked[1:] {
			if gap := r.Time.Sub(asked[i].Time); gap > 22*time.Second {
				t.Errorf("not asked for %v, want at most 22 s", gap)
			}
		}
	})
}
