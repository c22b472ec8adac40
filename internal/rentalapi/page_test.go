package rentalapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

func TestGetObject(t *testing.T) {
	size := 2.5
	for body, want := range map[string]struct {
		object Object[testItem]
		err    string
	}{
		`{"data":{"id":"x","size":2.5},"more":1}`: {Object[testItem]{Value: &testItem{"x", &size}}, ""},
		`{"data":{"id":5,"size":2.5}}`:            {Object[testItem]{Value: &testItem{"", &size}, Errors: []FieldError{{"id", "not a string"}}}, ""},
		`{"data":null}`:                           {err: "/account: data: not an object"},
		`{"data":[1]}`:                            {err: "/account: data: not an object"},
		`{}`:                                      {err: "/account: data: missing"},
		`{"data":{"bad":`:                         {err: "/account: response: ends too early"},
	} {
		withHarness(t, func(t *testing.T, h *harness) {
			h.reply(200, body)
			got, err := GetObject[testItem](t.Context(), h.main(), "/account")
			got.Response = Response{}
			simtest.AssertEqual(t, body, got, want.object)
			simtest.AssertEqual(t, body, errorText(err), want.err)
		})
	}
}

func TestGetList(t *testing.T) {
	type meta struct{ Active *float64 }
	check := func(items []*testItem, m *meta) []FieldError {
		if m.Active != nil && *m.Active > float64(len(items)) {
			return []FieldError{{"active", "contradicts data"}}
		}
		return nil
	}
	type page = Page[testItem, meta]
	number := func(n float64) *float64 { return &n }
	for body, want := range map[string]struct {
		page page
		err  string
	}{
		`{"data":[{"id":"a"},{"id":"b"}],"meta":{"count":2,"active":1}}`: {page{
			Items: []*testItem{{ID: "a"}, {ID: "b"}}, Count: 2, Meta: meta{number(1)},
		}, ""},
		`{"meta":{"count":1,"active":1},"data":[{"id":"a"},{"id":"a"},5]}`: {page{
			Items: []*testItem{{ID: "a"}}, Count: 3, WithoutID: 1, Meta: meta{number(1)},
			Invalid: Invalid{2, []Cause{{"a", errSeenID}, {"data[2]", FieldError{"", "not an object"}}}},
		}, ""},
		`{"data":[{"id":"a","size":"big"}],"meta":{"active":1}}`: {page{
			Items: []*testItem{{ID: "a"}}, Count: 1, Meta: meta{Active: number(1)}, Invalid: Invalid{1, []Cause{{"a", FieldError{"size", "not a number"}}}},
		}, ""},
		`{"data":[],"meta":{"count":"none","active":3}}`: {page{
			Meta: meta{number(3)}, Invalid: Invalid{1, []Cause{{"meta", FieldError{"count", "not a number"}}, {"meta", FieldError{"active", "contradicts data"}}}},
		}, ""},
		`{"data":[{"id":"a"},{"id":"b"}],"meta":{"count":1,"active":3}}`: {page{
			Items: []*testItem{{ID: "a"}, {ID: "b"}}, Count: 2, Meta: meta{number(3)}, Invalid: Invalid{1, []Cause{{"meta", errSmallCount}, {"meta", FieldError{"active", "contradicts data"}}}},
		}, ""},
		`{"data":[{"id":"a"},{}],"meta":{"count":1,"active":3}}`: {page{
			Items: []*testItem{{ID: "a"}}, Count: 2, WithoutID: 1, Meta: meta{number(3)}, Invalid: Invalid{1, []Cause{{"data[1]", errNoID}}},
		}, ""},
		`{"data":[],"meta":5}`: {page{Invalid: Invalid{1, []Cause{{"meta", FieldError{"", "not an object"}}}}}, ""},
		`{"data":[{"id":5},{}],"meta":{"active":1}}`: {page{
			Count: 2, WithoutID: 2, Meta: meta{Active: number(1)}, Invalid: Invalid{2, []Cause{{"data[0]", FieldError{"id", "not a string"}}, {"data[1]", errNoID}}},
		}, ""},
		`{"data":[{"id":"a"}]}`:                 {page{Items: []*testItem{{ID: "a"}}, Count: 1, Invalid: Invalid{1, []Cause{{"meta", FieldError{"active", "missing"}}}}}, ""},
		`{"data":[{"id":"a"}],"meta":null}`:     {page{Items: []*testItem{{ID: "a"}}, Count: 1, Invalid: Invalid{1, []Cause{{"meta", FieldError{"active", "missing"}}}}}, ""},
		`{"data":[1],"meta":{"count":2}}`:       {page{}, "/servers: data: 1 items, but meta.count is 2: response is incomplete"},
		`{"data":[1],"meta":{"count":1.5}}`:     {page{}, "/servers: data: 1 items, but meta.count is 1.5: response is incomplete"},
		`{"data":[{"id":"a"}],"meta":{"b":[]}}`: {page{Items: []*testItem{{ID: "a"}}, Count: 1, Invalid: Invalid{1, []Cause{{"meta", FieldError{"active", "missing"}}}}}, ""},
	} {
		withHarness(t, func(t *testing.T, h *harness) {
			h.reply(200, body)
			got, err := GetList[testItem, meta](t.Context(), h.main(), testList("/servers"), check)
			simtest.AssertEqual(t, body, errorText(err), want.err)
			if err == nil {
				got.Response = Response{}
				simtest.AssertEqual(t, body, got, want.page)
			}
		})
	}
}

