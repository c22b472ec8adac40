package simulator_test

import (
	"context"
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

// runFor simulates activity in a bubble and calls check every ten seconds.
func runFor(t *testing.T, a *simtest.API, d time.Duration, check func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		a.Run(ctx)
		close(ended)
	}()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		check()
		if t.Failed() {
			break
		}
	}
	stop()
	<-ended
}

func TestActivityKeepsTheWorldConsistent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := simtest.StartInMemory(t, simulator.Options{})
		seen := map[string]bool{}
		first := map[string]int{}
		a.Read(func(w *simulator.World) { first = prices(w) })
		runFor(t, a, 24*time.Hour, func() {
			a.Read(func(w *simulator.World) { checkWorld(t, w, first, seen) })
		})
		a.Read(func(w *simulator.World) {
			for _, a := range w.Accounts {
				checkLedger(t, a.Transactions)
				checkIDs(t, a.Topups)
			}
		})
		checkSeen(t, seen, "pending confirming paid expired failed canceled operational degraded outage maintenance "+
			"sold-out-2 sold-out-6 topup bonus renewal usage confirmations-0 confirmations-15 price-moved waiting idle")
	})
}

// prices returns the prices of plans in cents.
func prices(w *simulator.World) map[string]int {
	all := map[string]int{}
	for _, p := range w.Plans {
		all[simulator.Text(p, "id")] = simulator.Cents(p, "price", "monthly", "usd")
	}
	return all
}

// checkWorld checks that the data is consistent, and records the states that occurred.
func checkWorld(t *testing.T, w *simulator.World, first map[string]int, seen map[string]bool) {
	t.Helper()
	checkCatalog(t, w, first)
	checkStatus(t, w.Status)
	for _, a := range w.Accounts {
		checkTopups(t, a, seen)
		checkLedger(t, a.Transactions[:min(20, len(a.Transactions))])
		simtest.AssertEqual(t, "balance", simulator.Balance(a), simulator.Cents(a.Transactions[0], "balance_after", "usd"))
	}
	recordSeen(w, seen)
}

func checkSeen(t *testing.T, seen map[string]bool, states string) {
	t.Helper()
	for what := range strings.FieldsSeq(states) {
		if !seen[what] {
			t.Errorf("%s was never seen; seen: %v", what, slices.Sorted(maps.Keys(seen)))
		}
	}
}

// recordSeen records the states that occurred.
func recordSeen(w *simulator.World, seen map[string]bool) {
	seen[simulator.Text(w.Status, "overall")] = true
	seen["maintenance"] = seen["maintenance"] || simulator.Number(w.Status, "scheduled") > 0
	seen[fmt.Sprintf("sold-out-%d", len(w.Plans)-simulator.Count(w.Plans, simulator.InStock))] = true
	for _, p := range w.Plans {
		if simulator.Cents(p, "price", "monthly", "usd")%10 != 0 {
			seen["price-moved"] = true
		}
	}
	for _, a := range w.Accounts {
		seen[simulator.Text(a.Transactions[0], "type")] = true
		waits := simulator.Count(a.Topups, func(o simulator.Object) bool { return simulator.Text(o, "status") == "pending" }) > 0
		seen[map[bool]string{true: "waiting", false: "idle"}[waits]] = true
		for _, x := range a.Transactions[:5] {
			seen[simulator.Text(x, "type")] = true
		}
	}
}

func checkCatalog(t *testing.T, w *simulator.World, first map[string]int) {
	t.Helper()
	for _, p := range w.Plans {
		id := simulator.Text(p, "id")
		sold := map[bool]string{true: "instant", false: "sold_out"}
		simtest.AssertEqual(t, id+" delivery", simulator.Text(p, "availability", "delivery"), sold[simulator.InStock(p)])
		checkAlternative(t, w.Plans, p)
		if now := simulator.Cents(p, "price", "monthly", "usd"); now*100 < first[id]*94 || now*100 > first[id]*106 {
			t.Errorf("%s costs %d cents, far from the first %d", id, now, first[id])
		}
	}
	for _, l := range w.Locations {
		offers, stocked := 0, 0
		for _, p := range w.Plans {
			if slices.Contains(simulator.At(p, "availability", "locations").([]any), l["id"]) {
				offers++
				if simulator.InStock(p) {
					stocked++
				}
			}
		}
		simtest.AssertEqual(t, simulator.Text(l, "id")+" plans", []any{l["plans"], l["plans_in_stock"]}, []any{offers, stocked})
	}
	for _, a := range w.Accounts {
		for _, c := range a.Configurations {
			p, _ := simulator.Find(w.Plans, simulator.Text(c, "plan"))
			simtest.AssertEqual(t, simulator.Text(c, "id")+" in_stock", c["in_stock"], any(simulator.InStock(p)))
		}
	}
}

