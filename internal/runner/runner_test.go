package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/collector"

	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// accountResources returns the resources that are fetched with a token.
func accountResources() []collector.Resource {
	var list []collector.Resource
	for _, r := range collector.Resources() {
		if r.Account {
			list = append(list, r)
		}
	}
	return list
}

// requestsPer returns a number of requests for each endpoint.
func requestsPer(public, account int) map[string]int {
	counts := map[string]int{}
	for _, r := range collector.Resources() {
		n := public
		if r.Account {
			n = account
		}
		if n > 0 {
			counts[r.Endpoint] = n
		}
	}
	return counts
}

// TestMaxAge lets all requests fail after a good start: the data are kept until
// max_age has passed since they were fetched.
func TestMaxAge(t *testing.T) {
	withHarness(t, func(_ *testing.T, h *harness) {
		const maxAge = 10 * time.Minute
		h.run(configure(time.Minute, maxAge))
		h.runFor(30 * time.Second)
		want, fetched := h.data(), h.values(collectorLast)
		repair := h.Inject(simtest.Fault{Kind: simtest.Drop})

		time.Sleep(maxAge - 30*time.Second - time.Millisecond)
		synctest.Wait()
		h.assertEqual("data just before max_age", h.data(), want)
		h.assertSuccess(nil, collector.Resources()...)
		h.assertEqual("last success", h.values(collectorLast), fetched)

		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		h.assertEqual("data after max_age", h.data(), map[string]float64{})
		h.assertSuccess(nil, collector.Resources()...)
		h.assertEqual("last success", h.values(collectorLast), fetched)
		h.assertEqual("invalid_items", len(h.values(collectorInvalid)), len(collector.Resources()))

		repair()
		h.runFor(2 * time.Minute)
		h.assertEqual("data after recovery", h.data(), want)
		h.assertSuccess(nil)
		intervals := map[string]float64{}
		for _, r := range collector.Resources() {
			intervals[r.Name+" "+accountOf(r)] = 60
		}
		h.assertEqual("intervals", h.values(collectorInterval), intervals)
	})
}

// withLabel returns the series with a label.
func withLabel(data map[string]float64, label string) map[string]float64 {
	found := maps.Clone(data)
	for series := range without(data, label) {
		delete(found, series)
	}
	return found
}

// TestScrapeDoesNotWait scrapes while requests hang: no time passes in a scrape, and
// it causes no request.
func TestScrapeDoesNotWait(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.run(configure(time.Minute, 10*time.Minute))
		h.settle()
		want := h.data()
		h.Inject(simtest.Fault{Kind: simtest.Hang})
		hanging := 0
		for range 120 {
			time.Sleep(time.Second)
			requests, began := len(h.Requests()), time.Now()
			h.assertEqual("data", h.data(), want)
			h.assertEqual("duration and requests of a scrape", []any{time.Since(began), len(h.Requests())}, []any{time.Duration(0), requests})
			if !h.Idle() {
				hanging++
			}
		}
		if hanging == 0 {
			t.Error("no scrape while requests hang")
		}
	})
}

