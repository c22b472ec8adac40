package simulator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// liveFor lets a simulator live inside a bubble, and looks every ten seconds.
func liveFor(t *testing.T, s *Simulator, d time.Duration, look func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.Run(ctx)
		close(ended)
	}()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		look()
		if t.Failed() {
			break
		}
	}
	stop()
	<-ended
}

func TestLifeKeepsTheWorldConsistent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := withMain(Options{})
		s.Change(func(w *World) { w.Accounts["token-of-lab"] = ExampleAccount("lab", time.Now()) })
		seen := map[string]bool{}
		first := map[string]int{}
		s.Read(func(w *World) {
			for _, p := range w.Plans {
				first[text(p, "id")] = cents(p, "price", "monthly", "usd")
			}
		})
		liveFor(t, s, 24*time.Hour, func() {
			s.Read(func(w *World) {
				checkCatalog(t, w, first)
				checkStatus(t, w.Status)
				for _, a := range w.Accounts {
					checkTopups(t, a, seen)
					checkLedger(t, a.Transactions[:20])
					same(t, "balance", a.balance(), cents(a.Transactions[0], "balance_after", "usd"))
				}
				note(w, seen)
			})
		})
		s.Read(func(w *World) {
			for _, a := range w.Accounts {
				checkLedger(t, a.Transactions)
				checkIDs(t, a.Topups)
			}
		})
		for _, what := range strings.Fields("pending confirming paid expired failed canceled operational degraded outage maintenance " +
			"sold-out-2 sold-out-6 topup bonus renewal usage confirmations-0 confirmations-15 price-moved waiting idle") {
			if !seen[what] {
				t.Errorf("in a day, %s was never seen; seen: %v", what, slices.Sorted(maps.Keys(seen)))
			}
		}
	})
}

// note writes down what there is, to be asked for at the end.
func note(w *World, seen map[string]bool) {
	seen[text(w.Status, "overall")] = true
	seen["maintenance"] = seen["maintenance"] || number(w.Status, "scheduled") > 0
	seen[fmt.Sprintf("sold-out-%d", len(w.Plans)-count(w.Plans, inStock))] = true
	for _, p := range w.Plans {
		if cents(p, "price", "monthly", "usd")%10 != 0 {
			seen["price-moved"] = true
		}
	}
	for _, a := range w.Accounts {
		seen[text(a.Transactions[0], "type")] = true
		waits := count(a.Topups, func(o Object) bool { return text(o, "status") == "pending" }) > 0
		seen[map[bool]string{true: "waiting", false: "idle"}[waits]] = true
		for _, x := range a.Transactions[:5] {
			seen[text(x, "type")] = true
		}
	}
}

func checkCatalog(t *testing.T, w *World, first map[string]int) {
	t.Helper()
	for _, p := range w.Plans {
		id := text(p, "id")
		sold := map[bool]string{true: "instant", false: "sold_out"}
		same(t, id+" delivery", text(p, "availability", "delivery"), sold[inStock(p)])
		checkAlternative(t, w.Plans, p)
		if now := cents(p, "price", "monthly", "usd"); now*100 < first[id]*94 || now*100 > first[id]*106 {
			t.Errorf("%s costs %d cents, far from the first %d", id, now, first[id])
		}
	}
	for _, l := range w.Locations {
		offers, stocked := 0, 0
		for _, p := range w.Plans {
			if slices.Contains(at(p, "availability", "locations").([]string), text(l, "id")) {
				offers++
				if inStock(p) {
					stocked++
				}
			}
		}
		same(t, text(l, "id")+" plans", []any{l["plans"], l["plans_in_stock"]}, []any{offers, stocked})
	}
	for _, a := range w.Accounts {
		for _, c := range a.Configurations {
			p, _ := find(w.Plans, text(c, "plan"))
			same(t, text(c, "id")+" in_stock", c["in_stock"], any(inStock(p)))
		}
	}
}

func checkAlternative(t *testing.T, plans []Object, p Object) {
	t.Helper()
	other, found := find(plans, text(p, "availability", "alternative"))
	switch {
	case inStock(p) && at(p, "availability", "alternative") != nil:
		t.Errorf("%v is in stock and has an alternative", p["id"])
	case !inStock(p) && (!found || !inStock(other)):
		t.Errorf("%v is sold out and its alternative is %v", p["id"], at(p, "availability", "alternative"))
	}
}

