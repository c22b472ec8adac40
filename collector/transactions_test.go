package collector

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// entry is a balance transaction as the provider has it.
func entry(id int, kind string, cents int) simulator.Object {
	return simulator.Object{"id": id, "type": kind, "amount": simulator.Object{"usd": float64(cents) / 100}}
}

// sums returns the series that a history makes, added up in whole cents.
func sums(history []simulator.Object) map[string]float64 {
	type tally struct{ n, credit, debit int }
	byType := map[string]*tally{}
	for _, e := range history {
		kind := e["type"].(string)
		if byType[kind] == nil {
			byType[kind] = &tally{}
		}
		t := byType[kind]
		t.n++
		usd, _ := simulator.At(e, "amount", "usd").(float64) // unknown amounts are in no sum
		if cents := int(math.Round(usd * 100)); cents > 0 {
			t.credit += cents
		} else {
			t.debit -= cents
		}
	}
	series := map[string]float64{}
	for kind, t := range byType {
		series[simtest.Series(transactionsTotal.Name, "account", "main", "type", kind)] = float64(t.n)
		series[simtest.Series(transactionsCredit.Name, "account", "main", "type", kind)] = float64(t.credit) / 100
		series[simtest.Series(transactionsDebit.Name, "account", "main", "type", kind)] = float64(t.debit) / 100
	}
	return series
}

// sums returns the series that are exposed.
func (h *harness) sums() map[string]float64 {
	h.t.Helper()
	return h.scrape().WithPrefix("server_rental_transactions_")
}

// countedTransactions returns how many transactions are counted.
func (h *harness) countedTransactions() int {
	h.t.Helper()
	n := 0.0
	for _, v := range h.values(transactionsTotal) {
		n += v
	}
	return int(n)
}

// history returns the transactions of the account main.
func (h *harness) history() (list []simulator.Object) {
	h.Read(func(w *simulator.World) { list = slices.Clone(w.Accounts[simtest.MainToken].Transactions) })
	return list
}

func (h *harness) setTransactions(list []simulator.Object) {
	h.Change(func(w *simulator.World) { w.Accounts[simtest.MainToken].Transactions = list })
}

// addTransactions adds n transactions to the history.
func (h *harness) addTransactions(n int) {
	h.Change(func(w *simulator.World) {
		a := w.Accounts[simtest.MainToken]
		newest := 0
		if len(a.Transactions) > 0 {
			newest = a.Transactions[0]["id"].(int)
		}
		var added []simulator.Object
		for i := n; i > 0; i-- {
			id := newest + i
			added = append(added, entry(id, []string{"topup", "renewal", "bonus"}[id%3], (id*7919)%20_001-10_000))
		}
		a.Transactions = append(added, a.Transactions...)
	})
}

func ledgerConfig() Config { return configure(5*time.Minute, 30*time.Minute, "transactions") }

// TestLedgerWalk counts the entries of histories of several lengths, and the requests of
// the first and of later fetches.
func TestLedgerWalk(t *testing.T) {
	for _, c := range []struct{ entries, first, next int }{
		{0, 1, 1},
		{1, 1, 1},
		{100, 1, 1},
		{101, 2 + 1, 1},
		{500, 5 + 1, 1},
		{20_000, 200 + 1, 1},
	} {
		if c.entries > 1_000 && testing.Short() {
			continue
		}
		subtest(t, fmt.Sprint(c.entries), func(t *testing.T, h *harness) {
			h.setTransactions(simulator.Transactions(c.entries, time.Now()))
			h.run(ledgerConfig())
			synctest.Wait()
			h.publisher.Publish()
			h.assertEqual("ready after the first page", h.set.Ready(), true)
			for h.set.Health()[0].LastSuccess.IsZero() {
				h.assertEqual("sums before the end", h.sums(), map[string]float64{})
				h.assertEqual("collector_success before the end", h.values(collectorSuccess), map[string]float64{})
				time.Sleep(10 * time.Second)
				synctest.Wait()
			}
			h.assertEqual("sums", h.sums(), sums(h.history()))
			h.assertEqual("requests", len(h.Requests()), c.first)
			for i := range 3 {
				h.addTransactions(i)
				asked := len(h.Requests())
				h.runFor(5*time.Minute + 30*time.Second - time.Duration(i)*15*time.Second)
				h.assertEqual("sums later", h.sums(), sums(h.history()))
				h.assertEqual("requests later", len(h.Requests())-asked, c.next)
			}
			h.assertEqual("invalid items", h.values(collectorInvalid), map[string]float64{"transactions main": 0})
			h.assertLog()
		})
	}
}

