package rentalapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	promconfig "github.com/prometheus/common/config"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// harness is a client of a simulated provider in memory.
type harness struct {
	*simtest.API
	client  *Client
	updates int // calls of onAccountUpdate
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{API: simtest.StartInMemory(t, simulator.Options{})}
	transport, err := NewTransport(promconfig.HTTPClientConfig{}, h.Dial)
	if err != nil {
		t.Fatal(err)
	}
	h.client = New("test/1", Settings{
		BaseURL: h.URL, Transport: transport, Timeout: 10 * time.Second,
		Limits: Limits{Public: 59, Account: 120, AccountBulk: 60},
	}, func() { h.updates++ })
	return h
}

// withHarness runs f in a synctest bubble.
func withHarness(t *testing.T, f func(t *testing.T, h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newHarness(t)) })
}

// scope returns the scope of an account with a fixed token, or the public one.
func (h *harness) scope(account, token string) *Scope {
	if account == "" {
		return h.client.Scope("", nil)
	}
	return h.client.Scope(account, func() (string, error) { return token, nil })
}

func (h *harness) main() *Scope { return h.scope("main", simtest.MainToken) }

// reply responds to all requests with a status and a body; header is names and values in turn.
func (h *harness) reply(status int, body string, header ...string) {
	set := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		set.Set(header[i], header[i+1])
	}
	h.Override("", simtest.Reply(status, set, body))
}

// gatherNonZero returns the values of the client's metrics that are not 0, by series
// without the common prefix.
func (h *harness) gatherNonZero(t *testing.T) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(h.client, accountCollector{h.client})
	found := map[string]float64{}
	for series, v := range simtest.ServeGet(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), "/").Exposition(t).Values {
		if v != 0 {
			found[strings.TrimPrefix(series, "server_rental_exporter_api_")] = v
		}
	}
	return found
}

// accountCollector exports AccountMetrics.
type accountCollector struct{ client *Client }

func (c accountCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range metric.Descs(AccountDefinitions()) {
		ch <- d
	}
}

func (c accountCollector) Collect(ch chan<- prometheus.Metric) {
	metrics, _ := c.client.AccountMetrics(time.Now())
	for _, m := range metrics {
		ch <- m
	}
}

type testItem struct {
	ID   string
	Size *float64 `api:"optional"`
}

func testList(endpoint string) List[testItem] {
	return List[testItem]{Endpoint: endpoint, MaxItems: 3, ID: func(i *testItem) string { return i.ID }}
}

// fetchList requests a list and returns the error.
func fetchList(ctx context.Context, s *Scope, endpoint string) error {
	_, err := GetList[testItem, struct{}](ctx, s, testList(endpoint), nil)
	return err
}

// errorText is an error's text, empty for nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestRequest(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.reply(200, `{"data":[]}`)
		for _, err := range []error{fetchList(t.Context(), h.main(), "/ssh-keys"), fetchList(t.Context(), h.scope("", ""), "/plans")} {
			if err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, r := range h.Requests() {
			got = append(got, strings.Join([]string{r.Path, r.Query.Encode(), r.Token, r.Header.Get("User-Agent"), r.Header.Get("Accept")}, " "))
		}
		simtest.AssertEqual(t, "requests", got, []string{
			"/ssh-keys  " + simtest.MainToken + " test/1 application/json", "/plans   test/1 application/json",
		})
	})
}