func checkStatus(t *testing.T, status Object) {
	t.Helper()
	ill, worst := 0, "operational"
	for _, place := range status["locations"].(Object) {
		for _, state := range place.(Object)["components"].(Object) {
			if state != "operational" {
				ill++
				worst = map[bool]string{true: "outage", false: "degraded"}[worst == "outage" || state == "outage"]
			}
		}
	}
	same(t, "ongoing and overall", []any{status["ongoing"], status["overall"]}, []any{ill, worst})
	if n := number(status, "scheduled"); ill > 3 || n < 0 || n > 2 {
		t.Errorf("%d incidents and %v maintenances at a time", ill, n)
	}
}

func checkTopups(t *testing.T, a *Account, seen map[string]bool) {
	t.Helper()
	for _, x := range a.Topups[:5] {
		status := text(x, "status")
		// Those the account began with, at the start of fake time or before,
		// do not show what life does.
		if text(x, "created_at") > "2000-01-01T00:00:00Z" {
			seen[status] = true
		}
		seen[fmt.Sprintf("confirmations-%v", x["confirmations"])] = true
		got := map[string]bool{
			"payment": x["payment"] != nil, "credited": x["credited"] != nil, "paid_at": x["paid_at"] != nil,
			"short": number(x, "confirmations") < number(x, "confirmations_needed"), "hash": (x["tx_hash"] != nil) == (x["confirmations"] != nil),
		}
		want := map[string]bool{
			"payment": status == "pending", "credited": status == "paid", "paid_at": status == "paid",
			"short": status != "paid", "hash": true,
		}
		same(t, "top-up "+text(x, "id")+" "+status, got, want)
	}
}

// checkLedger checks entries that are newest first.
func checkLedger(t *testing.T, list []Object) {
	t.Helper()
	for i := range len(list) - 1 {
		newer, older := list[i], list[i+1]
		got := []any{cents(newer, "balance_after", "usd"), number(newer, "id"), text(newer, "created_at") >= text(older, "created_at")}
		want := []any{cents(older, "balance_after", "usd") + cents(newer, "amount", "usd"), number(older, "id") + 1, true}
		same(t, fmt.Sprintf("transaction %v", newer["id"]), got, want)
		if cents(newer, "balance_after", "usd") < 0 {
			t.Errorf("the balance is negative after transaction %v", newer["id"])
		}
	}
}

func checkIDs(t *testing.T, list []Object) {
	t.Helper()
	ids := map[any]bool{}
	for _, o := range list {
		ids[o["id"]] = true
	}
	same(t, "distinct ids", len(ids), len(list))
}

func TestLifeKeepsListsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := withMain(Options{})
		s.Change(func(w *World) {
			a := w.Accounts[token]
			a.Topups = Topups(maxTopups, time.Now())
			a.Transactions = Transactions(maxTransactions, time.Now())
			put(a.Account, at(a.Transactions[0], "balance_after", "usd"), "balance", "usd")
		})
		var newest []any
		liveFor(t, s, 6*time.Hour, func() {
			s.Read(func(w *World) {
				a := w.Accounts[token]
				if len(a.Topups) > maxTopups || len(a.Transactions) > maxTransactions+10 {
					t.Errorf("%d top-ups and %d transactions are kept", len(a.Topups), len(a.Transactions))
				}
				newest = []any{a.Topups[0]["status"], a.Transactions[0]["id"]}
			})
		})
		if newest[1].(int) < maxTransactions+50 {
			t.Errorf("the newest transaction is %v: not much has happened", newest[1])
		}
	})
}

func TestLifeRenewsAndSuspends(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	server := func(renews, status string, usd float64) Object {
		return Object{"hostname": "h", "renews_at": renews, "status": status, "price": Object{"monthly": Object{"usd": usd}}}
	}
	a := &Account{
		Account: Object{"balance": Object{"usd": 150.5}},
		Servers: []Object{
			server("2026-03-10", "active", 100.25), server("2026-03-11", "active", 1),
			server("2026-03-09", "active", 90), server("2026-03-01", "suspended", 50.25), server("soon", "active", 1),
		},
	}
	a.renew(now)
	same(t, "servers", a.Servers, []Object{
		server("2026-04-10", "active", 100.25), server("2026-03-11", "active", 1),
		server("2026-03-09", "suspended", 90), server("2026-04-01", "active", 50.25), server("soon", "active", 1),
	})
	same(t, "balance", a.Account, Object{"balance": Object{"usd": 0.0}})
	same(t, "transactions", a.Transactions, []Object{
		transaction(2, "renewal", -5025, 0, "Renewal of h", nil, now), transaction(1, "renewal", -10025, 5025, "Renewal of h", nil, now),
	})
}

