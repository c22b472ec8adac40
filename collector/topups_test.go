package collector

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/simulator"
)

// topup is an open top-up as the provider has it.
func openTopup(id, status string) simulator.Object {
	return simulator.Object{
		"id": id, "status": status, "coin": "btc", "network": "Bitcoin", "amount": simulator.Object{"usd": 10.0},
		"created_at": "2000-01-01T00:00:00Z", "paid_at": nil,
	}
}

// counts are the samples of server_rental_topups as the world has them.
func topupCounts(ts []simulator.Object, unknown ...string) []string {
	n := map[string]int{}
	for _, state := range topupStates() {
		n[state] = 0
	}
	for _, t := range ts {
		if state := t["status"].(string); !slices.Contains(unknown, state) {
			n[state]++
		}
	}
	var lines []string
	for state, k := range n {
		lines = append(lines, fmt.Sprintf("{account=%q,status=%q} %d", "main", state, k))
	}
	slices.Sort(lines)
	return lines
}

// openIDs are the samples of topup_info, which has the open ones.
func openIDs(ts []simulator.Object) []string {
	var lines []string
	for _, t := range ts {
		if t["status"] == "pending" || t["status"] == "confirming" {
			lines = append(lines, fmt.Sprintf("{account=%q,coin=%q,network=%q,status=%q,topup=%q} 1", "main", t["coin"], t["network"], t["status"], t["id"]))
		}
	}
	slices.Sort(lines)
	return lines
}

// TestTopupHistories has histories of every length counted, and counts what a refresh costs.
func TestTopupHistories(t *testing.T) {
	mixed := func(open, old int) func() []simulator.Object {
		return func() []simulator.Object {
			var ts []simulator.Object
			for i := range open {
				ts = append(ts, openTopup(fmt.Sprintf("open-%d", i), []string{"pending", "confirming", "pending"}[i%3]))
			}
			return append(ts, simulator.Topups(old, time.Now())...)
		}
	}
	odd := func(status string, old, at int) func() []simulator.Object {
		return func() []simulator.Object {
			return slices.Insert(simulator.Topups(old, time.Now()), at, openTopup("odd", status))
		}
	}
	for _, c := range []struct {
		name     string
		topups   func() []simulator.Object
		requests int      // of each refresh
		first    int      // of the first refresh, where that differs
		unknown  []string // states that the API cannot count
		refused  int      // requests that it refuses, in the first refresh
	}{
		{name: "none", topups: mixed(0, 0), requests: 1},
		{name: "one", topups: mixed(1, 0), requests: 1},
		{name: "25, the default page, and one", topups: mixed(1, 25), requests: 1},
		{name: "a full page", topups: mixed(2, 98), requests: 1},
		{name: "a page and one", topups: mixed(2, 99), requests: 7},
		{name: "250", topups: mixed(4, 246), requests: 7},
		{name: "50,000", topups: mixed(3, 49_997), requests: 7},
		{name: "open ones on three pages", topups: mixed(350, 300), requests: 7 + 3 - 1 + 2 - 1},
		{name: "unknown state in a short history", topups: odd("refunded", 20, 0), requests: 1},
		{name: "unknown state on the newest page", topups: odd("refunded", 200, 5), requests: 7, first: 15, unknown: []string{"refunded"}, refused: 1},
		{name: "unknown state on an old page", topups: odd("refunded", 200, 150), requests: 7, first: 14, unknown: []string{"refunded"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				ts := c.topups()
				r.sim.Change(func(w *simulator.World) { w.Accounts[mainToken].Topups = ts })
				r.run(every(time.Minute, time.Hour, "topups"))
				if c.first == 0 {
					c.first = c.requests
				}
				asked := 0
				for i, want := range []int{c.first, c.requests, c.requests} {
					r.settle()
					same(t, fmt.Sprintf("requests of refresh %d", i), len(r.provider.requests(""))-asked, want)
					asked = len(r.provider.requests(""))
					same(t, "topups", r.samples(topupsByStatus.Name), topupCounts(ts, c.unknown...))
					same(t, "topup_info", r.samples(topupInfo.Name), openIDs(ts))
					time.Sleep(time.Minute + 3*time.Second - time.Duration(i)*3*time.Second)
					for len(r.provider.requests("")) == asked {
						time.Sleep(time.Second)
						synctest.Wait()
					}
				}
				same(t, "collector_success", r.samples(collectorSuccess.Name), `[{account="main",collector="topups"} 1]`)
				var told []logLine
				left, refused := 0, "map[]"
				if len(c.unknown) > 0 {
					left = 1
					told = append(told, logLine{"level=warn", `msg="items left out"`, "1 top-ups are in a state that cannot be asked for"})
				}
				sameLog(t, r.log.take(t), told...)
				same(t, "invalid_items", r.samples(collectorInvalid.Name), fmt.Sprintf(`[{account="main",collector="topups"} %d]`, left))
				if c.refused > 0 {
					refused = fmt.Sprintf("map[/topups status:%d]", c.refused)
				}
				same(t, "errors", r.faults(), refused)
			})
		})
	}
}

