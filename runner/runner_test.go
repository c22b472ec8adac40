package runner

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// requestsPer returns a number of requests for each endpoint.
func requestsPer(public, account int) map[string]int {
	counts := map[string]int{}
	for _, r := range collector.Resources() {
		n := public
		if r.Account {
			n = account
		}
		if n > 0 {
			counts[r.Path] = n
		}
	}
	return counts
}

// TestReady asserts that a set is ready once every collector was tried, and publishes the outcome
// by then. An account that is added later does not change that it is ready.
func TestReady(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.OnRequest(func(path string, _ url.Values) {
			if path == "/transactions" {
				time.Sleep(2 * time.Second)
			}
		})
		h.Inject(simtest.Fault{Path: "/os", Status: http.StatusInternalServerError})
		h.assertEqual("ready before a configuration", h.set.Ready(), false)
		h.run(configure(time.Minute, 10*time.Minute))
		time.Sleep(time.Second)
		h.assertEqual("ready before the last response", h.set.Ready(), false)
		time.Sleep(2 * time.Second)
		h.assertEqual("ready", h.set.Ready(), true)
		families, err := h.metrics.Gather() // what is published
		h.assertEqual("error", err, nil)
		first := simtest.NewExposition(t, families)
		h.assertEqual("data at first", first.Data(), h.data())
		h.settle()
		h.assertEqual("collector_success at first", first.CollectorSuccess(), h.scrape().CollectorSuccess())
		h.assertSuccess(resource("os"))

		h.Inject(simtest.Fault{Token: simtest.LabToken, Kind: simtest.Hang})
		h.run(configure(time.Minute, 10*time.Minute).withLab())
		h.assertEqual("ready with a new account", h.set.Ready(), true)
	})
}

// TestApplyConfig changes the configuration of a running set, 30 seconds after its
// first fetch and 30 seconds before its second.
func TestApplyConfig(t *testing.T) {
	spec := func(change func(c *Spec)) Spec {
		c := configure(time.Minute, 10*time.Minute).withLab()
		change(&c)
		return c
	}
	const lab, third = `account="lab"`, `account="third"`
	none := requestsPer(0, 0)
	for _, c := range []struct {
		name     string
		next     Spec
		requests map[string]int // within 13 seconds
		absent   []string       // afterwards
	}{
		{"accounts in another order, with another function for the same token", spec(func(c *Spec) {
			c.Accounts = []AccountSpec{c.Accounts[1], testAccount("main", simtest.MainToken)}
		}), none, nil},
		{"longer interval", configure(time.Hour, 10*time.Minute).withLab(), none, nil},
		{"shorter interval", configure(5*time.Second, 10*time.Minute).withLab(), requestsPer(2, 4), nil},
		{"another token source", spec(func(c *Spec) { c.Accounts[1].Identity = "another file" }), requestsPer(0, 1), nil},
		{"another API", spec(func(c *Spec) { c.API = "another" }), requestsPer(1, 2), nil},
		{"shorter max_age, which expires data", configure(time.Minute, 20*time.Second).withLab(), requestsPer(1, 2), nil},
		{"an account removed", configure(time.Minute, 10*time.Minute), none, []string{lab}},
		{"a collector removed", spec(func(c *Spec) { delete(c.Collectors, "plans") }), none, families(resource("plans"))},
		{"an account added", spec(func(c *Spec) {
			c.Accounts = append(c.Accounts, testAccount("third", "secret-third"))
		}), requestsPer(0, 1), nil},
	} {
		subtest(t, c.name, func(_ *testing.T, h *harness) {
			h.Change(func(w *simulator.World) { w.Accounts["secret-third"] = simulator.ExampleAccount("lab", time.Now()) })
			h.run(spec(func(*Spec) {}))
			h.runFor(31 * time.Second)
			want, requests := without(h.data(), c.absent...), len(h.Requests())
			h.run(c.next)
			at := h.data() // once, and not only after the next fetch
			maps.DeleteFunc(at, func(series string, _ float64) bool { _, wanted := want[series]; return wanted })
			h.assertEqual("still exposed", at, map[string]float64{})
			time.Sleep(13 * time.Second)
			synctest.Wait()
			if len(c.next.Accounts) == 3 { // the third has the data of lab
				for series, v := range maps.Clone(want) {
					want[strings.ReplaceAll(series, lab, third)] = v
				}
				h.log.Assert(h.t, `level=warn msg="same provider account configured more than once" account=third first=lab`)
			}
			h.assertEqual("requests", h.CountByPath(requests), c.requests)
			h.assertEqual("data", h.data(), want)
			h.log.Assert(h.t)
		})
	}
}

