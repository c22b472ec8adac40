package collector

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
)

// transaction is API.md's Balance transaction, without its description.
type transaction struct {
	ID     *int64
	Type   string
	Amount struct{ USD *amount }
}

var (
	transactionsTotal  = metric.Counter("transactions_total", "Balance transactions of the account by type, over its whole history.", "Balance transaction", "account", "type")
	transactionsCredit = metric.Counter("transactions_credit_usd_total", "Sum of the account's positive transactions by type, over its whole history.", "Balance transaction amount.usd", "account", "type")
	transactionsDebit  = metric.Counter("transactions_debit_usd_total", "Sum of the account's negative transactions by type, as a positive number, over its whole history.", "Balance transaction amount.usd", "account", "type")
)

// mostTypes bounds the types of transactions, each of which is three series.
const mostTypes = 100

func transactions() Resource {
	return Resource{
		Name: "transactions", Help: "money in and out by type", Endpoint: "/transactions", Account: true,
		Interval: 5 * time.Minute, MaxAge: 30 * time.Minute, Requests: 1,
		Metrics: []*metric.Definition{transactionsTotal, transactionsCredit, transactionsDebit},
		open:    func() fetch { return newLedger().fetch },
	}
}

// ledger adds up an account's whole history.
//
// The API lists entries newest first, and new ones push older ones to later
// pages. So the ledger walks from the first page on until it meets an entry that
// it counted in an earlier walk, or the end; an entry that was pushed is met
// twice and counted once, and those that came meanwhile are on the first pages of
// another walk, which follows at once. What a walk finds is kept when a page fails,
// and counted when the walk is complete.
type ledger struct {
	counted  entries
	complete bool // the whole history was read once
	// missing is by how many entries meta.total differs from what was counted:
	// above 0 where entries are invalid, below where the provider dropped old ones.
	missing int
	invalid faults // found by the last walk to the end

	walk  *walk    // under way; nil between two
	token [32]byte // identifies the one it was read with
}

// entries are transactions added up.
type entries struct {
	ids    map[int64]bool
	totals map[string]*tally
}

type tally struct {
	n             float64
	credit, debit micros
}

// walk is one way through the pages.
type walk struct {
	page      int
	total     int  // as the last page said
	grown     int  // by how much it grew since the first page
	positions int  // entries read, whatever they were
	twice     int  // of these, met before in this walk
	met       bool // one that was counted in an earlier walk
	found     entries
	invalid   faults
}

func newEntries() entries {
	return entries{ids: map[int64]bool{}, totals: map[string]*tally{}}
}

func newWalk() *walk { return &walk{page: 1, found: newEntries()} }

func newLedger() *ledger { return &ledger{counted: newEntries()} }

// fetch reads one page, and returns refresh.ErrMore until a walk is complete.
func (l *ledger) fetch(ctx context.Context, api *rentalapi.Scope, b *metric.Builder) (snapshot, error) {
	if l.walk == nil {
		l.walk = newWalk()
	}
	items := newReader(func(t *transaction) string {
		if t.ID == nil {
			return ""
		}
		return strconv.FormatInt(*t.ID, 10)
	})
	ask := api.HistoryPage
	if l.complete && l.walk.page == 1 {
		ask = api.Page
	}
	meta, err := ask(ctx, "/transactions", nil, l.walk.page, items.read)
	if err != nil {
		return snapshot{}, err
	}
	if meta.Token != l.token { // it may be another account's, whose entries may have the same ids
		first := l.walk.page == 1
		*l = *newLedger()
		l.token, l.walk = meta.Token, newWalk()
		if !first {
			return snapshot{}, refresh.ErrMore
		}
	}
	w := l.walk
	onPage := len(items.items) + items.invalid.count
	if w.page > 1 {
		w.grown += meta.Total - w.total
	}
	w.total = meta.Total
	w.positions += onPage
	l.take(items)
	end := w.page >= meta.Pages || onPage == 0
	if !end && !l.caughtUp() {
		w.page++
		return snapshot{}, refresh.ErrMore
	}
	return l.finish(b, end)
}

