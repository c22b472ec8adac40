package collector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	// maxWalks is how many walks from the newest page a refresh makes at most, which is
	// enough however fast entries arrive.
	maxWalks = 10
)

// documentedTypes are always exported.
func documentedTypes() []string { return []string{"topup", "bonus"} }

func transactions() Resource {
	return Resource{
		Name: "transactions", Help: "money in and out by type", Endpoint: "/transactions", Account: true,
		Interval: 5 * time.Minute, MaxAge: 30 * time.Minute, Requests: 1,
		Metrics:  []*metric.Definition{transactionsByType, transactionsCredit, transactionsDebit},
		NewFetch: func() Fetch { return newHistory().fetch },
	}
}

// history is all transactions of an account by id.
//
// The API lists entries newest first, and new ones push older ones to later pages. An
// entry that is read twice replaces itself. So a walk reads from the newest page on until
// it reaches an entry of an earlier walk, or the end. Entries that arrive during a walk
// are on the first pages of another one, which follows at once: what is exported was there
// at one moment. A walk goes on at the page that failed.
//
// What the provider removed or changed on old pages is found by a walk through all pages:
// once a day, and if the number of entries is not the total. It takes several refreshes.
type history struct {
	token   rentalapi.Fingerprint // that it was read with
	entries map[int64]entry
	types   []string  // of the entries; the documented ones first
	walks   uint32    // begun so far
	newest  *walk     // under way from the newest page on; nil between two
	again   *walk     // under way through all pages; nil between two
	full    *walk     // the last one that read all pages; nil before
	readAt  time.Time // when full ended
	missing *int      // total less entries after full; nil until that is known
}

// entry is one transaction, as small as possible: there may be 500,000.
type entry struct {
	usd     micros // 0 if it is not known
	typeNum uint8  // index into history.types
	walk    uint32 // the last one that read it
}

// walk is one way through the pages.
type walk struct {
	number       uint32
	page         int // the next one
	total        int // meta.total of the first page
	items        int // read so far
	unusable     int // of these, without a usable id, or of too many types
	reachedKnown bool
	invalid      rentalapi.Invalid
}

type transactionPage = rentalapi.Page[transaction, rentalapi.PageMeta]

func newHistory() *history {
	return &history{entries: map[int64]entry{}, types: documentedTypes()}
}

// fetch reads the newest page, further ones while they are new, and old ones if that is due.
func (h *history) fetch(ctx context.Context, api rentalapi.Getter, b *metric.Builder) (Snapshot, error) {
	newest, err := h.readNewest(ctx, api)
	if err == nil && h.again != nil {
		for i := 0; i < rereadPages && h.again != nil && err == nil; i++ {
			_, _, err = h.readPage(ctx, api, h.again)
		}
		if err == nil {
			newest, err = h.readNewest(ctx, api)
		}
	}
	if err != nil {
		return Snapshot{}, err
	}
	return h.build(b, newest)
}

// readNewest walks until no entry arrives meanwhile.
func (h *history) readNewest(ctx context.Context, api rentalapi.Getter) (rentalapi.Response, error) {
	for walks := 0; walks < maxWalks; {
		if h.newest == nil {
			h.walks++
			h.newest = &walk{number: h.walks, page: 1}
		}
		w := h.newest
		page, atEnd, err := h.readPage(ctx, api, w)
		switch {
		case err != nil:
			return page.Response, err
		case !atEnd && (h.full == nil || !w.reachedKnown):
			continue
		}
		h.newest = nil
		walks++
		if page.Meta.Page == 1 || !atEnd && page.Meta.Total == w.total {
			h.compare(w, page)
			return page.Response, nil
		}
	}
	return rentalapi.Response{}, fmt.Errorf("meta.total: changed during each of %d walks", maxWalks)
}