func TestExampleAccountsOnManyDays(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for day := range 400 {
		a := ExampleAccount(fmt.Sprint("customer-", day%7), now.AddDate(0, 0, day))
		checkLedger(t, a.Transactions)
		same(t, "balance", a.balance(), cents(a.Transactions[0], "balance_after", "usd"))
		seen := map[string]bool{}
		checkTopups(t, a, seen)
		same(t, "newest top-up", a.Topups[0]["status"], any("pending"))
		if text(a.Topups[0], "payment", "rate_locked_until") <= stamp(now.AddDate(0, 0, day)) {
			t.Errorf("day %d: the rate lock of the pending top-up is over", day)
		}
		same(t, "suspended", count(a.Servers, func(o Object) bool { return text(o, "status") == "suspended" }), 1)
	}
}

func TestExampleAccountHasEveryStateAndKind(t *testing.T) {
	a := ExampleAccount("main", time.Now())
	values := func(list []Object, key string) string {
		found := map[string]bool{}
		for _, o := range list {
			found[text(o, key)] = true
		}
		return strings.Join(slices.Sorted(maps.Keys(found)), " ")
	}
	same(t, "states and kinds",
		[]string{values(a.Topups, "status"), values(a.Topups, "coin"), values(a.Transactions, "type"), values(a.Servers, "status")},
		[]string{"canceled confirming expired failed paid pending", "btc usdt-trc20", "bonus renewal topup", "active suspended"})
}

func TestAccountsShareNothing(t *testing.T) {
	now := time.Now()
	ids := func(a *Account) map[string]bool {
		all := map[string]bool{text(a.Account, "id"): true}
		for _, list := range [][]Object{a.Topups, a.Configurations, a.SSHKeys, a.Servers} {
			checkIDs(t, list)
			for _, o := range list {
				all[text(o, "id")] = true
			}
		}
		return all
	}
	main, lab := ids(ExampleAccount("main", now)), ids(ExampleAccount("lab", now))
	for id := range main {
		if lab[id] {
			t.Errorf("both accounts have %s", id)
		}
	}
	same(t, "the same account again", ExampleAccount("main", now), ExampleAccount("main", now))
}

func TestGeneratedLists(t *testing.T) {
	now := time.Now()
	for _, n := range []int{0, 1, 2, 5000} {
		servers, topups, entries := Servers(n, now), Topups(n, now), Transactions(n, now)
		same(t, "lengths", []int{len(servers), len(topups), len(entries)}, []int{n, n, n})
		checkIDs(t, servers)
		checkIDs(t, topups)
		checkIDs(t, entries)
		checkLedger(t, entries)
		addresses := map[any]bool{}
		for _, s := range servers {
			addresses[s["ipv4"]] = true
		}
		same(t, "distinct addresses", len(addresses), n)
		same(t, "top-ups under way", count(topups, func(o Object) bool {
			return text(o, "status") == "pending" || text(o, "status") == "confirming"
		}), 0)
		if !slices.IsSortedFunc(topups, func(a, b Object) int { return strings.Compare(text(b, "created_at"), text(a, "created_at")) }) {
			t.Error("the top-ups are not newest first")
		}
	}
}

func BenchmarkTenThousandServers(b *testing.B) {
	s := withMain(Options{AccountLimit: -1, KeepRequests: -1})
	s.Change(func(w *World) { w.Accounts[token].Servers = Servers(10_000, time.Now()) })
	for b.Loop() {
		ask(s, "/servers", token, "pipe")
	}
}

func BenchmarkAPageOfFiftyThousandTopups(b *testing.B) {
	s := withMain(Options{AccountLimit: -1, KeepRequests: -1})
	s.Change(func(w *World) { w.Accounts[token].Topups = Topups(50_000, time.Now()) })
	for b.Loop() {
		ask(s, "/topups?limit=100&page=250&status=paid", token, "pipe")
	}
}
