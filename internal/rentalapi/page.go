package rentalapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Bounds of a response. A list is read item by item, so that its size in bytes is
// no bound on memory; a single object is held as a whole.
const (
	maxListBytes   = 16 << 20
	maxItemBytes   = 4 << 20 // of these, of one item or the meta object
	maxObjectBytes = 4 << 20
	maxDataBytes   = 2 << 20 // of these, of data
	maxErrorBytes  = 16 << 10

	// MaxTotal is the longest history that is read: at 100 entries a page this is a
	// walk of more than two hours.
	MaxTotal = 500_000
)

// MaxPageItems is the largest page size that the API gives.
const MaxPageItems = 100

// Priority tells requests that keep data fresh from those that read old history.
type Priority int

// The priorities of requests.
const (
	Regular Priority = iota // a refresh that people wait for
	Bulk                    // one page of a long walk: uses only what refreshes leave over
)

// Response is what is known about a response besides its body.
type Response struct {
	// Token identifies the token that was sent, as Scope.Fingerprint does: pages
	// fetched with different tokens must not be combined.
	Token    Fingerprint
	Received time.Time      // when its header was read, by the local clock
	Date     time.Time      // header Date; zero if it has none
	Age      *time.Duration // header Age, in whole seconds; nil if it has none
}

// Getter makes GET requests of one account, or public ones. A Scope makes them to the
// provider, within its rate limit.
type Getter interface {
	// Get makes one request and hands the body of a 200 to read, whose errors mean that
	// the response is not usable. The endpoint is a path below the base URL.
	Get(ctx context.Context, p Priority, endpoint string, query url.Values, read func(body io.Reader) error) (Response, error)
}

// Object is one response with a single object in data.
type Object[T any] struct {
	Response
	Value *T
	// Errors are the fields that were not understood; they have their zero value.
	Errors []FieldError
}

// Page is one response with a list in data: a whole list, or one page of it.
type Page[T, M any] struct {
	Response
	Items     []*T // those with a usable id that no earlier item has
	Count     int  // items in data, understood or not
	WithoutID int  // of these, without a usable id
	Invalid   Invalid
	Meta      M
}

// List says which list to fetch and how to read its items.
type List[T any] struct {
	Endpoint string // path below the base URL
	Query    url.Values
	Priority Priority
	MaxItems int             // a response with more fails with ErrTooLarge
	ID       func(*T) string // the item's id, empty if it has none
	// Check returns what is wrong with an item beyond the errors of its fields, and
	// may change the item. It may be nil.
	Check func(item *T, errs []FieldError) []FieldError
}

// PageMeta is the meta object of a list with pages.
type PageMeta struct {
	Total int // entries in all; meta.total
	Page  int // which page this is, from 1; meta.page
	Pages int // how many there are; meta.pages

	smallCount bool // meta.count is less than the items in data
}

// GetObject fetches a single object.
func GetObject[T any](ctx context.Context, api Getter, endpoint string) (Object[T], error) {
	var o Object[T]
	r, err := api.Get(ctx, Regular, endpoint, nil, func(body io.Reader) error {
		var data json.RawMessage
		dec := newEnvelope(body, maxObjectBytes, maxDataBytes)
		err := dec.read(func(key string) error {
			if key == "data" {
				return dec.value(&data)
			}
			return dec.skip()
		})
		if err != nil {
			return err
		}
		o.Value, o.Errors, err = decodeObject[T](data)
		return err
	})
	o.Response = r
	return o, err
}

// GetList fetches a list that has no pages. M is its meta object without count. A response
// with fewer items than its own meta.count fails with ErrIncomplete. If all items are
// understood, check returns what contradicts them in the meta object; it may be nil.
func GetList[T, M any](ctx context.Context, api Getter, l List[T], check func(items []*T, meta *M) []FieldError) (Page[T, M], error) {
	var p Page[T, M]
	r, err := readItems(ctx, api, l, func(items *itemReader[T], meta json.RawMessage) error {
		p.Items, p.Count, p.WithoutID, p.Invalid = items.items, items.read, items.withoutID, items.invalid
		var m struct {
			Count *float64 `api:"optional"`
		}
		errs := slices.Concat(decodeMeta(meta, &p.Meta), decodeMeta(meta, &m))
		if m.Count != nil && float64(p.Count) < *m.Count {
			return fmt.Errorf("data: %d items, but meta.count is %v: %w", p.Count, *m.Count, ErrIncomplete)
		}
		understood := p.Invalid.Items == 0
		if m.Count != nil && (*m.Count < 0 || understood && float64(p.Count) > *m.Count) {
			errs = append(errs, errSmallCount)
		}
		if understood && check != nil {
			errs = append(errs, check(p.Items, &p.Meta)...)
		}
		p.Invalid.Add("meta", errs...)
		return nil
	})
	p.Response = r
	return p, err
}

