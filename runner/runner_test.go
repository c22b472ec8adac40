package runner

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-kit/log"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
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

// TestMaxAge lets all requests fail after a good start: the data are kept until
// max_age has passed since they were fetched.
func TestMaxAge(t *testing.T) {
	withHarness(t, func(_ *testing.T, h *harness) {
		const maxAge, last = 10 * time.Minute, "exporter_collector_last_success_timestamp_seconds"
		h.run(configure(time.Minute, maxAge))
		h.runFor(30 * time.Second)
		want, fetched := h.data(), h.values(last)
		h.Inject(simtest.Fault{Kind: simtest.Drop})
		time.Sleep(maxAge - 30*time.Second - time.Millisecond)
		synctest.Wait()
		h.assertEqual("data just before max_age", h.data(), want)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		h.assertEqual("data after max_age", h.data(), map[string]float64{})
		h.assertSuccess(collector.Resources()...)
		h.assertEqual("last success", h.values(last), fetched)
		h.assertEqual("invalid_items", len(h.values("exporter_collector_invalid_items")), len(collector.Resources()))
	})
}

// TestReady asserts that the first publication that follows readiness has the outcome of
// every first fetch, whatever the order and the delay of the responses. An account that
// is added later does not change that it is ready.
func TestReady(t *testing.T) {
	for seed := range 10 {
		subtest(t, fmt.Sprint("seed=", seed), func(t *testing.T, h *harness) {
			rng := rand.New(rand.NewPCG(uint64(seed), 0))
			delays := map[string]time.Duration{"/plans": time.Millisecond}
			for _, r := range collector.Resources() {
				delays[r.Path] += time.Duration(rng.IntN(3)) * time.Millisecond
			}
			h.OnRequest(func(path string, _ url.Values) { time.Sleep(delays[path]) })
			failing := resource([]string{"plans", "os", "servers"}[rng.IntN(3)])
			h.Inject(simtest.Fault{Path: failing.Path, Status: 500})
			h.assertEqual("ready before a configuration", h.set.Ready(), false)
			h.run(configure(time.Minute, 10*time.Minute))
			h.assertEqual("ready before the first fetch", h.set.Ready(), false)
			h.set.Run(h.ctx)
			h.waitReady()
			families, err := h.metrics.Gather() // what is published
			h.assertEqual("error", err, nil)
			first := simtest.NewExposition(t, families)
			h.runFor(2 * time.Second)
			h.assertEqual("collector_success at first", first.CollectorSuccess(), h.scrape().CollectorSuccess())
			h.assertEqual("data at first", first.Data(), h.scrape().Data())
			h.assertSuccess(failing)

			h.Inject(simtest.Fault{Token: simtest.LabToken, Kind: simtest.Hang})
			h.run(configure(time.Minute, 10*time.Minute).withLab())
			h.assertEqual("ready with a new account", h.set.Ready(), true)
		})
	}
}

// waitReady publishes and asks several times at each instant, so that it competes with the
// goroutines that process the responses.
func (h *harness) waitReady() {
	h.t.Helper()
	for range 60_000 {
		for range 20 {
			h.set.Publisher.Publish()
			if h.set.Ready() {
				return
			}
			runtime.Gosched()
		}
		time.Sleep(time.Millisecond)
	}
	h.t.Fatal("not ready within a minute")
}

// TestReadyDuringHistoryWalk asserts that a long history delays readiness until its
// first page only.
func TestReadyDuringHistoryWalk(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		const entries, delay = 12 * rentalapi.MaxPageItems, 50 * time.Millisecond
		h.Change(func(w *simulator.World) {
			w.Accounts[simtest.MainToken].Transactions = simulator.Transactions(entries, time.Now())
		})
		h.OnRequest(func(path string, _ url.Values) {
			if path == "/transactions" {
				time.Sleep(delay)
			}
		})
		h.run(configure(time.Minute, time.Hour))
		h.set.Run(h.ctx)
		h.waitReady()
		if took := time.Since(start); took < delay || took > 2*delay {
			t.Errorf("ready after %v, want %v: after the first page", took, delay)
		}
		h.assertEqual("transactions when ready", h.values("transactions"), map[string]float64{})
	})
}

