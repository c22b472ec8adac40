package collector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"
	"unique"

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
	transactionsByType = metric.Gauge("transactions", "All transactions of the account by type; a gauge, because the provider can remove or change one.", "Balance transaction", "account", "type")
	transactionsCredit = metric.Gauge("transactions_credit_usd", "Sum of all positive transactions of the account by type; a gauge, because the provider can remove or change one.", "Balance transaction amount.usd", "account", "type")
	transactionsDebit  = metric.Gauge("transactions_debit_usd", "Sum of all negative transactions of the account by type, as a positive number; a gauge, because the provider can remove or change one.", "Balance transaction amount.usd", "account", "type")
)

const (
	// maxTypes bounds the types of transactions, each of which is three series.
	maxTypes = 100
	// rereadInterval is the time from one reading of all pages to the next, which finds
	// what was removed or changed on old pages.
	rereadInterval = 24 * time.Hour
	// rereadPages is how many old pages a refresh reads again. The longest history takes
	// less than a day at the default interval.
	rereadPages = 20
)

func transactions() Resource {
	return Resource{
		Name: "transactions", Help: "money in and out by type", Path: "/transactions", Account: true,
		Interval: 5 * time.Minute, MaxAge: 30 * time.Minute, Requests: 1,
		Metrics:  []*metric.Definition{transactionsByType, transactionsCredit, transactionsDebit},
		NewFetch: func() Fetch { return new(history).fetch },
	}
}

// history is all transactions of an account by id.
//
// The API lists entries newest first, and new ones push older ones to later pages. An
// entry that is read twice replaces itself. So a walk reads from the newest page on until
// it reaches an entry of an earlier walk, or the end, and goes on at a page that failed.
// Entries that arrive during a walk are on pages that it has read already, so what is
// exported was there at one moment.
//
// What the provider removed or changed on old pages is found by a walk through all pages:
// once a day, and if the number of entries is not the total. It takes several refreshes.
type history struct {
	token   rentalapi.Fingerprint // that it was read with
	entries map[int64]entry
	types   map[unique.Handle[string]]bool // of the entries
	walks   uint32                         // begun so far
	newest  *walk                          // under way from the newest page on; nil between two
	again   *walk                          // under way through all pages; nil between two
	full    *walk                          // the last one that read all pages; nil before
	readAt  time.Time                      // when full ended; zero if entries may have been missed since
	total   int                            // meta.total of the newest page
	missing int                            // total less entries after full; 0 if they are more, which is wrong
}

// entry is one transaction, as small as possible: there may be 500,000.
type entry struct {
	usd  micros // 0 if it is not known
	kind unique.Handle[string]
	walk uint32 // the last one that read it
}

// walk is one way through the pages.
type walk struct {
	number   uint32
	page     int // the next one
	items    int // read so far
	unusable int // of these, without a usable id, or of too many types
	invalid  rentalapi.Invalid
}

type transactionPage = rentalapi.Page[transaction, rentalapi.PageMeta]

// fetch reads the newest page, further ones while they are new, and old ones if that is due:
// if the number of entries differs from the total by another number than after the last walk
// through all pages, or a day later.
func (h *history) fetch(ctx context.Context, api rentalapi.Getter, b *metric.Builder) (s Snapshot, err error) {
	var w *walk
	var page transactionPage
	for changed := true; changed; changed = page.Meta.Total != h.total { // meanwhile: a walk can take hours
		if h.newest == nil {
			h.walks++
			h.newest = &walk{number: h.walks, page: 1}
		}
		w = h.newest
		for done := false; !done; {
			if page, done, err = h.readPage(ctx, api, w); err != nil {
				return s, err
			}
		}
		h.newest = nil
	}
	due := h.total-len(h.entries) != h.missing || page.Received.Sub(h.readAt) >= rereadInterval
	if h.again == nil && h.full != w && due {
		h.again = w
	}
	for i := 0; i < rereadPages && h.again != nil; i++ {
		if page, _, err = h.readPage(ctx, api, h.again); err != nil {
			return s, err
		}
	}
	if h.again == nil && page.Meta.Total == h.total {
		h.missing = max(0, h.total-len(h.entries))
	}
	if w.invalid.Items > h.full.invalid.Items {
		h.full.invalid = w.invalid
	}
	h.addMetrics(b)
	s.Age = newAge(page.Response, nil)
	s.Invalid.Merge(h.full.invalid) // a copy: the walk may go on
	// Of the entries that are missing, those that have an id have one that was given twice.
	s.Invalid.AddMany(h.missing-h.full.unusable, "", rentalapi.FieldError{Field: "id", Problem: "already seen"})
	return s, nil
}

