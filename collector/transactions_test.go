package collector

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
)

// oneEntry is a balance transaction as the provider sends it.
func oneEntry(id int, kind string, cents int) simulator.Object {
	return simulator.Object{"id": id, "type": kind, "amount": simulator.Object{"usd": float64(cents) / 100}, "created_at": "2026-03-01T00:00:00Z"}
}

// manyEntries returns n transactions, the newest first. Their ids begin at 1.
func manyEntries(n int) []simulator.Object { return simulator.Transactions(n, today) }

// withMore returns a list with n further entries at its beginning.
func withMore(list []simulator.Object, n int) []simulator.Object {
	newest := 0
	if len(list) > 0 {
		newest = list[0]["id"].(int)
	}
	var added []simulator.Object
	for id := newest + n; id > newest; id-- {
		added = append(added, oneEntry(id, []string{"topup", "renewal", "bonus"}[id%3], (id*7919)%20_001-10_000))
	}
	return append(added, list...)
}

// sumsOf returns the series of a list, added up in whole cents. Unknown amounts are in no sum.
func sumsOf(list []simulator.Object) map[string]float64 {
	n, credit, debit := map[string]int{"topup": 0, "bonus": 0}, map[string]int{}, map[string]int{}
	for _, e := range list {
		kind := e["type"].(string)
		usd, _ := simulator.At(e, "amount", "usd").(float64)
		n[kind]++
		credit[kind] += int(math.Round(max(usd, 0) * 100))
		debit[kind] += int(math.Round(max(-usd, 0) * 100))
	}
	series := map[string]float64{}
	for kind := range n {
		series[simtest.Series("server_rental_transactions", "account", "main", "type", kind)] = float64(n[kind])
		series[simtest.Series("server_rental_transactions_credit_usd", "account", "main", "type", kind)] = float64(credit[kind]) / 100
		series[simtest.Series("server_rental_transactions_debit_usd", "account", "main", "type", kind)] = float64(debit[kind]) / 100
	}
	return series
}

// pages returns the requests for the first n pages.
func pages(n int) string {
	var list []string
	for page := range n {
		list = append(list, fmt.Sprint(page+1))
	}
	return strings.Join(list, ", ")
}

func newTransactionTest(t *testing.T, list []simulator.Object) *fetchTest {
	f := newFetchTest(t, transactions())
	f.account.Transactions = list
	return f
}

// atPage calls change before the request for a page.
func (f *fetchTest) atPage(page string, change func()) {
	f.before = func(query url.Values) error {
		if query.Get("page") == page {
			change()
		}
		return nil
	}
}

// TestTransactions reads histories of several lengths, which grow and change between two
// fetches. Each fetch exports the sums of all entries.
func TestTransactions(t *testing.T) {
	for _, c := range []struct{ entries, pages, added, later int }{
		{0, 1, 2, 1}, {1, 1, 99, 1}, {100, 1, 1, 2}, {101, 2, 0, 2}, {2_000, 20, 150, 22},
	} {
		f, waits := newTransactionTest(t, manyEntries(c.entries)), 0
		f.fetcher.OnPage = func(context.Context) error { waits++; return nil }
		s := f.assertFetch(fmt.Sprint(c.entries, " entries"), pages(c.pages), sumsOf(f.account.Transactions), 0)
		simtest.AssertEqual(t, "minimum interval", s.MinInterval, time.Duration(c.pages)*10*time.Second)
		f.account.Transactions = withMore(f.account.Transactions, c.added)
		f.assertFetch(fmt.Sprint(c.added, " added"), pages(c.later), sumsOf(f.account.Transactions), 0)
		simtest.AssertEqual(t, "further pages", waits, c.pages-1+c.later-1)
		if list := f.account.Transactions; len(list) > 1 {
			last := len(list) - 1
			list[last] = oneEntry(list[last]["id"].(int), "refund", 100)
			f.account.Transactions = slices.Delete(list, 0, 1)
			f.assertFetch("one removed, one changed", pages((last+99)/100), sumsOf(f.account.Transactions), 0)
		}
	}
}

