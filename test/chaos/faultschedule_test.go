package chaos_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing/synctest"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/runner"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// faultSchedule is a random sequence of faults and changes.
type faultSchedule struct {
	*harness
	rng    *rand.Rand
	counts map[string]int // events by kind
}

// next lets an event happen: at once, or while the provider serves one of the next
// requests.
func (s *faultSchedule) next() {
	event := s.draw()
	if s.rng.IntN(3) > 0 {
		event()
		return
	}
	s.counts["during a request"]++
	var requests atomic.Int64
	at := 1 + s.rng.Int64N(6)
	s.OnRequest(func(string, url.Values) {
		if requests.Add(1) == at {
			event()
		}
	})
}

func (s *faultSchedule) draw() func() {
	// An event that happens later must not share the source of randomness.
	own := rand.New(rand.NewPCG(s.rng.Uint64(), 0))
	switch n := s.rng.IntN(20); {
	case n < 7:
		s.injectFault()
		return func() {}
	case n == 7:
		return s.RemoveAll
	case n == 8:
		longest := int64(s.rng.IntN(2)) * int64(4*time.Second)
		return func() {
			s.Net.SetDialDelay(func() time.Duration { return time.Duration(rand.Int64N(longest + 1)) })
		}
	case n < 11:
		s.counts["token changed"]++
		return func() { s.changeToken(own) }
	case n < 13:
		s.counts["reload"]++
		return func() { s.reload(func(c *configuration) { changeConfiguration(own, c) }) }
	default:
		s.counts["data changed"]++
		return func() {
			s.changeWorld(func(w *simulator.World) {
				for range 1 + own.IntN(3) {
					changeData(own, w, s.customers)
				}
			})
		}
	}
}

func (s *faultSchedule) randomPath() string {
	return pick(s.rng, collector.Resources()...).Path
}

func pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

// badResponses are bodies that are a failed fetch with status 200, at any endpoint;
// package rentalapi tests every other one.
func badResponses() []string {
	return []string{
		"", "<html>busy</html>", `{"data":null}`, `{"data":[{"id":`, `{"data":{"id":7,"overall":7}}`,
		`{"data":{"id":"","locations":{}}}`, `{"data":[],"meta":{"count":3,"total":3,"page":1,"pages":1,"limit":100}}`,
	}
}

// retryTimes are values of Retry-After and RateLimit-Reset, of which some are invalid.
func retryTimes() []string {
	now := time.Now()
	return []string{"", "0", "1", "90", "240", "soon", "99999999999", now.Add(20 * time.Second).UTC().Format(http.TimeFormat), fmt.Sprint(now.Add(time.Minute).Unix())}
}

// injectFault injects a random fault for some time.
func (s *faultSchedule) injectFault() {
	rng := s.rng
	f := simtest.Fault{
		Kind: simtest.Kind(rng.IntN(int(simtest.Redirect) + 1)), Times: rng.IntN(12), Delay: time.Duration(rng.Int64N(int64(15 * time.Second))),
	}
	if rng.IntN(3) > 0 {
		f.Path = s.randomPath()
	}
	if rng.IntN(4) == 0 {
		s.worldMu.Lock()
		f.Token = s.tokens[pick(rng, accountNames()...)].token
		s.worldMu.Unlock()
	}
	switch f.Kind {
	case simtest.Respond:
		switch rng.IntN(4) {
		case 0, 1:
			f.Status, f.Body = 200, []byte(pick(rng, badResponses()...))
		case 2:
			f.Header = http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {pick(rng, retryTimes()...)}}
		default:
			f.Status = pick(rng, 204, 206, 301, 400, 401, 403, 404, 405, 408, 418, 429, 429, 500, 502, 503, 503, 504)
			f.Header = http.Header{"Retry-After": {pick(rng, retryTimes()...)}}
		}
	case simtest.Redirect:
		f.Header = http.Header{"Location": {pick(rng, "https://elsewhere.example/", "/api/v1/plans", "//elsewhere.example")}}
	}
	s.counts[f.Kind.String()]++
	time.AfterFunc(time.Duration(rng.Int64N(int64(4*time.Minute))), s.Inject(f))
}

// changeToken changes the token of an account, or its file.
func (s *faultSchedule) changeToken(rng *rand.Rand) {
	account := pick(rng, accountNames()...)
	s.changeWorld(func(w *simulator.World) {
		f := s.tokens[account]
		switch rng.IntN(7) {
		case 0: // replaced; the old one is revoked
			delete(w.Accounts, f.token)
			s.issueToken(w, account)
		case 1: // replaced; the old one stays valid
			s.issueToken(w, account)
		case 2: // revoked
			delete(w.Accounts, f.token)
		case 3:
			w.Accounts[f.token] = s.customers[f.customer]
		case 4:
			f.err = errUnreadable
		case 5:
			f.err = nil
		default: // of another customer
			f.customer = rng.IntN(len(s.customers))
			s.issueToken(w, account)
		}
	})
}

// changeConfiguration changes one thing in the configuration.
func changeConfiguration(rng *rand.Rand, c *configuration) {
	r := pick(rng, collector.Resources()...)
	switch rng.IntN(6) {
	case 0: // fewer accounts, or all of them again
		c.accounts = accountNames()[:rng.IntN(4)]
	case 1:
		if _, enabled := c.collectors[r.Name]; enabled {
			delete(c.collectors, r.Name)
			return
		}
		c.collectors[r.Name] = randomSettings(rng, r)
	case 2, 3:
		c.collectors[r.Name] = randomSettings(rng, r)
	case 4:
		c.limits = randomLimits(rng)
	default:
		if rng.IntN(4) == 0 {
			c.api = fmt.Sprint("other", rng.IntN(3)) // all data is dropped
		}
	}
}