// TestLedgerWalkPriority reads a long history: the other collectors of the account keep
// their interval.
func TestLedgerWalkPriority(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.setTransactions(simulator.Transactions(30_000, time.Now()))
		h.run(configure(time.Minute, 10*time.Minute, "transactions", "servers", "account"))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		h.assertEqual("entries while the walk is under way", h.countedTransactions(), 0)
		for _, path := range []string{"/servers", "/account"} {
			requests := h.RequestsFor(path)
			for i := 1; i < len(requests); i++ {
				if gap := requests[i].Time.Sub(requests[i-1].Time); gap > 67*time.Second {
					t.Errorf("%s: interval of %v, want at most 67 s", path, gap)
				}
			}
			if len(requests) < 4 {
				t.Errorf("%s: %d requests in five minutes", path, len(requests))
			}
		}
	})
}

// TestLedgerCatchesUp adds many entries between two fetches.
func TestLedgerCatchesUp(t *testing.T) {
	for _, c := range []struct{ fresh, requests int }{{99, 1}, {100, 1}, {101, 2}, {250, 3}, {1000, 10}} {
		subtest(t, fmt.Sprint(c.fresh), func(t *testing.T, h *harness) {
			h.setTransactions(simulator.Transactions(300, time.Now()))
			h.run(ledgerConfig())
			h.settle()
			asked := len(h.Requests())
			h.addTransactions(c.fresh)
			h.runFor(5*time.Minute + 30*time.Second)
			h.assertEqual("sums", h.sums(), sums(h.history()))
			h.assertEqual("requests", len(h.Requests())-asked, c.requests)
		})
	}
}

// TestLedgerCatchesUpInSteps adds entries while many new ones are read: the sums are of
// one moment, without waiting for another interval.
func TestLedgerCatchesUpInSteps(t *testing.T) {
	for _, c := range []struct{ meanwhile, requests int }{{1, 3}, {50, 4}, {99, 4}, {150, 5}, {400, 7}} {
		subtest(t, fmt.Sprint(c.meanwhile), func(t *testing.T, h *harness) {
			h.setTransactions(simulator.Transactions(1_000, time.Now()))
			h.run(ledgerConfig())
			h.settle()
			var once atomic.Bool
			h.addTransactions(150)
			h.OnRequest(func(_ string, q url.Values) {
				if q.Get("page") == "2" && once.CompareAndSwap(false, true) {
					h.addTransactions(c.meanwhile)
				}
			})
			asked := len(h.Requests())
			h.runFor(5*time.Minute + 30*time.Second)
			h.assertEqual("sums", h.sums(), sums(h.history()))
			h.assertEqual("requests", len(h.Requests())-asked, c.requests)
		})
	}
}