// TestTopupsOnTheMove has top-ups change their state between the requests of one refresh.
func TestTopupsOnTheMove(t *testing.T) {
	move := func(w *simulator.World, id, status string) {
		for _, o := range w.Accounts[mainToken].Topups {
			if o["id"] == id {
				o["status"] = status
			}
		}
	}
	for _, c := range []struct {
		name     string
		when     string // before which status is asked for
		id, to   string
		settles  bool // whether the counts are right after the first refresh
		requests int
	}{
		{"seen twice", "confirming", "a", "confirming", true, 14},
		{"missed", "confirming", "b", "pending", true, 14},
		{"ends unseen", "paid", "b", "paid", true, 14},
		{"before it is asked for", "pending", "b", "pending", true, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.sim.Change(func(w *simulator.World) {
					w.Accounts[mainToken].Topups = append([]simulator.Object{openTopup("a", "pending"), openTopup("b", "confirming")}, simulator.Topups(300, time.Now())...)
				})
				moved := false
				r.provider.beforeEach(func(_ string, q url.Values) {
					if q.Get("status") == c.when && !moved {
						moved = true
						r.sim.Change(func(w *simulator.World) { move(w, c.id, c.to) })
					}
				})
				r.run(every(time.Minute, time.Hour, "topups"))
				r.settle()
				var ts []simulator.Object
				r.sim.Read(func(w *simulator.World) { ts = w.Accounts[mainToken].Topups })
				same(t, "topups", r.samples(topupsByStatus.Name), topupCounts(ts))
				same(t, "topup_info", r.samples(topupInfo.Name), openIDs(ts))
				same(t, "requests", len(r.provider.requests("")), c.requests)
			})
		})
	}

	t.Run("without an end", func(t *testing.T) {
		inBubble(t, func(t *testing.T, r *rig) {
			r.sim.Change(func(w *simulator.World) {
				w.Accounts[mainToken].Topups = append([]simulator.Object{openTopup("a", "pending")}, simulator.Topups(300, time.Now())...)
			})
			r.provider.beforeEach(func(_ string, q url.Values) {
				r.sim.Change(func(w *simulator.World) {
					if status := q.Get("status"); status == "pending" || status == "confirming" {
						move(w, "a", status) // always found, and always twice
					}
				})
			})
			r.run(every(time.Minute, time.Hour, "topups"))
			r.settle()
			same(t, "topup_info", r.samples(topupInfo.Name), openIDs([]simulator.Object{openTopup("a", "confirming")}))
			same(t, "requests", len(r.provider.requests("")), 14)
			same(t, "collector_success", r.samples(collectorSuccess.Name), `[{account="main",collector="topups"} 1]`)
		})
	})
}

// TestTopupPagesThatRepeat has an API that gives the same page for ever.
func TestTopupPagesThatRepeat(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.provider.answer("/topups", reply(http.StatusOK, nil, `{"data":[{"id":"a","status":"pending"}],"meta":{"total":400000,"pages":400000}}`))
		r.run(every(time.Minute, time.Hour, "topups", "servers"))
		time.Sleep(10 * time.Minute)
		r.settle()
		if got := len(r.provider.requests("/topups")); got > 10*60 {
			t.Errorf("requests for top-ups: %d in ten minutes", got)
		}
		same(t, "collector_success", r.samples(collectorSuccess.Name), `[{account="main",collector="servers"} 1 {account="main",collector="topups"} 0]`)
		if got, least := len(r.provider.requests("/servers")), 9; got < least {
			t.Errorf("requests for servers: %d in ten minutes, want at least %d", got, least)
		}
		sameLog(t, r.log.take(t), logLine{"level=error", "collector=topups", "collector fails"})
	})
}

// TestTopupsOfAnotherState has an API that does not filter.
func TestTopupsOfAnotherState(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.provider.answer("/topups", reply(http.StatusOK, nil, `{"data":[{"id":"a","status":"paid"},{"id":"b","status":"failed"}],"meta":{"total":200,"pages":2}}`))
		r.run(every(time.Minute, time.Hour, "topups"))
		time.Sleep(3 * time.Minute)
		r.settle()
		same(t, "topups", r.samples(topupsByStatus.Name), "[]")
		sameLog(t, r.log.take(t), fails(topups(), "asked for status pending and got another"))
	})
}

// TestTopupsOfTwoTokens has the token change between two requests of a refresh: what
// belongs to two accounts is not put together.
func TestTopupsOfTwoTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.sim.Change(func(w *simulator.World) {
			w.Accounts[mainToken].Topups = simulator.Topups(300, time.Now())
			w.Accounts[otherToken] = simulator.ExampleAccount("other", time.Now())
			w.Accounts[otherToken].Topups = simulator.Topups(500, time.Now())
		})
		for before := range 8 { // requests with the first token, of 7
			scope := r.client.Scope("main", handedOver(before))
			_, err := topups().open()(t.Context(), scope, &metric.Builder{Prefix: []string{"main"}})
			want := "topups: the token changed between two requests"
			if before == 0 || before == 7 {
				want = "<nil>"
			}
			same(t, fmt.Sprintf("error after %d requests", before), fmt.Sprint(err), want)
			scope.Close()
			time.Sleep(time.Minute)
		}
	})
}
