package collector

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/simulator"
)

// entry is a balance transaction as the provider has it.
func entry(id int, kind string, cents int) simulator.Object {
	return simulator.Object{"id": id, "type": kind, "amount": simulator.Object{"usd": float64(cents) / 100}}
}

// sums are all samples of a ledger, added up in whole cents.
func sums(ledger []simulator.Object) string {
	type tally struct{ n, credit, debit int }
	byType := map[string]*tally{}
	for _, e := range ledger {
		kind := e["type"].(string)
		if byType[kind] == nil {
			byType[kind] = &tally{}
		}
		t := byType[kind]
		t.n++
		usd := e["amount"].(simulator.Object)["usd"].(float64)
		if cents := int(math.Round(usd * 100)); cents > 0 {
			t.credit += cents
		} else {
			t.debit -= cents
		}
	}
	var lines []string
	add := func(d string, kind string, v float64) {
		lines = append(lines, fmt.Sprintf("%s{account=%q,type=%q} %s", d, "main", kind, strconv.FormatFloat(v, 'g', -1, 64)))
	}
	for kind, t := range byType {
		add("n", kind, float64(t.n))
		add("credit", kind, float64(t.credit)/100)
		add("debit", kind, float64(t.debit)/100)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// sums are those that are shown.
func (r *rig) sums() string {
	r.t.Helper()
	var lines []string
	for name, family := range map[string]string{"n": transactionsTotal.Name, "credit": transactionsCredit.Name, "debit": transactionsDebit.Name} {
		for _, s := range r.samples(family) {
			lines = append(lines, name+s)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// entries is how many entries are shown to have been counted.
func (r *rig) entries() int {
	n := 0
	for _, s := range r.samples(transactionsTotal.Name) {
		v, err := strconv.ParseFloat(s[strings.LastIndex(s, " ")+1:], 64)
		if err != nil {
			r.t.Fatal(err)
		}
		n += int(v)
	}
	return n
}

func (r *rig) ledger() (l []simulator.Object) {
	r.sim.Read(func(w *simulator.World) { l = slices.Clone(w.Accounts[mainToken].Transactions) })
	return l
}

func (r *rig) setLedger(l []simulator.Object) {
	r.sim.Change(func(w *simulator.World) { w.Accounts[mainToken].Transactions = l })
}

// book adds n new entries to the ledger.
func (r *rig) book(n int) {
	r.sim.Change(func(w *simulator.World) {
		a := w.Accounts[mainToken]
		newest := 0
		if len(a.Transactions) > 0 {
			newest = a.Transactions[0]["id"].(int)
		}
		var fresh []simulator.Object
		for i := n; i > 0; i-- {
			id := newest + i
			fresh = append(fresh, entry(id, []string{"topup", "renewal", "bonus"}[id%3], (id*7919)%20_001-10_000))
		}
		a.Transactions = append(fresh, a.Transactions...)
	})
}

func ledgerConfig() Config { return every(5*time.Minute, 30*time.Minute, "transactions") }

// TestLedgerWalk counts histories of every length and what that costs, at first and later.
func TestLedgerWalk(t *testing.T) {
	for _, c := range []struct{ entries, first, next int }{
		{0, 1, 1},
		{1, 1, 1},
		{100, 1, 1},
		{101, 2 + 1, 1},
		{500, 5 + 1, 1},
		{50_000, 500 + 1, 1},
	} {
		t.Run(fmt.Sprint(c.entries), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.setLedger(simulator.Transactions(c.entries, time.Now()))
				r.run(ledgerConfig())
				synctest.Wait()
				same(t, "ready after the first page", r.set.Ready(), true)
				for r.set.Status()[0].LastSuccess.IsZero() {
					same(t, "shown before the end", r.sums(), "")
					same(t, "collector_success before the end", r.samples(collectorSuccess.Name), "[]")
					time.Sleep(10 * time.Second)
					synctest.Wait()
				}
				same(t, "sums", r.sums(), sums(r.ledger()))
				same(t, "requests", len(r.provider.requests("")), c.first)
				for i := range 3 {
					r.book(i)
					asked := len(r.provider.requests(""))
					time.Sleep(5*time.Minute + 30*time.Second - time.Duration(i)*15*time.Second)
					r.settle()
					same(t, "sums later", r.sums(), sums(r.ledger()))
					same(t, "requests later", len(r.provider.requests(""))-asked, c.next)
				}
				same(t, "invalid items", r.samples(collectorInvalid.Name), `[{account="main",collector="transactions"} 0]`)
				same(t, "log", r.log.take(t), "[]")
			})
		})
	}
}

// TestLedgerWalkLeavesRoom has the other collectors of the account keep their
// interval while a long history is read.
func TestLedgerWalkLeavesRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.setLedger(simulator.Transactions(30_000, time.Now()))
		r.run(every(time.Minute, 10*time.Minute, "transactions", "servers", "account"))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		same(t, "entries while the walk is under way", r.entries(), 0)
		for _, path := range []string{"/servers", "/account"} {
			requests := r.provider.requests(path)
			for i := 1; i < len(requests); i++ {
				if gap := requests[i].at.Sub(requests[i-1].at); gap > 67*time.Second {
					t.Errorf("%s: asked after %v, want at most 67 s", path, gap)
				}
			}
			if len(requests) < 4 {
				t.Errorf("%s: %d requests in five minutes", path, len(requests))
			}
		}
	})
}

