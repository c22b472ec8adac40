package campaign_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator"
)

// troubles is what happens in one schedule.
type troubles struct {
	*stage
	rng     *rand.Rand
	removes []func()       // of the faults; guarded by amu, for they may be ended during a request
	n       map[string]int // how often what happened
}

// next lets something happen: at once, or while the provider takes in one of the next requests.
func (tr *troubles) next() {
	do := tr.draw()
	if tr.rng.IntN(3) > 0 {
		do()
		return
	}
	tr.n["during a request"]++
	tr.amu.Lock()
	defer tr.amu.Unlock()
	tr.ambushes = append(tr.ambushes, &ambush{path: tr.path(), after: tr.rng.IntN(6), do: do})
}

func (tr *troubles) draw() func() {
	// What happens later must not share the source of chance.
	own := rand.New(rand.NewPCG(tr.rng.Uint64(), 0))
	switch n := tr.rng.IntN(20); {
	case n < 7:
		tr.fault()
		return func() {}
	case n == 7:
		return tr.calmDown
	case n == 8:
		most := time.Duration(tr.rng.IntN(2)) * 4 * time.Second
		return func() {
			tr.net.SetDialDelay(func() time.Duration { return time.Duration(rand.Int64N(int64(most) + 1)) })
		}
	case n < 11:
		tr.n["token changed"]++
		return func() { tr.token(own) }
	case n < 13:
		tr.n["reload"]++
		return func() { tr.reload(func(c *setting) { alter(own, c) }) }
	default:
		tr.n["world changed"]++
		return func() {
			tr.change(func(w *simulator.World) {
				for range 1 + own.IntN(3) {
					move(own, w, tr.customers)
				}
			})
		}
	}
}

func (tr *troubles) path() string {
	all := collector.Resources()
	return all[tr.rng.IntN(len(all))].Endpoint
}

// bodies are answers that no provider should give with a 200.
func bodies() []string {
	return []string{
		"", "null", "[]", "{}", `""`, `{"data":null}`, `{"data":0}`, `{"data":"x"}`, `{"data":[{"id":`, `{"data":{"id":"x"}`, `{"meta":{}}`,
		`{"data":[],"data":[]}`, `{"data":[]} {}`, "<html>busy</html>", `{"error":{"code":"unavailable"}}`, "\xff\xfe", `{"data":{"id":7,"overall":7}}`,
	}
}

// fault has the provider misbehave in any of its ways, anywhere.
func (tr *troubles) fault() {
	rng := tr.rng
	statuses := []int{204, 206, 301, 400, 401, 403, 404, 405, 408, 418, 429, 429, 500, 502, 503, 503, 504}
	waits := []string{
		"", "0", "1", "7", "90", "240", "1.5", "soon", "-3", " 12 ", "NaN", "1e9999", "0x10", "99999999999",
		time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat), time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat),
		fmt.Sprint(time.Now().Add(time.Minute).Unix()), fmt.Sprint(time.Now().Add(time.Minute).UnixMilli()),
	}
	f := simulator.Fault{Kind: simulator.Kind(rng.IntN(int(simulator.Redirect) + 1)), Times: rng.IntN(12), Delay: time.Duration(rng.Int64N(int64(15 * time.Second)))}
	if rng.IntN(3) > 0 {
		f.Path = tr.path()
	}
	switch rng.IntN(6) {
	case 0:
		tr.wmu.Lock()
		f.Token = tr.tokens[labels()[rng.IntN(3)]].token
		tr.wmu.Unlock()
	case 1:
		f.Query = url.Values{"page": {fmt.Sprint(1 + rng.IntN(4))}}
	case 2:
		f.Query = url.Values{"status": {[]string{"pending", "paid", "failed"}[rng.IntN(3)]}}
	}
	switch f.Kind {
	case simulator.Respond:
		switch rng.IntN(3) {
		case 0:
			f.Status, f.Body = 200, []byte(bodies()[rng.IntN(len(bodies()))])
		case 1:
			f.Header = http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {waits[rng.IntN(len(waits))]}}
		default:
			f.Status = statuses[rng.IntN(len(statuses))]
			f.Header = http.Header{"Retry-After": {waits[rng.IntN(len(waits))]}}
		}
	case simulator.Redirect:
		f.Header = http.Header{"Location": {[]string{"https://elsewhere.example/", "/api/v1/plans", "//elsewhere.example"}[rng.IntN(3)]}}
	case simulator.Endless:
		f.Times = 1 + rng.IntN(2) // each costs the test real time
	}
	tr.n[f.Kind.String()]++
	tr.amu.Lock()
	defer tr.amu.Unlock()
	tr.removes = append(tr.removes, tr.sim.Inject(f))
	if len(tr.removes) > 4 {
		tr.removes[0]()
		tr.removes = tr.removes[1:]
	}
}

