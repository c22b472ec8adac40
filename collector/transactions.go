package collector

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// transaction is the provider's Balance transaction, without its description.
type transaction struct {
	ID     entryID
	Type   string
	Amount struct{ USD *amount }
}

// entryID is an integer as it is written.
type entryID string

// Decode implements rentalapi.Value.
func (id *entryID) Decode(value any) string {
	n, _ := value.(json.Number)
	_, err := n.Int64()
	*id = entryID(n)
	return problem(err == nil, "an integer")
}

var (
	transactionsByType = metric.Gauge("transactions", "All transactions of the account by type; a gauge, because the provider can remove or change one.", "account", "type")
	transactionsCredit = metric.Gauge("transactions_credit_usd", "Sum of all positive transactions of the account by type.", "account", "type")
	transactionsDebit  = metric.Gauge("transactions_debit_usd", "Sum of all negative transactions of the account by type, as a positive number.", "account", "type")
)

const (
	// maxEntries bounds how many transactions, or top-ups, an account has.
	maxEntries = 500_000
	// pageInterval is the interval for each page: a long history does not change more
	// often, but costs more requests.
	pageInterval = 10 * time.Second
	// maxPageFailures is after how many failures of one page in a row all are read again: the
	// provider may have no such page any more.
	maxPageFailures = 5
)

func transactions() Resource {
	return Resource{
		Name: "transactions", Help: "money in and out by type", Path: "/transactions", Account: true,
		Interval: 5 * time.Minute, MaxAge: 30 * time.Minute, PageInterval: pageInterval,
		Metrics: []*metric.Definition{transactionsByType, transactionsCredit, transactionsDebit},
		get:     getTransactions,
	}
}

// getTransactions reads all pages, from the newest one on. New entries push older ones to
// later pages meanwhile: those are read again, and the new ones with the next fetch. So what
// is exported was there at one moment. A fetch that fails goes on with the page that failed.
func getTransactions(ctx context.Context, f *Fetcher, b *metric.Builder) (Snapshot, error) {
	if f.walk == nil {
		f.walk = &walk{types: map[string]string{}, entries: map[entryID]entry{}}
	}
	w := f.walk
	for last := false; !last; {
		if w.pages > 0 {
			if err := f.nextPage(ctx); err != nil {
				return Snapshot{}, err
			}
		}
		page, err := rentalapi.GetPage[transaction](ctx, f.API, rentalapi.List{Path: f.Resource.Path, MaxItems: maxEntries}, w.pages+1)
		if err != nil {
			if w.failures++; w.failures == maxPageFailures {
				f.walk = nil
			}
			return Snapshot{}, err
		}
		if err := w.add(page); err != nil {
			f.walk = nil
			return Snapshot{}, err
		}
		last = count(w.pages) >= page.Meta.Pages || page.Count == 0
	}
	f.walk = nil
	if err := checkTotal(len(w.entries)+w.withoutID, w.total); err != nil {
		return Snapshot{}, err
	}
	w.addSums(b)
	s := newSnapshot(w.first)
	s.Invalid, s.AtLeast = w.invalid, time.Duration(w.pages)*pageInterval
	return s, nil
}

// checkTotal fails if all pages of a list have fewer different items than it has in all: the
// provider may have sent the same page again.
func checkTotal(items int, total count) error {
	if count(items) < total {
		return fmt.Errorf("data: the pages hold %d entries, but meta.total is %v: %w", items, total, rentalapi.ErrIncomplete)
	}
	return nil
}

// maxTypes bounds the types of transactions. The provider documents two.
const maxTypes = 1_000

// walk is the pages of the transactions that were read so far.
type walk struct {
	first     rentalapi.Response
	newest    rentalapi.Response
	pages     int
	failures  int   // of the next page, in a row
	total     count // entries when the first page was read
	left      count // entries when the newest page was read
	entries   map[entryID]entry
	types     map[string]string // each text once
	withoutID int
	invalid   rentalapi.Invalid
}

type entry struct {
	kind string
	usd  micros
}

// add adds the next page. Its error says why it cannot be combined with those before.
func (w *walk) add(page rentalapi.Page[transaction, rentalapi.PageMeta]) error {
	if w.pages == 0 {
		w.first, w.newest, w.total, w.left = page.Response, page.Response, page.Meta.Total, page.Meta.Total
	}
	switch {
	case page.Token != w.first.Token:
		return ErrTokenChanged
	case page.Meta.Total < w.left: // others have moved to pages that were read before
		return fmt.Errorf("data: entries were removed between two pages: %w", rentalapi.ErrIncomplete)
	case page.Received.Sub(w.newest.Received) > rememberFor:
		return fmt.Errorf("data: the pages before are older than %s: %w", rememberFor, rentalapi.ErrIncomplete)
	}
	for _, t := range page.Items {
		kind, known := w.types[t.Type]
		if !known {
			kind = t.Type
			w.types[kind] = kind
		}
		e := entry{kind: kind}
		if t.Amount.USD != nil {
			e.usd = microsOf(*t.Amount.USD)
		}
		w.entries[t.ID] = e
	}
	if len(w.types) > maxTypes {
		return fmt.Errorf("data: more than %d types: %w", maxTypes, rentalapi.ErrTooLarge)
	}
	w.pages, w.failures = w.pages+1, 0
	w.newest, w.left = page.Response, page.Meta.Total
	w.withoutID += page.Count - len(page.Items)
	w.invalid.Merge(page.Invalid)
	return nil
}

// addSums adds the sums of all entries.
func (w *walk) addSums(b *metric.Builder) {
	type sum struct {
		n             float64
		credit, debit micros
	}
	sums := map[string]sum{"topup": {}, "bonus": {}} // documented, so always exported
	for _, e := range w.entries {
		s := sums[e.kind]
		sums[e.kind] = sum{s.n + 1, s.credit + max(e.usd, 0), s.debit + max(-e.usd, 0)}
	}
	for kind, s := range sums {
		b.Add(transactionsByType, s.n, kind)
		b.Add(transactionsCredit, s.credit.value(), kind)
		b.Add(transactionsDebit, s.debit.value(), kind)
	}
}