// TestFailures has every way in which a request can fail: its reason and text, how it
// is counted, and that no error contains a secret.
func TestFailures(t *testing.T) {
	const secret = simtest.MainToken
	deep := strings.Repeat("[", 200_000)
	reply := func(status int, body string) http.HandlerFunc { return simtest.Reply(status, nil, body) }
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		reason  Reason
		code    string // label of the request counter
		text    string
	}{
		"401":                  {reply(401, `{"error":{"code":"invalid_token","message":"see `+secret+`"}}`), Unauthorized, "401", "status 401: invalid_token"},
		"404":                  {reply(404, `{"error":{"code":"not_found"}}`), Status, "404", "status 404: not_found"},
		"429":                  {reply(429, ``), RateLimited, "429", "status 429"},
		"500 with HTML":        {reply(500, `<html>`+secret), Status, "500", "status 500"},
		"503":                  {reply(503, `{"error":{"code":"unavailable"}}`), Unavailable, "503", "status 503: unavailable"},
		"unknown error code":   {reply(500, `{"error":{"code":"<b>`+secret+`"}}`), Status, "500", "status 500"},
		"204":                  {reply(204, ``), Status, "204", "status 204"},
		"nothing":              {reply(200, ``), Decode, "200", "response: ends too early"},
		"HTML":                 {reply(200, `<html>`+secret), Decode, "200", "invalid character '<' looking for beginning of value"},
		"null":                 {reply(200, `null`), Decode, "200", "response: not an object"},
		"an array":             {reply(200, `[]`), Decode, "200", "response: not an object"},
		"no data":              {reply(200, `{"meta":{}}`), Decode, "200", "data: missing"},
		"data null":            {reply(200, `{"data":null}`), Decode, "200", "data: not an array"},
		"data an object":       {reply(200, `{"data":{}}`), Decode, "200", "data: not an array"},
		"data twice":           {reply(200, `{"data":[],"data":[]}`), Decode, "200", "data: given twice"},
		"meta twice":           {reply(200, `{"meta":{},"x":1,"x":1,"meta":{},"data":[]}`), Decode, "200", "meta: given twice"},
		"half":                 {reply(200, `{"data":[{"id":`), Decode, "200", "response: ends too early"},
		"more after its end":   {reply(200, `{"data":[]} {}`), Decode, "200", "response: more after its end"},
		"garbage after it":     {reply(200, `{"data":[]} x`), Decode, "200", "invalid character 'x' looking for beginning of value"},
		"number out of range":  {reply(200, `1e999`+secret), Decode, "200", "response: a number out of range"},
		"deep":                 {reply(200, `{"data":[`+deep), Decode, "200", "invalid character '[' exceeded max depth"},
		"deep in an extra key": {reply(200, `{"extra":`+deep), Decode, "200", "invalid character '[' exceeded max depth"},
		"too many items":       {reply(200, `{"data":[1,2,3,4]}`), TooLarge, "200", "data: more than 3 items: response is too large"},
		"too few items":        {reply(200, `{"data":[1,{}],"meta":{"count":3}}`), Incomplete, "200", "data: 2 items, but meta.count is 3: response is incomplete"},
		"endless item":         {endless(200, `{"data":["`, "x"), TooLarge, "200", "response is too large"},
		"endless white space":  {endless(200, `{"data":[`, " "), TooLarge, "200", "response is too large"},
		"endless name":         {endless(200, `{"`, "name"), TooLarge, "200", "response is too large"},
		"endless error":        {endless(500, `{"error":{"code":"`, "x"), Status, "500", "status 500"},
		"unrequested gzip":     {simtest.Reply(200, http.Header{"Content-Encoding": {"gzip"}}, "\x1f\x8b\x08"), Decode, "200", `invalid character '\x1f' looking for beginning of value`},
		"a byte per second":    {trickle, Timeout, "200", "no response within 10s"},
		"long header":          {raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n{}"), TooLarge, "error", "header: more than 65536 bytes: response is too large"},
		"no HTTP":              {raw("SSH-2.0-OpenSSH_9.9\r\n"), Connection, "error", "response: not valid HTTP"},
		"secret as status":     {raw("HTTP/1.1 " + secret + " x\r\n\r\n"), Connection, "error", "response: not valid HTTP"},
		"secret as header":     {raw("HTTP/1.1 200 OK\r\nBearer " + secret + "\r\n\r\n"), Connection, "error", "response: not valid HTTP"},
		"secret as length":     {raw("HTTP/1.1 200 OK\r\nContent-Length: " + secret + "\r\n\r\n"), Connection, "error", "response: not valid HTTP"},
		"secret as encoding":   {raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: " + secret + "\r\n\r\n"), Connection, "error", "response: not valid HTTP"},
		"secret as trailer":    {raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\n" + secret + "\r\n\r\n"), Connection, "200", "response: not valid HTTP"},
		"dropped":              {drop(""), Connection, "error", "EOF"},
		"dropped in the body":  {drop(`{"data":[`), Connection, "200", "unexpected EOF"},
		"hanging":              {hang(""), Timeout, "error", "no response within 10s"},
		"hanging in the body":  {hang(`{"data":[`), Timeout, "200", "no response within 10s"},
		"redirect": {
			simtest.Reply(302, http.Header{"Location": {"/api/v1/elsewhere?" + secret}}, ""), Status, "302",
			"status 302: redirects are not followed: set api.base_url to the API's final address",
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, h *harness) {
				h.Override("", c.handler)
				err := fetchList(t.Context(), h.main(), "/servers")
				var failure *Error
				if !errors.As(err, &failure) {
					t.Fatalf("got %v, want an *Error", err)
				}
				simtest.AssertEqual(t, "reason and text", []string{string(failure.Reason), err.Error()}, []string{string(c.reason), "/servers: " + c.text})
				got := h.gatherNonZero(t)
				delete(got, `backoff_until_timestamp_seconds{account="main"}`)
				want := map[string]float64{
					simtest.Series("errors_total", "endpoint", "/servers", "reason", string(c.reason)): 1,
					simtest.Series("requests_total", "endpoint", "/servers", "code", c.code):           1,
					simtest.Series("request_duration_seconds", "endpoint", "/servers"):                 1,
				}
				if c.reason == Unauthorized {
					want[`token_rejected{account="main"}`] = 1
				}
				simtest.AssertEqual(t, "metrics", got, want)
				simtest.AssertEqual(t, "requests", len(h.Requests()), 1)
			})
		})
	}
}