func TestGetPage(t *testing.T) {
	for _, c := range []struct {
		items int
		meta  string
		err   string

		invalid Invalid
	}{
		{2, `{"total":5,"pages":3,"count":1}`, "", Invalid{1, []Cause{{"meta", errSmallCount}}}},
		{2, `{"total":5,"page":2,"pages":3,"limit":2,"count":2}`, "", Invalid{}},
		{2, `{"total":5,"pages":3}`, "", Invalid{}},
		{2, `{"total":5,"pages":3,"page":"two","limit":[],"count":"two"}`, "", Invalid{1, []Cause{{"meta", FieldError{"count", "not a number"}}}}},
		{36, `{"total":100,"pages":3,"count":40}`, "data: 36 items, but meta.count is 40: response is incomplete", Invalid{}},
		{1, `{"total":5,"pages":3}`, "data: 1 items, but meta demands 2: response is incomplete", Invalid{}},
		{1, `{"total":5,"pages":3,"limit":1000}`, "data: 1 items, but meta demands 2: response is incomplete", Invalid{}},
		{3, `{"total":5,"pages":2,"limit":2}`, "", Invalid{}},
		{2, `{"total":5,"pages":2,"limit":3}`, "", Invalid{}},
		{1, `{"total":5,"pages":2,"limit":3}`, "data: 1 items, but meta demands 2: response is incomplete", Invalid{}},
		{0, `{"total":5,"pages":2,"limit":100}`, "", Invalid{}}, // more fit on the first page than there are
		{0, `{"total":5,"pages":1}`, "", Invalid{}},             // behind the last page
		{0, `{"total":0,"pages":0}`, "", Invalid{}},
		{2, `null`, "meta: total: missing", Invalid{}},
		{2, `[1]`, "meta: not an object", Invalid{}},
		{2, `{"page":2}`, "meta: total: missing", Invalid{}},
		{2, `{"total":5}`, "meta: pages: missing", Invalid{}},
		{2, `{"total":-1,"pages":1}`, "meta.total: negative", Invalid{}},
		{2, `{"total":1000000,"pages":10000}`, "meta.total: 1000000 entries, more than 500000: response is too large", Invalid{}},
		{2, `{"total":5,"pages":1000000000}`, "meta.pages: 1000000000 pages for 5 entries", Invalid{}},
		{2, `{"total":5,"pages":-1}`, "meta.pages: -1 pages for 5 entries", Invalid{}},
		{2, `{"total":5,"page":1,"pages":3}`, "meta.page: 1, but page 2 was asked for", Invalid{}},
		{2, `{"total":"many","pages":3,"page":2}`, "meta: total: not an integer", Invalid{}},
		{2, `{"total":1e999,"pages":3,"page":2}`, "meta: total: not an integer", Invalid{}},
		{2, `{"total":5,"pages":{},"page":2}`, "meta: pages: not an integer", Invalid{}},
	} {
		t.Run(c.meta, func(t *testing.T) {
			withHarness(t, func(t *testing.T, h *harness) {
				items := make([]string, c.items)
				for i := range items {
					items[i] = fmt.Sprintf(`{"id":"%d"}`, i)
				}
				h.reply(200, `{"data":[`+strings.Join(items, ",")+`],"meta":`+c.meta+`}`)
				l := testList("/topups")
				l.Query = url.Values{"status": {"paid"}}
				page, err := GetPage(t.Context(), h.main(), l, 2)
				want := c.err
				if want != "" {
					want = "/topups: " + want
				}
				simtest.AssertEqual(t, "error", errorText(err), want)
				if err == nil {
					simtest.AssertEqual(t, "page, count and token", []any{page.Meta.Page, page.Count, page.Token}, []any{2, c.items, fingerprint(simtest.MainToken)})
					simtest.AssertEqual(t, "invalid", page.Invalid, c.invalid)
				}
				simtest.AssertEqual(t, "query", h.Requests()[0].Query.Encode(), "limit=100&page=2&status=paid")
			})
		})
	}
}

