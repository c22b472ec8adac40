package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"time"

	"server_rental_exporter/collector"
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
	s.Inject(simtest.Fault{Path: s.randomPath(), After: s.rng.IntN(6), Times: 1, Before: func(string, url.Values) { event() }})
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
	case n == 8 && s.rng.IntN(2) == 0:
		s.counts["cache changed"]++
		return func() { s.SetCache(randomCache(own)) }
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
	return pick(s.rng, collector.Resources()...).Endpoint
}

func pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

// badResponses are bodies that are a failed fetch with status 200, at any endpoint.
func badResponses() []string {
	return []string{
		"", "null", "[]", "{}", `""`, `{"data":null}`, `{"data":0}`, `{"data":"x"}`, `{"data":[{"id":`, `{"data":{"id":"x"}`, `{"meta":{}}`,
		`{"data":[],"data":[]}`, `{"data":[]} {}`, "<html>busy</html>", `{"error":{"code":"unavailable"}}`, "\xff\xfe",
		`{"data":{"id":7,"overall":7}}`,
	}
}

// contradictions are badResponses that contradict themselves.
func contradictions() []string {
	return []string{`{"data":{}}`, `{"data":{"id":"","locations":{}}}`, `{"data":[],"meta":{"count":3,"total":3,"page":1,"pages":1,"limit":100}}`}
}