// TestApplyConfig changes the configuration of a running set, 30 seconds after its
// first fetch and 30 seconds before its second.
func TestApplyConfig(t *testing.T) {
	change := func(f func(*Timing)) func(Spec) Spec {
		return func(c Spec) Spec {
			next := c
			next.Collectors = map[string]Timing{}
			for name, s := range c.Collectors {
				f(&s)
				next.Collectors[name] = s
			}
			return next
		}
	}
	const lab, third = `account="lab"`, `account="third"`
	shorter := requestsPer(2, 4)
	shorter["/transactions"] = 2 // at least 10 seconds for each page, and a max age of three times that
	for _, c := range []struct {
		name     string
		change   func(Spec) Spec
		requests map[string]int // within 13 seconds
		want     func(before map[string]float64) map[string]float64
	}{
		{"accounts in another order, with another function for the same token", func(c Spec) Spec {
			c.Accounts = []AccountSpec{c.Accounts[1], testAccount("main", simtest.MainToken)}
			return c
		}, requestsPer(0, 0), nil},
		{"longer interval", change(func(s *Timing) { s.Interval = time.Hour }), requestsPer(0, 0), nil},
		{"shorter interval", change(func(s *Timing) { s.Interval = 5 * time.Second }), shorter, nil},
		{"another token source", func(c Spec) Spec {
			c.Accounts[1].Identity = "another file"
			return c
		}, requestsPer(0, 1), nil},
		{"another API", func(c Spec) Spec { c.API = "another"; return c }, requestsPer(1, 2), nil},
		{
			"shorter max_age", change(func(s *Timing) { s.MaxAge = 20 * time.Second }), requestsPer(0, 0),
			func(map[string]float64) map[string]float64 { return map[string]float64{} },
		},
		{
			"an account removed", func(c Spec) Spec { c.Accounts = c.Accounts[:1]; return c }, requestsPer(0, 0),
			func(before map[string]float64) map[string]float64 { return without(before, lab) },
		},
		{"a collector removed", func(c Spec) Spec {
			c = change(func(*Timing) {})(c)
			delete(c.Collectors, "plans")
			return c
		}, requestsPer(0, 0), func(before map[string]float64) map[string]float64 {
			return without(before, families(resource("plans"))...)
		}},
		{"an account added", func(c Spec) Spec {
			c.Accounts = append(c.Accounts, testAccount("third", "secret-third"))
			return c
		}, requestsPer(0, 1), func(before map[string]float64) map[string]float64 {
			after := maps.Clone(before)
			for series, v := range before {
				if strings.Contains(series, lab) {
					after[strings.ReplaceAll(series, lab, third)] = v
				}
			}
			return after
		}},
	} {
		subtest(t, c.name, func(_ *testing.T, h *harness) {
			h.Change(func(w *simulator.World) { w.Accounts["secret-third"] = simulator.ExampleAccount("lab", time.Now()) })
			before := configure(time.Minute, 10*time.Minute).withLab()
			h.run(before)
			h.runFor(31 * time.Second) // longer than the least max age of transactions
			want, requests := h.data(), len(h.Requests())
			if c.want != nil {
				want = c.want(want)
			}
			next := c.change(before)
			h.run(next)
			for series := range h.data() { // at once, and not only after the next fetch
				if _, wanted := want[series]; !wanted {
					h.t.Errorf("still exposed: %s", series)
					break
				}
			}
			time.Sleep(13 * time.Second)
			synctest.Wait()
			h.assertEqual("requests", h.CountByPath(requests), c.requests)
			h.assertEqual("data", h.data(), want)
			if len(next.Accounts) > len(before.Accounts) { // has the provider's id of lab
				h.log.Assert(h.t, `level=warn msg="same provider account configured more than once" account=third first=lab`)
			}
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

// TestAnotherProviderAccount replaces the token of an account by that of another provider
// account, whose collector of servers fails: what is shown is of one account.
func TestAnotherProviderAccount(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		var token atomic.Value
		token.Store(simtest.MainToken)
		c := configure(time.Minute, 10*time.Minute, "account", "servers")
		c.Accounts = []AccountSpec{{Name: "main", Identity: "file", Token: func() (string, error) { return token.Load().(string), nil }}}
		h.run(c)
		h.runFor(30 * time.Second)
		if n := len(h.values("server_info")); n == 0 {
			t.Fatal("no servers")
		}
		token.Store(simtest.LabToken)
		h.Inject(simtest.Fault{Path: "/servers", Status: http.StatusInternalServerError})
		h.runFor(2 * time.Minute)
		h.assertEqual("servers", h.values("server_info"), map[string]float64{})
		h.assertEqual("funded until", h.values("account_funded_until_timestamp_seconds"), map[string]float64{})
		h.log.Assert(t, `level=warn msg="account has become another provider account" account=main before=* now=*`, `level=error collector=servers*"collector failed"*`)
	})
}

// TestLogBlocks has a log that nobody reads: data is still published, and expires. With a lock
// held meanwhile, the simulated time would stand still, and the test not end.
func TestLogBlocks(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		var blocked atomic.Bool
		release := make(chan struct{})
		h.set.options.Logger = log.LoggerFunc(func(...any) error {
			if blocked.Load() {
				<-release
			}
			return nil
		})
		h.setStock("gpu-l40s", true)
		h.run(configure(time.Minute, 5*time.Minute, "plans", "locations"))
		h.set.Run(h.ctx)
		h.settle()
		blocked.Store(true)
		h.setStock("gpu-l40s", false)
		time.Sleep(2 * time.Minute)
		h.down.Store(true)
		time.Sleep(10 * time.Minute)
		h.assertEqual("samples of expired data", []int{len(h.published("plan_in_stock")), len(h.published("location_info"))}, []int{0, 0})
		close(release)
	})
}

// TestWallClock asserts that ages are by the wall clock: the monotonic one stands still while a
// machine is suspended. The simulated time of other tests has no monotonic reading.
func TestWallClock(t *testing.T) {
	if got := wallClock().String(); strings.Contains(got, " m=") {
		t.Errorf("got %s, want no monotonic reading", got)
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

// TestWait ends all goroutines, whatever is under way: synctest reports others.
func TestWait(t *testing.T) {
	for _, kind := range []simtest.Kind{simtest.Respond, simtest.Hang} {
		subtest(t, string(kind), func(_ *testing.T, h *harness) {
			h.Inject(simtest.Fault{Path: "/servers", Kind: kind})
			h.run(configure(time.Minute, 10*time.Minute))
			time.Sleep(5 * time.Second)
			began := time.Now()
			h.stop()
			h.assertEqual("waited", time.Since(began), time.Duration(0))
			h.log.Assert(h.t) // a canceled fetch is no failure
		})
	}
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