// endless sends start once and then again without an end.
func endless(status int, start, again string) http.HandlerFunc {
	piece := strings.Repeat(again, 1+(32<<10)/len(again))
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, err := io.WriteString(w, start)
		for err == nil {
			_, err = io.WriteString(w, piece)
		}
	}
}

func trickle(w http.ResponseWriter, _ *http.Request) {
	for range 60 {
		begin(w, " ")
		time.Sleep(time.Second)
	}
}

// raw sends bytes in place of an HTTP response.
func raw(bytes string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, bytes)
		_ = conn.Close()
	}
}

// begin sends the beginning of a response, if there is one.
func begin(w http.ResponseWriter, body string) {
	if body != "" {
		_, _ = io.WriteString(w, body)
		_ = http.NewResponseController(w).Flush()
	}
}

func drop(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		begin(w, body)
		panic(http.ErrAbortHandler)
	}
}

func hang(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		begin(w, body)
		<-r.Context().Done()
	}
}

// TestLongHeader has a header just below its bound, which does not bound the body.
func TestLongHeader(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.reply(200, `{"more":"`+strings.Repeat("x", 1<<20)+`","data":[]}`, "X", strings.Repeat("x", 60<<10))
		simtest.AssertEqual(t, "error", fetchList(t.Context(), h.main(), "/servers"), error(nil))
	})
}

