package collector

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// oneEntry is a balance transaction as the provider sends it.
func oneEntry(id int, kind string, cents int) simulator.Object {
	return simulator.Object{"id": id, "type": kind, "amount": simulator.Object{"usd": float64(cents) / 100}}
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

// historyTest is an account's history and the provider that it is read from.
type historyTest struct {
	*fetchTest
	history *history
}

func newHistoryTest(t *testing.T, list []simulator.Object) historyTest {
	h := new(history)
	f := newFetchTest(t, Resource{NewFetch: func() Fetch { return h.fetch }})
	f.account.Transactions = list
	return historyTest{f, h}
}

// pages returns the requests for pages of low priority.
func pages(from, to int) string {
	var list []string
	for page := from; page <= to; page++ {
		list = append(list, fmt.Sprintf("%d bulk", page))
	}
	return strings.Join(list, ", ")
}

// historyStep is a fetch, and what happens before and during it.
type historyStep struct {
	after    time.Duration // since the step before
	added    int           // entries
	during   int           // entries that are added while page 2 is read
	fails    string        // page that cannot be read in this step
	requests string        // that are made
}

// TestHistory reads histories of several lengths, which grow. The sums are those of all
// entries after each fetch that succeeds. Only the newest page of a later refresh is a
// regular request.
func TestHistory(t *testing.T) {
	first := historyStep{requests: pages(1, 10)}
	for name, c := range map[string]struct {
		entries int
		steps   []historyStep
	}{
		"none":            {0, []historyStep{{requests: "1 bulk"}, {requests: "1"}, {added: 2, requests: "1"}}},
		"one":             {1, []historyStep{{requests: "1 bulk"}, {added: 1, requests: "1"}}},
		"a page":          {100, []historyStep{{requests: "1 bulk"}, {added: 1, requests: "1"}}},
		"a page and one":  {101, []historyStep{{requests: pages(1, 2)}, {added: 1, requests: "1"}}},
		"full pages":      {500, []historyStep{{requests: pages(1, 5)}, {requests: "1"}}},
		"long":            {2_000, []historyStep{{requests: pages(1, 20)}, {added: 2, requests: "1"}}},
		"grows":           {1000, []historyStep{first, {added: 99, requests: "1"}, {added: 100, requests: "1, 2 bulk"}, {added: 250, requests: "1, " + pages(2, 3)}, {added: 1000, requests: "1, " + pages(2, 11)}}},
		"grows meanwhile": {1000, []historyStep{first, {added: 150, during: 1, requests: "1, 2 bulk, 1"}, {added: 150, during: 99, requests: "1, " + pages(2, 3) + ", 1"}, {added: 150, during: 150, requests: "1, " + pages(2, 4) + ", 1, 2 bulk"}}},
		"a page fails": {500, []historyStep{
			{fails: "3", requests: pages(1, 3)},
			{fails: "3", requests: "3 bulk"},
			{requests: pages(3, 5)},
			{added: 250, fails: "2", requests: "1, 2 bulk"},
			{requests: pages(2, 3)},
			{requests: "1"},
		}},
		// In several refreshes, each of which exports what is new.
		"is read again after a day": {5_000, []historyStep{
			{requests: pages(1, 50)},
			{after: rereadInterval - time.Second, requests: "1"},
			{after: time.Second, requests: "1, " + pages(2, 21)},
			{added: 7, fails: "30", requests: "1, " + pages(22, 30)},
			{requests: "1, " + pages(30, 49)},
			{requests: "1, " + pages(50, 51)},
			{requests: "1"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistoryTest(t, manyEntries(c.entries))
			for i, step := range c.steps {
				h.response.Received = h.response.Received.Add(step.after)
				h.account.Transactions = withMore(h.account.Transactions, step.added)
				h.before = func(query url.Values) error {
					if query.Get("page") == "2" {
						h.account.Transactions = withMore(h.account.Transactions, step.during)
						step.during = 0
					}
					if query.Get("page") == step.fails {
						return errUnreachable
					}
					return nil
				}
				series, invalid, requests, err := h.fetch()
				simtest.AssertEqual(t, fmt.Sprint("step ", i, ": requests, fails and invalid items"), []any{requests, errors.Is(err, errUnreachable), invalid.Items}, []any{step.requests, step.fails != "", 0})
				if err == nil {
					simtest.AssertEqual(t, fmt.Sprint("step ", i, ": sums"), series, sumsOf(h.account.Transactions))
				}
			}
		})
	}
}

var errUnreachable = errors.New("unreachable")

// TestHistoryWhilePagesShift adds entries and lets requests fail at random during walks.
// What is exported is always the sums of the oldest n entries: none is lost, and none is
// counted twice.
func TestHistoryWhilePagesShift(t *testing.T) {
	seeds := uint64(20)
	if os.Getenv("CHAOS_LONG") == "1" {
		seeds = 1000
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		h := newHistoryTest(t, manyEntries(random.IntN(1200)))
		h.before = func(url.Values) error {
			if random.IntN(2) == 0 {
				h.account.Transactions = withMore(h.account.Transactions, []int{1, 1, 2, 5, 40, 99, 100, 101, 230}[random.IntN(9)])
			}
			if random.IntN(4) == 0 {
				return errUnreachable
			}
			return nil
		}
		for range 40 {
			series, _, _, err := h.fetch()
			if err != nil {
				continue
			}
			n, all := len(h.history.entries), h.account.Transactions
			simtest.AssertEqual(t, fmt.Sprintf("seed %d: sums of %d entries", seed, n), series, sumsOf(all[len(all)-n:]))
		}
		h.before = nil
		series, invalid, _, err := h.fetch()
		simtest.AssertEqual(t, "error at the end", err, nil)
		simtest.AssertEqual(t, "sums at the end", series, sumsOf(h.account.Transactions))
		simtest.AssertEqual(t, "invalid items", invalid.Items, 0)
		if t.Failed() {
			return
		}
	}
}

// servePages returns a body with the page that is asked for, of items that need not be
// usable.
func servePages(items []any, total, limit int) func(url.Values) []byte {
	return func(query url.Values) []byte {
		page, _ := strconv.Atoi(query.Get("page"))
		from, to := min((page-1)*limit, len(items)), min(page*limit, len(items))
		body, _ := json.Marshal(map[string]any{
			"data": append([]any{}, items[from:to]...),
			"meta": map[string]any{"total": total, "pages": (len(items) + limit - 1) / limit, "page": page, "limit": limit},
		})
		return body
	}
}

func anyOf(list []simulator.Object) []any {
	items := make([]any, len(list))
	for i, e := range list {
		items[i] = e
	}
	return items
}

// TestHistoryInvalidEntries has entries that are not understood on several pages, then a new
// one, for which all pages are read once more, and then a new one that is understood.
func TestHistoryInvalidEntries(t *testing.T) {
	null := func(int, simulator.Object) any { return nil }
	for _, c := range []struct {
		name    string
		entries int
		invalid int
		at      func(i int) bool
		instead func(i int, e simulator.Object) any
	}{
		{"one on each page", 250, 2, func(i int) bool { return i%100 == 50 }, null},
		{"a page in the middle", 350, 100, func(i int) bool { return i/100 == 1 }, null},
		{"the first page", 350, 100, func(i int) bool { return i < 100 }, null},
		{"all of three pages", 250, 250, func(int) bool { return true }, null},
		{"id of the next page", 250, 1, func(i int) bool { return i == 120 }, func(int, simulator.Object) any { return oneEntry(30, "topup", 500) }},
		{"too many types", 250, 3, func(i int) bool { return i >= 50 && i < 150 }, func(i int, e simulator.Object) any {
			return oneEntry(e["id"].(int), fmt.Sprintf("type-%d", i), 100)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var items []any
			var good []simulator.Object
			for i, e := range manyEntries(c.entries) {
				var item any = e
				if c.at(i) {
					item = c.instead(i, e)
				}
				items = append(items, item)
				usable := item != nil && item.(simulator.Object)["id"] == e["id"]
				if tooMany := c.name == "too many types" && i >= 147 && i < 150; usable && !tooMany { // beside topup, bonus and renewal
					good = append(good, item.(simulator.Object))
				}
			}
			h := newHistoryTest(t, nil)
			h.body = servePages(items, len(items), 100)
			last := (len(items) + 99) / 100
			h.assertFetch("first", pages(1, last), sumsOf(good), c.invalid)
			items = slices.Insert(items, 0, any(nil))
			h.body = servePages(items, len(items), 100)
			h.assertFetch("a bad one", "1, "+pages(2, last), sumsOf(good), c.invalid+1)
			good = slices.Insert(good, 0, oneEntry(9999, "topup", 100))
			items = slices.Insert(items, 0, any(good[0]))
			h.body = servePages(items, len(items), 100)
			later := "1"
			if c.at(0) { // no entry of the first page is known
				later = "1, 2 bulk"
			}
			h.assertFetch("a good one", later, sumsOf(good), c.invalid+1)
		})
	}
}

// TestHistoryCausesAreCopied finds another cause in a walk that goes on after a snapshot, which
// stays as it is.
func TestHistoryCausesAreCopied(t *testing.T) {
	list := manyEntries(250)
	list[1]["type"], list[2]["amount"], list[3]["amount"], list[120]["id"] = nil, "much", nil, list[220]["id"]
	h := newHistoryTest(t, list)
	snap, err := h.do(t.Context(), h)
	want := slices.Clone(snap.Invalid.Causes)
	simtest.AssertEqual(t, "error and causes", []any{err, len(want)}, []any{error(nil), 4})
	h.history.full.invalid.Add("later", rentalapi.FieldError{Field: "amount.usd", Problem: "null"})
	simtest.AssertEqual(t, "causes", snap.Invalid.Causes, want)
}

// TestHistoryContradictions has totals that contradict the pages.
func TestHistoryContradictions(t *testing.T) {
	for _, c := range []struct {
		name                string
		items, total, limit int
		want                string
	}{
		{"fewer on all pages", 150, 250, 50, "data: the pages hold 150 entries, but meta.total is 250"},
		{"more on the pages", 250, 120, 100, "data: the pages hold 250 entries, but meta.total is 120"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistoryTest(t, manyEntries(250))
			h.body = servePages(anyOf(h.account.Transactions[:c.items]), c.total, c.limit)
			for range 2 {
				series, _, _, err := h.fetch()
				simtest.AssertEqual(t, "series", series, map[string]float64{})
				if !errors.Is(err, rentalapi.ErrIncomplete) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got error %v, want ErrIncomplete and %q", err, c.want)
				}
			}
			h.body = nil
			if _, _, _, err := h.fetch(); err != nil {
				t.Fatal(err)
			}
			h.assertFetch("recovered", "1", sumsOf(h.account.Transactions), 0)
		})
	}
}

