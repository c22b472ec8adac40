package rentalapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// Bounds of an answer. A list is read item by item, so that its size in bytes is
// no bound on memory; a single object is held as a whole.
const (
	maxListBytes   = 32 << 20
	maxObjectBytes = 4 << 20
	maxItemBytes   = 1 << 20
	maxErrorBytes  = 16 << 10

	// MaxTotal is the longest history that is read: at 100 entries a page this
	// is a walk of more than an hour.
	MaxTotal = 500_000
)

// Object asks for one object and hands the raw value of `data` to read. An error
// of read means that the answer cannot be understood.
func (s *Scope) Object(ctx context.Context, endpoint string, read func(data json.RawMessage) error) error {
	body, _, done, err := s.open(ctx, regular, endpoint, nil)
	if err != nil {
		return err
	}
	var data json.RawMessage
	dec := newDecoder(body, maxObjectBytes)
	err = dec.envelope(func(key string) error {
		if key == "data" {
			return dec.value(&data)
		}
		return dec.skip()
	})
	switch {
	case err != nil:
	case data == nil || data[0] != '{':
		err = errors.New("data: not an object")
	default:
		err = read(data)
	}
	return done(err)
}

// List asks for a list that has no pages. Each item is handed to each, which must
// not keep it, and then the raw value of `meta`, empty where there is none, to
// whole. An error of whole means that the answer cannot be understood, and so
// does one of more than most items.
func (s *Scope) List(ctx context.Context, endpoint string, most int, each func(item json.RawMessage), whole func(meta json.RawMessage) error) error {
	_, err := s.list(ctx, regular, endpoint, nil, most, each, whole)
	return err
}

func (s *Scope) list(ctx context.Context, c class, endpoint string, query url.Values, most int, each func(json.RawMessage), whole func(json.RawMessage) error) (sent digest, err error) {
	body, sent, done, err := s.open(ctx, c, endpoint, query)
	if err != nil {
		return sent, err
	}
	found := false
	var meta json.RawMessage
	dec := newDecoder(body, maxListBytes)
	err = dec.envelope(func(key string) error {
		switch key {
		case "data":
			found = true
			return dec.items(most, each)
		case "meta":
			return dec.value(&meta)
		default:
			return dec.skip()
		}
	})
	switch {
	case err != nil:
	case !found:
		err = errors.New("data: missing")
	default:
		err = whole(meta)
	}
	return sent, done(err)
}

// PageMeta is the meta object of a list with pages.
type PageMeta struct {
	Total int // entries in all
	Page  int // which page this is, from 1
	Pages int // how many there are

	// Token identifies the token that the page was asked for with, as
	// Scope.Fingerprint does: pages of two accounts are no list.
	Token [32]byte
}

// MaxPage is the largest page size that the API gives.
const MaxPage = 100

// page asks for one page of a list, as large as may be.
func (s *Scope) page(ctx context.Context, c class, endpoint string, query url.Values, page int, each func(item json.RawMessage)) (PageMeta, error) {
	q := url.Values{"limit": {strconv.Itoa(MaxPage)}, "page": {strconv.Itoa(page)}}
	for k, v := range query {
		q[k] = v
	}
	var m PageMeta
	sent, err := s.list(ctx, c, endpoint, q, MaxPage, each, func(meta json.RawMessage) (err error) {
		m, err = readPageMeta(meta, page)
		return err
	})
	m.Token = sent
	return m, err
}

// Page asks for a page that somebody waits for.
func (s *Scope) Page(ctx context.Context, endpoint string, query url.Values, page int, each func(item json.RawMessage)) (PageMeta, error) {
	return s.page(ctx, regular, endpoint, query, page, each)
}

// HistoryPage asks for a page of a long walk: it waits until the budget has room
// that the refreshes do not need.
func (s *Scope) HistoryPage(ctx context.Context, endpoint string, query url.Values, page int, each func(item json.RawMessage)) (PageMeta, error) {
	return s.page(ctx, bulk, endpoint, query, page, each)
}

func readPageMeta(raw json.RawMessage, page int) (PageMeta, error) {
	var m struct{ Total, Page, Pages *int64 }
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &m); err != nil {
			return PageMeta{}, errors.New("meta: not as documented")
		}
	}
	switch {
	case m.Total == nil:
		return PageMeta{}, errors.New("meta.total: missing")
	case m.Pages == nil:
		return PageMeta{}, errors.New("meta.pages: missing")
	case *m.Total < 0:
		return PageMeta{}, errors.New("meta.total: negative")
	case *m.Total > MaxTotal:
		return PageMeta{}, fmt.Errorf("meta.total: %d entries, more than %d: %w", *m.Total, MaxTotal, ErrTooLarge)
	case *m.Pages < 0 || *m.Pages > max(*m.Total, 1):
		return PageMeta{}, fmt.Errorf("meta.pages: %d pages for %d entries", *m.Pages, *m.Total)
	case m.Page != nil && *m.Page != int64(page):
		return PageMeta{}, fmt.Errorf("meta.page: %d where page %d was asked for", *m.Page, page)
	}
	return PageMeta{Total: int(*m.Total), Page: page, Pages: int(*m.Pages)}, nil
}

// errorBody reads the API's own error code out of an answer. Only codes that the
// document names are told: anything else might repeat what was sent.
func errorBody(resp *http.Response) error {
	var body struct{ Error struct{ Code string } }
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes))
	if err != nil || json.Unmarshal(raw, &body) != nil {
		return nil
	}
	switch body.Error.Code {
	case "invalid_parameter", "unauthorized", "invalid_token", "not_found", "method_not_allowed", "rate_limited", "unavailable":
		return errors.New(body.Error.Code)
	default:
		return nil
	}
}