// TestResponse asserts what is known about a response besides its body.
func TestResponse(t *testing.T) {
	date := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	age := 17 * time.Second
	for _, c := range []struct {
		age, date string
		want      Response
	}{
		{"17", "Sun, 01 Mar 2026 12:00:00 GMT", Response{Date: date, Age: &age}},
		{" 17 ", "yesterday", Response{Age: &age}},
		{"-1", "", Response{}},
		{"17.5", "", Response{}},
		{"99999999999999999999", "", Response{}},
	} {
		withHarness(t, func(t *testing.T, h *harness) {
			h.Override("", func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Date"] = nil // none, unless the test has one
				if c.date != "" {
					w.Header().Set("Date", c.date)
				}
				w.Header().Set("Age", c.age)
				begin(w, `{"data":`)
				time.Sleep(time.Second)
				_, _ = io.WriteString(w, `[]}`)
			})
			start := time.Now()
			page, err := GetList[testItem, struct{}](t.Context(), h.main(), testList("/servers"), nil)
			if err != nil {
				t.Fatal(err)
			}
			simtest.AssertEqual(t, "received", page.Received.Equal(start), true)
			c.want.Token, c.want.Received = fingerprint(simtest.MainToken), page.Received
			simtest.AssertEqual(t, c.age+", "+c.date, page.Response, c.want)
		})
	}
}

// TestSizes has responses below and above the bounds of their size.
func TestSizes(t *testing.T) {
	text := func(size int) string { return `"` + strings.Repeat("x", size) + `"` }
	item := func(size int) string { return `{"id":"a","more":` + text(size) + `}` }
	list := func(s *Scope) error { return fetchList(t.Context(), s, "/plans") }
	object := func(s *Scope) error {
		_, err := GetObject[testItem](t.Context(), s, "/plans")
		return err
	}
	const tooLarge = "/plans: response is too large"
	const itemBytes, dataBytes = 4 << 20, 2 << 20 // as documented
	for _, c := range []struct {
		name, body string
		fetch      func(*Scope) error
		want       string
	}{
		{"item", `{"data":[` + item(itemBytes*3/4) + `,` + item(itemBytes*3/4) + `]}`, list, ""},
		{"long item", `{"data":[` + item(itemBytes*5/4) + `]}`, list, tooLarge},
		{"long second item", `{"data":[{},` + item(itemBytes*5/4) + `]}`, list, tooLarge},
		{"long meta", `{"data":[],"meta":` + item(itemBytes*5/4) + `}`, list, tooLarge},
		{"list", `{"data":[]` + strings.Repeat(`,"x":`+text(1<<20), 31) + `}`, list, ""},
		{"long list", `{"data":[]` + strings.Repeat(`,"x":`+text(1<<20), 32) + `}`, list, tooLarge},
		{"data", `{"data":` + item(dataBytes*3/4) + `}`, object, ""},
		{"long data", `{"data":` + item(dataBytes*5/4) + `}`, object, tooLarge},
		{"object", `{"data":{}` + strings.Repeat(`,"x":`+text(1<<19), 7) + `}`, object, ""},
		{"long object", `{"data":{}` + strings.Repeat(`,"x":`+text(1<<19), 8) + `}`, object, tooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := scopeOver(&url.URL{Scheme: "https", Host: "rental.example"}, time.Minute, roundTripper(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader(c.body))}, nil
			}))
			simtest.AssertEqual(t, "error", errorText(c.fetch(s)), c.want)
		})
	}
}

func FuzzEnvelope(f *testing.F) {
	for _, s := range []string{`{"data":[{"id":"x"}],"meta":{}}`, `{"data":[1,2,3]} x`, `[]`, `{"data":{"a":[{}]}}`, `{"meta":{"total":1},"data":[]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var p Page[testItem, struct{}]
		l := testList("/servers")
		meta, err := readEnvelope(bytes.NewReader(body), maxListBytes, maxItemBytes, func(e *envelope) error { return p.readItems(e, l) })
		if err == nil && (!json.Valid(body) || len(meta) > 0 && !json.Valid(meta)) {
			t.Errorf("accepted although it is not JSON: %q", body)
		}
		if p.Count > l.MaxItems || len(p.Items)+p.WithoutID > p.Count {
			t.Errorf("%q: got %+v", body, p)
		}
	})
}

// FuzzPageMeta asserts what the paging relies on.
func FuzzPageMeta(f *testing.F) {
	for _, s := range []string{`{"total":3,"page":1,"pages":1}`, `{"total":0,"pages":0}`, `{"total":500001,"pages":2}`, `{"total":-1,"pages":1}`, `{"total":1e3,"pages":1}`, `null`, ``} {
		f.Add([]byte(s), 1, 5)
	}
	f.Fuzz(func(t *testing.T, raw []byte, page, count int) {
		if page < 1 || count < 0 || count > MaxPageItems || !json.Valid(raw) {
			return
		}
		m, err := readPageMeta(json.RawMessage(raw), page, count)
		if err == nil && (m.Total < 0 || m.Total > MaxTotal || m.Pages < 0 || m.Pages > max(m.Total, 1) || m.Page != page) {
			t.Errorf("%q, page %d: accepted %+v", raw, page, m)
		}
	})
}
