package runner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/simulator"
)

// stock is whether a plan is in stock: yes, no, null, missing, or gone from the list.
type stock string

func stockList(s stock) []simulator.Object {
	availability := simulator.Object{"in_stock": nil}
	switch s {
	case "gone":
		return nil
	case "yes":
		availability["in_stock"] = true
	case "no":
		availability["in_stock"] = false
	case "missing":
		delete(availability, "in_stock")
	}
	return []simulator.Object{{"id": "p", "availability": availability}}
}

// TestStockHistory fetches a plan once per minute. After each fetch, it compares
// in_stock, restocks, sellouts, and the numbers of the fetches in which the plan was last
// in stock and in which its stock changed last.
func TestStockHistory(t *testing.T) {
	none := "- - - - -"
	for _, c := range []struct {
		name   string
		stocks []stock
		want   []string
	}{
		{"always in stock", []stock{"yes", "yes"}, []string{"1 0 0 #0 -", "1 0 0 #1 -"}},
		{"never in stock", []stock{"no", "no"}, []string{"0 0 0 - -", "0 0 0 - -"}},
		{"sells out and returns", []stock{"yes", "no", "no", "yes", "no"}, []string{"1 0 0 #0 -", "0 0 1 #0 #1", "0 0 1 #0 #1", "1 1 1 #3 #3", "0 1 2 #3 #4"}},
		{"returns and sells out", []stock{"no", "yes", "no"}, []string{"0 0 0 - -", "1 1 0 #1 #1", "0 1 1 #1 #2"}},
		{"vanishes and returns alike", []stock{"yes", "gone", "yes"}, []string{"1 0 0 #0 -", none, "1 0 0 #2 -"}},
		{"vanishes and returns sold out", []stock{"yes", "gone", "gone", "no"}, []string{"1 0 0 #0 -", none, none, "0 0 1 #0 #3"}},
		{"vanishes sold out and returns", []stock{"no", "gone", "yes"}, []string{"0 0 0 - -", none, "1 1 0 #2 #2"}},
		{"is null between", []stock{"yes", "null", "no", "null", "yes"}, []string{"1 0 0 #0 -", "- 0 0 #0 -", "0 0 1 #0 #2", "- 0 1 #0 #2", "1 1 1 #4 #4"}},
		{"is missing between", []stock{"no", "missing", "no"}, []string{"0 0 0 - -", "- 0 0 - -", "0 0 0 - -"}},
		{"begins as null", []stock{"null", "yes", "no"}, []string{none, "1 0 0 #1 -", "0 0 1 #1 #2"}},
		{"appears later", []stock{"gone", "yes"}, []string{none, "1 0 0 #1 -"}},
	} {
		subtest(t, c.name, func(t *testing.T, h *harness) {
			set := func(s stock) { h.Change(func(w *simulator.World) { w.Plans = stockList(s) }) }
			set(c.stocks[0])
			h.run(configure(time.Minute, time.Hour, "plans"))
			var fetched []time.Time
			var got []string
			for i := range c.stocks {
				set(c.stocks[i])
				for len(h.RequestsFor("/plans")) <= i {
					synctest.Wait()
					time.Sleep(time.Second)
				}
				fetched = append(fetched, h.RequestsFor("/plans")[i].Time)
				got = append(got, h.stock(fetched))
			}
			h.assertEqual("in_stock, restocks, sellouts, last, changed", got, c.want)
		})
	}
}

// stock returns the values of the plan p; times as the number of the fetch.
func (h *harness) stock(fetched []time.Time) string {
	value := func(d *metric.Definition) string {
		if v, found := h.values(d)["p"]; found {
			return fmt.Sprint(v)
		}
		return "-"
	}
	fetch := func(d *metric.Definition) string {
		when := value(d)
		if i := slices.IndexFunc(fetched, func(at time.Time) bool { return fmt.Sprint(float64(at.Unix())) == when }); i >= 0 {
			return fmt.Sprintf("#%d", i)
		}
		return when
	}
	return strings.Join([]string{value(def("plan_in_stock")), value(def("plan_restocks_total")), value(def("plan_sellouts_total")), fetch(def("plan_last_in_stock_timestamp_seconds")), fetch(def("plan_stock_changed_timestamp_seconds"))}, " ")
}

// TestStockBetweenScrapes counts a restock of a minute, during which nobody scrapes.
func TestStockBetweenScrapes(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		set := func(s stock) { h.Change(func(w *simulator.World) { w.Plans = stockList(s) }) }
		set("no")
		h.run(configure(time.Minute, time.Hour, "plans"))
		time.Sleep(30 * time.Second)
		set("yes")
		time.Sleep(time.Minute)
		set("no")
		time.Sleep(time.Minute)
		synctest.Wait()
		h.assertEqual("restocks", h.values(def("plan_restocks_total")), map[string]float64{"p": 1})
		h.assertEqual("sellouts", h.values(def("plan_sellouts_total")), map[string]float64{"p": 1})
		h.assertEqual("in stock", h.values(def("plan_in_stock")), map[string]float64{"p": 0})
	})
}