// TestLongHeaderOverTLS asserts that a handshake leaves room for a header, and bounds it.
func TestLongHeaderOverTLS(t *testing.T) {
	size := 40 << 10
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", size))
		_, _ = io.WriteString(w, `{"more":"`+strings.Repeat("x", 1<<20)+`","data":[]}`)
	}))
	defer server.Close()
	transport, err := NewTransport(promconfig.HTTPClientConfig{TLSConfig: promconfig.TLSConfig{InsecureSkipVerify: true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	simtest.AssertEqual(t, "error", fetchList(t.Context(), scopeOver(base, time.Minute, transport), "/plans"), error(nil))
	size = 64 << 10
	simtest.AssertEqual(t, "error", errorText(fetchList(t.Context(), scopeOver(base, time.Minute, transport), "/plans")), "/plans: "+errLongHeader.Error())
}

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
		`{}`:                                      {err: "/account: data: not an object"},
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

// TestCancel asserts that a request which the exporter cuts off is no failure of the API.
func TestCancel(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Override("", hang(""))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := fetchList(ctx, h.main(), "/servers"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the error of the context", err)
		}
		simtest.AssertEqual(t, "metrics", h.gatherNonZero(t), map[string]float64{})
	})
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
			Invalid: Invalid{2, []Cause{{"a", errSeenID}, {"data[2]", errNotObject}}},
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
		`{"data":[],"meta":5}`: {page{Invalid: Invalid{1, []Cause{{"meta", errNotObject}}}}, ""},
		`{"data":[{"id":5},{}],"meta":{"active":1}}`: {page{
			Count: 2, WithoutID: 2, Meta: meta{Active: number(1)}, Invalid: Invalid{2, []Cause{{"data[0]", FieldError{"id", "not a string"}}, {"data[1]", errNoID}}},
		}, ""},
		`{"data":[{"id":"a"}]}`:                 {page{Items: []*testItem{{ID: "a"}}, Count: 1, Invalid: Invalid{1, []Cause{{"meta", FieldError{"", "missing"}}}}}, ""},
		`{"data":[{"id":"a"}],"meta":null}`:     {page{Items: []*testItem{{ID: "a"}}, Count: 1, Invalid: Invalid{1, []Cause{{"meta", FieldError{"", "missing"}}}}}, ""},
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
		meta  string // without braces
		err   string

		invalid Invalid
	}{
		{2, `"total":5,"pages":3,"count":1`, "", Invalid{1, []Cause{{"meta", errSmallCount}}}},
		{2, `"total":5,"page":2,"pages":3,"limit":2,"count":2`, "", Invalid{}},
		{2, `"total":5,"pages":3`, "", Invalid{}},
		{2, `"total":5,"pages":3,"page":"two","limit":[],"count":"two"`, "", Invalid{}},
		{36, `"total":100,"pages":3,"count":40`, "data: 36 items, but meta.count is 40: response is incomplete", Invalid{}},
		{1, `"total":5,"pages":3`, "data: 1 items, but meta demands 2: response is incomplete", Invalid{}},
		{1, `"total":5,"pages":3,"limit":1000`, "data: 1 items, but meta demands 2: response is incomplete", Invalid{}},
		{3, `"total":5,"pages":2,"limit":2`, "", Invalid{}},
		{2, `"total":5,"pages":2,"limit":3`, "", Invalid{}},
		{1, `"total":5,"pages":2,"limit":3`, "data: 1 items, but meta demands 2: response is incomplete", Invalid{}},
		{0, `"total":5,"pages":2,"limit":100`, "", Invalid{}}, // more fit on the first page than there are
		{0, `"total":5,"pages":1`, "", Invalid{}},             // behind the last page
		{0, `"total":0,"pages":0`, "", Invalid{}},
		{2, `"page":2`, "meta: total: missing", Invalid{}},
		{2, `"total":5`, "meta: pages: missing", Invalid{}},
		{2, `"total":-1,"pages":1`, "meta.total: negative", Invalid{}},
		{2, `"total":1000000,"pages":10000`, "meta.total: 1000000 entries, more than 500000: response is too large", Invalid{}},
		{2, `"total":5,"pages":1000000000`, "meta.pages: 1000000000 pages for 5 entries", Invalid{}},
		{2, `"total":5,"pages":-1`, "meta.pages: -1 pages for 5 entries", Invalid{}},
		{2, `"total":5,"page":1,"pages":3`, "meta.page: 1, but page 2 was asked for", Invalid{}},
		{2, `"total":"many","pages":3,"page":2`, "meta: total: not an integer", Invalid{}},
		{2, `"total":1e999,"pages":3,"page":2`, "meta: total: not an integer", Invalid{}},
		{2, `"total":5,"pages":{},"page":2`, "meta: pages: not an integer", Invalid{}},
	} {
		t.Run(c.meta, func(t *testing.T) {
			withHarness(t, func(t *testing.T, h *harness) {
				items := make([]string, c.items)
				for i := range items {
					items[i] = fmt.Sprintf(`{"id":"%d"}`, i)
				}
				h.reply(200, `{"data":[`+strings.Join(items, ",")+`],"meta":{`+c.meta+`}}`)
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

// TestReject has responses that only the caller can find unusable.
func TestReject(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		for reason, cause := range map[Reason]error{Incomplete: ErrIncomplete, TooLarge: ErrTooLarge, Decode: errors.New("not UTF-8")} {
			simtest.AssertEqual(t, "error", h.main().Reject("/plans", cause), error(&Error{Endpoint: "/plans", Reason: reason, Code: 200, Err: cause}))
		}
		simtest.AssertEqual(t, "metrics", h.gatherNonZero(t), map[string]float64{
			`errors_total{endpoint="/plans",reason="incomplete"}`: 1, `errors_total{endpoint="/plans",reason="too_large"}`: 1,
			`errors_total{endpoint="/plans",reason="decode"}`: 1,
		})
	})
}

func TestPauseStopsScope(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		remove := h.Override("/servers", simtest.Reply(503, http.Header{"Retry-After": {"120"}}, ""))
		h.Override("/plans", simtest.Reply(429, http.Header{"Retry-After": {"60"}}, ""))
		h.Override("", simtest.Reply(200, nil, `{"data":[]}`))
		until := time.Now().Add(2 * time.Minute)
		main, lab, public := h.main(), h.scope("lab", simtest.LabToken), h.scope("", "")
		var failure *Error
		if err := fetchList(t.Context(), main, "/servers"); !errors.As(err, &failure) || !failure.RetryAt().Equal(until) {
			t.Fatalf("got %v, want an error with the end of the pause", err)
		}
		remove()
		paused := error(&PausedError{Until: failure.Until, Cause: "status 503"})
		simtest.AssertEqual(t, "same token", fetchList(t.Context(), main, "/ssh-keys"), paused)
		simtest.AssertEqual(t, "other token", fetchList(t.Context(), lab, "/servers"), error(nil))
		simtest.AssertEqual(t, "public", fetchList(t.Context(), public, "/locations"), error(nil))
		before := h.updates
		simtest.AssertEqual(t, "public", errorText(fetchList(t.Context(), public, "/plans")), "/plans: status 429")
		if h.updates == before {
			t.Error("pause of the public scope: onAccountUpdate was not called")
		}
		simtest.AssertEqual(t, "requests", len(h.Requests()), 4)
		other := h.scope("other", simtest.MainToken)
		before = h.updates
		simtest.AssertEqual(t, "another account with the token", fetchList(t.Context(), other, "/ssh-keys"), paused)
		if h.updates == before {
			t.Error("account with a paused token: onAccountUpdate was not called")
		}

		seconds := float64(until.UnixMilli()) / 1000
		assertBackoff := func(what string, want map[string]float64, wantExpiry time.Time) {
			t.Helper()
			got := map[string]float64{}
			for series, v := range h.gatherNonZero(t) {
				if strings.HasPrefix(series, "backoff") {
					got[simtest.Label(series, "account")] = v
				}
			}
			_, expires := h.client.AccountMetrics(time.Now())
			simtest.AssertEqual(t, what, got, want)
			simtest.AssertEqual(t, what+": expiry", expires.Equal(wantExpiry), true)
		}
		assertBackoff("backoff", map[string]float64{"": seconds - 60, "main": seconds, "other": seconds}, until.Add(-time.Minute))
		other.Close()
		time.Sleep(time.Minute)
		assertBackoff("backoff after a minute", map[string]float64{"main": seconds}, until)
		time.Sleep(time.Minute)
		assertBackoff("backoff at its end", map[string]float64{}, time.Time{})
		simtest.AssertEqual(t, "after the pause", fetchList(t.Context(), main, "/servers"), error(nil))
	})
}

// TestAccountMetrics follows an account from a refused token to the end of its scope.
func TestAccountMetrics(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		limits := []string{"RateLimit-Limit", "120", "RateLimit-Remaining", "77"}
		rejected, limit, remaining := `token_rejected{account="main"}`, `rate_limit{account="main"}`, `rate_limit_remaining{account="main"}`
		token, tokenErr := "secret-wrong", error(nil)
		s := h.client.Scope("main", func() (string, error) { return token, tokenErr })
		assertAccount := func(what, wantErr string, want map[string]float64) {
			t.Helper()
			before := h.updates
			simtest.AssertEqual(t, what+": error", errorText(fetchList(t.Context(), s, "/servers")), wantErr)
			got := h.gatherNonZero(t)
			for series := range got {
				if !strings.Contains(series, "account=") {
					delete(got, series)
				}
			}
			simtest.AssertEqual(t, what, got, want)
			if h.updates == before {
				t.Errorf("%s: onAccountUpdate was not called", what)
			}
		}
		simtest.AssertEqual(t, "before the first request", h.gatherNonZero(t), map[string]float64{})
		h.reply(401, "", limits...)
		assertAccount("wrong token", "/servers: status 401", map[string]float64{rejected: 1, limit: 120, remaining: 77})
		before, _ := s.Fingerprint()
		token = "secret-right"
		if after, _ := s.Fingerprint(); after == before {
			t.Error("Fingerprint: the same for two tokens")
		}
		h.reply(200, `{"data":[]}`, "RateLimit-Limit", "many", "RateLimit-Remaining", " 76 ")
		assertAccount("right token, unreadable limit", "", map[string]float64{limit: 120, remaining: 76})
		tokenErr = errors.New("token file: cannot be read")
		assertAccount("unreadable token", "/servers: token file: cannot be read", map[string]float64{rejected: 1, limit: 120, remaining: 76})
		simtest.AssertEqual(t, "requests", len(h.Requests()), 2)

		// A new scope replaces one of the same name, which is closed later.
		replaced := s
		s = h.client.Scope("main", func() (string, error) { return "secret-new", nil })
		assertAccount("new scope", "", map[string]float64{remaining: 76})
		replaced.Close()
		assertAccount("replaced scope closed", "", map[string]float64{remaining: 76})
		s.Close()
		metrics, _ := h.client.AccountMetrics(time.Now())
		simtest.AssertEqual(t, "metrics of a closed scope", len(metrics), 0)
	})
}