func TestReady(t *testing.T) {
	withHarness(t, func(_ *testing.T, h *harness) {
		h.Inject(simtest.Fault{Path: "/servers", Kind: simtest.Delay, Delay: 4 * time.Second, Times: 1})
		h.Inject(simtest.Fault{Path: "/plans", Kind: simtest.Respond, Status: 500})
		ready := func() bool {
			synctest.Wait()
			h.set.Publisher.Publish()
			return h.set.Ready()
		}
		h.assertEqual("before a configuration", ready(), false)
		c := configure(time.Minute, 10*time.Minute)
		h.run(c)
		time.Sleep(3 * time.Second)
		h.assertEqual("while servers are fetched", ready(), false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		h.assertEqual("before the outcome is published", h.set.Ready(), false)
		h.assertEqual("all were tried, and plans failed", ready(), true)
		h.run(c.withLab())
		h.assertEqual("with a new account", ready(), true)
	})
}

// TestApplyConfig changes the configuration of a running set, 30 seconds after its
// first fetch and 30 seconds before its second.
func TestApplyConfig(t *testing.T) {
	change := func(f func(*refresh.Settings)) func(Config) Config {
		return func(c Config) Config {
			next := c
			next.Collectors = map[string]refresh.Settings{}
			for name, s := range c.Collectors {
				f(&s)
				next.Collectors[name] = s
			}
			return next
		}
	}
	const lab, third = `account="lab"`, `account="third"`
	plansGone := families(resource("plans"))
	for _, c := range []struct {
		name     string
		change   func(Config) Config
		requests map[string]int // within 13 seconds
		want     func(before map[string]float64) map[string]float64
	}{
		{"nothing", func(c Config) Config { return c }, requestsPer(0, 0), nil},
		{"accounts in another order", func(c Config) Config {
			c.Accounts = []Account{c.Accounts[1], c.Accounts[0]}
			return c
		}, requestsPer(0, 0), nil},
		{"same token from a new function", func(c Config) Config {
			c.Accounts = c.Accounts[:1]
			return c.withLab()
		}, requestsPer(0, 0), nil},
		{"longer interval", change(func(s *refresh.Settings) { s.Interval = time.Hour }), requestsPer(0, 0), nil},
		{"shorter interval", change(func(s *refresh.Settings) { s.Interval = 5 * time.Second }), requestsPer(2, 4), nil},
		{"another token source", func(c Config) Config {
			c.Accounts[1].Identity = "another file"
			return c
		}, requestsPer(0, 1), nil},
		{"another API", func(c Config) Config { c.API = "another"; return c }, requestsPer(1, 2), nil},
		{
			"shorter max_age", change(func(s *refresh.Settings) { s.MaxAge = 20 * time.Second }), requestsPer(0, 0),
			func(map[string]float64) map[string]float64 { return map[string]float64{} },
		},
		{
			"an account removed", func(c Config) Config { c.Accounts = c.Accounts[:1]; return c }, requestsPer(0, 0),
			func(before map[string]float64) map[string]float64 { return without(before, lab) },
		},
		{"a collector removed", func(c Config) Config {
			c = change(func(*refresh.Settings) {})(c)
			delete(c.Collectors, "plans")
			return c
		}, requestsPer(0, 0), func(before map[string]float64) map[string]float64 { return without(before, plansGone...) }},
		{"an account added", func(c Config) Config {
			c.Accounts = append(c.Accounts, testAccount("third", "secret-third"))
			return c
		}, requestsPer(0, 1), func(before map[string]float64) map[string]float64 {
			after := maps.Clone(before)
			for series, v := range withLabel(before, lab) {
				after[strings.ReplaceAll(series, lab, third)] = v
			}
			return after
		}},
	} {
		subtest(t, c.name, func(_ *testing.T, h *harness) {
			h.Change(func(w *simulator.World) { w.Accounts["secret-third"] = simulator.ExampleAccount("lab", time.Now()) })
			before := configure(time.Minute, 10*time.Minute).withLab()
			h.run(before)
			h.runFor(30 * time.Second)
			old, requests := h.data(), len(h.Requests())
			want := old
			if c.want != nil {
				want = c.want(old)
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
			collectors := map[string]float64{}
			for _, r := range collector.Resources() {
				for _, a := range append([]Account{{}}, next.Accounts...) {
					if _, enabled := next.Collectors[r.Name]; enabled && r.Account == (a.Name != "") {
						collectors[strings.TrimSpace(r.Name+" "+a.Name)] = 1
					}
				}
			}
			h.assertEqual("collector_success", h.scrape().CollectorSuccess(), collectors)
			if len(next.Accounts) > len(before.Accounts) { // has the provider's id of lab
				h.assertLog(logLine{"level=warn", `msg="same provider account configured more than once" account=third first=lab`})
			}
			h.assertLog()
		})
	}
}

// TestApplyConfigStops counts the requests of eight minutes after a change: one per
// minute for each collector that is still enabled.
func TestApplyConfigStops(t *testing.T) {
	names := []string{"plans", "status", "account", "servers"}
	everything := []string{"/account main", "/account lab", "/plans ", "/servers main", "/servers lab", "/status "}
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"nothing", func(*Config) {}, everything},
		{"an account removed", func(c *Config) { c.Accounts = c.Accounts[:1] }, []string{"/account main", "/plans ", "/servers main", "/status "}},
		{"no accounts", func(c *Config) { c.Accounts = nil }, []string{"/plans ", "/status "}},
		{"collectors removed", func(c *Config) { delete(c.Collectors, "plans"); delete(c.Collectors, "servers") }, []string{"/account main", "/account lab", "/status "}},
		{"another token source", func(c *Config) { c.Accounts[1].Identity = "another" }, everything},
		{"another API", func(c *Config) { c.API = "another" }, everything},
	} {
		subtest(t, c.name, func(_ *testing.T, h *harness) {
			h.run(configure(time.Minute, 10*time.Minute, names...).withLab())
			time.Sleep(30 * time.Second)
			next := configure(time.Minute, 10*time.Minute, names...).withLab()
			c.change(&next)
			h.run(next)
			time.Sleep(2 * time.Minute)
			since := len(h.Requests())
			time.Sleep(8 * time.Minute)
			synctest.Wait()
			counts, want := map[string]int{}, map[string]int{}
			for _, r := range h.Requests()[since:] {
				counts[r.Path+" "+map[string]string{simtest.MainToken: "main", simtest.LabToken: "lab"}[r.Token]]++
			}
			for _, key := range c.want {
				want[key] = 8
			}
			h.assertEqual("requests", counts, want)
		})
	}
}