// TestMonths has transactions of five months, and one whose time is not known. What was fetched
// before the turn of the month is counted by the months after it.
func TestMonths(t *testing.T) {
	f := newTransactionTest(t, nil)
	for i, at := range []any{"2026-04-01T00:00:00Z", "2026-03-31T23:59:59Z", "2026-03-01T00:00:00Z", "2026-02-28T23:59:59+00:00", "2026-02-01T00:30:00+01:00", "2025-03-10T00:00:00Z", nil} {
		entry := oneEntry(100-i, "topup", 100<<i)
		if entry["created_at"] = at; i%2 == 1 {
			simulator.Put(entry, -float64(int(1)<<i), "amount", "usd")
		}
		f.account.Transactions = append(f.account.Transactions, entry)
	}
	s := f.mustFetch()
	simtest.AssertEqual(t, "invalid items", s.Invalid.Items, 1)
	for now, want := range map[string][]float64{ // credit and debit of the current month, and of the previous one
		"2026-03-15T12:00:00Z": {4, 2, 0, 8},
		"2026-03-31T23:59:59Z": {4, 2, 0, 8},
		"2026-04-01T00:00:00Z": {1, 0, 4, 2},
		"2026-05-01T00:00:00Z": {0, 0, 1, 0},
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		metrics, _ := DerivedMetrics([]Known{{Account: "main", Data: s.Data}}, at)
		values, got := exposed(t, metrics), []float64{}
		for _, month := range []string{"current", "previous"} {
			for _, d := range []*metric.Definition{transactionsMonthCredit, transactionsMonthDebit} {
				got = append(got, values[simtest.Series(d.Name, "account", "main", "month", month, "type", "topup")])
			}
		}
		simtest.AssertEqual(t, now, got, want)
		simtest.AssertEqual(t, now+": series", len(values), 8)
	}
}

// TestTransactionsWhilePagesShift adds entries before page 3 is read, up to as many as were on two
// pages. The sums are those of the entries before: none is lost, counted twice or new.
func TestTransactionsWhilePagesShift(t *testing.T) {
	for _, added := range []int{1, 100, 200} {
		f := newTransactionTest(t, manyEntries(950))
		all := withMore(f.account.Transactions, added)
		f.atPage("3", func() { f.account.Transactions = all })
		f.assertFetch(fmt.Sprint(added, " added meanwhile"), pages((950+added+99)/100), sumsOf(all[added:]), 0)
	}
}

// TestTransactionsInvalid has entries without a usable id, and one without an amount: they do
// not make the others incomplete.
func TestTransactionsInvalid(t *testing.T) {
	list := manyEntries(250)
	list[120]["id"], list[130]["id"] = nil, "text"
	delete(list[7], "amount")
	good := slices.Concat(list[:120], list[121:130], list[131:])
	newTransactionTest(t, list).assertFetch("fetch", pages(3), sumsOf(good), 3)
}

// TestTransactionsRefused has pages that are not one list.
func TestTransactionsRefused(t *testing.T) {
	for want, atSecondPage := range map[string]func(f *fetchTest){
		ErrTokenChanged.Error(): func(f *fetchTest) { f.lab.Transactions, f.token = manyEntries(350), simtest.LabToken },
		"data: items that new ones moved to this page are missing: response is incomplete": func(f *fetchTest) { // the first of the new ones is on the page instead
			f.account.Transactions = withMore(f.account.Transactions[:249], 101)
		},
		"data: the pages hold more than the 250 items of meta.total: response is incomplete": func(f *fetchTest) {
			for id := range 50 {
				f.account.Transactions = append(f.account.Transactions, oneEntry(-id, "topup", 1))
			}
			f.body = func(query url.Values) []byte {
				return []byte(strings.Replace(f.Body("/transactions?"+query.Encode(), f.token), `"total":300`, `"total":250`, 1))
			}
		},
		"data: items were removed between two pages: response is incomplete": func(f *fetchTest) { f.account.Transactions = f.account.Transactions[1:] },
		"data: the pages hold 100 items, but meta.total is 250: response is incomplete": func(f *fetchTest) { // the first page again
			f.body = func(url.Values) []byte {
				return []byte(strings.Replace(f.Body("/transactions?limit=100", f.token), `"page":1,`, "", 1))
			}
		},
	} {
		f := newTransactionTest(t, manyEntries(250))
		f.atPage("2", func() { atSecondPage(f) })
		_, err := f.fetch()
		simtest.AssertEqual(t, "error", fmt.Sprint(err), want)
	}
	_, err := newBodyTest(t, transactions(), []byte(`{"data":[{"id":1}],"meta":{"total":500001,"pages":1,"limit":1}}`)).fetch()
	if !errors.Is(err, rentalapi.ErrTooLarge) {
		t.Errorf("500,001 entries: got error %v, want %v", err, rentalapi.ErrTooLarge)
	}
}