// TestLedgerWhilePagesShift adds entries and lets requests fail at random times during
// walks. At every moment, the sums are those of the oldest n entries: none is lost, and
// none is counted twice.
func TestLedgerWhilePagesShift(t *testing.T) {
	seeds := uint64(20)
	switch {
	case testing.Short():
		seeds = 5
	case os.Getenv("CHAOS_LONG") == "1":
		seeds = 1000
	}
	for seed := range seeds {
		subtest(t, fmt.Sprint(seed), func(t *testing.T, h *harness) {
			random := rand.New(rand.NewPCG(seed, 1))
			h.setTransactions(simulator.Transactions(random.IntN(1200), time.Now()))
			var quiet atomic.Bool
			h.OnRequest(func(string, url.Values) {
				if quiet.Load() {
					return
				}
				if random.IntN(2) == 0 {
					h.addTransactions([]int{1, 1, 2, 5, 40, 99, 100, 101, 230}[random.IntN(9)])
				}
				if random.IntN(4) == 0 {
					kinds := []simtest.Kind{simtest.Drop, simtest.Truncated, simtest.Garbage, simtest.Hang}
					h.Inject(simtest.Fault{Kind: kinds[random.IntN(len(kinds))], Times: 1})
				}
			})
			h.run(ledgerConfig())
			check := func() {
				t.Helper()
				shown, ledger := h.countedTransactions(), h.history()
				if shown > len(ledger) {
					t.Fatalf("%d entries counted of %d", shown, len(ledger))
				}
				h.assertEqual(fmt.Sprintf("sums of %d entries", shown), h.sums(), sums(ledger[len(ledger)-shown:]))
			}
			for range 80 {
				time.Sleep(30 * time.Second)
				synctest.Wait()
				check()
			}
			quiet.Store(true)
			h.runFor(30 * time.Minute)
			check()
			h.assertEqual("entries at the end", h.countedTransactions(), len(h.history()))
			h.assertEqual("invalid items", h.values(collectorInvalid), map[string]float64{"transactions main": 0})
		})
	}
}

// TestLedgerResumes lets a page fail in the middle of the first walk.
func TestLedgerResumes(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.setTransactions(simulator.Transactions(500, time.Now()))
		h.Inject(simtest.Fault{Query: url.Values{"page": {"3"}}, Kind: simtest.Respond, Status: 500, Times: 2})
		h.run(ledgerConfig())
		h.runFor(4 * time.Minute)
		var pages []string
		for _, a := range h.Requests() {
			pages = append(pages, a.Query.Get("page"))
		}
		h.assertEqual("pages", pages, strings.Fields("1 2 3 3 3 4 5 1"))
		h.assertEqual("sums", h.sums(), sums(h.history()))
		h.assertLog(failed(transactions(), "status 500"), recovered(transactions()))
	})
}

// servePages serves transactions, or other items, in pages.
func servePages(t *testing.T, items []any, total, limit int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.FormValue("page"))
		pages := (len(items) + limit - 1) / limit
		from, to := min((page-1)*limit, len(items)), min(page*limit, len(items))
		_, _ = w.Write(encode(t, map[string]any{
			"data": append([]any{}, items[from:to]...),
			"meta": map[string]any{"total": total, "pages": pages, "page": page, "limit": limit},
		}))
	}
}

func anyOf(l []simulator.Object) []any {
	items := make([]any, len(l))
	for i, e := range l {
		items[i] = e
	}
	return items
}