// TestLedgerCatchesUp has many entries come between two refreshes.
func TestLedgerCatchesUp(t *testing.T) {
	for _, c := range []struct{ fresh, requests int }{{99, 1}, {100, 1}, {101, 2}, {250, 3}, {1000, 10}} {
		t.Run(fmt.Sprint(c.fresh), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.setLedger(simulator.Transactions(300, time.Now()))
				r.run(ledgerConfig())
				r.settle()
				asked := len(r.provider.requests(""))
				r.book(c.fresh)
				time.Sleep(5*time.Minute + 30*time.Second)
				r.settle()
				same(t, "sums", r.sums(), sums(r.ledger()))
				same(t, "requests", len(r.provider.requests(""))-asked, c.requests)
			})
		})
	}
}

// TestLedgerCatchesUpInSteps has more entries come while many new ones are read: what
// is shown is of one moment, at once and not only after another interval.
func TestLedgerCatchesUpInSteps(t *testing.T) {
	for _, c := range []struct{ meanwhile, requests int }{{1, 3}, {50, 4}, {99, 4}, {150, 5}, {400, 7}} {
		t.Run(fmt.Sprint(c.meanwhile), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.setLedger(simulator.Transactions(1_000, time.Now()))
				r.run(ledgerConfig())
				r.settle()
				var once atomic.Bool
				r.book(150)
				r.provider.beforeEach(func(_ string, q url.Values) {
					if q.Get("page") == "2" && once.CompareAndSwap(false, true) {
						r.book(c.meanwhile)
					}
				})
				asked := len(r.provider.requests(""))
				time.Sleep(5*time.Minute + 30*time.Second)
				r.settle()
				same(t, "sums", r.sums(), sums(r.ledger()))
				same(t, "requests", len(r.provider.requests(""))-asked, c.requests)
			})
		})
	}
}