// calmDown ends all faults.
func (tr *troubles) calmDown() {
	tr.amu.Lock()
	defer tr.amu.Unlock()
	for _, remove := range tr.removes {
		remove()
	}
}

// token does something to the token of an account.
func (tr *troubles) token(rng *rand.Rand) {
	label := labels()[rng.IntN(3)]
	tr.change(func(w *simulator.World) {
		c := tr.tokens[label]
		switch rng.IntN(7) {
		case 0: // replaced; the old one ends
			delete(w.Accounts, c.token)
			tr.mint(w, label)
		case 1: // replaced; the old one stays
			tr.mint(w, label)
		case 2: // revoked
			delete(w.Accounts, c.token)
		case 3:
			w.Accounts[c.token] = tr.customers[c.customer]
		case 4:
			c.fault = errUnreadable
		case 5:
			c.fault = nil
		default: // the account's name goes to another customer
			c.customer = rng.IntN(len(tr.customers))
			tr.mint(w, label)
		}
	})
}

// alter changes the configuration.
func alter(rng *rand.Rand, c *setting) {
	all := collector.Resources()
	r := all[rng.IntN(len(all))]
	switch rng.IntN(6) {
	case 0: // fewer accounts, or all of them again
		c.accounts = labels()[:rng.IntN(4)]
	case 1:
		if _, on := c.collectors[r.Name]; on {
			delete(c.collectors, r.Name)
			return
		}
		c.collectors[r.Name] = pace(rng, r)
	case 2, 3:
		c.collectors[r.Name] = pace(rng, r)
	case 4:
		c.limits = limits(rng)
	default:
		if rng.IntN(4) == 0 {
			c.api = fmt.Sprint("other", rng.IntN(3)) // everything begins anew
		}
	}
}

// move changes one thing at the provider.
func move(rng *rand.Rand, w *simulator.World, customers []*simulator.Account) {
	a := customers[rng.IntN(len(customers))]
	plan := w.Plans[rng.IntN(len(w.Plans))]
	switch rng.IntN(12) {
	case 0, 1:
		stock := at(plan, "availability").(simulator.Object)
		stock["in_stock"] = stock["in_stock"] != true
		stock["alternative"] = nil
	case 2:
		at(plan, "price").(simulator.Object)["monthly"] = simulator.Object{"usd": cents(rng), "eur": maybe(rng, cents(rng))}
	case 3:
		w.Locations[rng.IntN(len(w.Locations))]["plans_in_stock"] = rng.IntN(9)
	case 4:
		places := w.Status["locations"].(simulator.Object)
		place := places[[]string{"nyc", "fra", "tyo"}[rng.IntN(3)]].(simulator.Object)
		place["components"].(simulator.Object)["network"] = []string{"operational", "degraded", "outage"}[rng.IntN(3)]
		w.Status["ongoing"], w.Status["overall"] = rng.IntN(3), []string{"operational", "degraded"}[rng.IntN(2)]
	case 5, 6:
		n := 1 + rng.IntN(4)
		if rng.IntN(8) == 0 {
			n = 90 + rng.IntN(130) // more than a page at once
		}
		for range n {
			spend(rng, a)
		}
	case 7:
		moveTopup(rng, a)
	case 8:
		moveServer(rng, a)
	case 9:
		c := a.Configurations[rng.IntN(len(a.Configurations))]
		c["in_stock"] = maybe(rng, c["in_stock"] != true)
	case 10:
		if len(a.SSHKeys) > 1 {
			a.SSHKeys = a.SSHKeys[1:]
			return
		}
		key := simulator.Object{"id": fmt.Sprint("key", rng.Uint32()), "name": "new", "type": "ssh-ed25519", "fingerprint": "SHA256:x", "created_at": "2026-01-02T03:04:05Z"}
		a.SSHKeys = append(a.SSHKeys, key)
	default:
		a.Account["balance"] = simulator.Object{"usd": maybe(rng, cents(rng)-300)}
		a.Account["two_factor"] = maybe(rng, rng.IntN(2) == 0)
	}
}

