package collector

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// openTopup returns an open top-up as the provider sends it.
func openTopup(id, status string) simulator.Object {
	return simulator.Object{
		"id": id, "status": status, "coin": "btc", "network": "Bitcoin", "amount": simulator.Object{"usd": 10.0},
		"created_at": "2000-01-01T00:00:00Z", "paid_at": nil,
	}
}

// topupsOf returns the values of server_rental_topups for a history, without the
// states that the API cannot filter by.
func topupsOf(list []simulator.Object, uncounted ...string) map[string]float64 {
	n := map[string]float64{}
	for _, state := range topupStates() {
		n["main "+state] = 0
	}
	for _, t := range list {
		if state := t["status"].(string); !slices.Contains(uncounted, state) {
			n["main "+state]++
		}
	}
	return n
}

// openTopups returns the values of server_rental_topup_info for a history.
func openTopups(list []simulator.Object) map[string]float64 {
	open := map[string]float64{}
	for _, t := range list {
		if t["status"] == "pending" || t["status"] == "confirming" {
			open[fmt.Sprintf("main %s %s %s %s", t["id"], t["status"], t["coin"], t["network"])] = 1
		}
	}
	return open
}

// TestTopupHistories counts the top-ups of histories of several lengths, and the
// requests of each fetch.
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
		requests int      // of each fetch
		first    int      // of the first fetch, where that differs
		unknown  []string // states that the API cannot filter by
		refused  int      // requests that it refuses, in the first fetch
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
		subtest(t, c.name, func(t *testing.T, h *harness) {
			ts := c.topups()
			h.Change(func(w *simulator.World) { w.Accounts[simtest.MainToken].Topups = ts })
			h.run(configure(time.Minute, time.Hour, "topups"))
			if c.first == 0 {
				c.first = c.requests
			}
			asked := 0
			for i, want := range []int{c.first, c.requests, c.requests} {
				h.settle()
				h.assertEqual(fmt.Sprintf("requests of fetch %d", i), len(h.Requests())-asked, want)
				asked = len(h.Requests())
				h.assertEqual("topups", h.values(topupsByStatus), topupsOf(ts, c.unknown...))
				h.assertEqual("topup_info", h.values(topupInfo), openTopups(ts))
				time.Sleep(time.Minute + 3*time.Second - time.Duration(i)*3*time.Second)
				for len(h.Requests()) == asked {
					time.Sleep(time.Second)
					synctest.Wait()
				}
			}
			h.assertEqual("collector_success", h.values(collectorSuccess), map[string]float64{"topups main": 1})
			var logged []logLine
			errorsWanted := map[string]float64{}
			if len(c.unknown) > 0 {
				logged = append(logged, logLine{"level=warn", `msg="invalid item" item=topups field=status problem="a state that the API cannot filter by" items=1`})
			}
			if c.refused > 0 {
				errorsWanted["/topups status"] = float64(c.refused)
			}
			h.assertLog(logged...)
			h.assertEqual("invalid_items", h.values(collectorInvalid), map[string]float64{"topups main": float64(len(c.unknown))})
			h.assertEqual("errors", h.apiErrors(), errorsWanted)
		})
	}
}

// TestTopupsChange changes states of top-ups between the requests of one fetch.
func TestTopupsChange(t *testing.T) {
	move := func(w *simulator.World, id, status string) {
		for _, o := range w.Accounts[simtest.MainToken].Topups {
			if o["id"] == id {
				o["status"] = status
			}
		}
	}
	for _, c := range []struct {
		name     string
		when     string // before the request for this state
		id, to   string
		requests int
	}{
		{"seen twice", "confirming", "a", "confirming", 14},
		{"missed", "confirming", "b", "pending", 14},
		{"paid meanwhile", "paid", "b", "paid", 14},
		{"before the request", "pending", "b", "pending", 7},
	} {
		subtest(t, c.name, func(t *testing.T, h *harness) {
			h.Change(func(w *simulator.World) {
				w.Accounts[simtest.MainToken].Topups = append([]simulator.Object{openTopup("a", "pending"), openTopup("b", "confirming")}, simulator.Topups(300, time.Now())...)
			})
			moved := false
			h.OnRequest(func(_ string, q url.Values) {
				if q.Get("status") == c.when && !moved {
					moved = true
					h.Change(func(w *simulator.World) { move(w, c.id, c.to) })
				}
			})
			h.run(configure(time.Minute, time.Hour, "topups"))
			h.settle()
			var ts []simulator.Object
			h.Read(func(w *simulator.World) { ts = w.Accounts[simtest.MainToken].Topups })
			h.assertEqual("topups", h.values(topupsByStatus), topupsOf(ts))
			h.assertEqual("topup_info", h.values(topupInfo), openTopups(ts))
			h.assertEqual("requests", len(h.Requests()), c.requests)
		})
	}

	subtest(t, "with each request", func(t *testing.T, h *harness) {
		h.Change(func(w *simulator.World) {
			w.Accounts[simtest.MainToken].Topups = append([]simulator.Object{openTopup("a", "pending")}, simulator.Topups(300, time.Now())...)
		})
		h.OnRequest(func(_ string, q url.Values) {
			h.Change(func(w *simulator.World) {
				if status := q.Get("status"); status == "pending" || status == "confirming" {
					move(w, "a", status) // found twice
				}
			})
		})
		h.run(configure(time.Minute, time.Hour, "topups"))
		h.settle()
		h.assertEqual("topup_info", h.values(topupInfo), openTopups([]simulator.Object{openTopup("a", "confirming")}))
		h.assertEqual("requests", len(h.Requests()), 14)
		h.assertEqual("collector_success", h.values(collectorSuccess), map[string]float64{"topups main": 1})
	})
}

