package rentalapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
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

	// MaxPageItems is the largest page size that the API gives.
	MaxPageItems = 100
)

// Response is what is known about a response besides its body.
type Response struct {
	// Token identifies the token that was sent: pages fetched with different tokens must
	// not be combined.
	Token    Fingerprint
	Received time.Time      // when its header was read, by the local clock
	Date     time.Time      // header Date; zero if it has none
	Age      *time.Duration // header Age, in whole seconds; nil if it has none
}

// Getter makes GET requests of one account, or public ones. A Client makes them to the
// provider, within its rate limit.
type Getter interface {
	// Get makes one request and hands the body of a 200 to read, whose errors mean that
	// the response is not usable. The endpoint is a path below the base URL.
	Get(ctx context.Context, path string, query url.Values, read func(body io.Reader) error) (Response, error)
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
	Path     string // path below the base URL
	Query    url.Values
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
}

// GetObject fetches a single object.
func GetObject[T any](ctx context.Context, api Getter, path string) (o Object[T], err error) {
	o.Response, err = api.Get(ctx, path, nil, func(body io.Reader) error {
		var data json.RawMessage
		_, err := readEnvelope(body, maxObjectBytes, maxDataBytes, func(e *envelope) error { return e.value(&data) })
		switch {
		case err != nil:
			return err
		case data[0] != '{':
			return errors.New("data: not an object")
		}
		o.Value = new(T)
		o.Errors = decodeFields(data, o.Value)
		return nil
	})
	return o, err
}

// GetList fetches a list that has no pages. M is its meta object without count. A response
// with fewer items than its own meta.count fails with ErrIncomplete.
func GetList[T, M any](ctx context.Context, api Getter, l List[T]) (Page[T, M], error) {
	return getItems(ctx, api, l, func(p *Page[T, M], meta json.RawMessage) ([]FieldError, error) {
		return decodeFields(meta, &p.Meta), nil
	})
}

// GetPage fetches one page of a list, as large as the API allows; pages count from 1. A
// response with fewer items than its meta object demands fails with ErrIncomplete.
func GetPage[T any](ctx context.Context, api Getter, l List[T], page int) (Page[T, PageMeta], error) {
	query := url.Values{"limit": {strconv.Itoa(MaxPageItems)}, "page": {strconv.Itoa(page)}}
	maps.Copy(query, l.Query)
	l.Query, l.MaxItems = query, MaxPageItems
	return getItems(ctx, api, l, func(p *Page[T, PageMeta], meta json.RawMessage) (_ []FieldError, err error) {
		p.Meta, err = readPageMeta(meta, page, p.Count)
		return nil, err
	})
}

// getItems makes one request for a list. The function readMeta reads the meta object, and
// returns what is wrong in it.
func getItems[T, M any](ctx context.Context, api Getter, l List[T], readMeta func(p *Page[T, M], meta json.RawMessage) ([]FieldError, error)) (p Page[T, M], err error) {
	p.Response, err = api.Get(ctx, l.Path, l.Query, func(body io.Reader) error {
		meta, err := readEnvelope(body, maxListBytes, maxItemBytes, func(e *envelope) error { return p.readItems(e, l) })
		if err != nil {
			return err
		}
		if len(meta) == 0 || isNull(meta) {
			meta = json.RawMessage("{}")
		}
		var m struct {
			Count *float64 `api:"optional"`
		}
		errs := decodeFields(meta, &m)
		switch {
		case m.Count == nil:
		case float64(p.Count) < *m.Count:
			return fmt.Errorf("data: %d items, but meta.count is %v: %w", p.Count, *m.Count, ErrIncomplete)
		case *m.Count < 0 || p.Invalid.Items == 0 && float64(p.Count) > *m.Count:
			errs = append(errs, FieldError{"count", "less than the items in data"})
		}
		more, err := readMeta(&p, meta)
		p.Invalid.Add("meta", append(errs, more...)...)
		return err
	})
	return p, err
}

// readItems reads the items of a list and keeps those with a usable id.
func (p *Page[T, M]) readItems(e *envelope, l List[T]) error {
	seen := map[string]bool{}
	var raw json.RawMessage
	return readEach(e.Decoder, '[', "data: not an array", func(string) error {
		if p.Count == l.MaxItems {
			return fmt.Errorf("data: more than %d items: %w", l.MaxItems, ErrTooLarge)
		}
		if err := e.value(&raw); err != nil {
			return err
		}
		item := new(T)
		errs := decodeFields(raw, item)
		id := l.ID(item)
		switch {
		case id == "": // other fields do not matter: the item is dropped
			p.WithoutID++
			errs = slices.DeleteFunc(errs, func(e FieldError) bool { return e.Field != "id" && e.Field != "" })
			p.Invalid.Add(fmt.Sprintf("data[%d]", p.Count), append(errs, FieldError{"id", problemMissing})[0])
		case seen[id]:
			p.Invalid.Add(shorten(id), FieldError{"id", "already seen"})
		default:
			seen[id] = true
			p.Items = append(p.Items, item)
			if l.Check != nil {
				errs = append(errs, l.Check(item, errs)...)
			}
			p.Invalid.Add(shorten(id), errs...)
		}
		p.Count++
		return nil
	})
}

// shorten keeps an id readable in a message.
func shorten(id string) string {
	const maxID = 64
	if len(id) <= maxID {
		return id
	}
	return strings.ToValidUTF8(id[:maxID], "") + "..."
}

// readPageMeta reads and checks the meta object of a page with count items.
func readPageMeta(raw json.RawMessage, page, count int) (PageMeta, error) {
	var m struct {
		Total, Pages, Limit int
		Page                *int
	}
	for _, e := range decodeFields(raw, &m) {
		if e.Field != "page" && e.Field != "limit" { // those are only compared
			return PageMeta{}, fmt.Errorf("meta: %w", e)
		}
	}
	switch {
	case m.Total < 0:
		return PageMeta{}, errors.New("meta.total: negative")
	case m.Total > MaxTotal:
		return PageMeta{}, fmt.Errorf("meta.total: %d entries, more than %d: %w", m.Total, MaxTotal, ErrTooLarge)
	case m.Pages < 0 || m.Pages > max(m.Total, 1):
		return PageMeta{}, fmt.Errorf("meta.pages: %d pages for %d entries", m.Pages, m.Total)
	case m.Page != nil && *m.Page != page:
		return PageMeta{}, fmt.Errorf("meta.page: %d, but page %d was asked for", *m.Page, page)
	}
	if page <= m.Pages {
		limit := m.Limit
		if limit < 1 || limit > MaxPageItems { // not known: the smallest that is consistent with total and pages
			limit = (m.Total + m.Pages - 1) / m.Pages
		}
		if demanded := min(limit, m.Total-(page-1)*limit); count < demanded {
			return PageMeta{}, fmt.Errorf("data: %d items, but meta demands %d: %w", count, demanded, ErrIncomplete)
		}
	}
	return PageMeta{Total: m.Total, Page: page, Pages: m.Pages}, nil
}