// TestApplyConfigKeepsSchedule makes the interval longer: the next fetch comes when it
// was due, and later ones at the new interval.
func TestApplyConfigKeepsSchedule(t *testing.T) {
	withHarness(t, func(_ *testing.T, h *harness) {
		h.run(configure(time.Minute, time.Hour, "plans"))
		time.Sleep(30 * time.Second)
		due := h.set.Health()[0].Next
		h.run(configure(10*time.Minute, time.Hour, "plans"))
		synctest.Wait()
		h.assertEqual("next", h.set.Health()[0].Next, due)
		time.Sleep(time.Hour)
		synctest.Wait()
		var at, want []time.Duration
		for i, r := range h.Requests()[1:] {
			at, want = append(at, r.Time.Sub(due)), append(want, time.Duration(i)*10*time.Minute)
		}
		h.assertEqual("requests after the second was due", at, want)
		h.assertEqual("number of requests", len(at), 6)
	})
}

func TestAccountStagger(t *testing.T) {
	withHarness(t, func(_ *testing.T, h *harness) {
		c := configure(time.Minute, time.Hour, "servers", "plans")
		for i := range 3 {
			c.Accounts = append(c.Accounts, testAccount(fmt.Sprintf("other-%d", i), simtest.MainToken))
		}
		h.run(c)
		h.runFor(time.Second)
		var at []time.Duration
		for _, r := range h.Requests() {
			at = append(at, r.Time.Sub(start))
		}
		h.assertEqual("first requests", at, []time.Duration{0, accountStagger, 2 * accountStagger, 3 * accountStagger, 4 * accountStagger})
	})
}