// TestLedgerWhilePagesShift books entries and has requests fail at random times
// during walks. What is shown must at every moment be the sums of the oldest so
// many entries: none lost, none counted twice.
func TestLedgerWhilePagesShift(t *testing.T) {
	seeds := uint64(40)
	if racing {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				dice := rand.New(rand.NewPCG(seed, 1))
				r.setLedger(simulator.Transactions(dice.IntN(1200), time.Now()))
				var quiet atomic.Bool
				r.provider.beforeEach(func(string, url.Values) {
					if quiet.Load() {
						return
					}
					if dice.IntN(2) == 0 {
						r.book([]int{1, 1, 2, 5, 40, 99, 100, 101, 230}[dice.IntN(9)])
					}
					if dice.IntN(4) == 0 {
						kinds := []simulator.Kind{simulator.Drop, simulator.Truncated, simulator.Garbage, simulator.Hang}
						r.sim.Inject(simulator.Fault{Kind: kinds[dice.IntN(len(kinds))], Times: 1})
					}
				})
				r.run(ledgerConfig())
				check := func() {
					t.Helper()
					shown, ledger := r.entries(), r.ledger()
					if shown > len(ledger) {
						t.Fatalf("%d entries counted of %d", shown, len(ledger))
					}
					same(t, fmt.Sprintf("sums of %d entries", shown), r.sums(), sums(ledger[len(ledger)-shown:]))
				}
				for range 80 {
					time.Sleep(30 * time.Second)
					synctest.Wait()
					check()
				}
				quiet.Store(true)
				time.Sleep(30 * time.Minute)
				r.settle()
				check()
				same(t, "entries at last", r.entries(), len(r.ledger()))
				same(t, "invalid items", r.samples(collectorInvalid.Name), `[{account="main",collector="transactions"} 0]`)
			})
		})
	}
}

// TestLedgerResumes has a page fail in the middle of the first walk.
func TestLedgerResumes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.setLedger(simulator.Transactions(500, time.Now()))
		r.sim.Inject(simulator.Fault{Query: url.Values{"page": {"3"}}, Kind: simulator.Respond, Status: 500, Times: 2})
		r.run(ledgerConfig())
		time.Sleep(4 * time.Minute)
		r.settle()
		var pages []string
		for _, a := range r.provider.requests("") {
			pages = append(pages, a.query.Get("page"))
		}
		same(t, "pages", pages, "[1 2 3 3 3 4 5 1]")
		same(t, "sums", r.sums(), sums(r.ledger()))
		sameLog(t, r.log.take(t), fails(transactions(), "status 500"), logLine{"level=info", "collector works again"})
	})
}

// paged serves a ledger of any items in pages of 100.
func paged(items []any, total int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.FormValue("page"))
		pages := (len(items) + 99) / 100
		from, to := min((page-1)*100, len(items)), min(page*100, len(items))
		var t failNow
		_, _ = w.Write(encoded(t, map[string]any{
			"data": append([]any{}, items[from:to]...),
			"meta": map[string]any{"total": total, "pages": pages, "page": page},
		}))
	}
}

// failNow panics where a test helper fails.
type failNow struct{ testing.TB }

func (failNow) Helper()             {}
func (failNow) Fatal(values ...any) { panic(fmt.Sprint(values...)) }

func anyOf(l []simulator.Object) []any {
	items := make([]any, len(l))
	for i, e := range l {
		items[i] = e
	}
	return items
}

