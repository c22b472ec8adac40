package collector

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator"
)

// stock says whether a plan is in stock: yes, no, null, or that it is not in the list.
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

// TestStockHistory shows a plan through several refreshes, one a minute: what is
// told of it after each as in_stock, restocks, selloffs and the number of the
// refresh in which it was last in stock.
func TestStockHistory(t *testing.T) {
	none := "- - - -"
	for _, c := range []struct {
		name   string
		stocks []stock
		want   []string
	}{
		{"always in stock", []stock{"yes", "yes"}, []string{"1 0 0 #0", "1 0 0 #1"}},
		{"never in stock", []stock{"no", "no"}, []string{"0 0 0 -", "0 0 0 -"}},
		{"sells out and returns", []stock{"yes", "no", "no", "yes", "no"}, []string{"1 0 0 #0", "0 0 1 #0", "0 0 1 #0", "1 1 1 #3", "0 1 2 #3"}},
		{"returns and sells out", []stock{"no", "yes", "no"}, []string{"0 0 0 -", "1 1 0 #1", "0 1 1 #1"}},
		{"vanishes and returns alike", []stock{"yes", "gone", "yes"}, []string{"1 0 0 #0", none, "1 0 0 #2"}},
		{"vanishes and returns sold out", []stock{"yes", "gone", "gone", "no"}, []string{"1 0 0 #0", none, none, "0 0 1 #0"}},
		{"vanishes sold out and returns", []stock{"no", "gone", "yes"}, []string{"0 0 0 -", none, "1 1 0 #2"}},
		{"is null between", []stock{"yes", "null", "no", "null", "yes"}, []string{"1 0 0 #0", "- 0 0 #0", "0 0 1 #0", "- 0 1 #0", "1 1 1 #4"}},
		{"is missing between", []stock{"no", "missing", "no"}, []string{"0 0 0 -", "- 0 0 -", "0 0 0 -"}},
		{"begins as null", []stock{"null", "yes", "no"}, []string{none, "1 0 0 #1", "0 0 1 #1"}},
		{"appears later", []stock{"gone", "yes"}, []string{none, "1 0 0 #1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				set := func(s stock) { r.sim.Change(func(w *simulator.World) { w.Plans = stockList(s) }) }
				set(c.stocks[0])
				r.run(every(time.Minute, time.Hour, "plans"))
				var fetched []time.Time
				var got []string
				for i := range c.stocks {
					set(c.stocks[i])
					for len(r.provider.requests("/plans")) <= i {
						synctest.Wait()
						time.Sleep(time.Second)
					}
					fetched = append(fetched, r.provider.requests("/plans")[i].at)
					got = append(got, r.stock(fetched))
				}
				same(t, "in_stock, restocks, selloffs, last", fmt.Sprintf("%q", got), fmt.Sprintf("%q", c.want))
			})
		})
	}
}

func (r *rig) stock(fetched []time.Time) string {
	value := func(name string) string {
		lines := r.samples("server_rental_" + name)
		if len(lines) == 0 {
			return "-"
		}
		var plan, value string
		if _, err := fmt.Sscanf(lines[0], "{plan=%q} %s", &plan, &value); err != nil {
			r.t.Fatalf("%s%s: %v", name, lines[0], err)
		}
		return value
	}
	last := value("plan_last_in_stock_timestamp_seconds")
	if i := slices.IndexFunc(fetched, func(at time.Time) bool { return fmt.Sprint(float64(at.Unix())) == last }); i >= 0 {
		last = fmt.Sprintf("#%d", i)
	}
	return value("plan_in_stock") + " " + value("plan_restocks_total") + " " + value("plan_selloffs_total") + " " + last
}

// TestStockBetweenScrapes has a restock of a minute show although nobody scraped meanwhile.
func TestStockBetweenScrapes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		set := func(s stock) { r.sim.Change(func(w *simulator.World) { w.Plans = stockList(s) }) }
		set("no")
		r.run(every(time.Minute, time.Hour, "plans"))
		time.Sleep(30 * time.Second)
		set("yes")
		time.Sleep(time.Minute)
		set("no")
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "restocks", r.samples(planRestocks.Name), []string{`{plan="p"} 1`})
		same(t, "selloffs", r.samples(planSelloffs.Name), []string{`{plan="p"} 1`})
		same(t, "in stock", r.samples(planInStock.Name), []string{`{plan="p"} 0`})
	})
}

// TestStockHistoryIsBounded has a provider make up new plans without an end.
func TestStockHistoryIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		round := 0
		invent := func() {
			r.sim.Change(func(w *simulator.World) {
				w.Plans = nil
				for i := range 1500 {
					w.Plans = append(w.Plans, simulator.Object{"id": fmt.Sprintf("p-%d-%d", round, i), "availability": simulator.Object{"in_stock": true}})
				}
			})
			round++
		}
		invent()
		r.run(every(time.Minute, time.Hour, "plans"))
		synctest.Wait()
		same(t, "counters at first", len(r.samples(planRestocks.Name)), 1500)
		invent()
		time.Sleep(70 * time.Second)
		synctest.Wait()
		same(t, "plans later", len(r.samples(planInStock.Name)), 1500)
		same(t, "counters later", len(r.samples(planRestocks.Name)), mostItems-1500)
	})
}