// TestTokenFileChanges replaces the token of a failing account in its file.
func TestTokenFileChanges(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		file := filepath.Join(t.TempDir(), "token")
		c := configure(5*time.Minute, time.Hour)
		c.Accounts = []Account{{Name: "main", Identity: file, Token: func() (string, error) {
			b, err := os.ReadFile(file)
			return string(b), err
		}}}
		changed := logLine{"level=info", `msg="token changed" account=main`}
		linesOf := func(line func(collector.Resource) logLine) (lines []logLine) {
			for _, r := range accountResources() {
				lines = append(lines, line(r))
			}
			return lines
		}
		simtest.WriteFile(t, file, "secret-unknown")
		h.run(c)
		h.runFor(3 * time.Minute)
		h.assertSuccess(nil, accountResources()...)
		h.assertLog(linesOf(func(r collector.Resource) logLine { return failed(r, "status 401: invalid_token") })...)

		poll := func() map[string]int {
			since := len(h.Requests())
			time.Sleep(h.set.options.TokenPollInterval + time.Second)
			synctest.Wait()
			return h.CountByPath(since)
		}
		simtest.WriteFile(t, file, simtest.MainToken)
		h.assertEqual("requests with the new token", poll(), requestsPer(0, 1))
		h.assertSuccess(nil)
		h.assertLog(append(linesOf(recovered), changed)...)

		simtest.WriteFile(t, file, simtest.LabToken)
		h.assertEqual("requests of an account without failures", poll(), map[string]int{})
		h.assertLog(changed)

		h.runFor(6 * time.Minute) // all are fetched with the token of lab
		want := h.data()
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		since := len(h.Requests())
		h.runFor(10 * time.Minute)
		h.assertEqual("data without a token", h.data(), want)
		h.assertSuccess(nil, accountResources()...)
		for _, r := range h.Requests()[since:] {
			for _, a := range accountResources() {
				if r.Path == a.Endpoint {
					t.Errorf("request for %s without a token", r.Path)
				}
			}
		}
	})
}

// TestUnreadableToken returns a token together with an error, which is logged alone.
func TestUnreadableToken(t *testing.T) {
	withHarness(t, func(_ *testing.T, h *harness) {
		var readable atomic.Bool
		c := configure(time.Minute, time.Hour, "servers")
		c.Accounts[0].Token = func() (string, error) {
			if !readable.Load() {
				return simtest.MainToken, errors.New("permission denied")
			}
			return simtest.MainToken, nil
		}
		rejected := func() map[string]float64 {
			return h.scrape().WithPrefix("server_rental_exporter_api_token_rejected{")
		}
		h.run(c)
		h.runFor(3 * time.Minute)
		h.assertEqual("requests", len(h.Requests()), 0)
		h.assertLog(failed(resource("servers"), "permission denied"))
		h.assertEqual("token_rejected", rejected(), map[string]float64{`server_rental_exporter_api_token_rejected{account="main"}`: 1})
		readable.Store(true)
		h.runFor(2 * time.Minute)
		h.assertEqual("token_rejected", rejected(), map[string]float64{`server_rental_exporter_api_token_rejected{account="main"}`: 0})
		h.assertEqual("collector_success", h.scrape().CollectorSuccess(), map[string]float64{"servers main": 1})
	})
}

// TestDuplicateAccount asserts that the warning names both accounts, in whichever order
// they are found.
func TestDuplicateAccount(t *testing.T) {
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		var logged simtest.Log
		found := identities{logger: &logged, byID: map[string][]string{}}
		for _, account := range order {
			found.record(account, collector.Facts{Account: &collector.AccountFacts{ID: "acc-1"}})
		}
		simtest.AssertEqual(t, "log", logged.Take(t), []string{
			fmt.Sprintf(`level=warn msg="same provider account configured more than once" account=%s first=%s`, order[1], order[0]),
		})
	}
}

// TestAccountChanges warns if the token of an account becomes that of another one.
func TestAccountChanges(t *testing.T) {
	var logged simtest.Log
	found := identities{logger: &logged, byID: map[string][]string{}}
	for _, id := range []string{"acc-1", "acc-1", "acc-2", "acc-2"} {
		found.record("main", collector.Facts{Account: &collector.AccountFacts{ID: id}})
	}
	simtest.AssertEqual(t, "log", logged.Take(t), []string{`level=warn msg="account has become another provider account" account=main before=acc-1 now=acc-2`})
}