func cents(rng *rand.Rand) float64 { return float64(rng.IntN(100_000)) / 100 }

// maybe is the value or, now and then, null: not known.
func maybe(rng *rand.Rand, v any) any {
	if rng.IntN(4) == 0 {
		return nil
	}
	return v
}

func spend(rng *rand.Rand, a *simulator.Account) {
	id := 1
	if len(a.Transactions) > 0 {
		id = a.Transactions[0]["id"].(int) + 1 + rng.IntN(2)
	}
	a.Transactions = slices.Insert(a.Transactions, 0, simulator.Object{
		"id": id, "type": []string{"topup", "bonus", "renewal", "usage", "refund"}[rng.IntN(5)],
		"amount": simulator.Object{"usd": float64(rng.IntN(20_000)-10_000) / 100}, "balance_after": simulator.Object{"usd": 0.0},
		"description": "secret-description", "topup": nil, "created_at": "2026-01-02T03:04:05Z",
	})
}

func moveTopup(rng *rand.Rand, a *simulator.Account) {
	if rng.IntN(3) == 0 {
		a.Topups = slices.Insert(a.Topups, 0, simulator.Object{
			"id": fmt.Sprint("tu_", rng.Uint64()), "status": "pending", "amount": simulator.Object{"usd": cents(rng)}, "bonus_percent": rng.IntN(10),
			"coin": "btc", "ticker": "BTC", "network": "Bitcoin", "confirmations": nil, "confirmations_needed": 3, "tx_hash": nil, "credited": nil,
			"payment":    simulator.Object{"address": "secret-address", "amount": "1", "memo": nil, "uri": "bitcoin:secret-address", "rate_locked_until": "2026-01-02T03:04:05Z"},
			"created_at": "2026-01-02T03:04:05Z", "paid_at": nil,
		})
		return
	}
	t := a.Topups[rng.IntN(min(12, len(a.Topups)))]
	switch t["status"] {
	case "pending":
		t["status"], t["payment"], t["confirmations"] = []string{"confirming", "expired", "canceled"}[rng.IntN(3)], nil, 0
	case "confirming":
		t["confirmations"] = rng.IntN(3)
		if rng.IntN(2) == 0 {
			t["status"], t["paid_at"] = "paid", time.Now().UTC().Format(time.RFC3339)
		}
	}
}

func moveServer(rng *rand.Rand, a *simulator.Account) {
	if len(a.Servers) < 3 {
		a.Servers = append(a.Servers, simulator.Servers(1+rng.IntN(3), time.Now())...)
		for i, s := range a.Servers {
			s["id"] = fmt.Sprint("srv", i)
		}
		return
	}
	i := rng.IntN(len(a.Servers))
	s := a.Servers[i]
	switch rng.IntN(4) {
	case 0:
		a.Servers = slices.Delete(slices.Clone(a.Servers), i, i+1)
	case 1:
		s["status"] = []string{"active", "suspended", "reinstalling"}[rng.IntN(3)]
	case 2:
		s["price"] = simulator.Object{"monthly": simulator.Object{"usd": maybe(rng, cents(rng))}}
	default:
		s["renews_at"] = maybe(rng, time.Now().AddDate(0, 0, rng.IntN(60)).Format(time.DateOnly))
	}
}