// TestLedgerInvalidEntries has invalid entries on several pages.
func TestLedgerInvalidEntries(t *testing.T) {
	replace := func(n int, at func(i int) bool, bad func(i int, e simulator.Object) any) func() ([]any, []simulator.Object) {
		return func() (items []any, good []simulator.Object) {
			for i, e := range simulator.Transactions(n, time.Now()) {
				if !at(i) {
					items, good = append(items, e), append(good, e)
					continue
				}
				item := bad(i, e)
				items = append(items, item)
				if o, isObject := item.(simulator.Object); isObject && o["id"] == e["id"] {
					good = append(good, o) // counted, but not in the sums
				}
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
		{"one on the first page", replace(250, func(i int) bool { return i == 5 }, null), 1},
		{"one on the last page", replace(250, func(i int) bool { return i == 205 }, null), 1},
		{"one on each page", replace(250, func(i int) bool { return i%100 == 50 }, null), 2},
		{"a whole page in the middle", replace(350, func(i int) bool { return i/100 == 1 }, null), 100},
		{"the first page", replace(350, func(i int) bool { return i < 100 }, null), 100},
		{"all of one page", replace(40, func(int) bool { return true }, null), 40},
		{"all of three pages", replace(250, func(int) bool { return true }, null), 250},
		{"seen on the page before", replace(250, func(i int) bool { return i == 120 }, func(_ int, _ simulator.Object) any { return entry(240, "topup", 500) }), 1},
		{"amounts in words", replace(250, func(i int) bool { return i >= 240 }, func(_ int, e simulator.Object) any {
			return simulator.Object{"id": e["id"], "type": "topup", "amount": simulator.Object{"usd": "12"}}
		}), 10},
		{"amounts missing", replace(250, func(i int) bool { return i >= 240 }, func(_ int, e simulator.Object) any {
			return simulator.Object{"id": e["id"], "type": "topup"}
		}), 10},
		{"too many types", replace(250, func(i int) bool { return i >= 50 && i < 150 }, func(i int, e simulator.Object) any {
			return entry(e["id"].(int), fmt.Sprintf("type-%d", i), 100)
		}), -1},
	} {
		subtest(t, c.name, func(t *testing.T, h *harness) {
			items, good := c.ledger()
			h.Override("/transactions", servePages(t, items, len(items), 100))
			h.run(ledgerConfig())
			h.runFor(20 * time.Minute)
			if c.invalid < 0 { // which types are dropped depends on the order; three were known
				h.assertEqual("types", len(h.values(transactionsTotal)), maxTypes)
				c.invalid = len(items) - h.countedTransactions()
				if c.invalid != 3 {
					t.Errorf("entries dropped: got %d, want 3", c.invalid)
				}
			} else {
				h.assertEqual("sums", h.sums(), sums(good))
			}
			h.assertEqual("invalid items", h.values(collectorInvalid), map[string]float64{"transactions main": float64(c.invalid)})
			h.assertEqual("collector_success", h.values(collectorSuccess), map[string]float64{"transactions main": 1})
			h.assertLog(logLine{"level=warn", "invalid item", fmt.Sprintf("items=%d", c.invalid)})
		})
	}
}

// TestLedgerContradictions has totals that contradict the pages.
func TestLedgerContradictions(t *testing.T) {
	for _, c := range []struct {
		name                string
		items, total, limit int
		logged              string
	}{
		{"fewer on a page", 250, 400, 100, "data: 50 items where meta demands 100"},
		{"fewer on all pages", 150, 250, 50, "data: the pages hold 150 entries where meta.total is 250"},
		{"more on the pages", 250, 120, 100, "entries fewer than were counted"},
	} {
		subtest(t, c.name, func(t *testing.T, h *harness) {
			ledger := simulator.Transactions(250, time.Now())
			recover := h.Override("/transactions", servePages(t, anyOf(ledger[:c.items]), c.total, c.limit))
			h.setTransactions(ledger)
			h.run(ledgerConfig())
			h.runFor(20 * time.Minute)
			h.assertEqual("sums", h.sums(), map[string]float64{})
			h.assertEqual("collector_success", h.values(collectorSuccess), map[string]float64{"transactions main": 0})
			h.assertLog(failed(transactions(), c.logged))
			recover()
			h.runFor(6 * time.Minute)
			h.assertEqual("sums after recovery", h.sums(), sums(ledger))
		})
	}
}

// TestLedgerReplaced replaces the token by that of another account.
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
		subtest(t, c.name, func(t *testing.T, h *harness) {
			mine := simulator.Transactions(350, time.Now())
			theirs := shift(simulator.Transactions(c.n, time.Now()), c.by)
			for _, e := range theirs {
				e["amount"].(simulator.Object)["usd"] = 1.25
			}
			h.Change(func(w *simulator.World) {
				w.Accounts[simtest.MainToken].Transactions = mine
				w.Accounts[simtest.LabToken] = &simulator.Account{Transactions: theirs}
			})
			var token atomic.Value
			token.Store(simtest.MainToken)
			config := ledgerConfig()
			config.Accounts[0].Token = func() (string, error) { return token.Load().(string), nil }
			h.run(config)
			h.settle()
			h.assertEqual("sums at first", h.sums(), sums(mine))
			token.Store(simtest.LabToken)
			h.runFor(20 * time.Minute)
			h.assertEqual("sums at the end", h.sums(), sums(theirs))
		})
	}
}

