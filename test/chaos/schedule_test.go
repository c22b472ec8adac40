package chaos_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/runner"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// next lets an event happen: at once, or while the provider serves one of the next
// requests.
func (h *harness) next() {
	event := h.draw()
	if h.rng.IntN(3) > 0 {
		event()
		return
	}
	var requests atomic.Int64
	at := 1 + h.rng.Int64N(6)
	h.OnRequest(func(string, url.Values) {
		if requests.Add(1) == at {
			event()
		}
	})
}

func (h *harness) draw() func() {
	// An event that happens later must not share the source of randomness.
	own := rand.New(rand.NewPCG(h.rng.Uint64(), 0))
	switch n := h.rng.IntN(20); {
	case n < 7:
		h.injectFault()
	case n < 9:
		return h.RemoveAll
	case n < 11:
		return func() { h.changeToken(own) }
	case n < 13:
		h.reload(func(c *runner.Spec) { h.changeConfiguration(own, c) })
	default:
		return func() {
			h.changeWorld(func(w *simulator.World) {
				for range 1 + own.IntN(3) {
					changeData(own, w, w.Accounts[ownToken(pick(own, accountNames()...))])
				}
			})
		}
	}
	return func() {}
}

func pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

// badResponses are bodies that are a failed fetch with status 200, at any endpoint;
// package rentalapi tests every other one.
func badResponses() []string {
	return []string{
		"", "<html>busy</html>", `{"data":null}`, `{"data":[{"id":`, `{"data":{"id":7,"overall":7}}`,
		`{"data":[],"meta":{"count":3,"total":3,"page":1,"pages":1,"limit":100}}`,
	}
}

// retryTimes are values of Retry-After and RateLimit-Reset, of four minutes at most. Some are invalid.
func retryTimes() []string {
	now := time.Now()
	return []string{"", "0", "1", "90", "240", "soon", now.Add(20 * time.Second).UTC().Format(http.TimeFormat), fmt.Sprint(now.Add(time.Minute).Unix())}
}

// injectFault injects a random fault for some time.
func (h *harness) injectFault() {
	rng := h.rng
	f := simtest.Fault{
		Kind:  pick(rng, simtest.Respond, simtest.Respond, simtest.Delay, simtest.Hang, simtest.Drop, simtest.Truncated),
		Times: rng.IntN(12), Delay: time.Duration(rng.Int64N(int64(15 * time.Second))),
	}
	if rng.IntN(3) > 0 {
		f.Path = pick(rng, collector.Resources()...).Path
	}
	if rng.IntN(4) == 0 {
		h.worldMu.Lock()
		f.Token = h.tokens[pick(rng, accountNames()...)]
		h.worldMu.Unlock()
	}
	if f.Kind == simtest.Respond {
		switch rng.IntN(5) {
		case 0, 1:
			f.Status, f.Body = 200, []byte(pick(rng, badResponses()...))
		case 2:
			f.Header = http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {pick(rng, retryTimes()...)}}
		case 3:
			f.Status = http.StatusFound
			f.Header = http.Header{"Location": {pick(rng, "https://elsewhere.example/", "/api/v1/plans", "//elsewhere.example")}}
		default:
			f.Status = pick(rng, 204, 206, 301, 400, 401, 403, 404, 429, 429, 500, 502, 503, 503)
			f.Header = http.Header{"Retry-After": {pick(rng, retryTimes()...)}}
		}
	}
	time.AfterFunc(time.Duration(rng.Int64N(int64(4*time.Minute))), h.Inject(f))
}

// changeToken revokes an account's token, or replaces it with or without that.
func (h *harness) changeToken(rng *rand.Rand) {
	account := pick(rng, accountNames()...)
	h.changeWorld(func(w *simulator.World) {
		kind := rng.IntN(3)
		if kind > 0 {
			delete(w.Accounts, h.tokens[account])
		}
		if kind < 2 {
			h.issueToken(w, account)
		}
	})
}

// changeConfiguration changes one thing in the configuration.
func (h *harness) changeConfiguration(rng *rand.Rand, c *runner.Spec) {
	r := pick(rng, collector.Resources()...)
	switch rng.IntN(3) {
	case 0: // fewer accounts, or all of them again
		c.Accounts = h.validConfiguration(rng).Accounts[:rng.IntN(4)]
	case 1:
		delete(c.Collectors, r.Name)
	default:
		c.Collectors[r.Name] = randomSettings(rng, r)
	}
}

// changeData changes one thing at the provider, so that its state is another one. How
// each field is mapped is what the golden files of collector show.
func changeData(rng *rand.Rand, w *simulator.World, a *simulator.Account) {
	plan, usd := pick(rng, w.Plans...), pick[any](rng, float64(rng.IntN(100_000))/100, 0, nil, "12.50")
	switch rng.IntN(8) {
	case 0:
		simulator.Put(plan, simulator.At(plan, "availability", "in_stock") != true, "availability", "in_stock")
	case 1:
		simulator.Put(plan, usd, "price", "monthly", "usd")
	case 2:
		pick(rng, w.Locations...)["plans_in_stock"] = pick[any](rng, rng.IntN(9), nil, -1)
	case 3:
		simulator.Put(w.Status, pick[any](rng, "operational", "degraded", nil, 7), "locations", pick(rng, "nyc", "fra", "tyo"), "components", "network")
	case 4:
		a.Transactions = simulator.Transactions(len(a.Transactions)+pick(rng, 1, 4, 130), time.Now())
	case 5: // moves one of the newest top-ups on, or adds one
		t := a.Topups[rng.IntN(min(12, len(a.Topups)))]
		switch t["status"] {
		case "pending":
			t["status"], t["payment"], t["confirmations"] = pick(rng, "confirming", "expired", "canceled"), nil, 0
		case "confirming":
			t["status"], t["paid_at"] = "paid", time.Now().UTC().Format(time.RFC3339)
		default:
			added := maps.Clone(t)
			added["id"], added["status"], added["payment"] = fmt.Sprint("tu_", rng.Uint64()), "pending", simulator.Object{"address": "secret-address"}
			a.Topups = slices.Insert(a.Topups, 0, added)
		}
	case 6:
		a.Servers = simulator.Servers(1+rng.IntN(40), time.Now())
		server := pick(rng, a.Servers...)
		server["status"] = pick[any](rng, "active", "suspended", "expired", 7)
		simulator.Put(server, usd, "price", "monthly", "usd")
	default:
		pick(rng, a.Configurations...)["in_stock"] = pick[any](rng, true, false, nil, "yes")
		a.Account["balance"] = simulator.Object{"usd": float64(rng.IntN(1_000_000)-100_000) / 100}
	}
}