// TestIdentities asserts that warnings name both accounts with the same provider account, and an
// account that became another one. Data that has expired says nothing.
func TestIdentities(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		setID := func(token, id string) {
			h.Change(func(w *simulator.World) { w.Accounts[token].Account["id"] = id })
			h.runFor(time.Minute)
		}
		c := configure(time.Minute, time.Hour, "account").withLab()
		h.run(c)
		setID(simtest.MainToken, "1")
		setID(simtest.LabToken, "2")
		h.log.Take(t)
		h.run(c)
		setID(simtest.LabToken, "1")
		h.log.Assert(t, `level=warn msg="account has become another provider account" account=lab before=2 now=1`,
			`level=warn msg="same provider account configured more than once" account=lab first=main`)
		setID(simtest.LabToken, "3")
		h.Inject(simtest.Fault{Token: simtest.MainToken, Status: http.StatusInternalServerError})
		h.runFor(2 * time.Hour)
		h.log.Take(t)
		setID(simtest.LabToken, "1")
		h.log.Assert(t, `level=warn msg="account has become another provider account" account=lab before=3 now=1`)
	})
}

// TestAnotherProviderAccount replaces the token of an account by that of another provider account
// while the servers are on their way: what is shown is of one account, and no item was added or removed.
func TestAnotherProviderAccount(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		var token atomic.Value
		token.Store(simtest.MainToken)
		c := configure(time.Hour, 2*time.Hour, "account", "servers", "ssh_keys")
		c.Collectors["account"] = collector.Timing{Interval: 5 * time.Second, MaxAge: time.Minute}
		c.Collectors["servers"] = collector.Timing{Interval: time.Minute, MaxAge: 10 * time.Minute}
		c.Accounts = []AccountSpec{{Name: "main", Token: func() (string, error) { return token.Load().(string), nil }}}
		h.run(c)
		h.runFor(30 * time.Second)
		if n := len(h.values("server_info")); n == 0 {
			t.Fatal("no servers")
		}
		h.OnRequest(func(path string, _ url.Values) {
			if path == "/servers" {
				token.Store(simtest.LabToken)
				time.Sleep(8 * time.Second)
			}
		})
		h.sleepUntilAsked("/servers")
		time.Sleep(9 * time.Second)
		h.assertEqual("servers", h.values("server_info"), map[string]float64{})
		h.assertEqual("funded until", h.values("account_funded_until_timestamp_seconds"), map[string]float64{})
		keys := h.requestsFor("/ssh-keys") // which are fetched again at once
		h.assertEqual("token of the keys", keys[len(keys)-1].Token, simtest.LabToken)
		h.log.Assert(t, `level=warn msg="account has become another provider account" account=main before=* now=*`,
			`level=error collector=servers*"collector failed"*token: changed`)
		h.runFor(5 * time.Minute)
		h.log.Assert(t, `level=info collector=servers account=main msg="collector recovered"`)
		delete(c.Collectors, "account") // which tells that it is another one
		h.run(c)
		token.Store(simtest.MainToken)
		h.runFor(2 * time.Minute)
		h.log.Assert(t)
	})
}

// TestMemoryOfAccounts has an account whose data takes all that accounts may: data of another one is too
// large, public data is not.
func TestMemoryOfAccounts(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(5 << 30))
	synctest.Test(t, func(t *testing.T) {
		h := &harness{API: simtest.StartInMemory(t, simulator.Options{}), t: t, limits: rentalapi.Limits{Public: math.MaxInt, Account: math.MaxInt}}
		h.reset()
		h.run(configure(time.Minute, 10*time.Minute, "plans", "servers"))
		h.settle()
		h.set.mu.Lock()
		h.set.accounts[1].jobs[0].snapshot.Bytes = 3 << 30
		h.set.mu.Unlock()
		h.run(configure(time.Minute, 10*time.Minute, "plans", "servers", "ssh_keys").withLab())
		h.settle()
		var got []string
		for _, c := range h.set.Health() {
			got = append(got, fmt.Sprint(strings.TrimSpace(c.Collector+" "+c.Account), ": ", c.Err))
		}
		const tooLarge = "data: more than 3072 MiB of all accounts: needs shards, or a larger GOMEMLIMIT: response is too large"
		h.assertEqual("errors", got, []string{"plans: <nil>", "ssh_keys lab: " + tooLarge, "servers lab: " + tooLarge, "ssh_keys main: " + tooLarge, "servers main: <nil>"})
		h.stop()
	})
}

