package rentalapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxPageItems is the largest page size that the API gives.
const MaxPageItems = 100

// Bounds on the memory that a response takes. Decoded, a value is many times as large as in
// JSON.
const (
	maxBodyBytes  = 32 << 20
	maxValueBytes = 1 << 20 // bytes of an item, of a single object or of the meta object
	maxElements   = 250_000 // elements of all arrays and maps within the items of a list
)

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
	// Get makes one request and returns the JSON of a 200; any other status is an error. The
	// request ends when the JSON is closed. The path is relative to the base URL.
	Get(ctx context.Context, path string, query url.Values) (Response, io.ReadCloser, error)
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

	metaErrors []FieldError
}

// List says which list to fetch. Its items are structs with a field ID, whose kind is string.
type List struct {
	Path     string // path below the base URL
	Query    url.Values
	MaxItems int // bound for all pages; a response with more fails with ErrTooLarge
}

// PageMeta is the meta object of a list with pages.
type PageMeta struct {
	Total, Pages Count  // entries in all; pages in all
	Page, Limit  *Count `api:"optional"` // which page this is, from 1; its size
}

// GetObject fetches a single object.
func GetObject[T any](ctx context.Context, api Getter, path string) (o Object[T], err error) {
	r, body, err := api.Get(ctx, path, nil)
	if err != nil {
		return o, err
	}
	defer body.Close()
	var value any
	_, err = readEnvelope(body, func(dec *json.Decoder) error { return dec.Decode(&value) })
	if err != nil {
		return o, err
	}
	if _, isObject := value.(map[string]any); !isObject {
		return o, errors.New("data: not an object")
	}
	o = Object[T]{Response: r, Value: new(T)}
	o.Errors = new(fieldDecoder).decodeFields(value, o.Value)
	return o, nil
}

// GetList makes one request for a list. M is its meta object without count. A response with
// fewer items than its own meta.count fails with ErrIncomplete.
func GetList[T, M any](ctx context.Context, api Getter, l List) (p Page[T, M], err error) {
	r, body, err := api.Get(ctx, l.Path, l.Query)
	if err != nil {
		return p, err
	}
	defer body.Close()
	p.Response = r
	meta, err := readEnvelope(body, func(dec *json.Decoder) error { return p.readItems(dec, l.MaxItems) })
	if err != nil {
		return p, err
	}
	return p, p.readMeta(meta)
}

// GetPage fetches one page of a list, as large as the API allows; pages count from 1. A
// response with fewer items than its meta object demands fails with ErrIncomplete.
func GetPage[T any](ctx context.Context, api Getter, l List, page int) (Page[T, PageMeta], error) {
	query := url.Values{"limit": {strconv.Itoa(MaxPageItems)}, "page": {strconv.Itoa(page)}}
	maps.Copy(query, l.Query)
	l.Query = query
	p, err := GetList[T, PageMeta](ctx, api, l)
	if err != nil {
		return p, err
	}
	for _, e := range p.metaErrors {
		if e.Field == "" || e.Field == "total" || e.Field == "pages" { // others are only compared
			return p, fmt.Errorf("meta: %w", e)
		}
	}
	if p.Meta.Total > Count(l.MaxItems) {
		return p, fmt.Errorf("meta.total: more than %d entries: %w", l.MaxItems, ErrTooLarge)
	}
	return p, p.Meta.check(Count(page), Count(p.Count))
}

