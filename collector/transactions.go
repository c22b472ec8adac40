package collector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// transaction is the provider's Balance transaction, without its description.
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

// maxTypes bounds the types of transactions, each of which is three series.
const maxTypes = 100

func transactions() Resource {
	return Resource{
		Name: "transactions", Help: "money in and out by type", Endpoint: "/transactions", Account: true,
		Interval: 5 * time.Minute, MaxAge: 30 * time.Minute, Requests: 1,
		Metrics:  []*metric.Definition{transactionsTotal, transactionsCredit, transactionsDebit},
		NewFetch: func() Fetch { return newLedger().fetch },
	}
}

// ledger adds up an account's whole history.
//
// The API lists entries newest first, and new ones push older ones to later pages.
// So the ledger walks from the first page on until it reaches an entry that it
// counted in an earlier walk, or the end. An entry that was pushed is read twice and
// counted once; entries that arrive during a walk are on the first pages of another
// walk, which follows at once. A walk keeps its entries when a page fails, and they
// are counted when it is complete.
type ledger struct {
	counted  entries
	complete bool // the whole history was read once
	// missing is by how many entries meta.total differs from what was counted: above
	// 0 where entries are invalid, below where the provider dropped old ones.
	missing int
	invalid rentalapi.Invalid // found by the last walk to the end

	walk  *walk                 // under way; nil between two
	token rentalapi.Fingerprint // that it was read with
}

// entries are transactions added up.
type entries struct {
	ids      map[int64]bool
	totals   map[string]*tally // by type
	noAmount map[int64]string  // types of the entries whose amount the sums lack
}

type tally struct {
	n             float64
	credit, debit micros
}

// walk is one way through the pages.
type walk struct {
	page         int
	total        int  // meta.total of the last page
	growth       int  // of meta.total since the first page
	positions    int  // entries read, understood or not
	duplicates   int  // of these, read before in this walk
	reachedKnown bool // an entry that was counted in an earlier walk
	found        entries
	invalid      rentalapi.Invalid
}

func newEntries() entries {
	return entries{ids: map[int64]bool{}, totals: map[string]*tally{}, noAmount: map[int64]string{}}
}

func newWalk() *walk { return &walk{page: 1, found: newEntries()} }

func newLedger() *ledger { return &ledger{counted: newEntries()} }

// errMore means that a walk needs further pages.
var errMore = errors.New("transactions: more pages")

// fetch reads pages until the walk is complete.
func (l *ledger) fetch(ctx context.Context, api rentalapi.Getter, b *metric.Builder) (s Snapshot, err error) {
	for s, err = l.step(ctx, api, b); errors.Is(err, errMore); s, err = l.step(ctx, api, b) {
	}
	return s, err
}

// step reads one page, and returns errMore until a walk is complete.
func (l *ledger) step(ctx context.Context, api rentalapi.Getter, b *metric.Builder) (Snapshot, error) {
	if l.walk == nil {
		l.walk = newWalk()
	}
	priority := rentalapi.Bulk
	if l.complete && l.walk.page == 1 {
		priority = rentalapi.Regular
	}
	page, err := rentalapi.GetPage(ctx, api, rentalapi.List[transaction]{
		Endpoint: "/transactions", Priority: priority, ID: transactionID, Check: checkTransaction,
	}, l.walk.page)
	if err != nil {
		return Snapshot{}, err
	}
	if page.Token != l.token { // perhaps of another account, whose entries may have the same ids
		first := l.walk.page == 1
		*l = *newLedger()
		l.token, l.walk = page.Token, newWalk()
		if !first {
			return Snapshot{}, errMore
		}
	}
	l.take(page)
	atEnd := l.walk.page >= page.Meta.Pages || page.Count == 0
	if !atEnd && !l.caughtUp() {
		l.walk.page++
		return Snapshot{}, errMore
	}
	again, err := l.finish(atEnd)
	switch {
	case err != nil:
		return Snapshot{}, fmt.Errorf("%w: %w", rentalapi.ErrIncomplete, err)
	case again:
		return Snapshot{}, errMore
	}
	return l.build(b, page.Response)
}

func transactionID(t *transaction) string {
	if t.ID == nil {
		return ""
	}
	return strconv.FormatInt(*t.ID, 10)
}

// checkTransaction reports an amount that is missing or null: the sums lack it.
func checkTransaction(t *transaction, errs []rentalapi.FieldError) []rentalapi.FieldError {
	known := func(e rentalapi.FieldError) bool { return strings.HasPrefix(e.Field, "amount") }
	if t.Amount.USD != nil || slices.ContainsFunc(errs, known) {
		return nil
	}
	return []rentalapi.FieldError{{Field: "amount.usd", Problem: "missing"}}
}