// TestClockSteps moves the time at which data was fetched, which is as if the wall clock had been set.
// Data of the future has expired, and what has expired is fetched at once, if fetches succeed.
func TestClockSteps(t *testing.T) {
	for _, step := range []time.Duration{8 * time.Hour, -24 * time.Hour} {
		subtest(t, step.String(), func(_ *testing.T, h *harness) {
			c := configure(time.Hour, 6*time.Hour, "plans")
			c.Watches = []collector.Watch{{Name: "gpu", GPU: new(true)}}
			h.run(c)
			h.set.Run(h.ctx)
			h.settle()
			set := func() {
				h.set.mu.Lock()
				for _, j := range h.set.jobs() {
					j.health.Taken = j.health.Taken.Add(-step)
				}
				h.set.Publisher.Changed()
				h.set.mu.Unlock()
				time.Sleep(time.Second)
			}
			n := len(h.requestsFor("/plans"))
			set()
			h.assertEqual("plans, requests", []int{len(h.published("plan_in_stock")), len(h.requestsFor("/plans")) - n}, []int{15, 1})
			h.Inject(simtest.Fault{Kind: simtest.Drop})
			h.runFor(time.Hour)
			set()
			h.assertEqual("plans while the provider is down", len(h.published("plan_in_stock"))+len(h.published("watch_plans")), 0)
		})
	}
}

// TestOlderCopies has caches that alternate between a response and an older copy, and then
// only the copy until the data expires.
func TestOlderCopies(t *testing.T) {
	const plan = "gpu-l40s"
	withHarness(t, func(_ *testing.T, h *harness) {
		respond := func(in bool, ongoing int, madeAt string) {
			h.setStock(plan, in)
			h.Change(func(w *simulator.World) {
				w.GeneratedAt, w.Status["updated_at"], w.Status["ongoing"] = madeAt, madeAt, ongoing
			})
		}
		assertShown := func(what string, inStock, restocks, hits, ongoing float64) {
			h.t.Helper()
			h.assertEqual(what+": in stock, restocks, hits, ongoing", []float64{
				h.values("plan_in_stock")[plan], h.values("plan_restocks_total")[plan], h.hits()["gpu"], h.values("incidents_ongoing")[""],
			}, []float64{inStock, restocks, hits, ongoing})
			h.assertEqual(what+": success", h.scrape().CollectorSuccess(), map[string]float64{"plans": 1, "status": 1})
		}
		const newer, older = "1999-01-01T00:01:00Z", "1999-01-01T00:00:59Z"
		c := configure(time.Minute, 5*time.Minute, "plans", "status")
		c.Watches = []collector.Watch{{Name: "gpu", Plans: []string{plan}}}
		respond(false, 0, newer)
		h.run(c)
		h.settle()
		for range 2 {
			respond(true, 5, older)
			h.runFor(time.Minute)
			assertShown("older copy", 0, 0, 0, 0)
			respond(false, 0, newer)
			h.runFor(time.Minute)
			assertShown("the response that is shown", 0, 0, 0, 0)
		}
		taken := h.set.Health()[0].Taken
		respond(true, 5, older)
		h.runFor(4 * time.Minute)
		assertShown("only older copies", 0, 0, 0, 0)
		h.assertEqual("when the data was fetched", h.set.Health()[0].Taken, taken)
		h.runFor(2 * time.Minute)
		assertShown("after the maximum age", 1, 0, 0, 5)
	})
}

// TestWait ends all goroutines, also one whose fetch hangs: synctest reports others.
func TestWait(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Inject(simtest.Fault{Path: "/servers", Kind: simtest.Hang})
		h.run(configure(time.Minute, 10*time.Minute))
		time.Sleep(5 * time.Second)
		began := time.Now()
		h.stop()
		h.assertEqual("waited", time.Since(began), time.Duration(0))
		h.log.Assert(t) // a canceled fetch is no failure
	})
}

func TestOnce(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Inject(simtest.Fault{Path: "/plans", Status: 500})
		h.Inject(simtest.Fault{Path: "/servers", Status: 401})
		err := h.set.Once(t.Context(), configure(time.Minute, 10*time.Minute))
		h.assertEqual("error", fmt.Sprint(err), fmt.Sprintf("2 of %d collectors failed", len(collector.Resources())))
		time.Sleep(time.Hour)
		h.assertEqual("requests", h.CountByPath(0), requestsPer(1, 1))
	})
}

func TestLint(t *testing.T) {
	var families []*dto.MetricFamily
	for _, d := range Definitions() {
		families = append(families, d.Family(nil))
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	simtest.AssertEqual(t, "promlint", []any{problems, err}, []any{[]promlint.Problem(nil), error(nil)})
}
