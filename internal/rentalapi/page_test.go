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

// TestGoldenResponses has objects, lists and second pages.
func TestGoldenResponses(t *testing.T) {
	type meta struct{ Active *float64 }
	get := func(t *testing.T, h *harness, kind string) (result string, err error) {
		switch kind {
		case "object":
			o, err := GetObject[testItem](t.Context(), h.main(), "/account")
			return fmt.Sprintf("%s, errors %v", asJSON(t, o.Value), o.Errors), err
		case "list":
			l := testList("/servers")
			l.Check = func(i *testItem, errs []FieldError) []FieldError {
				if len(errs) > 0 || i.Size == nil || *i.Size < 10 {
					return nil
				}
				*i.Size = 10
				return []FieldError{{"size", "too large"}}
			}
			p, err := GetList[testItem, meta](t.Context(), h.main(), l)
			return fmt.Sprintf("%s, count %d, without id %d, meta %s, invalid %v", asJSON(t, p.Items), p.Count, p.WithoutID, asJSON(t, p.Meta), p.Invalid), err
		default:
			l := testList("/topups")
			l.Query = url.Values{"status": {"paid"}}
			p, err := GetPage(t.Context(), h.main(), l, 2)
			simtest.AssertEqual(t, "query", h.Requests()[0].Query.Encode(), "limit=100&page=2&status=paid")
			return fmt.Sprintf("count %d, meta %+v, invalid %v", p.Count, p.Meta, p.Invalid), err
		}
	}
	goldenCases(t, "testdata/responses.txt", func(t *testing.T, input string) (outcome string) {
		kind, body, _ := strings.Cut(input, " ")
		withHarness(t, func(t *testing.T, h *harness) {
			h.reply(200, body)
			result, err := get(t, h, kind)
			if err != nil {
				result = "error: " + err.Error()
			}
			outcome = result
		})
		return outcome
	})
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
			page, err := GetList[testItem, struct{}](t.Context(), h.main(), testList("/servers"))
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
	list := func(s *Client) error { return fetchList(t.Context(), s, "/plans") }
	object := func(s *Client) error {
		_, err := GetObject[testItem](t.Context(), s, "/plans")
		return err
	}
	const tooLarge = "/plans: response is too large"
	const itemBytes, dataBytes = 4 << 20, 2 << 20 // as documented
	for _, c := range []struct {
		name, body string
		fetch      func(*Client) error
		want       string
	}{
		{"item", `{"data":[` + item(itemBytes*3/4) + `,` + item(itemBytes*3/4) + `]}`, list, ""},
		{"long item", `{"data":[` + item(itemBytes*5/4) + `]}`, list, tooLarge},
		{"long second item", `{"data":[{},` + item(itemBytes*5/4) + `]}`, list, tooLarge},
		{"long meta", `{"data":[],"meta":` + item(itemBytes*5/4) + `}`, list, tooLarge},
		{"list", `{"data":[]` + strings.Repeat(`,"x":`+text(1<<20), 15) + `}`, list, ""},
		{"long list", `{"data":[]` + strings.Repeat(`,"x":`+text(1<<20), 16) + `}`, list, tooLarge},
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