func TestInitErrorCounters(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.client.InitErrorCounters("/plans")
		registry := prometheus.NewRegistry()
		registry.MustRegister(h.client)
		want := map[string]float64{}
		for _, r := range Reasons() {
			want[simtest.Series("server_rental_exporter_api_errors_total", "endpoint", "/plans", "reason", string(r))] = 0
		}
		simtest.AssertEqual(t, "series", simtest.ServeGet(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), "/").Exposition(t).Values, want)
	})
}

// TestApplySettings asserts that earlier requests count against new limits, and that
// only those of later scopes go to the new base URL.
func TestApplySettings(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.reply(200, `{"data":[]}`)
		s := h.main()
		for range 2 {
			if err := fetchList(t.Context(), s, "/servers"); err != nil {
				t.Fatal(err)
			}
		}
		settings := *h.client.settings.Load()
		settings.BaseURL = h.URL.JoinPath("/elsewhere/")
		settings.Limits.Account = 2
		h.client.ApplySettings(settings)
		start := time.Now()
		if err := fetchList(t.Context(), s, "/servers"); err != nil {
			t.Fatal(err)
		}
		simtest.AssertEqual(t, "wait", time.Since(start), window)
		simtest.AssertEqual(t, "same scope", h.Requests()[2].Path, "/servers")
		if err := fetchList(t.Context(), h.main(), "/servers"); err != nil {
			t.Fatal(err)
		}
		simtest.AssertEqual(t, "later scope", h.Requests()[3].Path, "/elsewhere/servers")
	})
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