// readPage merges the next page of a walk, and returns whether the page is the last one or
// reaches an entry of an earlier walk. It forgets all that was read with another token,
// perhaps of another account, or that contradicts the total: the ids of a provider may
// never end. After the last page it removes what the walk did not find.
func (h *history) readPage(ctx context.Context, api rentalapi.Getter, w *walk) (page transactionPage, done bool, err error) {
	page, err = rentalapi.GetPage(ctx, api, rentalapi.List[transaction]{
		Path: "/transactions", ID: transactionID,
	}, w.page)
	if err != nil {
		return page, false, err
	}
	if h.entries == nil || page.Token != h.token {
		*h = history{token: page.Token, entries: map[int64]entry{}, types: map[unique.Handle[string]]bool{}, newest: w, walks: w.number}
		if w.page > 1 {
			h.newest = nil
			return page, false, errors.New("transactions: the token changed between two requests")
		}
	}
	total, removed := page.Meta.Total, page.Meta.Total < h.total
	if w.page == 1 {
		h.total = total
	}
	w.page++
	reached := h.merge(w, page)
	end := page.Meta.Page >= page.Meta.Pages || page.Count == 0
	if known := len(h.entries); known > total+rentalapi.MaxPageItems || end && w.items < total {
		*h = history{}
		return page, false, fmt.Errorf("%w: data: the pages hold %d entries, but meta.total is %d", rentalapi.ErrIncomplete, max(known, w.items), total)
	}
	if end {
		maps.DeleteFunc(h.entries, func(_ int64, e entry) bool { return e.walk < w.number })
		h.again, h.full, h.readAt = nil, w, page.Received
	}
	if removed { // others have moved to pages that were read before
		h.again, h.readAt = nil, time.Time{}
	}
	return page, end || reached && h.full != nil, nil
}

func transactionID(t *transaction) string {
	if t.ID == nil {
		return ""
	}
	return strconv.FormatInt(*t.ID, 10)
}

// merge replaces what is known of the entries of a page. It returns whether an earlier walk
// read one of them, or none of them can be kept.
func (h *history) merge(w *walk, page transactionPage) (reached bool) {
	w.items += page.Count
	w.unusable += page.Count - len(page.Items)
	w.invalid.Merge(page.Invalid)
	for _, t := range page.Items {
		e, known := h.entries[*t.ID]
		reached = reached || known && e.walk < w.number
		e = entry{kind: unique.Make(t.Type), walk: w.number}
		if len(h.types) == maxTypes && !h.types[e.kind] {
			w.unusable++
			w.invalid.Add(transactionID(t), rentalapi.FieldError{Field: "type", Problem: fmt.Sprintf("more than %d types", maxTypes)})
			continue
		}
		h.types[e.kind] = true
		if t.Amount.USD != nil {
			e.usd = microsOf(*t.Amount.USD)
		}
		h.entries[*t.ID] = e
	}
	return reached || len(page.Items) == 0
}

func (h *history) addMetrics(b *metric.Builder) {
	type sum struct {
		n             float64
		credit, debit micros
	}
	sums := map[unique.Handle[string]]sum{unique.Make("topup"): {}, unique.Make("bonus"): {}} // documented, so always exported
	for _, e := range h.entries {
		s := sums[e.kind]
		sums[e.kind] = sum{s.n + 1, s.credit + max(e.usd, 0), s.debit + max(-e.usd, 0)}
	}
	for kind, s := range sums {
		b.Add(transactionsByType, s.n, kind.Value())
		b.Add(transactionsCredit, s.credit.value(), kind.Value())
		b.Add(transactionsDebit, s.debit.value(), kind.Value())
	}
}
