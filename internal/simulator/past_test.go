package simulator_test

import (
	"fmt"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// TestPastIsConsistent looks at the data of a month of the past, of two accounts.
func TestPastIsConsistent(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, servers := range []int{simulator.ExampleServers, 25} {
		t.Run(fmt.Sprintf("%d servers", servers), func(t *testing.T) {
			t.Parallel()
			sim := simulator.New(simulator.Options{})
			first, seen := map[string]int{}, map[string]bool{}
			sim.Read(func(w *simulator.World) { first = prices(w) })
			start := time.Date(2026, 10, 22, 11, 12, 0, 0, time.UTC)
			end := start.AddDate(0, 0, 30)
			past := simulator.NewPast(1, start, end, map[string]string{"one": "main", "two": "lab"}, servers)
			for now := start; now.Before(end) && !t.Failed(); now = now.Add(23 * time.Minute) {
				sim.Change(func(w *simulator.World) {
					past.Apply(w, now)
					simtest.AssertEqual(t, "accounts", len(w.Accounts), 2)
					checkWorld(t, w, first, seen)
					for _, a := range w.Accounts {
						checkLedger(t, a.Transactions)
						checkServers(t, a, servers, now, end)
					}
				})
			}
			checkSeen(t, seen, "pending confirming paid failed canceled operational degraded outage maintenance renewal bonus")
		})
	}
}

// checkServers asserts that each server is paid for until its next renewal.
func checkServers(t *testing.T, a *simulator.Account, n int, now, end time.Time) {
	t.Helper()
	simtest.AssertEqual(t, "servers", len(a.Servers), n)
	for _, s := range a.Servers {
		next, err := time.Parse(time.DateOnly, simulator.Text(s, "renews_at"))
		if err != nil {
			t.Error(err)
		}
		if !next.After(now) || next.AddDate(0, -1, 0).After(now) {
			t.Errorf("%s renews at %v, which is not within a month", s["hostname"], next)
		}
		if s["status"] == "suspended" && end.Sub(now) > 3*24*time.Hour {
			t.Errorf("%s is suspended already", s["hostname"])
		}
	}
}