// TestHistoryChanges removes and changes entries of a short and of a long history.
func TestHistoryChanges(t *testing.T) {
	for _, entries := range []int{50, 250} {
		last := (entries + 99) / 100
		all := "1" // requests for a walk through all pages
		if last > 1 {
			all = "1, " + pages(2, last)
		}
		without := func(list []simulator.Object, at int) []simulator.Object {
			return slices.Delete(slices.Clone(list), at, at+1)
		}
		for _, c := range []struct {
			name   string
			change func(list []simulator.Object) []simulator.Object
			// requests of the next refresh, and whether only a walk through all pages a day later finds it
			requests string
			nextDay  bool
		}{
			{"removed from the newest page", func(list []simulator.Object) []simulator.Object { return without(list, 3) }, all, false},
			{"removed from the oldest page", func(list []simulator.Object) []simulator.Object { return without(list, entries-3) }, all, false},
			{"one removed, another added", func(list []simulator.Object) []simulator.Object { return withMore(without(list, entries-3), 1) }, all, false},
			{"inserted", func(list []simulator.Object) []simulator.Object {
				return slices.Insert(slices.Clone(list), entries-3, oneEntry(9999, "refund", 100))
			}, all, false},
			{"changed on the newest page", func(list []simulator.Object) []simulator.Object {
				list[3] = oneEntry(list[3]["id"].(int), "refund", 100)
				return list
			}, "1", false},
			{"changed on the oldest page", func(list []simulator.Object) []simulator.Object {
				list[entries-3] = oneEntry(list[entries-3]["id"].(int), "refund", 100)
				return list
			}, "1", last > 1},
		} {
			t.Run(fmt.Sprint(entries, c.name), func(t *testing.T) {
				h := newHistoryTest(t, manyEntries(entries))
				if _, _, _, err := h.fetch(); err != nil {
					t.Fatal(err)
				}
				before := slices.Clone(h.account.Transactions)
				h.account.Transactions = c.change(h.account.Transactions)
				after := h.account.Transactions
				if c.nextDay {
					h.assertFetch("at first", c.requests, sumsOf(before), 0)
					h.response.Received = h.response.Received.Add(rereadInterval)
					c.requests = all
				}
				h.assertFetch("at last", c.requests, sumsOf(after), 0)
				h.assertFetch("later", "1", sumsOf(after), 0)
			})
		}
	}
}