func checkAlternative(t *testing.T, plans []simulator.Object, p simulator.Object) {
	t.Helper()
	other, found := simulator.Find(plans, simulator.Text(p, "availability", "alternative"))
	switch {
	case simulator.InStock(p) && simulator.At(p, "availability", "alternative") != nil:
		t.Errorf("%v is in stock and has an alternative", p["id"])
	case !simulator.InStock(p) && (!found || !simulator.InStock(other)):
		t.Errorf("%v is sold out and its alternative is %v", p["id"], simulator.At(p, "availability", "alternative"))
	}
}

func checkStatus(t *testing.T, status simulator.Object) {
	t.Helper()
	order := strings.Fields("operational maintenance degraded outage")
	broken, worst := 0, 0
	for _, place := range status["locations"].(simulator.Object) {
		for _, state := range place.(simulator.Object)["components"].(simulator.Object) {
			n := slices.Index(order, state.(string))
			if worst = max(worst, n); n > 1 {
				broken++
			}
		}
	}
	simtest.AssertEqual(t, "ongoing and overall", []any{status["ongoing"], status["overall"]}, []any{broken, order[worst]})
	if n := simulator.Number(status, "scheduled"); broken > 3 || n < 0 || n > 2 {
		t.Errorf("%d incidents and %v maintenances at a time", broken, n)
	}
}

func checkTopups(t *testing.T, a *simulator.Account, seen map[string]bool) {
	t.Helper()
	for _, x := range a.Topups[:5] {
		status := simulator.Text(x, "status")
		// Top-ups of the example account are older than the fake time.
		if simulator.Text(x, "created_at") > "2000-01-01T00:00:00Z" {
			seen[status] = true
		}
		seen[fmt.Sprintf("confirmations-%v", x["confirmations"])] = true
		got := map[string]bool{
			"payment": x["payment"] != nil, "credited": x["credited"] != nil, "paid_at": x["paid_at"] != nil,
			"short": simulator.Number(x, "confirmations") < simulator.Number(x, "confirmations_needed"), "hash": (x["tx_hash"] != nil) == (x["confirmations"] != nil),
		}
		want := map[string]bool{
			"payment": status == "pending", "credited": status == "paid", "paid_at": status == "paid",
			"short": status != "paid", "hash": true,
		}
		simtest.AssertEqual(t, "top-up "+simulator.Text(x, "id")+" "+status, got, want)
	}
}

// checkLedger checks entries that are newest first.
func checkLedger(t *testing.T, list []simulator.Object) {
	t.Helper()
	for i := range len(list) - 1 {
		newer, older := list[i], list[i+1]
		got := []any{simulator.Cents(newer, "balance_after", "usd"), simulator.Number(newer, "id"), simulator.Text(newer, "created_at") >= simulator.Text(older, "created_at")}
		want := []any{simulator.Cents(older, "balance_after", "usd") + simulator.Cents(newer, "amount", "usd"), simulator.Number(older, "id") + 1, true}
		simtest.AssertEqual(t, fmt.Sprintf("transaction %v", newer["id"]), got, want)
		if simulator.Cents(newer, "balance_after", "usd") < 0 {
			t.Errorf("the balance is negative after transaction %v", newer["id"])
		}
	}
}

func checkIDs(t *testing.T, list []simulator.Object) {
	t.Helper()
	ids := map[any]bool{}
	for _, o := range list {
		ids[o["id"]] = true
	}
	simtest.AssertEqual(t, "distinct ids", len(ids), len(list))
}

func TestActivityLimitsLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := simtest.StartInMemory(t, simulator.Options{})
		a.Change(func(w *simulator.World) {
			a := w.Accounts[simtest.MainToken]
			a.Topups = simulator.Topups(simulator.MaxTopups, time.Now())
			a.Transactions = simulator.Transactions(simulator.MaxTransactions, time.Now())
			simulator.Put(a.Account, simulator.At(a.Transactions[0], "balance_after", "usd"), "balance", "usd")
		})
		var newest []any
		runFor(t, a, 6*time.Hour, func() {
			a.Read(func(w *simulator.World) {
				a := w.Accounts[simtest.MainToken]
				if len(a.Topups) > simulator.MaxTopups || len(a.Transactions) > simulator.MaxTransactions+10 {
					t.Errorf("%d top-ups and %d transactions are kept", len(a.Topups), len(a.Transactions))
				}
				newest = []any{a.Topups[0]["status"], a.Transactions[0]["id"]}
			})
		})
		if newest[1].(int) < simulator.MaxTransactions+50 {
			t.Errorf("the newest transaction is %v: not much has happened", newest[1])
		}
	})
}

func TestExampleAccountsOnManyDays(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for day := range 400 {
		a := simulator.ExampleAccount(fmt.Sprint("customer-", day%7), now.AddDate(0, 0, day))
		checkLedger(t, a.Transactions)
		simtest.AssertEqual(t, "balance", simulator.Balance(a), simulator.Cents(a.Transactions[0], "balance_after", "usd"))
		seen := map[string]bool{}
		checkTopups(t, a, seen)
		simtest.AssertEqual(t, "newest top-up", a.Topups[0]["status"], any("pending"))
		if simulator.Text(a.Topups[0], "payment", "rate_locked_until") <= simulator.Stamp(now.AddDate(0, 0, day)) {
			t.Errorf("day %d: the rate lock of the pending top-up is over", day)
		}
		simtest.AssertEqual(t, "suspended", simulator.Count(a.Servers, func(o simulator.Object) bool { return simulator.Text(o, "status") == "suspended" }), 1)
	}
}

func TestExampleAccountsAreDistinct(t *testing.T) {
	now := time.Now()
	ids := func(a *simulator.Account) map[string]bool {
		all := map[string]bool{simulator.Text(a.Account, "id"): true}
		for _, list := range [][]simulator.Object{a.Topups, a.Configurations, a.SSHKeys, a.Servers} {
			checkIDs(t, list)
			for _, o := range list {
				all[simulator.Text(o, "id")] = true
			}
		}
		return all
	}
	main, lab := ids(simulator.ExampleAccount("main", now)), ids(simulator.ExampleAccount("lab", now))
	for id := range main {
		if lab[id] {
			t.Errorf("both accounts have %s", id)
		}
	}
	simtest.AssertEqual(t, "the same account again", simulator.ExampleAccount("main", now), simulator.ExampleAccount("main", now))
}

func TestGeneratedLists(t *testing.T) {
	now := time.Now()
	for _, n := range []int{0, 1, 2, 5000} {
		servers, topups, entries := simulator.Servers(n, now), simulator.Topups(n, now), simulator.Transactions(n, now)
		simtest.AssertEqual(t, "lengths", []int{len(servers), len(topups), len(entries)}, []int{n, n, n})
		checkIDs(t, servers)
		checkIDs(t, topups)
		checkIDs(t, entries)
		checkLedger(t, entries)
		addresses := map[any]bool{}
		for _, s := range servers {
			addresses[s["ipv4"]] = true
		}
		simtest.AssertEqual(t, "distinct addresses", len(addresses), n)
		simtest.AssertEqual(t, "top-ups under way", simulator.Count(topups, func(o simulator.Object) bool {
			return simulator.Text(o, "status") == "pending" || simulator.Text(o, "status") == "confirming"
		}), 0)
		if !slices.IsSortedFunc(topups, func(a, b simulator.Object) int {
			return strings.Compare(simulator.Text(b, "created_at"), simulator.Text(a, "created_at"))
		}) {
			t.Error("the top-ups are not newest first")
		}
	}
}