// roundTripper is a transport.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// scopeOver returns a public scope that makes one request with a transport.
func scopeOver(base *url.URL, timeout time.Duration, transport http.RoundTripper) *Scope {
	return New("test/1", Settings{BaseURL: base, Timeout: timeout, Limits: Limits{Public: 1}, Transport: transport}, func() {}).Scope("", nil)
}

// TestTarget asserts that the base URL is sent as it is configured.
func TestTarget(t *testing.T) {
	for base, want := range map[string]string{
		"https://gw.example/tenant%2F7/api/v1": "https://gw.example/tenant%2F7/api/v1/plans",
		"https://gw.example/a%20b//api/v1/":    "https://gw.example/a%20b//api/v1/plans",
		"https://gw.example/api/v1":            "https://gw.example/api/v1/plans",
	} {
		u, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		s := scopeOver(u, time.Minute, roundTripper(func(r *http.Request) (*http.Response, error) {
			got = r.URL.String()
			return nil, io.EOF
		}))
		simtest.AssertEqual(t, "error", errorText(fetchList(t.Context(), s, "/plans")), "/plans: EOF")
		simtest.AssertEqual(t, base, got, want)
	}
}

// TestTransportTimeout has a connection that times out before api.timeout, and one that
// notices the end of api.timeout by itself.
func TestTransportTimeout(t *testing.T) {
	for took, want := range map[time.Duration]string{10 * time.Second: "connection timed out", 2 * time.Minute: "no response within 2m0s"} {
		synctest.Test(t, func(t *testing.T) {
			transport := func(*http.Request) (*http.Response, error) {
				time.Sleep(took)
				return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
			}
			s := scopeOver(&url.URL{Scheme: "https", Host: "rental.example"}, 2*time.Minute, roundTripper(transport))
			err := fetchList(t.Context(), s, "/plans")
			var failure *Error
			if !errors.As(err, &failure) || failure.Reason != Timeout || failure.Err.Error() != want {
				t.Errorf("after %v: got %v, want a timeout: %s", took, err, want)
			}
		})
	}
}