// take adds a page to the walk.
func (l *ledger) take(page rentalapi.Page[transaction, rentalapi.PageMeta]) {
	w := l.walk
	if w.page > 1 {
		w.growth += page.Meta.Total - w.total
	}
	w.total = page.Meta.Total
	w.positions += page.Count
	w.invalid.Merge(page.Invalid)
	for _, t := range page.Items {
		switch {
		case l.counted.ids[*t.ID]:
			w.reachedKnown = true
			l.counted.addAmount(t)
		case w.found.ids[*t.ID]:
			w.duplicates++
		case !w.found.add(t, l.counted):
			w.invalid.Add(transactionID(t), rentalapi.FieldError{Field: "type", Problem: fmt.Sprintf("more than %d types", maxTypes)})
		}
	}
}

// add returns false where the entry would be one type too many.
func (e entries) add(t *transaction, earlier entries) bool {
	sum := e.totals[t.Type]
	if sum == nil {
		if earlier.totals[t.Type] == nil && len(e.totals)+len(earlier.totals) >= maxTypes {
			return false
		}
		sum = &tally{}
		e.totals[t.Type] = sum
	}
	e.ids[*t.ID] = true
	sum.n++
	if t.Amount.USD == nil {
		e.noAmount[*t.ID] = t.Type
		return true
	}
	sum.add(*t.Amount.USD)
	return true
}

// addAmount adds the amount of an entry that was counted without one.
func (e entries) addAmount(t *transaction) {
	kind, missing := e.noAmount[*t.ID]
	if missing && t.Amount.USD != nil {
		e.totals[kind].add(*t.Amount.USD)
		delete(e.noAmount, *t.ID)
	}
}

func (t *tally) add(a amount) {
	if usd := microsOf(a); usd > 0 {
		t.credit += usd
	} else {
		t.debit -= usd
	}
}

// arrived returns how many entries arrived during the walk, apart from those for
// which the provider dropped as many.
func (w *walk) arrived() int { return max(0, w.growth) }

// short returns how many entries of the total have not been found.
func (l *ledger) short() int {
	return l.walk.total - len(l.counted.ids) - len(l.walk.found.ids)
}

// caughtUp returns whether a walk needs no further page. Reaching a known entry does
// not suffice while more are missing than after the last walk, apart from those that
// arrived meanwhile.
func (l *ledger) caughtUp() bool {
	short := l.short()
	return short <= 0 && l.missing >= 0 || l.walk.reachedKnown && short <= l.missing+l.walk.arrived()
}

// finish ends a walk and counts what it found. It returns whether another walk must
// follow at once, and an error where the pages contradict the total.
func (l *ledger) finish(atEnd bool) (again bool, err error) {
	w, short := l.walk, l.short()
	switch {
	case short < 0 && !w.reachedKnown:
		*l = *newLedger() // none of the old entries and too few in all: another account's
		return false, fmt.Errorf("meta.total: %d entries fewer than were counted: counting anew", -short)
	case atEnd && short > 0 && w.positions < w.total:
		l.walk = nil
		return false, fmt.Errorf("data: the pages hold %d entries where meta.total is %d", w.positions, w.total)
	}
	// An entry is read twice where new ones pushed it to the next page; beyond that,
	// ids were given twice.
	for range max(0, w.duplicates-w.growth) {
		w.invalid.Add("", rentalapi.FieldError{Field: "id", Problem: "already seen"})
	}
	switch {
	case w.arrived() == 0:
		l.missing = short
	case !l.complete: // of those that arrived, some may have been found
		l.missing = max(0, short-w.arrived())
	}
	if atEnd || w.invalid.Items > l.invalid.Items {
		l.invalid = w.invalid
	}
	// Entries that arrived during the walk are on the first pages of another one; some
	// of them may have been found, and what is exported must be of one moment.
	again = !l.complete && w.page > 1 || w.arrived() > 0
	l.complete = true
	l.counted.merge(w.found)
	l.walk = nil
	return again, nil
}

func (e entries) merge(other entries) {
	for id := range other.ids {
		e.ids[id] = true
	}
	maps.Copy(e.noAmount, other.noAmount)
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

func (l *ledger) build(b *metric.Builder, last rentalapi.Response) (Snapshot, error) {
	for kind, t := range l.counted.totals {
		b.Add(transactionsTotal, t.n, kind)
		b.Add(transactionsCredit, t.credit.value(), kind)
		b.Add(transactionsDebit, t.debit.value(), kind)
	}
	return Snapshot{Invalid: l.invalid, Age: newAge(last, nil)}.build(b)
}