// TestLedgerInvalidEntriesLater adds invalid entries one after another.
func TestLedgerInvalidEntriesLater(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
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
			h.Override("/transactions", servePages(t, slices.Clone(items), len(items), 100))
		}
		put(0, false)
		h.run(ledgerConfig())
		h.settle()
		want := func(what string, invalid, requests int) {
			t.Helper()
			good := slices.DeleteFunc(slices.Clone(items), func(e any) bool { return e == nil })
			h.assertEqual(what+": entries", h.countedTransactions(), len(good))
			h.assertEqual(what+": invalid items", h.values(collectorInvalid), map[string]float64{"transactions main": float64(invalid)})
			h.assertEqual(what+": requests", len(h.Requests()), requests)
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
			asked := len(h.Requests())
			for len(h.Requests()) == asked {
				time.Sleep(time.Second)
				synctest.Wait()
			}
			h.settle()
			want(step.what, step.invalid, step.requests)
		}
	})
}

// TestLedgerAmountLater has amounts that are unknown for some time, on the newest page.
func TestLedgerAmountLater(t *testing.T) {
	for _, entries := range []int{50, 250} {
		subtest(t, fmt.Sprint(entries), func(_ *testing.T, h *harness) {
			history := simulator.Transactions(entries, time.Now())
			amounts := []any{simulator.At(history[3], "amount", "usd"), simulator.At(history[7], "amount", "usd")}
			set := func(values ...any) {
				h.Change(func(*simulator.World) {
					for i, v := range values {
						simulator.Put(history[3+4*i], v, "amount", "usd")
					}
				})
			}
			set(nil, "ten")
			h.setTransactions(history)
			h.run(ledgerConfig())
			h.settle()
			h.assertEqual("sums without two amounts", h.sums(), sums(h.history()))
			set(amounts...)
			h.runFor(20 * time.Minute)
			h.assertEqual("sums", h.sums(), sums(h.history()))
			h.addTransactions(1)
			h.runFor(10 * time.Minute)
			h.assertEqual("sums later", h.sums(), sums(h.history()))
		})
	}
}

// TestLedgerTokenChanges changes the token between two pages: the walk starts again and
// counts the entries of the other account only.
func TestLedgerTokenChanges(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Change(func(w *simulator.World) {
			w.Accounts[simtest.MainToken].Transactions = simulator.Transactions(450, time.Now())
			w.Accounts[simtest.LabToken] = simulator.ExampleAccount("other", time.Now())
			w.Accounts[simtest.LabToken].Transactions = simulator.Transactions(250, time.Now())
		})
		for before := range 6 { // pages read with the first token, of 5
			api := h.client.Scope("main", tokenOfLabAfter(before))
			ledger := newLedger()
			var snap snapshot
			err := refresh.ErrIncomplete
			for errors.Is(err, refresh.ErrIncomplete) {
				snap, err = ledger.fetch(t.Context(), api, &metric.Builder{ConstLabelValues: []string{"main"}})
			}
			if err != nil {
				t.Fatalf("after %d pages: %v", before, err)
			}
			sum := 0.0
			for series, n := range exposed(t, snap) {
				if strings.HasPrefix(series, transactionsTotal.Name+"{") {
					sum += n
				}
			}
			h.assertEqual(fmt.Sprintf("entries after %d pages", before), sum, 250.0)
			api.Close()
			time.Sleep(time.Minute)
		}
	})
}