// TestHistoryRemovedMeanwhile removes an entry while the pages are read, so that one of the
// second page moves to the first, and one while old pages are read again.
func TestHistoryRemovedMeanwhile(t *testing.T) {
	h := newHistoryTest(t, manyEntries(250))
	h.before = func(query url.Values) error {
		if query.Get("page") == "2" && len(h.account.Transactions) == 250 {
			h.account.Transactions = slices.Delete(slices.Clone(h.account.Transactions), 3, 4)
		}
		return nil
	}
	h.assertFetch("first", pages(1, 3)+", 1, "+pages(2, 3), sumsOf(slices.Delete(manyEntries(250), 3, 4)), 0)
	h.assertFetch("later", "1", sumsOf(h.account.Transactions), 0)

	h.response.Received = h.response.Received.Add(rereadInterval)
	h.before = func(query url.Values) error {
		if query.Get("page") == "3" {
			return errUnreachable
		}
		return nil
	}
	if _, _, _, err := h.fetch(); !errors.Is(err, errUnreachable) {
		t.Fatal(err)
	}
	h.before = nil // one of a page that was read is removed, another is added: the total stays
	with := withMore(h.account.Transactions, 1)
	h.account.Transactions = slices.Delete(slices.Clone(with), 3, 4)
	h.assertFetch("more entries than the total", "1, 3 bulk", sumsOf(with), 0)
	h.assertFetch("read again", "1, "+pages(2, 3), sumsOf(h.account.Transactions), 0)
}