// TestLedgerLeavesOut has entries that cannot be counted, on every page there is.
func TestLedgerLeavesOut(t *testing.T) {
	spoil := func(n int, at func(i int) bool, bad func(i int, e simulator.Object) any) func() ([]any, []simulator.Object) {
		return func() (items []any, good []simulator.Object) {
			for i, e := range simulator.Transactions(n, time.Now()) {
				if at(i) {
					items = append(items, bad(i, e))
					continue
				}
				items, good = append(items, e), append(good, e)
			}
			return items, good
		}
	}
	null := func(int, simulator.Object) any { return nil }
	for _, c := range []struct {
		name    string
		ledger  func() ([]any, []simulator.Object)
		invalid int
	}{
		{"one on the first page", spoil(250, func(i int) bool { return i == 5 }, null), 1},
		{"one on the last page", spoil(250, func(i int) bool { return i == 205 }, null), 1},
		{"one on each page", spoil(250, func(i int) bool { return i%100 == 50 }, null), 2},
		{"a whole page in the middle", spoil(350, func(i int) bool { return i/100 == 1 }, null), 100},
		{"the first page", spoil(350, func(i int) bool { return i < 100 }, null), 100},
		{"all of one page", spoil(40, func(int) bool { return true }, null), 40},
		{"all of three pages", spoil(250, func(int) bool { return true }, null), 250},
		{"seen on the page before", spoil(250, func(i int) bool { return i == 120 }, func(_ int, _ simulator.Object) any { return entry(240, "topup", 500) }), 1},
		{"amounts in words", spoil(250, func(i int) bool { return i >= 240 }, func(_ int, e simulator.Object) any {
			return simulator.Object{"id": e["id"], "type": "topup", "amount": simulator.Object{"usd": "12"}}
		}), 10},
		{"amounts missing", spoil(250, func(i int) bool { return i >= 240 }, func(_ int, e simulator.Object) any {
			return simulator.Object{"id": e["id"], "type": "topup"}
		}), 10},
		{"more types than there may be", spoil(250, func(i int) bool { return i >= 50 && i < 150 }, func(i int, e simulator.Object) any {
			return entry(e["id"].(int), fmt.Sprintf("type-%d", i), 100)
		}), -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				items, good := c.ledger()
				r.provider.answer("/transactions", paged(items, len(items)))
				r.run(ledgerConfig())
				time.Sleep(20 * time.Minute)
				r.settle()
				if c.invalid < 0 { // which types are left out is a matter of order: three were there
					same(t, "types", len(r.samples(transactionsTotal.Name)), mostTypes)
					c.invalid = len(items) - r.entries()
					if c.invalid != 3 {
						t.Errorf("entries left out: got %d, want 3", c.invalid)
					}
				} else {
					same(t, "sums", r.sums(), sums(good))
				}
				same(t, "invalid items", r.samples(collectorInvalid.Name), fmt.Sprintf(`[{account="main",collector="transactions"} %d]`, c.invalid))
				same(t, "collector_success", r.samples(collectorSuccess.Name), `[{account="main",collector="transactions"} 1]`)
				sameLog(t, r.log.take(t), logLine{"level=warn", "items left out", fmt.Sprintf("items=%d ", c.invalid)})
			})
		})
	}
}

// TestLedgerContradictions has totals that the pages do not keep.
func TestLedgerContradictions(t *testing.T) {
	for _, c := range []struct {
		name   string
		total  int
		logged string
	}{
		{"fewer on the pages", 400, "the pages hold 250 entries where meta.total says 400"},
		{"more on the pages", 120, "entries fewer than were counted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				ledger := simulator.Transactions(250, time.Now())
				recover := r.provider.answer("/transactions", paged(anyOf(ledger), c.total))
				r.setLedger(ledger)
				r.run(ledgerConfig())
				time.Sleep(20 * time.Minute)
				r.settle()
				same(t, "sums", r.sums(), "")
				same(t, "collector_success", r.samples(collectorSuccess.Name), `[{account="main",collector="transactions"} 0]`)
				sameLog(t, r.log.take(t), fails(transactions(), c.logged))
				recover()
				time.Sleep(6 * time.Minute)
				r.settle()
				same(t, "sums after recovery", r.sums(), sums(ledger))
			})
		})
	}
}

// TestLedgerReplaced has the token become that of another account.
func TestLedgerReplaced(t *testing.T) {
	shift := func(l []simulator.Object, by int) []simulator.Object {
		for _, e := range l {
			e["id"] = e["id"].(int) + by
		}
		return l
	}
	for _, c := range []struct {
		name string
		n    int
		by   int
	}{
		{"shorter", 50, 10_000},
		{"longer", 480, 10_000},
		{"shorter with the same ids", 50, 0},
		{"longer with the same ids", 480, 0},
		{"longer with some of the same ids", 480, 200},
		{"as long with the same ids", 350, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				mine := simulator.Transactions(350, time.Now())
				theirs := shift(simulator.Transactions(c.n, time.Now()), c.by)
				for _, e := range theirs {
					e["amount"].(simulator.Object)["usd"] = 1.25
				}
				r.sim.Change(func(w *simulator.World) {
					w.Accounts[mainToken].Transactions = mine
					w.Accounts[otherToken] = &simulator.Account{Transactions: theirs}
				})
				var token atomic.Value
				token.Store(mainToken)
				config := ledgerConfig()
				config.Accounts[0].Token = func() (string, error) { return token.Load().(string), nil }
				r.run(config)
				r.settle()
				same(t, "sums at first", r.sums(), sums(mine))
				token.Store(otherToken)
				time.Sleep(20 * time.Minute)
				r.settle()
				same(t, "sums at last", r.sums(), sums(theirs))
			})
		})
	}
}