// randomNumber returns a number; in some cases none, or one that is not understood.
func randomNumber(rng *rand.Rand) any {
	n := float64(rng.IntN(100_000)) / 100
	return pick[any](rng, n, n, n, 0, nil, "12.50")
}

// randomDay returns a day within two months, in some cases none.
func randomDay(rng *rand.Rand) any {
	day := time.Now().AddDate(0, 0, rng.IntN(60)-20).Format(time.DateOnly)
	return pick[any](rng, day, day, nil, "soon")
}

// changeData changes one thing at the provider, so that its state is another one. How
// each field is mapped is what the golden files of collector show.
func changeData(rng *rand.Rand, w *simulator.World, customers []*simulator.Account) {
	a, plan := pick(rng, customers...), pick(rng, w.Plans...)
	switch rng.IntN(12) {
	case 0, 1:
		simulator.Put(plan, simulator.At(plan, "availability", "in_stock") != true, "availability", "in_stock")
		simulator.Put(plan, nil, "availability", "alternative")
	case 2:
		simulator.Put(plan, simulator.Object{"usd": randomNumber(rng), "eur": randomNumber(rng)}, "price", "monthly")
	case 3:
		pick(rng, w.Locations...)["plans_in_stock"] = pick[any](rng, rng.IntN(9), nil, -1)
	case 4:
		state := pick[any](rng, "operational", "degraded", nil, 7)
		simulator.Put(w.Status, state, "locations", pick(rng, "nyc", "fra", "tyo"), "components", "network")
		w.Status["ongoing"] = pick[any](rng, 0, 1, nil)
	case 5, 6:
		n := 1 + rng.IntN(4)
		if rng.IntN(8) == 0 {
			n = 90 + rng.IntN(130) // more than a page at once
		}
		a.Transactions = simulator.Transactions(len(a.Transactions)+n, time.Now())
	case 7:
		changeTopup(rng, a)
	case 8, 9:
		a.Servers = simulator.Servers(1+rng.IntN(40), time.Now())
		server := pick(rng, a.Servers...)
		server["status"] = pick[any](rng, "active", "active", "suspended", "expired", 7)
		server["price"] = simulator.Object{"monthly": simulator.Object{"usd": randomNumber(rng)}}
		server["renews_at"] = randomDay(rng)
	case 10:
		pick(rng, a.Configurations...)["in_stock"] = pick[any](rng, true, false, nil, "yes")
		a.SSHKeys[0]["created_at"] = randomDay(rng)
	default:
		a.Account["balance"] = simulator.Object{"usd": float64(rng.IntN(1_000_000)-100_000) / 100}
	}
}

// changeTopup adds a top-up, or moves one of the newest on.
func changeTopup(rng *rand.Rand, a *simulator.Account) {
	t := a.Topups[rng.IntN(min(12, len(a.Topups)))]
	switch {
	case rng.IntN(3) == 0:
		added := maps.Clone(t)
		added["id"], added["status"], added["payment"] = fmt.Sprint("tu_", rng.Uint64()), "pending", simulator.Object{"address": "secret-address"}
		a.Topups = slices.Insert(a.Topups, 0, added)
	case t["status"] == "pending":
		t["status"], t["payment"], t["confirmations"] = pick(rng, "confirming", "expired", "canceled"), nil, 0
	case t["status"] == "confirming":
		t["status"], t["paid_at"] = "paid", time.Now().UTC().Format(time.RFC3339)
	}
}

// checkRecovery ends all faults and checks that each collector is right three intervals
// later, and stays right.
func (s *faultSchedule) checkRecovery() {
	s.t.Helper()
	s.RemoveAll()
	synctest.Wait()
	s.Net.SetDialDelay(func() time.Duration { return 0 })
	s.changeWorld(func(w *simulator.World) {
		for account, f := range s.tokens {
			f.err = nil
			s.issueToken(w, account)
		}
	})
	s.reload(func(c *configuration) {
		api := c.api
		*c = validConfiguration(s.rng)
		c.api = api
	})
	backoff := map[string]time.Time{} // end of the longest back-off seen, by account
	ended := time.Now()
	for late := true; late && !s.t.Failed(); time.Sleep(20 * time.Second) {
		synctest.Wait()
		late = false
		page := s.scrape()
		groups, success := byResource(page), page.CollectorSuccess()
		s.checkPage(page, groups)
		for series, until := range page.WithPrefix("server_rental_exporter_api_backoff_until_timestamp_seconds{") {
			account := simtest.Label(series, "account")
			if at := time.UnixMilli(int64(until * 1000)); at.After(backoff[account]) {
				backoff[account] = at
			}
		}
		s.forEachCollector(func(key, name, account string, settings runner.Timing) {
			from := ended
			if backoff[account].After(from) {
				from = backoff[account]
			}
			if time.Now().Before(from.Add(3*settings.Interval + requestTimeout)) {
				late = true
				return
			}
			versions := s.versionsSince(name, account, time.Now())
			simtest.AssertEqual(s.t, key+": data after the faults", groups[key], versions[len(versions)-1].samples)
			simtest.AssertEqual(s.t, key+": success after the faults", success[strings.TrimSpace(key)], 1.0)
		})
	}
	if s.t.Failed() {
		s.t.Log(tail(s.log.String()))
	}
	if got := simtest.ServeGet(s.handler, "/-/ready").Status; got != http.StatusOK && !s.t.Failed() {
		s.t.Errorf("/-/ready: got status %d, want 200", got)
	}
}