// TestTokenReadableAgain asserts that failing collectors retry as soon as their token
// can be read again, although it did not change.
func TestTokenReadableAgain(t *testing.T) {
	for name, steps := range map[string][]bool{"at the start": {false, true}, "later": {true, false, true}} {
		subtest(t, name, func(_ *testing.T, h *harness) {
			var readable atomic.Bool
			c := configure(5*time.Minute, time.Hour, "servers")
			c.Accounts[0].Token = func() (string, error) {
				if !readable.Load() {
					return simtest.MainToken, errors.New("permission denied")
				}
				return simtest.MainToken, nil
			}
			for i, now := range steps {
				readable.Store(now)
				if i == 0 {
					h.run(c)
				}
				if !now {
					h.runFor(10 * time.Minute) // retries are 5 minutes apart at the end
				} else {
					time.Sleep(h.set.options.TokenPollInterval + time.Second)
					synctest.Wait()
				}
				want := 0.0
				if now {
					want = 1
				}
				h.assertEqual(fmt.Sprintf("collector_success, token readable: %v", now), h.scrape().CollectorSuccess(), map[string]float64{"servers main": want})
			}
		})
	}
}

// TestAccountCollectorsDisabled asserts that the state of a token disappears with the
// last collector that uses it.
func TestAccountCollectorsDisabled(t *testing.T) {
	withHarness(t, func(_ *testing.T, h *harness) {
		remove := h.Override("/servers", simtest.Reply(http.StatusUnauthorized, http.Header{"Ratelimit-Limit": {"120"}}, ""))
		h.run(configure(time.Minute, time.Hour, "plans", "servers"))
		h.settle()
		state := func() map[string]float64 {
			return withLabel(h.scrape().WithPrefix("server_rental_exporter_api_"), `account="main"`)
		}
		h.assertEqual("state of a rejected token", state(), map[string]float64{
			`server_rental_exporter_api_token_rejected{account="main"}`: 1, `server_rental_exporter_api_rate_limit{account="main"}`: 120,
		})
		for range 2 {
			h.run(configure(time.Minute, time.Hour, "plans"))
			h.assertEqual("state without collectors", state(), map[string]float64{})
			if _, err := collector.ActiveServers(h.set.Accounts(), ""); !errors.Is(err, collector.ErrUnknownServers) {
				h.t.Errorf("active servers without collectors: got %v, want ErrIncomplete", err)
			}
		}
		remove()
		h.run(configure(time.Minute, time.Hour, "plans", "servers"))
		h.settle()
		h.assertEqual("rejected", h.scrape().Values[`server_rental_exporter_api_token_rejected{account="main"}`], 0.0)
		h.assertEqual("collector_success", h.scrape().CollectorSuccess(), map[string]float64{"plans": 1, "servers main": 1})
	})
}

// TestTwoAccounts lets one of two accounts fail: each has its own data and state, and
// tokens are sent for their own account only.
func TestTwoAccounts(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		c := configure(time.Minute, 10*time.Minute).withLab()
		want := h.once(c)
		h.reset()
		h.Inject(simtest.Fault{Token: simtest.LabToken, Kind: simtest.Respond, Status: 401})
		h.run(c)
		h.runFor(3 * time.Minute)
		h.assertEqual("data", h.data(), without(want, `account="lab"`))
		success := perCollector(1, 1)
		for _, r := range accountResources() {
			success[r.Name+" lab"] = 0
		}
		h.assertEqual("collector_success", h.scrape().CollectorSuccess(), success)
		tokens := map[string]map[string]bool{}
		for _, r := range h.Requests() {
			if tokens[r.Path] == nil {
				tokens[r.Path] = map[string]bool{}
			}
			tokens[r.Path][r.Token] = true
		}
		for _, r := range collector.Resources() {
			want := map[string]bool{"": true}
			if r.Account {
				want = map[string]bool{simtest.MainToken: true, simtest.LabToken: true}
			}
			h.assertEqual("tokens sent to "+r.Endpoint, tokens[r.Endpoint], want)
		}
		h.assertEqual("lines logged", len(h.log.Take(t)), len(accountResources()))
	})
}