// readPage merges the next page of a walk. It forgets all that was read with another token,
// perhaps of another account, or that contradicts the total: the ids of a provider may
// never end. After the last page it removes what the walk did not find.
func (h *history) readPage(ctx context.Context, api rentalapi.Getter, w *walk) (page transactionPage, atEnd bool, err error) {
	priority := rentalapi.Bulk
	if h.full != nil && w.page == 1 {
		priority = rentalapi.Regular
	}
	page, err = rentalapi.GetPage(ctx, api, rentalapi.List[transaction]{
		Endpoint: "/transactions", Priority: priority, ID: transactionID,
	}, w.page)
	if err != nil {
		return page, false, err
	}
	if page.Token != h.token {
		*h = *newHistory()
		if w.page > 1 {
			return page, false, errors.New("transactions: the token changed between two requests")
		}
		h.token, h.newest, h.walks = page.Token, w, w.number
	}
	if w.page == 1 {
		w.total = page.Meta.Total
	}
	w.page++
	h.merge(w, page)
	atEnd = page.Meta.Page >= page.Meta.Pages || page.Count == 0
	total, known := page.Meta.Total, len(h.entries)
	switch {
	case known > total+rentalapi.MaxPageItems:
		err = fmt.Errorf("%w: meta.total: %d, but the pages hold %d entries or more", rentalapi.ErrIncomplete, total, known)
	case atEnd && w.items < total:
		err = fmt.Errorf("%w: data: the pages hold %d entries, but meta.total is %d", rentalapi.ErrIncomplete, w.items, total)
	case atEnd:
		maps.DeleteFunc(h.entries, func(_ int64, e entry) bool { return e.walk < w.number })
		h.again, h.full, h.readAt, h.missing = nil, w, page.Received, nil
	}
	if err != nil {
		*h = *newHistory()
	}
	return page, atEnd, err
}

func transactionID(t *transaction) string {
	if t.ID == nil {
		return ""
	}
	return strconv.FormatInt(*t.ID, 10)
}

// merge replaces what is known of the entries of a page. Entries of more than maxTypes
// types are not kept.
func (h *history) merge(w *walk, page transactionPage) {
	w.items += page.Count
	w.unusable += page.Count - len(page.Items)
	w.invalid.Merge(page.Invalid)
	w.reachedKnown = w.reachedKnown || len(page.Items) == 0 // nothing new that can be kept
	for _, t := range page.Items {
		e, known := h.entries[*t.ID]
		w.reachedKnown = w.reachedKnown || known && e.walk < w.number
		typeNum := slices.Index(h.types, t.Type)
		if typeNum < 0 {
			if len(h.types) == maxTypes {
				w.unusable++
				w.invalid.Add(transactionID(t), rentalapi.FieldError{Field: "type", Problem: fmt.Sprintf("more than %d types", maxTypes)})
				continue
			}
			typeNum = len(h.types)
			h.types = append(h.types, t.Type)
		}
		e = entry{typeNum: uint8(typeNum), walk: w.number} //nolint:gosec // less than maxTypes
		if t.Amount.USD != nil {
			e.usd = microsOf(*t.Amount.USD)
		}
		h.entries[*t.ID] = e
	}
}

// compare compares the number of entries with the total, which is of the same moment. If
// it is another difference than after the last walk through all pages, or a day later, w
// goes on through all pages. Of the entries that such a walk did not find, those that have
// an id had one that was given twice.
func (h *history) compare(w *walk, newest transactionPage) {
	missing := newest.Meta.Total - len(h.entries)
	if h.missing == nil {
		h.missing = &missing
		addInvalid(&h.full.invalid, missing-h.full.unusable, "", rentalapi.FieldError{Field: "id", Problem: "already seen"})
	}
	if w.invalid.Items > h.full.invalid.Items {
		h.full.invalid = w.invalid
	}
	if h.again == nil && (missing != *h.missing || newest.Received.Sub(h.readAt) >= rereadInterval) {
		h.again = w
	}
}

func (h *history) build(b *metric.Builder, last rentalapi.Response) (Snapshot, error) {
	sums := make([]struct {
		n             float64
		credit, debit micros
	}, len(h.types))
	for _, e := range h.entries {
		s := &sums[e.typeNum]
		s.n++
		s.credit += max(e.usd, 0)
		s.debit += max(-e.usd, 0)
	}
	for i, s := range sums {
		if s.n == 0 && i >= len(documentedTypes()) {
			continue
		}
		b.Add(transactionsByType, s.n, h.types[i])
		b.Add(transactionsCredit, s.credit.value(), h.types[i])
		b.Add(transactionsDebit, s.debit.value(), h.types[i])
	}
	return Snapshot{Invalid: h.full.invalid, Age: newAge(last, nil)}.build(b)
}

// addInvalid counts n items with the same cause.
func addInvalid(v *rentalapi.Invalid, n int, item string, err rentalapi.FieldError) {
	if n > 0 {
		v.Merge(rentalapi.Invalid{Items: n, Causes: []rentalapi.Cause{{Item: item, FieldError: err}}})
	}
}