// retryTimes are values of Retry-After and RateLimit-Reset, of which some are invalid.
func retryTimes() []string {
	now := time.Now()
	return []string{
		"", "0", "1", "7", "90", "240", "1.5", "soon", "-3", " 12 ", "NaN", "1e9999", "0x10", "99999999999",
		now.Add(20 * time.Second).UTC().Format(http.TimeFormat), now.Add(-time.Hour).UTC().Format(http.TimeFormat),
		fmt.Sprint(now.Add(time.Minute).Unix()), fmt.Sprint(now.Add(time.Minute).UnixMilli()),
	}
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
	switch rng.IntN(6) {
	case 0:
		s.worldMu.Lock()
		f.Token = s.tokens[pick(rng, accountNames()...)].token
		s.worldMu.Unlock()
	case 1:
		f.Query = url.Values{"page": {fmt.Sprint(1 + rng.IntN(4))}}
	case 2:
		f.Query = url.Values{"status": {pick(rng, "pending", "paid", "failed")}}
	}
	switch f.Kind {
	case simtest.Respond:
		switch rng.IntN(4) {
		case 0, 1:
			f.Status, f.Body = 200, []byte(pick(rng, pick(rng, badResponses(), contradictions())...))
		case 2:
			f.Header = http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {pick(rng, retryTimes()...)}}
		default:
			f.Status = pick(rng, 204, 206, 301, 400, 401, 403, 404, 405, 408, 418, 429, 429, 500, 502, 503, 503, 504)
			f.Header = http.Header{"Retry-After": {pick(rng, retryTimes()...)}}
		}
	case simtest.Redirect:
		f.Header = http.Header{"Location": {pick(rng, "https://elsewhere.example/", "/api/v1/plans", "//elsewhere.example")}}
	case simtest.Endless:
		f.Times = 1 + rng.IntN(2) // each takes real time
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

// Values of which each field gets one: some are null, and some are not understood.
func randomPrice(rng *rand.Rand) any {
	return pick[any](rng, randomAmount(rng), randomAmount(rng), randomAmount(rng), nil, 0, 17, "12.50", -3, 2e7)
}

func randomTime(rng *rand.Rand) any {
	t := time.Now().Add(time.Duration(rng.IntN(60*24)-480) * time.Hour)
	return pick[any](rng, t.Format(time.DateOnly), t.Format(time.DateOnly), t.Format(time.RFC3339), t.Format("2006-01-02T15:04Z07:00"), t.Format("2006-01-02T15:04:05-0700"),
		nil, "", "soon", 7, "1969-12-31T23:59:59Z")
}

func randomBool(rng *rand.Rand) any { return pick[any](rng, true, true, false, false, nil, "yes", 1) }

func randomAmount(rng *rand.Rand) float64 { return float64(rng.IntN(100_000)) / 100 }

// changeData changes one thing at the provider.
func changeData(rng *rand.Rand, w *simulator.World, customers []*simulator.Account) {
	a, plan := pick(rng, customers...), pick(rng, w.Plans...)
	switch rng.IntN(13) {
	case 0, 1:
		simulator.Put(plan, simulator.At(plan, "availability", "in_stock") != true, "availability", "in_stock")
		simulator.Put(plan, nil, "availability", "alternative")
	case 2:
		simulator.Put(plan, simulator.Object{"usd": randomPrice(rng), "eur": randomPrice(rng)}, "price", "monthly")
		simulator.Put(plan, pick(rng, []any{"fra", "nyc"}, []any{"fra", ""}, nil), "availability", "locations")
	case 3:
		l := pick(rng, w.Locations...)
		l["plans_in_stock"] = pick[any](rng, rng.IntN(9), nil, 999, -1)
		simulator.Put(l, pick[any](rng, 50.1, nil, 91, "50.1"), "coordinates", "lat")
	case 4:
		state := pick[any](rng, "operational", "Operational", "degraded", "scheduled_maintenance", "", nil, 7)
		simulator.Put(w.Status, state, "locations", pick(rng, "nyc", "fra", "tyo"), "components", "network")
		w.Status["ongoing"], w.Status["overall"] = pick[any](rng, 0, 1, nil, "none"), pick(rng, "operational", "degraded")
		w.Status["since"] = randomTime(rng)
	case 5, 6:
		n := 1 + rng.IntN(4)
		if rng.IntN(8) == 0 {
			n = 90 + rng.IntN(130) // more than a page at once
		}
		for range n {
			addTransaction(rng, a)
		}
	case 7:
		changeTopup(rng, a)
	case 8, 9:
		changeServer(rng, a)
	case 10:
		c := pick(rng, a.Configurations...)
		c["in_stock"], c["created_at"] = randomBool(rng), randomTime(rng)
	case 11:
		if len(a.SSHKeys) > 1 {
			a.SSHKeys = a.SSHKeys[1:]
			return
		}
		a.SSHKeys = append(a.SSHKeys, simulator.Object{
			"id": fmt.Sprint("key", rng.Uint32()), "name": "new", "type": "ssh-ed25519", "fingerprint": "SHA256:x", "created_at": randomTime(rng),
		})
	default:
		a.Account["balance"] = simulator.Object{"usd": pick[any](rng, randomAmount(rng)-300, 5*randomAmount(rng), 5*randomAmount(rng), 50*randomAmount(rng), nil, "5.00", 1e9)}
		a.Account["two_factor"], a.Account["created_at"] = randomBool(rng), randomTime(rng)
	}
}

func addTransaction(rng *rand.Rand, a *simulator.Account) {
	id := 1
	if len(a.Transactions) > 0 {
		id = a.Transactions[0]["id"].(int) + 1 + rng.IntN(2)
	}
	a.Transactions = slices.Insert(a.Transactions, 0, simulator.Object{
		"id": id, "type": pick(rng, "topup", "bonus", "renewal", "usage", "refund"),
		"amount": simulator.Object{"usd": float64(rng.IntN(20_000)-10_000) / 100}, "balance_after": simulator.Object{"usd": 0.0},
		"description": "secret-description", "topup": nil, "created_at": "2026-01-02T03:04:05Z",
	})
}

func changeTopup(rng *rand.Rand, a *simulator.Account) {
	if rng.IntN(3) == 0 {
		a.Topups = slices.Insert(a.Topups, 0, simulator.Object{
			"id": fmt.Sprint("tu_", rng.Uint64()), "status": "pending", "amount": simulator.Object{"usd": randomAmount(rng)}, "bonus_percent": rng.IntN(10),
			"coin": "btc", "ticker": "BTC", "network": "Bitcoin", "confirmations": nil, "confirmations_needed": 3, "tx_hash": nil, "credited": nil,
			"payment":    simulator.Object{"address": "secret-address", "amount": "1", "memo": nil, "uri": "bitcoin:secret-address", "rate_locked_until": "2026-01-02T03:04:05Z"},
			"created_at": "2026-01-02T03:04:05Z", "paid_at": nil, "links": simulator.Object{"page": "https://rental.example/topup"},
		})
		return
	}
	t := a.Topups[rng.IntN(min(12, len(a.Topups)))]
	switch t["status"] {
	case "pending":
		t["status"], t["payment"], t["confirmations"] = pick(rng, "confirming", "expired", "canceled"), nil, 0
	case "confirming":
		t["confirmations"] = rng.IntN(3)
		if rng.IntN(2) == 0 {
			t["status"], t["paid_at"] = "paid", time.Now().UTC().Format(time.RFC3339)
		}
	}
}

func changeServer(rng *rand.Rand, a *simulator.Account) {
	if len(a.Servers) < 3 {
		a.Servers = append(a.Servers, simulator.Servers(1+rng.IntN(3), time.Now())...)
		for i, s := range a.Servers {
			s["id"] = fmt.Sprint("srv", i)
		}
		return
	}
	i := rng.IntN(len(a.Servers))
	s := a.Servers[i]
	switch rng.IntN(8) {
	case 0:
		a.Servers = slices.Delete(slices.Clone(a.Servers), i, i+1)
	case 1:
		for _, s := range a.Servers {
			s["status"] = pick[any](rng, "active", "active", "suspended", "reinstalling", "Terminated", "expired", 7)
		}
	case 2:
		s["price"] = simulator.Object{"monthly": simulator.Object{"usd": randomPrice(rng)}}
	case 3:
		s["ipv4"] = pick[any](rng, "198.18.0.1", "2001:db8::1", "", "unknown", 7)
	case 4:
		for _, s := range a.Servers { // whose costs are then not known, or whose prices are all known
			s["price"] = simulator.Object{"monthly": simulator.Object{"usd": pick[any](rng, nil, 10, "7")}}
		}
	default:
		for _, s := range a.Servers {
			s["renews_at"], s["created_at"] = randomTime(rng), randomTime(rng)
		}
	}
}