// TestHistoryAmountLater has an amount that is not known at first, and then one of a new entry,
// also of a history of several pages.
func TestHistoryAmountLater(t *testing.T) {
	h := newHistoryTest(t, manyEntries(50))
	known := h.account.Transactions[3]
	h.account.Transactions[3] = simulator.Object{"id": known["id"], "type": known["type"]}
	h.assertFetch("not known", "1 bulk", sumsOf(h.account.Transactions), 1)
	h.account.Transactions[3] = known
	h.assertFetch("known", "1", sumsOf(h.account.Transactions), 0)
	h.account.Transactions = withMore(h.account.Transactions, 1)
	delete(h.account.Transactions[0], "amount")
	h.assertFetch("not known of a new one", "1", sumsOf(h.account.Transactions), 1)

	h = newHistoryTest(t, manyEntries(250))
	h.assertFetch("several pages", pages(1, 3), sumsOf(h.account.Transactions), 0)
	h.account.Transactions = withMore(h.account.Transactions, 1)
	delete(h.account.Transactions[0], "amount")
	h.assertFetch("not known on the newest", "1", sumsOf(h.account.Transactions), 1)
}

// TestHistoryEndlessIDs has entries with other ids in each response: they do not fill the
// memory.
func TestHistoryEndlessIDs(t *testing.T) {
	for _, total := range []int{150, 1000} {
		next := 0
		h := newHistoryTest(t, nil)
		h.body = func(query url.Values) []byte {
			list := withMore([]simulator.Object{oneEntry(next, "topup", 1)}, total)[:total]
			next += total
			return servePages(anyOf(list), total, 100)(query)
		}
		for range 5 {
			_, _, _, err := h.fetch()
			if n := len(h.history.entries); n > total+rentalapi.MaxPageItems {
				t.Errorf("got %d entries and error %v", n, err)
			}
		}
	}
}

// TestHistoryOfAnotherToken changes the token between two fetches, and between two pages:
// it may be that of another account, whose entries may have the same ids.
func TestHistoryOfAnotherToken(t *testing.T) {
	for _, theirs := range []int{50, 350, 480} {
		for _, firstID := range []int{1, 200} {
			for after := range 7 { // requests with the first token; the first fetch makes 5
				h := newHistoryTest(t, manyEntries(350))
				list := manyEntries(theirs)
				for _, e := range list {
					e["id"] = e["id"].(int) + firstID - 1
					simulator.Put(e, 1.25, "amount", "usd")
				}
				h.accounts[simtest.LabToken].Transactions = list
				asked := 0
				h.before = func(url.Values) error {
					if asked++; asked == after+1 {
						h.token = simtest.LabToken
					}
					return nil
				}
				var series map[string]float64
				for range 4 {
					if s, _, _, err := h.fetch(); err == nil {
						series = s
					} else if !strings.Contains(err.Error(), "the token changed between two requests") {
						t.Error(err)
					}
				}
				simtest.AssertEqual(t, fmt.Sprintf("%d from %d after %d requests", theirs, firstID, after), series, sumsOf(list))
			}
		}
	}
}