// TestPauseEndsWithHost asserts that another host is asked although the one before
// asked for a pause, and that the earlier requests still count against the limit.
func TestPauseEndsWithHost(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Override("/plans", simtest.Reply(429, http.Header{"Retry-After": {"3600"}}, ""))
		h.Override("", simtest.Reply(200, nil, `{"data":[]}`))
		simtest.AssertEqual(t, "error", errorText(fetchList(t.Context(), h.scope("", ""), "/plans")), "/plans: status 429")
		settings := *h.client.settings.Load()
		settings.Limits.Public = 1
		settings.BaseURL = h.URL.JoinPath("/elsewhere")
		h.client.ApplySettings(settings)
		var paused *PausedError
		if err := fetchList(t.Context(), h.scope("", ""), "/locations"); !errors.As(err, &paused) {
			t.Errorf("same host: got %v, want a *PausedError", err)
		}
		other := *h.URL
		other.Host = "other.example"
		settings.BaseURL = &other
		updates := h.updates
		h.client.ApplySettings(settings)
		if h.updates == updates {
			t.Error("onAccountUpdate was not called")
		}
		start := time.Now()
		simtest.AssertEqual(t, "other host: error", fetchList(t.Context(), h.scope("", ""), "/locations"), error(nil))
		simtest.AssertEqual(t, "other host: wait", time.Since(start), window)
	})
}

// TestTransportRepeatsNothing asserts that one call is one request even if a kept
// connection would let net/http repeat it silently.
func TestTransportRepeatsNothing(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Override("", func(w http.ResponseWriter, _ *http.Request) {
			if len(h.Requests()) > 1 {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, `{"data":[]}`)
		})
		s := h.main()
		got := []string{errorText(fetchList(t.Context(), s, "/servers")), errorText(fetchList(t.Context(), s, "/servers"))}
		simtest.AssertEqual(t, "errors", got, []string{"", "/servers: EOF"})
		simtest.AssertEqual(t, "requests", len(h.Requests()), 2)
	})
}

func FuzzEnvelope(f *testing.F) {
	for _, s := range []string{`{"data":[{"id":"x"}],"meta":{}}`, `{"data":[1,2,3]} x`, `[]`, `{"data":{"a":[{}]}}`, `{"meta":{"total":1},"data":[]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		const maxItems = 3
		var items []string
		dec := newEnvelope(strings.NewReader(string(body)), maxListBytes, maxItemBytes)
		err := dec.read(func(key string) error {
			if key == "data" {
				return dec.items(maxItems, func(raw json.RawMessage) { items = append(items, string(raw)) })
			}
			return dec.skip()
		})
		if err == nil && !json.Valid(body) {
			t.Errorf("accepted although it is not JSON: %q", body)
		}
		if len(items) > maxItems || slices.ContainsFunc(items, func(i string) bool { return !json.Valid([]byte(i)) }) {
			t.Errorf("%q: got items %q", body, items)
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
