package rentalapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// MaxPageItems is the largest page size that the API gives.
const MaxPageItems = 100

// Bounds on the memory that a response takes. Decoded, a value is many times as large as in
// JSON.
const (
	maxBodyBytes  = 16 << 20
	maxValueBytes = 1 << 20 // bytes of an item, of a single object or of the meta object
	maxElements   = 250_000 // elements of all arrays and maps within the items of a list
)

// Response is what is known about a response besides its body.
type Response struct {
	Token    Fingerprint    // the token that was sent: pages fetched with different ones must not be combined
	Received time.Time      // when its header was read, by the local clock
	Date     time.Time      // header Date; zero if it has none
	Age      *time.Duration // header Age, in whole seconds; nil if it has none
	Sunset   string         // what the headers Deprecation and Sunset say; empty if there are none
}

// Getter makes GET requests of one account, or public ones. A Client makes them to the
// provider, within its rate limit.
type Getter interface {
	// Get makes one request and returns the JSON of a 200, at most 16 MiB; any other status is an
	// error. The path is relative to the base URL.
	Get(ctx context.Context, path string, query url.Values) (Response, []byte, error)
}

// Object is one response with a single object in data.
type Object[T any] struct {
	Response
	Value  *T
	Errors []FieldError // the fields that were not understood; they have their zero value
}

// Page is one response with a list in data: a whole list, or one page of it.
type Page[T, M any] struct {
	Response
	Items   []*T                    // those with a usable id that no earlier item has
	Errors  map[string][]FieldError // the fields of each that were not understood, by id
	Count   int                     // items in data, understood or not
	Invalid Invalid
	Meta    M
}

// PageMeta is the meta object of a list with pages.
type PageMeta struct {
	Total *Count // never nil
	Limit *Count `api:"optional"` // the size of a page
}

// envelope holds the parts of a response; those that it lacks are empty.
type envelope struct{ Data, Meta, Error json.RawMessage }

// getEnvelope makes one request. Its errors repeat nothing of the content, which might be private. An
// error beside data fails with ErrIncomplete.
func getEnvelope(ctx context.Context, api Getter, path string, query url.Values) (r Response, e envelope, err error) {
	r, body, err := api.Get(ctx, path, query)
	if err != nil {
		return r, e, err
	}
	var syntax *json.SyntaxError // its text repeats a character of the body
	switch err := json.Unmarshal(body, &e); {
	case errors.As(err, &syntax):
		return r, e, fmt.Errorf("response: no valid JSON at byte %d", syntax.Offset)
	case e.Error != nil && string(e.Error) != "null":
		return r, e, fmt.Errorf("error: in a response of status 200: %w", ErrIncomplete)
	case e.Data == nil:
		return r, e, errors.New("data: missing")
	}
	return r, e, nil
}

// decodeValue returns what encoding/json gives for JSON, with json.Number for numbers. More than
// maxValueBytes fail with ErrTooLarge.
func decodeValue(raw json.RawMessage) (value any, err error) {
	if len(raw) > maxValueBytes {
		return nil, ErrTooLarge
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err = dec.Decode(&value)
	return value, err
}

// GetObject fetches a single object.
func GetObject[T any](ctx context.Context, api Getter, path string) (o Object[T], err error) {
	r, e, err := getEnvelope(ctx, api, path, nil)
	if err != nil {
		return o, err
	}
	value, err := decodeValue(e.Data)
	if err != nil {
		return o, fmt.Errorf("data: %w", err)
	}
	o = Object[T]{Response: r, Value: new(T)}
	o.Errors = new(fieldDecoder).decodeFields(value, o.Value)
	return o, nil
}

// GetList makes one request for a list of items T, which are structs with a field ID, whose kind is
// string. M is its meta object without count. More than maxItems fail with ErrTooLarge, fewer than its
// own meta.count with ErrIncomplete.
func GetList[T, M any](ctx context.Context, api Getter, path string, query url.Values, maxItems int) (p Page[T, M], err error) {
	r, e, err := getEnvelope(ctx, api, path, query)
	if err != nil {
		return p, err
	}
	p.Response = r
	if err := p.readItems(e.Data, maxItems); err != nil {
		return p, err
	}
	meta, err := decodeValue([]byte(cmp.Or(string(e.Meta), "{}")))
	if err != nil {
		return p, fmt.Errorf("meta: %w", err)
	}
	return p, p.readMeta(meta)
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
		return p, errors.New("meta.total: not understood")
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
func (p *Page[T, M]) readMeta(meta any) error {
	var m struct {
		Count *Count `api:"optional"`
	}
	var d fieldDecoder
	errs := d.decodeFields(meta, &m)
	if m.Count != nil && Count(p.Count) < *m.Count {
		return fmt.Errorf("data: %d items, but meta.count is %v: %w", p.Count, *m.Count, ErrIncomplete)
	}
	if m.Count != nil && Count(p.Count) > *m.Count && p.Invalid.Items == 0 {
		errs = append(errs, FieldError{"count", "less than the items in data"})
	}
	p.Invalid.Add("meta", slices.Concat(errs, d.decodeFields(meta, &p.Meta))...)
	return nil
}

// readItems reads the items of a list, one at a time, and keeps those with a usable id.
func (p *Page[T, M]) readItems(data json.RawMessage, maxItems int) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if start, _ := dec.Token(); start != json.Delim('[') {
		return errors.New("data: not an array")
	}
	p.Errors = map[string][]FieldError{}
	var d fieldDecoder
	for raw := json.RawMessage(nil); dec.More(); p.Count++ {
		if p.Count == maxItems {
			return fmt.Errorf("data: more than %d items: %w", maxItems, ErrTooLarge)
		}
		_ = dec.Decode(&raw) // cannot fail: the whole body was read as JSON
		value, err := decodeValue(raw)
		if err != nil {
			return fmt.Errorf("data[%d]: %w", p.Count, err)
		}
		item := new(T)
		errs := d.decodeFields(value, item)
		if d.elements > maxElements {
			return fmt.Errorf("data: more than %d elements of arrays and objects: %w", maxElements, ErrTooLarge)
		}
		p.add(item, errs)
	}
	return nil
}

// add keeps an item with a usable id, and counts one that was not understood in full.
func (p *Page[T, M]) add(item *T, errs []FieldError) {
	id := reflect.ValueOf(item).Elem().FieldByName("ID").String()
	_, seen := p.Errors[id]
	switch {
	case id == "": // other fields do not matter: the item is dropped
		errs = slices.DeleteFunc(errs, func(e FieldError) bool { return e.Field != "id" && e.Field != "" })
		if len(errs) == 0 {
			errs = []FieldError{{"id", "empty"}}
		}
		p.Invalid.Add(fmt.Sprintf("data[%d]", p.Count), errs[0])
	case seen:
		p.Invalid.Add(id, FieldError{"id", "already seen"})
	default:
		p.Items = append(p.Items, item)
		p.Errors[id] = errs
		p.Invalid.Add(id, errs...)
	}
}
