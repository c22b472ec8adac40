package rentalapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// MaxPageItems is the largest page size that the API gives.
const MaxPageItems = 100

// maxElements bounds the elements of all arrays and maps within the items of a list, which take many
// times the memory of their JSON.
const maxElements = 250_000

// Response is what is known about a response besides its body.
type Response struct {
	Token    Fingerprint    // the token that was sent: pages fetched with different ones must not be combined
	Received time.Time      // when its header was read, by the local clock
	Date     time.Time      // header Date; zero if it has none
	Age      *time.Duration // header Age, in whole seconds; nil if it has none
}

// Getter makes GET requests of one account, or public ones. A Client makes them to the
// provider, within its rate limit.
type Getter interface {
	// Get makes one request, and calls read with the JSON of a 200; any other status is an error.
	// The path is relative to the base URL.
	Get(ctx context.Context, path string, query url.Values, read func(*json.Decoder) error) (Response, error)
}

// Object is one response with a single object in data.
type Object[T any] struct {
	Response
	Value  *T
	Errors []FieldError // the invalid fields; they have their zero value
}

// Page is one response with a list in data: a whole list, or one page of it.
type Page[T, M any] struct {
	Response
	Items   []*T                    // those with a usable id that no earlier item has
	Errors  map[string][]FieldError // the invalid fields of each, by id
	Count   int                     // items in data, understood or not
	Invalid Invalid
	Meta    M
}

// PageMeta is the meta object of a list with pages.
type PageMeta struct {
	Total *Count // never nil
	Limit *Count `api:"optional"` // the size of a page
}

// getEnvelope makes one request, and calls data with a decoder at the value of that name. It returns the
// meta object. Its errors repeat nothing of the content, which might be private. An error beside data
// fails with ErrIncomplete.
func getEnvelope(ctx context.Context, api Getter, path string, query url.Values, data func(*json.Decoder) error) (r Response, meta json.RawMessage, err error) {
	r, err = api.Get(ctx, path, query, func(dec *json.Decoder) error {
		missing := errors.New("data: missing")
		err := each(dec, '{', func() error {
			var other json.RawMessage
			switch name, err := dec.Token(); {
			case err != nil:
				return err
			case name == "data":
				if missing = data(dec); missing != nil {
					return fmt.Errorf("data: %w", missing)
				}
				return nil
			case name == "meta":
				return dec.Decode(&meta)
			case name == "error":
				if err := dec.Decode(&other); err != nil || isNull(other) {
					return err
				}
				return fmt.Errorf("error: in a response of status 200: %w", ErrIncomplete)
			}
			return dec.Decode(&other)
		})
		if err != nil {
			return err
		}
		if _, end := dec.Token(); !errors.Is(end, io.EOF) {
			return new(json.SyntaxError)
		}
		return missing
	})
	return r, meta, err
}

// GetObject fetches a single object. A list or a value in data fails with ErrIncomplete.
func GetObject[T any](ctx context.Context, api Getter, path string) (o Object[T], err error) {
	o.Value = new(T)
	o.Response, _, err = getEnvelope(ctx, api, path, nil, func(dec *json.Decoder) error {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		o.Errors = new(fieldDecoder).decodeFields(raw, o.Value)
		if i := slices.IndexFunc(o.Errors, func(e FieldError) bool { return e.Field == "" }); i >= 0 {
			return fmt.Errorf("%w: %w", o.Errors[i], ErrIncomplete)
		}
		return nil
	})
	return o, err
}

// GetList makes one request for a list of items T, which are structs with a field ID, whose kind is
// string. M is its meta object without count. More than maxItems fail with ErrTooLarge, fewer than its
// own meta.count with ErrIncomplete.
func GetList[T, M any](ctx context.Context, api Getter, path string, query url.Values, maxItems int) (p Page[T, M], err error) {
	r, meta, err := getEnvelope(ctx, api, path, query, func(dec *json.Decoder) error { return p.readItems(dec, maxItems) })
	if err != nil {
		return p, err
	}
	p.Response = r
	return p, p.readMeta([]byte(cmp.Or(string(meta), "{}")))
}

// GetPage fetches one page of at most size items of the list that a filter selects; pages count from 1.
// A page with fewer items than its place in the total demands fails with ErrIncomplete.
func GetPage[T any](ctx context.Context, api Getter, path string, filter url.Values, page, size int) (Page[T, PageMeta], error) {
	query := url.Values{"limit": {strconv.Itoa(size)}, "page": {strconv.Itoa(page)}}
	maps.Copy(query, filter)
	p, err := GetList[T, PageMeta](ctx, api, path, query, MaxPageItems)
	if err != nil {
		return p, err
	}
	if p.Meta.Total == nil {
		return p, errors.New("meta.total: invalid")
	}
	limit := Count(size)
	if told := p.Meta.Limit; told != nil && *told >= 1 {
		limit = min(limit, *told)
	}
	if demanded := min(limit, *p.Meta.Total-Count(page-1)*limit); Count(p.Count) < demanded {
		return p, fmt.Errorf("data: %d items, but meta demands %v: %w", p.Count, demanded, ErrIncomplete)
	}
	return p, nil
}

// readMeta reads the meta object, after the items.
func (p *Page[T, M]) readMeta(meta json.RawMessage) error {
	var m struct {
		Count *Count `api:"optional"`
	}
	var d fieldDecoder
	errs := d.decodeFields(meta, &m)
	if m.Count != nil && Count(p.Count) < *m.Count {
		return fmt.Errorf("data: %d items, but meta.count is %v: %w", p.Count, *m.Count, ErrIncomplete)
	}
	if m.Count != nil && Count(p.Count) > *m.Count && p.Invalid.Items == 0 {
		errs = append(errs, FieldError{Field: "count", Problem: "less than the items in data"})
	}
	p.Invalid.Add("meta", slices.Concat(errs, d.decodeFields(meta, &p.Meta))...)
	return nil
}

// readItems reads the items of a list, one at a time, and keeps those with a usable id.
func (p *Page[T, M]) readItems(dec *json.Decoder, maxItems int) error {
	p.Errors = map[string][]FieldError{}
	var d fieldDecoder
	var raw json.RawMessage
	return each(dec, '[', func() error {
		if p.Count == maxItems {
			return fmt.Errorf("more than %d items: %w", maxItems, ErrTooLarge)
		}
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		item := new(T)
		p.add(item, d.decodeFields(raw, item))
		p.Count++
		return d.count(0)
	})
}

// add keeps an item with a usable id, and counts an invalid one.
func (p *Page[T, M]) add(item *T, errs []FieldError) {
	id := reflect.ValueOf(item).Elem().FieldByName("ID").String()
	_, seen := p.Errors[id]
	switch {
	case id == "": // other fields do not matter: the item is dropped
		errs = slices.DeleteFunc(errs, func(e FieldError) bool { return e.Field != "id" && e.Field != "" })
		if len(errs) == 0 {
			errs = []FieldError{{Field: "id", Problem: "empty"}}
		}
		p.Invalid.Add(fmt.Sprintf("data[%d]", p.Count), errs[0])
	case seen:
		p.Invalid.Add(id, FieldError{Field: "id", Problem: "already seen"})
	default:
		p.Items = append(p.Items, item)
		p.Errors[id] = errs
		p.Invalid.Add(id, errs...)
	}
}
