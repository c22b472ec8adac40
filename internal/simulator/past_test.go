package simulator_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// replay replays a past of a month in a bubble, of two accounts with servers each, and
// calls check now and then, the last time at the end.
func replay(t *testing.T, seed uint64, servers int, every time.Duration, check func(t *testing.T, a *simtest.API, end time.Time)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := simtest.StartInMemory(t, simulator.Options{})
		names := map[string]string{}
		for name, token := range simtest.Tokens() {
			names[token] = name
		}
		time.Sleep(11*time.Hour + 12*time.Minute)
		end := time.Now().AddDate(0, 0, 30)
		past := simulator.NewPast(seed, time.Now(), end, names, servers)
		for time.Now().Before(end) && !t.Failed() {
			time.Sleep(min(every, time.Until(end)))
			a.Change(func(w *simulator.World) { past.Apply(w, time.Now()) })
			check(t, a, end)
		}
	})
}

func TestPastIsConsistent(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, servers := range []int{simulator.ExampleServers, 25} {
		t.Run(fmt.Sprintf("%d servers", servers), func(t *testing.T) {
			t.Parallel()
			checkPast(t, servers)
		})
	}
}

func checkPast(t *testing.T, servers int) {
	t.Helper()
	first := map[string]int{}
	for _, p := range catalog(t) {
		first[simulator.Text(p, "id")] = simulator.Cents(p, "price", "monthly", "usd")
	}
	seen := map[string]bool{}
	replay(t, 1, servers, 23*time.Minute, func(t *testing.T, a *simtest.API, end time.Time) {
		t.Helper()
		a.Read(func(w *simulator.World) {
			checkCatalog(t, w, first)
			checkStatus(t, w.Status)
			simtest.AssertEqual(t, "accounts", len(w.Accounts), 2)
			for _, account := range w.Accounts {
				checkTopups(t, account, seen)
				checkLedger(t, account.Transactions)
				checkServers(t, account, servers, end)
				simtest.AssertEqual(t, "balance", simulator.Balance(account), simulator.Cents(account.Transactions[0], "balance_after", "usd"))
			}
			recordSeen(w, seen)
		})
	})
	for _, what := range strings.Fields("pending confirming paid failed canceled operational degraded outage maintenance renewal bonus") {
		if !seen[what] {
			t.Errorf("in a month, %s was never seen; seen: %v", what, slices.Sorted(maps.Keys(seen)))
		}
	}
}

// checkServers asserts that each server is paid for until its next renewal.
func checkServers(t *testing.T, a *simulator.Account, n int, end time.Time) {
	t.Helper()
	simtest.AssertEqual(t, "servers", len(a.Servers), n)
	for _, s := range a.Servers {
		next, err := time.Parse(time.DateOnly, simulator.Text(s, "renews_at"))
		if err != nil {
			t.Error(err)
		}
		if !next.After(time.Now()) || next.AddDate(0, -1, 0).After(time.Now()) {
			t.Errorf("%s renews at %v, which is not within a month", s["hostname"], next)
		}
		if s["status"] == "suspended" && time.Until(end) > 3*24*time.Hour {
			t.Errorf("%s is suspended already", s["hostname"])
		}
	}
}

func catalog(t *testing.T) []simulator.Object {
	t.Helper()
	var plans []simulator.Object
	simulator.New(simulator.Options{}).Read(func(w *simulator.World) { plans = w.Plans })
	return plans
}

// TestPastEndsInTheExample compares the responses at the end of a past with those of a
// simulator that begins then.
func TestPastEndsInTheExample(t *testing.T) {
	for seed := range uint64(3) {
		replay(t, seed, simulator.ExampleServers, simulator.MaxPast, func(t *testing.T, a *simtest.API, _ time.Time) {
			t.Helper()
			fresh := simtest.StartInMemory(t, simulator.Options{})
			normalize := func(w *simulator.World) { w.Status["since"] = "" } // an incident was meanwhile
			a.Change(normalize)
			fresh.Change(normalize)
			for _, path := range []string{"/plans", "/locations", "/os", "/status"} {
				simtest.AssertEqual(t, path, a.Body(path, ""), fresh.Body(path, ""))
			}
			for name, token := range simtest.Tokens() {
				for _, path := range []string{"/account", "/servers", "/topups", "/transactions", "/configurations", "/ssh-keys"} {
					simtest.AssertEqual(t, name+" "+path, a.Body(path, token), fresh.Body(path, token))
				}
			}
		})
	}
}
