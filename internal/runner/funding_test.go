package runner

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// rent is what a server costs and when it renews.
type rent struct {
	day string
	usd float64
}

// TestFundedUntilExposed changes balance, servers and days.
func TestFundedUntilExposed(t *testing.T) {
	withHarness(t, func(_ *testing.T, h *harness) {
		change := func(usd any, rents ...rent) {
			h.Change(func(w *simulator.World) {
				a := w.Accounts[simtest.MainToken]
				a.Account["balance"] = simulator.Object{"usd": usd}
				a.Servers = nil
				for i, s := range rents {
					a.Servers = append(a.Servers, testServer(fmt.Sprint(i), "active", simulator.Object{
						"renews_at": s.day, "price": simulator.Object{"monthly": simulator.Object{"usd": s.usd}},
					}))
				}
			})
		}
		exposed := func(after time.Duration) string {
			time.Sleep(after)
			synctest.Wait()
			at, found := h.values(def("account_funded_until_timestamp_seconds"))["main"]
			if !found {
				return "absent"
			}
			return time.Unix(int64(at), 0).UTC().Format(time.DateOnly)
		}
		change(100.0, rent{"2000-01-20", 50})
		h.run(configure(time.Minute, 10*time.Minute, "account", "servers"))
		h.assertEqual("at first", exposed(0), "2000-03-20")
		change(150.0, rent{"2000-01-20", 50})
		h.assertEqual("more money", exposed(2*time.Minute), "2000-04-20")
		change(150.0, rent{"2000-01-20", 150.01})
		h.assertEqual("higher price", exposed(2*time.Minute), "2000-01-20")
		change(1e6, rent{"2000-01-20", 50})
		h.assertEqual("horizon", exposed(2*time.Minute), "2010-01-01")
		h.assertEqual("horizon a day later", exposed(24*time.Hour), "2010-01-02")
		change(nil, rent{"2000-01-20", 50})
		h.assertEqual("response without balance: the last one", exposed(2*time.Minute), "2010-01-02")
		h.assertSuccess(func(r collector.Resource) bool { return r.Name != "account" && r.Name != "servers" }, resource("account"))
		change("much", rent{"2000-01-20", 50})
		h.assertEqual("balance unknown", exposed(2*time.Minute), "absent")
		change(100.0)
		h.assertEqual("no servers", exposed(2*time.Minute), "absent")
		change(100.0, rent{"2000-01-20", 50})
		h.assertEqual("servers again", exposed(2*time.Minute), "2000-03-20")
		h.Inject(simtest.Fault{Path: "/account", Kind: simtest.Respond, Status: 500})
		h.assertEqual("balance of nine minutes ago", exposed(9*time.Minute), "2000-03-20")
		h.assertEqual("balance too old", exposed(2*time.Minute), "absent")
		h.assertEqual("cost", h.values(def("account_cost_usd_per_month")), map[string]float64{"main": 50})
	})
}