// check fails if the page is another one than was asked for, has fewer items than its place in the
// list demands, or if items or pages are more than the total allows.
func (m PageMeta) check(page, items Count) error {
	if m.Page != nil && *m.Page != page {
		return fmt.Errorf("meta.page: %v, but page %v was asked for", *m.Page, page)
	}
	limit := Count(math.Ceil(float64(m.Total / m.Pages))) // the smallest that is consistent with total and pages
	if m.Limit != nil && *m.Limit >= 1 && *m.Limit <= MaxPageItems {
		limit = *m.Limit
	}
	size := limit
	if page < m.Pages {
		size = max(limit, items)
	}
	if items > m.Total || m.Pages > 1 && (m.Pages-1)*size >= m.Total {
		return fmt.Errorf("meta: %v pages with %v items on this one, but the total is %v: %w", m.Pages, items, m.Total, ErrIncomplete)
	}
	if demanded := min(limit, m.Total-(page-1)*limit); page <= m.Pages && items < demanded {
		return fmt.Errorf("data: %v items, but meta demands %v: %w", items, demanded, ErrIncomplete)
	}
	return nil
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
	p.metaErrors = slices.Concat(errs, d.decodeFields(meta, &p.Meta))
	p.Invalid.Add("meta", p.metaErrors...)
	return nil
}

// readItems reads the items of a list and keeps those with a usable id.
func (p *Page[T, M]) readItems(dec *json.Decoder, maxItems int) error {
	if start, err := dec.Token(); err != nil {
		return err
	} else if start != json.Delim('[') {
		return errors.New("data: not an array")
	}
	p.Errors = map[string][]FieldError{}
	var d fieldDecoder
	for ; dec.More(); p.Count++ {
		if p.Count == maxItems {
			return fmt.Errorf("data: more than %d items: %w", maxItems, ErrTooLarge)
		}
		var value any
		if err := dec.Decode(&value); err != nil {
			return err
		}
		item := new(T)
		errs := d.decodeFields(value, item)
		if d.elements > maxElements {
			return fmt.Errorf("data: more than %d elements of arrays and objects: %w", maxElements, ErrTooLarge)
		}
		id := reflect.ValueOf(item).Elem().FieldByName("ID").String()
		_, seen := p.Errors[id]
		switch {
		case strings.TrimSpace(id) == "": // other fields do not matter: the item is dropped
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
	_, err := dec.Token() // the end of the array
	return err
}

// readEnvelope reads a response: a JSON object with data, which readData decodes, and in the
// case of a list with meta, which is an empty object if there is none. Its errors repeat nothing
// of the content, which might be private.
func readEnvelope(body io.Reader, readData func(*json.Decoder) error) (meta any, err error) {
	defer func() { err = contentError(err) }()
	dec := newDecoder(body)
	if start, err := dec.Token(); err != nil {
		return nil, err
	} else if start != json.Delim('{') {
		return nil, errors.New("response: not an object")
	}
	found := false
	meta = map[string]any{}
	for dec.More() {
		key, err := dec.Token()
		switch {
		case err != nil:
		case key == "data" && !found:
			found, err = true, readData(dec)
		case key == "meta":
			err = dec.Decode(&meta)
		default:
			err = dec.Decode(new(json.RawMessage))
		}
		if err != nil {
			return nil, err
		}
	}
	if _, err := dec.Token(); err != nil { // the end of the object
		return nil, err
	}
	if _, err := dec.Token(); err == nil {
		return nil, errors.New("response: more after its end")
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !found {
		return nil, errors.New("data: missing")
	}
	return meta, nil
}

// newDecoder returns a decoder that keeps numbers as they are written, and fails with
// ErrTooLarge after maxBodyBytes, or at a value of more than maxValueBytes.
func newDecoder(r io.Reader) *json.Decoder {
	b := &bounded{r: r}
	b.dec = json.NewDecoder(b)
	b.dec.UseNumber()
	return b.dec
}

// bounded lets a decoder read at most maxBodyBytes, and maxValueBytes more than it has decoded.
type bounded struct {
	r    io.Reader
	dec  *json.Decoder
	read int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	ahead := min(b.dec.InputOffset()+maxValueBytes, maxBodyBytes+1) - b.read
	if ahead <= 0 {
		return 0, ErrTooLarge
	}
	n, err := b.r.Read(p[:min(int64(len(p)), ahead)])
	b.read += int64(n)
	return n, err
}