// TestTopupPagesRepeat always gets the same page.
func TestTopupPagesRepeat(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Override("/topups", simtest.Reply(http.StatusOK, nil, `{"data":[{"id":"a","status":"pending"}],"meta":{"total":400000,"pages":400000}}`))
		h.run(configure(time.Minute, time.Hour, "topups", "servers"))
		h.runFor(10 * time.Minute)
		if got := len(h.RequestsFor("/topups")); got > 10*60 {
			t.Errorf("requests for top-ups: %d in ten minutes", got)
		}
		h.assertEqual("collector_success", h.values(collectorSuccess), map[string]float64{"servers main": 1, "topups main": 0})
		if got, least := len(h.RequestsFor("/servers")), 9; got < least {
			t.Errorf("requests for servers: %d in ten minutes, want at least %d", got, least)
		}
		h.assertLog(failed(topups()))
	})
}

// TestTopupsNotFiltered has an API that does not filter by state.
func TestTopupsNotFiltered(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Override("/topups", simtest.Reply(http.StatusOK, nil, `{"data":[{"id":"a","status":"paid"},{"id":"b","status":"failed"}],"meta":{"total":3,"pages":2}}`))
		h.run(configure(time.Minute, time.Hour, "topups"))
		h.runFor(3 * time.Minute)
		h.assertEqual("topups", h.values(topupsByStatus), map[string]float64{})
		h.assertLog(failed(topups(), "the answer for status pending contains another status"))
		h.assertEqual("reasons", keysOf(h.apiErrors()), map[string]bool{"/topups incomplete": true})
	})
}

// TestTopupsTooManyOpen has more open top-ups than are exported.
func TestTopupsTooManyOpen(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Change(func(w *simulator.World) {
			ts := simulator.Topups(maxItems+1, time.Now())
			for _, t := range ts {
				t["status"] = "pending"
			}
			w.Accounts[simtest.MainToken].Topups = ts
		})
		h.run(configure(time.Minute, time.Hour, "topups"))
		h.runFor(3 * time.Minute)
		h.assertEqual("topups", h.values(topupsByStatus), map[string]float64{})
		h.assertLog(failed(topups(), "meta.pages: more than 2000 top-ups are pending"))
		h.assertEqual("reasons", keysOf(h.apiErrors()), map[string]bool{"/topups too_large": true})
	})
}

