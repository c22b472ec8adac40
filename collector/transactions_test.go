package collector

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// oneEntry is a balance transaction as the provider sends it.
func oneEntry(id int, kind string, cents int) simulator.Object {
	return simulator.Object{"id": id, "type": kind, "amount": simulator.Object{"usd": float64(cents) / 100}, "created_at": "2026-03-01T00:00:00Z"}
}

// pages returns the requests for the first n pages.
func pages(n int) string {
	var list []string
	for page := range n {
		list = append(list, fmt.Sprintf("limit=100&page=%d", page+1))
	}
	return strings.Join(list, ", ")
}

// TestTransactions has histories of several lengths, of which those of two months are read: March,
// and February with entries at its first moment and the moment before.
func TestTransactions(t *testing.T) {
	for _, c := range []struct {
		march, february, older, pages int
	}{
		{0, 0, 0, 1}, {1, 0, 0, 1}, {60, 40, 0, 1}, {60, 41, 0, 2}, {60, 39, 100_000, 1}, {60, 40, 100_000, 2}, {1_000, 999, 1, 20}, {1_999, 1, 0, 20},
	} {
		var list []simulator.Object
		for month, n := range map[string]int{"2026-03-01T00:00:00Z": c.march, "2026-02-01T00:00:00Z": c.february, "2026-01-31T23:59:59Z": c.older} {
			for range n {
				list = append(list, simulator.Object{"type": "topup", "amount": simulator.Object{"usd": 0.01}, "created_at": month})
			}
		}
		slices.SortFunc(list, func(a, b simulator.Object) int {
			return strings.Compare(b["created_at"].(string), a["created_at"].(string))
		})
		for i, o := range list {
			o["id"] = len(list) - i
		}
		name := fmt.Sprint(c)
		s := newFetchTest(t, transactions, simulator.Account{Transactions: list}).assertFetch(name, pages(c.pages), map[string]float64{
			simtest.Series("server_rental_transactions", "account", "main"): float64(len(list)),
		}, 0)
		want := sum{credit: micros(c.march) * 1e4}
		got := *s.Data.Transactions
		simtest.AssertEqual(t, name, []sum{got[day(t, "2026-03-01")]["topup"], got[day(t, "2026-02-01")]["topup"]}, []sum{want, {credit: micros(c.february) * 1e4}})
	}
}

// TestMonths has transactions of five months, and one whose time is not known. What was fetched
// before the turn of the month is counted by the months after it.
func TestMonths(t *testing.T) {
	f := newFetchTest(t, transactions, simulator.Account{})
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
		"2026-02-28T23:59:59Z": {0, 8},
		"2026-04-01T00:00:00Z": {1, 0, 4, 2},
		"2026-05-01T00:00:00Z": nil,
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		values, got := exposed(t, AccountData{Name: "main", Data: s.Data}.Derived(at)), []float64(nil)
		for _, month := range []string{"current", "previous"} {
			for _, d := range []*metric.Definition{transactionsMonthCredit, transactionsMonthDebit} {
				if v, found := values[simtest.Series(d.Name, "account", "main", "month", month, "type", "topup")]; found {
					got = append(got, v)
				}
			}
		}
		simtest.AssertEqual(t, now, got, want)
		simtest.AssertEqual(t, now+": series", len(values), 2*len(want)) // bonus, too
	}
}

// TestTransactionsRefused has pages that are not one list, and too many.
func TestTransactionsRefused(t *testing.T) {
	for want, atSecondPage := range map[string]func(f *fetchTest){
		"meta.total: changed between two pages: response is incomplete": func(f *fetchTest) { // one is removed meanwhile
			f.account.Transactions = f.account.Transactions[1:]
		},
		"data: a transaction of an earlier page again: response is incomplete": func(f *fetchTest) { // one is added meanwhile, and one goes
			f.account.Transactions = append(simulator.Transactions(251, today)[:1], f.account.Transactions[:249]...)
		},
	} {
		f := newFetchTest(t, transactions, simulator.Account{Transactions: simulator.Transactions(250, today)})
		f.before = func(query url.Values) {
			if query.Get("page") == "2" {
				atSecondPage(f)
			}
		}
		_, err := f.fetch()
		simtest.AssertEqual(t, "error", fmt.Sprint(err), want)
	}
	f := newFetchTest(t, transactions, simulator.Account{})
	for id := range 2_001 {
		f.account.Transactions = append(f.account.Transactions, oneEntry(2_001-id, "topup", 1))
	}
	_, err := f.fetch()
	simtest.AssertEqual(t, "error", fmt.Sprint(err), "data: more than 20 pages since the start of last month: response is too large")
	simtest.AssertEqual(t, "requests", f.asked(), pages(20))
}