// TestLedgerLeavesOutLater has entries that cannot be counted come one after another.
func TestLedgerLeavesOutLater(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		items := anyOf(simulator.Transactions(250, time.Now()))
		items[220], items[230], items[240] = nil, nil, nil
		next := 1000
		put := func(n int, bad bool) {
			for range n {
				next++
				var e any = entry(next, "topup", 100)
				if bad {
					e = nil
				}
				items = slices.Insert(items, 0, e)
			}
			r.provider.answer("/transactions", paged(slices.Clone(items), len(items)))
		}
		put(0, false)
		r.run(ledgerConfig())
		r.settle()
		want := func(what string, invalid, requests int) {
			t.Helper()
			good := slices.DeleteFunc(slices.Clone(items), func(e any) bool { return e == nil })
			same(t, what+": entries", r.entries(), len(good))
			same(t, what+": invalid items", r.samples(collectorInvalid.Name), fmt.Sprintf(`[{account="main",collector="transactions"} %d]`, invalid))
			same(t, what+": requests", len(r.provider.requests("")), requests)
		}
		want("at first", 3, 4)
		for _, step := range []struct {
			what              string
			good, bad         int
			invalid, requests int
		}{
			{"nothing new", 0, 0, 3, 5},
			{"a good one", 1, 0, 3, 6},
			{"a bad one: all pages are read once more", 0, 1, 4, 9},
			{"two bad ones", 0, 2, 6, 12},
			{"good ones up to the page's end", 98, 0, 6, 14},
			{"more good ones than a page", 120, 0, 6, 16},
		} {
			put(step.good, false)
			put(step.bad, true)
			asked := len(r.provider.requests(""))
			for len(r.provider.requests("")) == asked {
				time.Sleep(time.Second)
				synctest.Wait()
			}
			r.settle()
			want(step.what, step.invalid, step.requests)
		}
	})
}

// TestTransactionsOfTwoTokens has the token change between two pages: the walk begins
// anew, and shows the other account's entries only.
func TestTransactionsOfTwoTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.sim.Change(func(w *simulator.World) {
			w.Accounts[mainToken].Transactions = simulator.Transactions(450, time.Now())
			w.Accounts[otherToken] = simulator.ExampleAccount("other", time.Now())
			w.Accounts[otherToken].Transactions = simulator.Transactions(250, time.Now())
		})
		for before := range 6 { // pages read with the first token, of 5
			scope := r.client.Scope("main", handedOver(before))
			ask := newLedger()
			var snap snapshot
			err := refresh.ErrMore
			for errors.Is(err, refresh.ErrMore) {
				snap, err = ask.fetch(t.Context(), scope, &metric.Builder{Prefix: []string{"main"}})
			}
			if err != nil {
				t.Fatalf("after %d pages: %v", before, err)
			}
			sum := 0.0
			for _, m := range snap.metrics {
				var out dto.Metric
				if err := m.Write(&out); err != nil {
					t.Fatal(err)
				}
				if m.Desc() == transactionsTotal.Desc() {
					sum += out.GetCounter().GetValue()
				}
			}
			same(t, fmt.Sprintf("entries after %d pages", before), sum, 250)
			scope.Close()
			time.Sleep(time.Minute)
		}
	})
}