// TestWait ends all goroutines, whatever is under way: synctest reports others.
func TestWait(t *testing.T) {
	for _, kind := range []simtest.Kind{simtest.Respond, simtest.Hang, simtest.Trickle, simtest.Endless} {
		subtest(t, kind.String(), func(t *testing.T, h *harness) {
			h.Inject(simtest.Fault{Path: "/servers", Kind: kind})
			ctx, stop := context.WithCancel(t.Context())
			h.set.ApplyConfig(ctx, configure(time.Minute, 10*time.Minute))
			time.Sleep(5 * time.Second)
			stop()
			began := time.Now()
			h.set.Wait()
			h.assertEqual("waited", time.Since(began), time.Duration(0))
			if kind == simtest.Hang || kind == simtest.Trickle {
				h.assertLog() // a canceled fetch is no failure
			}
		})
	}
}

func TestOnce(t *testing.T) {
	subtest(t, "two failures", func(t *testing.T, h *harness) {
		h.Change(func(w *simulator.World) {
			w.Accounts[simtest.MainToken].Transactions = simulator.Transactions(250, time.Now())
		})
		h.Inject(simtest.Fault{Path: "/plans", Kind: simtest.Respond, Status: 500})
		h.Inject(simtest.Fault{Path: "/servers", Kind: simtest.Respond, Status: 401})
		err := h.set.Once(t.Context(), configure(time.Minute, 10*time.Minute))
		h.assertEqual("error", fmt.Sprint(err), fmt.Sprintf("2 of %d collectors failed", len(collector.Resources())))
		h.assertSuccess(nil, resource("plans"), resource("servers"))
		want := requestsPer(1, 1)
		want["/transactions"] = 4
		h.assertEqual("requests", h.CountByPath(0), want)
		time.Sleep(time.Hour)
		h.assertEqual("requests an hour later", h.CountByPath(0), want)
	})
	subtest(t, "canceled", func(t *testing.T, h *harness) {
		h.Inject(simtest.Fault{Kind: simtest.Hang})
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := h.set.Once(ctx, configure(time.Minute, time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Once: got %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

// TestFailuresLogged logs each cause once until the collector recovers.
func TestFailuresLogged(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.run(configure(time.Minute, time.Hour, "plans"))
		phase := func(name string, f *simtest.Fault, want ...logLine) {
			t.Helper()
			t.Log(name)
			repair := func() {}
			if f != nil {
				repair = h.Inject(*f)
			}
			h.runFor(5 * time.Minute)
			repair()
			h.assertLog(want...)
		}
		broken := &simtest.Fault{Kind: simtest.Respond, Status: 500}
		hanging := &simtest.Fault{Kind: simtest.Hang}
		phase("working", nil)
		phase("a cause", broken, failed(resource("plans"), "status 500"))
		phase("another cause", hanging, failed(resource("plans"), "no response within 10s"))
		phase("the first cause again", broken)
		phase("both again", hanging)
		phase("recovery", nil, recovered(resource("plans")))
		phase("the first cause after recovery", broken, failed(resource("plans"), "status 500"))
		phase("recovery again", nil, recovered(resource("plans")))
		phase("pause", &simtest.Fault{Kind: simtest.Respond, Status: 503, Header: http.Header{"Retry-After": {"120"}}}, failed(resource("plans"), "status 503: unavailable"))
	})
}

// TestPause lets the API ask for a pause of 90 seconds. It holds for the account or
// the public endpoints alone, and is exposed at once.
func TestPause(t *testing.T) {
	for _, c := range []struct {
		path, account string
		failing       []logLine
		recovering    []logLine
	}{
		{"/account", "main", []logLine{failed(resource("account"), "status 429: rate_limited"), failed(resource("servers"), "no request made: status 429")}, []logLine{recovered(resource("account")), recovered(resource("servers"))}},
		{"/plans", "", []logLine{failed(resource("plans"), "status 429: rate_limited")}, []logLine{recovered(resource("plans"))}},
	} {
		subtest(t, c.path, func(_ *testing.T, h *harness) {
			const pause = "server_rental_exporter_api_backoff_until_timestamp_seconds"
			h.Inject(simtest.Fault{Path: c.path, Kind: simtest.Respond, Status: 429, Header: http.Header{"Retry-After": {"90"}}, Times: 1})
			names := []string{"plans"}
			began := start
			if c.account != "" {
				names = append(names, "account", "servers")
				began = start.Add(accountStagger)
			}
			h.set.Publisher.Publish()
			h.run(configure(time.Minute, time.Hour, names...))
			h.runFor(time.Second)
			want := map[string]float64{simtest.Series(pause, "account", c.account): float64(began.Add(90*time.Second).UnixMilli()) / 1000}
			h.assertEqual("backoff_until", h.scrape().WithPrefix(pause+"{"), want)
			time.Sleep(79 * time.Second)
			synctest.Wait()
			requests := h.CountByPath(0)
			h.assertEqual("requests for "+c.path, requests[c.path], 1)
			if c.account != "" {
				h.assertEqual("requests for public data", requests["/plans"], 2)
				if requests["/servers"] > 1 {
					h.t.Errorf("%d requests for servers during the pause", requests["/servers"])
				}
			}
			h.assertLog(c.failing...)

			h.runFor(30 * time.Second)
			h.assertEqual("backoff_until after the pause", h.scrape().WithPrefix(pause+"{"), map[string]float64{})
			for _, health := range h.set.Health() {
				h.assertEqual(health.Collector+": error", health.Err, nil)
			}
			h.assertLog(c.recovering...)
		})
	}
}

// TestHealth reports failures with their cause.
func TestHealth(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Override("/servers", simtest.Reply(http.StatusOK, nil, `{"data":[],"meta":{"count":1}}`))
		h.run(configure(time.Minute, time.Hour))
		h.settle()
		i := 0
		for _, r := range collector.Resources() { // public ones first
			got := h.set.Health()[i]
			i++
			h.assertEqual("collector and account", []string{got.Collector, got.Account}, []string{r.Name, accountOf(r)})
			var failure *rentalapi.Error
			if isServers := r.Name == "servers"; isServers != errors.As(got.Err, &failure) || isServers && failure.Reason != rentalapi.Incomplete {
				t.Errorf("%s: got error %v", r.Name, got.Err)
			}
		}
	})
}

// TestAccountPhase has accounts with fetches at different times: those of one account
// are fetched within two seconds, so that balance and servers are of one moment.
func TestAccountPhase(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		origins := []time.Duration{0, 17 * time.Second, 45 * time.Second} // public, main, lab
		h.set.origin = func() time.Time {
			origin := time.Now().Add(-origins[0])
			origins = origins[1:]
			return origin
		}
		h.run(configure(time.Minute, time.Hour, "account", "servers").withLab())
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		for token, origin := range map[string]time.Duration{simtest.MainToken: 43 * time.Second, simtest.LabToken: 15 * time.Second} {
			n := 0
			for _, r := range h.Requests() {
				if r.Token != token || r.Time.Sub(start) < 30*time.Second { // the first fetch
					continue
				}
				n++
				if phase := (r.Time.Sub(start) - origin) % time.Minute; phase > 2*time.Second {
					t.Errorf("%s: %v after the phase", r.Path, phase)
				}
			}
			if n < 16 {
				t.Errorf("%d requests in ten minutes", n)
			}
		}
	})
}