// GetPage fetches one page of a list, as large as the API allows; pages count from 1. A response with fewer items than its meta object demands fails with
// ErrIncomplete.
func GetPage[T any](ctx context.Context, api Getter, l List[T], page int) (Page[T, PageMeta], error) {
	query := url.Values{"limit": {strconv.Itoa(MaxPageItems)}, "page": {strconv.Itoa(page)}}
	for k, v := range l.Query {
		query[k] = v
	}
	l.Query, l.MaxItems = query, MaxPageItems
	var p Page[T, PageMeta]
	r, err := readItems(ctx, api, l, func(items *itemReader[T], raw json.RawMessage) (err error) {
		p.Items, p.Count, p.WithoutID, p.Invalid = items.items, items.read, items.withoutID, items.invalid
		p.Meta, err = readPageMeta(raw, page, p.Count)
		if p.Meta.smallCount && p.Invalid.Items == 0 {
			p.Invalid.Add("meta", errSmallCount)
		}
		return err
	})
	p.Response = r
	return p, err
}

// readItems makes one request for a list and hands over its items and its raw meta
// object, empty if there is none.
func readItems[T any](ctx context.Context, api Getter, l List[T], done func(items *itemReader[T], meta json.RawMessage) error) (Response, error) {
	return api.Get(ctx, l.Priority, l.Endpoint, l.Query, func(body io.Reader) error {
		items := &itemReader[T]{id: l.ID, check: l.Check, seen: map[string]bool{}}
		var meta json.RawMessage
		found := false
		dec := newEnvelope(body, maxListBytes, maxItemBytes)
		err := dec.read(func(key string) error {
			switch key {
			case "data":
				found = true
				return dec.items(l.MaxItems, items.add)
			case "meta":
				return dec.value(&meta)
			default:
				return dec.skip()
			}
		})
		switch {
		case err != nil:
			return err
		case !found:
			return errors.New("data: missing")
		}
		return done(items, meta)
	})
}

// readPageMeta reads and checks the meta object of a page with count items.
func readPageMeta(raw json.RawMessage, page, count int) (PageMeta, error) {
	var m struct{ Count, Total, Page, Pages, Limit *int64 }
	for _, e := range decodeMeta(raw, &m) {
		switch e.Field {
		case "count", "page", "limit": // those are only compared
		default:
			return PageMeta{}, fmt.Errorf("meta: %w", e)
		}
	}
	switch {
	case *m.Total < 0:
		return PageMeta{}, errors.New("meta.total: negative")
	case *m.Total > MaxTotal:
		return PageMeta{}, fmt.Errorf("meta.total: %d entries, more than %d: %w", *m.Total, MaxTotal, ErrTooLarge)
	case *m.Pages < 0 || *m.Pages > max(*m.Total, 1):
		return PageMeta{}, fmt.Errorf("meta.pages: %d pages for %d entries", *m.Pages, *m.Total)
	case m.Page != nil && *m.Page != int64(page):
		return PageMeta{}, fmt.Errorf("meta.page: %d, but page %d was asked for", *m.Page, page)
	case m.Count != nil && int64(count) < *m.Count:
		return PageMeta{}, fmt.Errorf("data: %d items, but meta.count is %d: %w", count, *m.Count, ErrIncomplete)
	}
	meta := PageMeta{Total: int(*m.Total), Page: page, Pages: int(*m.Pages), smallCount: m.Count != nil && int64(count) > *m.Count}
	limit := 0
	if m.Limit != nil && *m.Limit > 0 && *m.Limit <= MaxPageItems {
		limit = int(*m.Limit)
	}
	if demanded := meta.demands(limit); count < demanded {
		return PageMeta{}, fmt.Errorf("data: %d items, but meta demands %d: %w", count, demanded, ErrIncomplete)
	}
	return meta, nil
}

// demands returns how many items must be on the page. If the limit is not known (0), it
// is taken to be the smallest that is consistent with total and pages.
func (m PageMeta) demands(limit int) int {
	if m.Pages == 0 || m.Page > m.Pages {
		return 0
	}
	if limit == 0 {
		limit = (m.Total + m.Pages - 1) / m.Pages
	}
	return max(0, min(limit, m.Total-(m.Page-1)*limit))
}