// TestTopupsUndocumentedState has a top-up in an undocumented state on the newest page
// of a long history, and an API that answers requests for that state in other ways
// than as a parameter that it refuses.
func TestTopupsUndocumentedState(t *testing.T) {
	for name, handle := range map[string]func(next http.Handler) http.HandlerFunc{
		"ignored": func(next http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				query := r.URL.Query()
				query.Del("status")
				r.URL.RawQuery = query.Encode()
				next.ServeHTTP(w, r)
			}
		},
		"404": func(http.Handler) http.HandlerFunc { return simtest.Reply(http.StatusNotFound, nil, "") },
		"422": func(http.Handler) http.HandlerFunc { return simtest.Reply(http.StatusUnprocessableEntity, nil, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				middleware := func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if r.URL.Query().Get("status") == "refunded" {
							handle(next)(w, r)
							return
						}
						next.ServeHTTP(w, r)
					})
				}
				h := &harness{API: simtest.StartInMemory(t, simulator.Options{Middleware: middleware}), t: t}
				h.reset()
				// It is the newest, so that an answer with one entry would not show whether it was filtered.
				ts := append([]simulator.Object{openTopup("odd", "refunded")}, simulator.Topups(200, time.Now())...)
				h.Change(func(w *simulator.World) { w.Accounts[simtest.MainToken].Topups = ts })
				h.run(configure(time.Minute, 5*time.Minute, "topups"))
				h.settle()
				h.runFor(10 * time.Minute)
				h.assertEqual("topups", h.values(topupsByStatus), topupsOf(ts, "refunded"))
				h.assertEqual("invalid_items", h.values(collectorInvalid), map[string]float64{"topups main": 1})
				h.assertLog(logLine{"level=warn", `problem="a state that the API cannot filter by" items=1`})
			})
		})
	}
}

// TestTopupsEndlessStates has an API that names other states each time, and filters by
// none of them: they are not remembered without bound.
func TestTopupsEndlessStates(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		n := 0
		h.Override("/topups", func(w http.ResponseWriter, r *http.Request) {
			switch status := r.URL.Query().Get("status"); {
			case status == "":
				var items []string
				for range 10 {
					n++
					items = append(items, fmt.Sprintf(`{"id":"t%d","status":"state%[1]d"}`, n))
				}
				body := fmt.Sprintf(`{"data":[%s],"meta":{"total":20,"pages":2}}`, strings.Join(items, ","))
				simtest.Reply(http.StatusOK, nil, body)(w, r)
			case slices.Contains(topupStates(), status):
				simtest.Reply(http.StatusOK, nil, `{"data":[],"meta":{"total":0,"pages":0}}`)(w, r)
			default:
				simtest.Reply(http.StatusUnprocessableEntity, nil, "")(w, r)
			}
		})
		history := &topupHistory{refused: map[string]bool{}}
		scope := h.client.Scope("main", testAccount("main", simtest.MainToken).Token)
		defer scope.Close()
		for range 50 {
			if _, err := history.fetch(t.Context(), scope, &metric.Builder{ConstLabelValues: []string{"main"}}); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(history.refused); got < maxRefused || got > maxRefused+len(topupStates()) {
			t.Errorf("got %d remembered states, want about %d", got, maxRefused)
		}
	})
}

// TestTopupsInvalid has invalid open and paid top-ups in a long history: each counts
// once, although the newest page has them too.
func TestTopupsInvalid(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		open, old := openTopup("open", "pending"), openTopup("old", "paid")
		open["bonus_percent"], old["paid_at"] = "ten", "yesterday"
		ts := append([]simulator.Object{open, old}, simulator.Topups(200, time.Now())...)
		h.Change(func(w *simulator.World) { w.Accounts[simtest.MainToken].Topups = ts })
		h.run(configure(time.Minute, time.Hour, "topups"))
		h.settle()
		h.assertEqual("topups", h.values(topupsByStatus), topupsOf(ts))
		h.assertEqual("invalid_items", h.values(collectorInvalid), map[string]float64{"topups main": 2})
		h.assertLog(
			logLine{"level=warn", `msg="invalid item" item=open field=bonus_percent problem="not a number of 0 or more" items=2`},
			logLine{"level=warn", `msg="invalid item" item=old field=paid_at problem="not an ISO 8601 time from 1970 on" items=2`},
		)
	})
}

// TestTopupsTokenChanges changes the token between two requests of a fetch: top-ups of
// two accounts are not combined.
func TestTopupsTokenChanges(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Change(func(w *simulator.World) {
			w.Accounts[simtest.MainToken].Topups = simulator.Topups(300, time.Now())
			w.Accounts[simtest.LabToken] = simulator.ExampleAccount("lab", time.Now())
			w.Accounts[simtest.LabToken].Topups = simulator.Topups(500, time.Now())
		})
		for before := range 8 { // requests with the first token, of 7
			scope := h.client.Scope("main", tokenOfLabAfter(before))
			_, err := topups().newFetch()(t.Context(), scope, &metric.Builder{ConstLabelValues: []string{"main"}})
			want := "topups: the token changed between two requests"
			if before == 0 || before == 7 {
				want = "<nil>"
			}
			h.assertEqual(fmt.Sprintf("error after %d requests", before), fmt.Sprint(err), want)
			scope.Close()
			time.Sleep(time.Minute)
		}
	})
}