// TestTransactionsResumed has pages that fail: the next fetch goes on with that page, unless the
// token has changed, entries were removed, or the pages before are old.
func TestTransactionsResumed(t *testing.T) {
	failure := errors.New("bad gateway")
	for _, c := range []struct {
		name     string
		change   func(f *fetchTest)
		requests string
		err      error
	}{
		{"no change", func(*fetchTest) {}, "2, 3", nil},
		{"more entries", func(f *fetchTest) { f.account.Transactions = withMore(f.account.Transactions, 60) }, "2, 3, 4", nil},
		{"another token", func(f *fetchTest) {
			f.lab.Transactions, f.token = f.account.Transactions, simtest.LabToken
		}, "2", ErrTokenChanged},
		{"fewer entries", func(f *fetchTest) { f.account.Transactions = f.account.Transactions[1:] }, "2", rentalapi.ErrIncomplete},
		{"after two hours", func(f *fetchTest) { f.response.Received = today.Add(2 * time.Hour) }, "2", rentalapi.ErrIncomplete},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newTransactionTest(t, manyEntries(250))
			want := sumsOf(f.account.Transactions)
			f.before = func(query url.Values) error {
				if query.Get("page") == "2" {
					return failure
				}
				return nil
			}
			_, err := f.fetch()
			simtest.AssertEqual(t, "failed page", []any{f.asked(), err}, []any{"1, 2", failure})
			f.before = nil
			c.change(f)
			s, err := f.fetch()
			simtest.AssertEqual(t, "requests", f.asked(), c.requests)
			if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Fatalf("got error %v, want %v", err, c.err)
			}
			if err == nil {
				simtest.AssertEqual(t, "series", exposed(t, s.Metrics), want)
				return
			}
			f.mustFetch()
			simtest.AssertEqual(t, "given up", f.asked(), "1, 2, 3")
		})
	}
}

// TestTransactionsRestarted removes entries while a page fails: there is no such page any more,
// and the provider refuses to send it. All pages are read again after several failures.
func TestTransactionsRestarted(t *testing.T) {
	f := newTransactionTest(t, manyEntries(250))
	f.before = func(query url.Values) error {
		if query.Get("page") != "1" {
			return errors.New("not found")
		}
		return nil
	}
	var got []string
	for range maxPageFailures + 1 {
		_, _ = f.fetch()
		got = append(got, f.asked())
		f.account.Transactions = manyEntries(90)
	}
	simtest.AssertEqual(t, "requests", got, []string{"1, 2", "2", "2", "2", "2", "1"})
}

// TestTransactionTypes has more types than are exported.
func TestTransactionTypes(t *testing.T) {
	list := manyEntries(maxTypes + 1)
	for i, o := range list {
		o["type"] = fmt.Sprint("type ", i)
	}
	if _, err := newTransactionTest(t, list).fetch(); !errors.Is(err, rentalapi.ErrTooLarge) {
		t.Errorf("got error %v, want %v", err, rentalapi.ErrTooLarge)
	}
}