// TestStockHistoryBounded has other plans in each answer.
func TestStockHistoryBounded(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		round := 0
		replacePlans := func() {
			h.Change(func(w *simulator.World) {
				w.Plans = nil
				for i := range 1500 {
					w.Plans = append(w.Plans, simulator.Object{"id": fmt.Sprintf("p-%d-%d", round, i), "availability": simulator.Object{"in_stock": true}})
				}
			})
			round++
		}
		replacePlans()
		h.run(configure(time.Minute, time.Hour, "plans"))
		synctest.Wait()
		h.assertEqual("counters at first", len(h.values(def("plan_restocks_total"))), 1500)
		replacePlans()
		time.Sleep(70 * time.Second)
		synctest.Wait()
		h.assertEqual("plans later", len(h.values(def("plan_in_stock"))), 1500)
		h.assertEqual("counters later", len(h.values(def("plan_restocks_total"))), 2_000-1500)
	})
}

// TestStockCountersCreated: the counters of a plan start when it was first seen, so
// that a first restock is an increase.
func TestStockCountersCreated(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		set := func(s stock) { h.Change(func(w *simulator.World) { w.Plans = stockList(s) }) }
		set("gone")
		h.run(configure(time.Minute, time.Hour, "plans"))
		h.runFor(30 * time.Second)
		set("no")
		h.runFor(time.Minute)
		seen := h.RequestsFor("/plans")[1].Time.UTC().Truncate(time.Millisecond)
		set("yes")
		h.runFor(5 * time.Minute)
		h.set.Publisher.Publish()
		families, err := h.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		created := map[string]time.Time{}
		for _, f := range families {
			if f.GetName() == "server_rental_plan_restocks_total" || f.GetName() == "server_rental_plan_sellouts_total" {
				created[f.GetName()] = f.GetMetric()[0].GetCounter().GetCreatedTimestamp().AsTime()
			}
		}
		h.assertEqual("created", created, map[string]time.Time{"server_rental_plan_restocks_total": seen, "server_rental_plan_sellouts_total": seen})
		h.assertEqual("restocks", h.values(def("plan_restocks_total")), map[string]float64{"p": 1})
	})
}

// TestOlderCopies has a cache that alternates with an older copy, and then sends nothing
// else until the data shown expires.
func TestOlderCopies(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		respond := func(s stock, ongoing int, madeAt string) {
			h.Change(func(w *simulator.World) {
				w.Plans, w.GeneratedAt = stockList(s), madeAt
				w.Status["ongoing"], w.Status["updated_at"] = ongoing, madeAt
			})
		}
		config := configure(time.Minute, 5*time.Minute, "plans", "status")
		config.Watches = []collector.Watch{{Name: "w", Plans: []string{"p"}}}
		assertShown := func(what string, inStock, restocks, hits, ongoing float64) {
			t.Helper()
			h.assertEqual(what+": in stock, restocks, hits, ongoing", []float64{
				h.values(def("plan_in_stock"))["p"], h.values(def("plan_restocks_total"))["p"], h.values(def("watch_hits_total"))["w"], h.scrape().Values["server_rental_incidents_ongoing{}"],
			}, []float64{inStock, restocks, hits, ongoing})
			h.assertEqual(what+": success", h.scrape().CollectorSuccess(), map[string]float64{"plans": 1, "status": 1})
		}
		const newer, older = "1999-01-01T00:01:00Z", "1999-01-01T00:00:59Z"
		respond("no", 0, newer)
		h.run(config)
		h.settle()
		for range 3 {
			respond("yes", 5, older)
			h.runFor(time.Minute)
			assertShown("older copy", 0, 0, 0, 0)
			respond("no", 0, newer)
			h.runFor(time.Minute)
			assertShown("the copy that is shown", 0, 0, 0, 0)
		}
		respond("yes", 5, older)
		h.runFor(210 * time.Second)
		assertShown("only older copies", 0, 0, 0, 0)
		h.assertEqual("last success", time.Since(h.set.Health()[0].LastSuccess) < 90*time.Second, true)
		h.runFor(3 * time.Minute)
		assertShown("older copies after max_age", 1, 1, 0, 5)
		respond("yes", 6, newer)
		h.runFor(time.Minute)
		assertShown("newer again", 1, 1, 0, 6)
	})
}