// take adds what a page holds to the walk.
func (l *ledger) take(page *reader[transaction]) {
	w := l.walk
	w.invalid.merge(page.invalid)
	for _, t := range page.items {
		switch {
		case l.counted.ids[*t.ID]:
			w.met = true
		case w.found.ids[*t.ID]:
			w.twice++
		default:
			w.invalid.add(w.found.add(t, l.counted))
		}
	}
}

func (e entries) add(t *transaction, before entries) error {
	switch {
	case t.Amount.USD == nil:
		return errors.New("amount.usd: missing")
	case len(t.Type) > metric.MaxLabelLength:
		return fmt.Errorf("type: %d bytes", len(t.Type))
	case e.totals[t.Type] == nil && before.totals[t.Type] == nil && len(e.totals)+len(before.totals) >= mostTypes:
		return fmt.Errorf("type: more than %d", mostTypes)
	}
	e.ids[*t.ID] = true
	sum := e.totals[t.Type]
	if sum == nil {
		sum = &tally{}
		e.totals[t.Type] = sum
	}
	sum.n++
	if usd := microsOf(*t.Amount.USD); usd > 0 {
		sum.credit += usd
	} else {
		sum.debit -= usd
	}
	return nil
}

// came returns how many entries came during the walk, besides those of which the
// provider drops as many.
func (w *walk) came() int { return max(0, w.grown) }

// short returns how many entries of the total have not been found.
func (l *ledger) short() int {
	return l.walk.total - len(l.counted.ids) - len(l.walk.found.ids)
}

// caughtUp tells whether a walk needs no further page. Meeting an old entry is not
// enough while more are missing than after the last walk, but for those that came
// meanwhile.
func (l *ledger) caughtUp() bool {
	short := l.short()
	return short <= 0 && l.missing >= 0 || l.walk.met && short <= l.missing+l.walk.came()
}

// finish ends a walk: what it found is counted, unless the pages contradict the
// total.
func (l *ledger) finish(b *metric.Builder, end bool) (snapshot, error) {
	w, short := l.walk, l.short()
	switch {
	case short < 0 && !w.met:
		*l = *newLedger() // none of the old entries and too few in all: another account's
		return snapshot{}, fmt.Errorf("transactions: meta.total: %d entries fewer than were counted: counting anew", -short)
	case end && short > 0 && w.positions < w.total:
		l.walk = nil
		return snapshot{}, fmt.Errorf("transactions: the pages hold %d entries where meta.total says %d", w.positions, w.total)
	}
	// An entry is met twice where new ones pushed it to the next page; beyond
	// that, ids were given twice.
	for range max(0, w.twice-w.grown) {
		w.invalid.add(errSeen)
	}
	switch {
	case w.came() == 0:
		l.missing = short
	case !l.complete: // of those that came, some may have been found
		l.missing = max(0, short-w.came())
	}
	if end || w.invalid.count > l.invalid.count {
		l.invalid = w.invalid
	}
	// Entries that came while the walk went on are on the first pages of another one;
	// some of them may have been found, and what is shown must be of one moment.
	again := !l.complete && w.page > 1 || w.came() > 0
	l.complete = true
	l.counted.merge(w.found)
	l.walk = nil
	if again {
		return snapshot{}, refresh.ErrMore
	}
	return l.show(b)
}

func (e entries) merge(other entries) {
	for id := range other.ids {
		e.ids[id] = true
	}
	for kind, t := range other.totals {
		sum := e.totals[kind]
		if sum == nil {
			e.totals[kind] = t
			continue
		}
		sum.n += t.n
		sum.credit += t.credit
		sum.debit += t.debit
	}
}

func (l *ledger) show(b *metric.Builder) (snapshot, error) {
	err := b.Item(func() {
		for kind, t := range l.counted.totals {
			b.Add(transactionsTotal, t.n, kind)
			b.Add(transactionsCredit, t.credit.value(), kind)
			b.Add(transactionsDebit, t.debit.value(), kind)
		}
	})
	if err != nil {
		return snapshot{}, err
	}
	return snapshot{metrics: b.Metrics(), invalid: l.invalid}, nil
}
