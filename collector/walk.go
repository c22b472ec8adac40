package collector

import (
	"cmp"
	"context"
	"fmt"

	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// maxPageFailures is the number of failures of one page in a row after which all pages are read
// again: the provider may have no such page any more.
const maxPageFailures = 5

// walk reads a list page by page, from the newest item on. Items that are added meanwhile push older
// ones to later pages, where they are read again; the next walk reads the new ones. So all items that
// are read existed at one moment. If too many are added for that, the walk fails.
type walk[T any] struct {
	id            func(*T) string
	token         rentalapi.Fingerprint // token of all pages; if it is not set, next takes that of the first page
	first, newest rentalapi.Page[T, rentalapi.PageMeta]
	seen          map[string]bool // ids that were read
	withoutID     int
	invalid       rentalapi.Invalid
	pages         int
	failures      int // failures of the next page in a row; maxPageFailures if it contradicts those before
}

// next reads the next page, and returns the items that no earlier page had.
func (w *walk[T]) next(ctx context.Context, f *Fetcher, l rentalapi.List) ([]*T, error) {
	page, err := getPage[T](ctx, f, l, w.pages+1)
	if err != nil {
		w.failures++
		return nil, err
	}
	if w.pages == 0 {
		w.token, w.first, w.newest, w.seen = cmp.Or(w.token, page.Token), page, page, map[string]bool{}
	}
	var items []*T
	for _, i := range page.Items {
		if id := w.id(i); !w.seen[id] {
			w.seen[id] = true
			items = append(items, i)
		}
	}
	again := count(page.Count - len(items))
	w.withoutID += page.Count - len(page.Items)
	before := w.newest
	w.newest, w.pages, w.failures = page, w.pages+1, maxPageFailures
	switch have := count(len(w.seen) + w.withoutID); {
	case page.Token != w.token:
		return nil, ErrTokenChanged
	case page.Meta.Total < before.Meta.Total: // other items have moved to pages that were read
		return nil, fmt.Errorf("data: items were removed between two pages: %w", rentalapi.ErrIncomplete)
	case again < min(page.Meta.Total-before.Meta.Total, count(page.Count)): // items were removed, or new ones are on this page
		return nil, fmt.Errorf("data: items that new ones moved to this page are missing: %w", rentalapi.ErrIncomplete)
	case count(len(w.seen)) > page.Meta.Total:
		return nil, fmt.Errorf("data: the pages hold more than the %v items of meta.total: %w", page.Meta.Total, rentalapi.ErrIncomplete)
	case page.Received.Sub(before.Received) > rememberFor:
		return nil, fmt.Errorf("data: the pages before are older than %s: %w", rememberFor, rentalapi.ErrIncomplete)
	case w.done() && have < w.first.Meta.Total: // the provider may have sent the same page again
		return nil, fmt.Errorf("data: the pages hold %v items, but meta.total is %v: %w", have, w.first.Meta.Total, rentalapi.ErrIncomplete)
	}
	w.failures = 0
	w.invalid.Merge(page.Invalid)
	return items, nil
}

// done returns whether all pages were read.
func (w *walk[T]) done() bool {
	return w.pages > 0 && (count(w.pages) >= w.newest.Meta.Pages || w.newest.Count == 0)
}

// getPage fetches a page of a list. All but the first page of a fetch wait for OnPage.
func getPage[T any](ctx context.Context, f *Fetcher, l rentalapi.List, page int) (p rentalapi.Page[T, rentalapi.PageMeta], err error) {
	if f.pages++; f.pages > 1 && f.OnPage != nil {
		if err = f.OnPage(ctx); err != nil {
			return p, err
		}
	}
	return rentalapi.GetPage[T](ctx, f.API, l, page)
}
