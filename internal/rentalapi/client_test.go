package rentalapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	promconfig "github.com/prometheus/common/config"
)

const secret = "s3cret-token"

// api is a provider that answers as one test wants.
type api struct {
	*httptest.Server
	client *Client

	mu   sync.Mutex
	seen []*http.Request
}

// requests returns those that arrived so far.
func (a *api) requests() []*http.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.seen)
}

func newAPI(t *testing.T, timeout time.Duration, handler http.HandlerFunc) *api {
	t.Helper()
	a := &api{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.seen = append(a.seen, r)
		a.mu.Unlock()
		handler(w, r)
	}))
	t.Cleanup(a.Close)
	transport, err := NewTransport(promconfig.HTTPClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	base, err := url.Parse(a.URL + "/api/v1")
	if err != nil {
		t.Fatal(err)
	}
	a.client = New("test/1", Settings{
		BaseURL: base, Transport: transport, Timeout: timeout,
		Limits: Limits{Public: 59, Account: 120, AccountBulk: 60},
	})
	return a
}

func (a *api) account() *Scope {
	return a.client.Scope("main", func() (string, error) { return secret, nil })
}

func (a *api) metrics(t *testing.T, names ...string) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(a.client)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		if !slices.Contains(names, strings.TrimPrefix(f.GetName(), "server_rental_exporter_api_")) {
			continue
		}
		for _, m := range f.GetMetric() {
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if v == 0 {
				continue
			}
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			out = append(out, strings.TrimPrefix(f.GetName(), "server_rental_exporter_api_")+" "+strings.Join(labels, " "))
		}
	}
	return strings.Join(out, "\n")
}

func respond(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func none(json.RawMessage) {}

func fine(json.RawMessage) error { return nil }

func TestRequest(t *testing.T) {
	a := newAPI(t, time.Minute, respond(200, `{"data":[{"id":"x"}],"meta":{"count":1},"later":{"added":[1]}}`))
	var items []string
	var meta json.RawMessage
	err := a.account().List(t.Context(), "/servers", 10, func(raw json.RawMessage) { items = append(items, string(raw)) }, func(raw json.RawMessage) error {
		meta = raw
		return nil
	})
	if err != nil || string(meta) != `{"count":1}` || !slices.Equal(items, []string{`{"id":"x"}`}) {
		t.Fatalf("List: got %q %s %v", items, meta, err)
	}
	if err := a.client.Scope("", nil).List(t.Context(), "/plans", 10, none, fine); err != nil {
		t.Fatal(err)
	}
	want := []struct{ path, authorization string }{{"/api/v1/servers", "Bearer " + secret}, {"/api/v1/plans", ""}}
	for i, r := range a.requests() {
		if r.URL.RequestURI() != want[i].path || r.Header.Get("Authorization") != want[i].authorization {
			t.Errorf("request %d: got %s with authorization %q, want %v", i, r.URL, r.Header.Get("Authorization"), want[i])
		}
		if r.UserAgent() != "test/1" || r.Header.Get("Accept") != "application/json" || r.Method != http.MethodGet {
			t.Errorf("request %d: got %s, User-Agent %q, Accept %q", i, r.Method, r.UserAgent(), r.Header.Get("Accept"))
		}
	}
}

// TestFaults holds every way in which a request can fail: what it is called, how
// it is counted, and that no error tells a secret.
func TestFaults(t *testing.T) {
	deep := strings.Repeat("[", 200_000)
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		reason  Reason
		text    string
	}{
		"401":                  {respond(401, `{"error":{"code":"invalid_token","message":"see `+secret+`"}}`), Unauthorized, "/servers: status 401: invalid_token"},
		"404":                  {respond(404, `{"error":{"code":"not_found"}}`), Status, "/servers: status 404: not_found"},
		"429":                  {respond(429, ``), RateLimited, "/servers: status 429"},
		"500 with HTML":        {respond(500, `<html>`+secret), Status, "/servers: status 500"},
		"503":                  {respond(503, `{"error":{"code":"unavailable"}}`), Unavailable, "/servers: status 503: unavailable"},
		"an odd error code":    {respond(500, `{"error":{"code":"<b>`+secret+`"}}`), Status, "/servers: status 500"},
		"204":                  {respond(204, ``), Status, "/servers: status 204"},
		"nothing":              {respond(200, ``), Decode, "/servers: answer: ends too early"},
		"HTML":                 {respond(200, `<html>`+secret), Decode, "/servers: invalid character '<' looking for beginning of value"},
		"null":                 {respond(200, `null`), Decode, "/servers: answer: not an object"},
		"an array":             {respond(200, `[]`), Decode, "/servers: answer: not an object"},
		"no data":              {respond(200, `{"meta":{}}`), Decode, "/servers: data: missing"},
		"data null":            {respond(200, `{"data":null}`), Decode, "/servers: data: not an array"},
		"data an object":       {respond(200, `{"data":{}}`), Decode, "/servers: data: not an array"},
		"data twice":           {respond(200, `{"data":[],"data":[]}`), Decode, "/servers: data: given twice"},
		"half":                 {respond(200, `{"data":[{"id":`), Decode, "/servers: answer: ends too early"},
		"more after its end":   {respond(200, `{"data":[]} {}`), Decode, "/servers: answer: more after its end"},
		"garbage after it":     {respond(200, `{"data":[]} x`), Decode, "/servers: invalid character 'x' looking for beginning of value"},
		"deep":                 {respond(200, `{"data":[`+deep), Decode, "/servers: invalid character '[' exceeded max depth"},
		"deep in an extra key": {respond(200, `{"extra":`+deep), Decode, "/servers: invalid character '[' exceeded max depth"},
		"too many items":       {respond(200, `{"data":[1,2,3,4]}`), TooLarge, "/servers: data: more than 3 items: answer is too large"},
		"an endless item":      {endless, TooLarge, "/servers: answer is too large"},
		"dropped":              {drop(""), Connection, "/servers: EOF"},
		"dropped in the body":  {drop(`{"data":[`), Connection, "/servers: unexpected EOF"},
		"hanging":              {hang(""), Timeout, "/servers: context deadline exceeded"},
		"hanging in the body":  {hang(`{"data":[`), Timeout, "/servers: context deadline exceeded"},
		"redirect": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/api/v1/elsewhere?"+secret)
			w.WriteHeader(302)
		}, Status, "/servers: status 302: redirects are not followed: set api.base_url to the API's final address"},
	} {
		t.Run(name, func(t *testing.T) {
			wait := time.Minute
			if c.reason == Timeout {
				wait = 100 * time.Millisecond
			}
			a := newAPI(t, wait, c.handler)
			err := a.account().List(t.Context(), "/servers", 3, none, fine)
			var fault *Error
			if !errors.As(err, &fault) || fault.Reason != c.reason || err.Error() != c.text {
				t.Fatalf("got %v, want %s: %s", err, c.reason, c.text)
			}
			if got, want := a.metrics(t, "errors_total"), "errors_total /servers "+string(c.reason); got != want {
				t.Errorf("counted: got %q, want %q", got, want)
			}
			if len(a.requests()) != 1 {
				t.Errorf("got %d requests, want 1", len(a.requests()))
			}
		})
	}
}

func endless(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"data":["`)
	chunk := strings.Repeat("x", 1<<16)
	for {
		if _, err := io.WriteString(w, chunk); err != nil {
			return
		}
	}
}

func drop(begin string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if begin != "" {
			_, _ = io.WriteString(w, begin)
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}
}

func hang(begin string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if begin != "" {
			_, _ = io.WriteString(w, begin)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}
}

func TestNobodyThere(t *testing.T) {
	a := newAPI(t, time.Minute, respond(200, `{"data":{}}`))
	a.Close()
	err := a.account().Object(t.Context(), "/account", func(json.RawMessage) error { return nil })
	var fault *Error
	if !errors.As(err, &fault) || fault.Reason != Connection || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v, want a connection error", err)
	}
	if got, want := a.metrics(t, "requests_total"), "requests_total error /account"; got != want {
		t.Errorf("counted: got %q, want %q", got, want)
	}
}

func TestObject(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":{"a":1}}`: "<nil>",
		`{"data":null}`:    "/account: data: not an object",
		`{"data":[1]}`:     "/account: data: not an object",
		`{}`:               "/account: data: not an object",
		`{"data":{"bad":`:  "/account: answer: ends too early",
		`{"data":{"b":1}}`: "/account: not understood",
	} {
		a := newAPI(t, time.Minute, respond(200, body))
		err := a.account().Object(t.Context(), "/account", func(raw json.RawMessage) error {
			if string(raw) != `{"a":1}` {
				return errors.New("not understood")
			}
			return nil
		})
		if got := "<nil>"; err != nil {
			got = err.Error()
			if got != want {
				t.Errorf("%s: got %s, want %s", body, got, want)
			}
		} else if got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}

func TestCancelledIsNoFault(t *testing.T) {
	a := newAPI(t, time.Minute, hang(""))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := a.account().List(ctx, "/servers", 3, none, fine); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	if got := a.metrics(t, "errors_total", "requests_total"); got != "" {
		t.Errorf("counted although we ended it: %q", got)
	}
}

func TestPage(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":[],"meta":{"total":5,"page":2,"pages":3,"limit":100,"count":2}}`: "<nil>",
		`{"data":[],"meta":{"total":5,"pages":3}}`:                                "<nil>",
		`{"data":[]}`:                                            "/topups: meta.total: missing",
		`{"data":[],"meta":{"total":5}}`:                         "/topups: meta.pages: missing",
		`{"data":[],"meta":{"total":-1,"pages":1}}`:              "/topups: meta.total: negative",
		`{"data":[],"meta":{"total":1000000,"pages":10000}}`:     "/topups: meta.total: 1000000 entries, more than 500000: answer is too large",
		`{"data":[],"meta":{"total":5,"pages":1000000000}}`:      "/topups: meta.pages: 1000000000 pages for 5 entries",
		`{"data":[],"meta":{"total":5,"pages":-1}}`:              "/topups: meta.pages: -1 pages for 5 entries",
		`{"data":[],"meta":{"total":5,"page":1,"pages":3}}`:      "/topups: meta.page: 1 where page 2 was asked for",
		`{"data":[],"meta":{"total":"many","pages":3,"page":2}}`: "/topups: meta: not as documented",
		`{"data":[],"meta":{"total":1e999,"pages":3,"page":2}}`:  "/topups: meta: not as documented",
	} {
		a := newAPI(t, time.Minute, respond(200, body))
		scope := a.account()
		token, err := scope.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		meta, err := scope.Page(t.Context(), "/topups", url.Values{"status": {"paid"}}, 2, none)
		got := "<nil>"
		if err != nil {
			got = err.Error()
		} else if meta != (PageMeta{Total: 5, Page: 2, Pages: 3, Token: token}) {
			t.Errorf("%s: got %+v", body, meta)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
		if uri := a.requests()[0].URL.RequestURI(); uri != "/api/v1/topups?limit=100&page=2&status=paid" {
			t.Errorf("asked %s", uri)
		}
	}
}

func TestPauseStopsTheScope(t *testing.T) {
	a := newAPI(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+secret {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(503)
			return
		}
		_, _ = io.WriteString(w, `{"data":[]}`)
	})
	main := a.account()
	other := a.client.Scope("other", func() (string, error) { return "another", nil })
	err := main.List(t.Context(), "/servers", 3, none, fine)
	var fault *Error
	if !errors.As(err, &fault) || time.Until(fault.RetryAt()).Round(time.Second) != 2*time.Minute {
		t.Fatalf("got %v, want an error that says when to come back", err)
	}
	var paused *PausedError
	if err := main.List(t.Context(), "/ssh-keys", 3, none, fine); !errors.As(err, &paused) || !paused.Until.Equal(fault.Until) {
		t.Errorf("same token: got %v, want a PausedError", err)
	}
	if err := other.List(t.Context(), "/servers", 3, none, fine); err != nil {
		t.Errorf("another token: got %v, want no error", err)
	}
	if err := a.client.Scope("", nil).List(t.Context(), "/plans", 3, none, fine); err != nil {
		t.Errorf("public: got %v, want no error", err)
	}
	if len(a.requests()) != 3 {
		t.Errorf("got %d requests, want 3", len(a.requests()))
	}
	if got, want := a.metrics(t, "backoff_until_timestamp_seconds"), "backoff_until_timestamp_seconds main"; got != want {
		t.Errorf("back-off: got %q, want %q", got, want)
	}
	main.Close()
	if got := a.metrics(t, "backoff_until_timestamp_seconds"); got != "" {
		t.Errorf("back-off of a closed scope: got %q", got)
	}
}

func TestTokens(t *testing.T) {
	a := newAPI(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("RateLimit-Limit", "120")
		w.Header().Set("RateLimit-Remaining", "77")
		if r.Header.Get("Authorization") != "Bearer right" {
			w.WriteHeader(401)
			return
		}
		_, _ = io.WriteString(w, `{"data":[]}`)
	})
	token, fault := "wrong", error(nil)
	s := a.client.Scope("main", func() (string, error) { return token, fault })
	ask := func() error {
		err := s.List(t.Context(), "/servers", 3, none, fine)
		return err
	}
	rejected := "token_rejected main"
	if err := ask(); err == nil || a.metrics(t, "token_rejected") != rejected {
		t.Errorf("wrong token: got %v and %q", err, a.metrics(t, "token_rejected"))
	}
	before, _ := s.Fingerprint()
	token = "right"
	if err := ask(); err != nil || a.metrics(t, "token_rejected") != "" {
		t.Errorf("right token: got %v and %q", err, a.metrics(t, "token_rejected"))
	}
	if after, _ := s.Fingerprint(); after == before {
		t.Error("Fingerprint: the same for two tokens")
	}
	if got, want := a.metrics(t, "rate_limit", "rate_limit_remaining"), "rate_limit main\nrate_limit_remaining main"; got != want {
		t.Errorf("limits: got %q, want %q", got, want)
	}
	fault = errors.New("token file: cannot be read")
	if err := ask(); err == nil || err.Error() != "/servers: token file: cannot be read" || a.metrics(t, "token_rejected") != rejected {
		t.Errorf("unreadable token: got %v and %q", err, a.metrics(t, "token_rejected"))
	}
	if len(a.requests()) != 2 {
		t.Errorf("got %d requests, want 2", len(a.requests()))
	}
	s.Close()
	if got := a.metrics(t, "rate_limit", "rate_limit_remaining", "token_rejected"); got != "" {
		t.Errorf("metrics of a closed scope: %q", got)
	}
}

func TestExpectedErrorsStartAtZero(t *testing.T) {
	a := newAPI(t, time.Minute, respond(200, ""))
	a.client.Expect("/plans")
	if got := testutil.CollectAndCount(a.client, "server_rental_exporter_api_errors_total"); got != len(Reasons()) {
		t.Errorf("got %d series, want %d", got, len(Reasons()))
	}
}

// One call must be one request even where a kept connection would let net/http
// repeat it silently.
func TestTransportRepeatsNothing(t *testing.T) {
	var a *api
	a = newAPI(t, time.Minute, func(w http.ResponseWriter, _ *http.Request) {
		if len(a.requests()) > 1 {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, `{"data":[]}`)
	})
	s := a.account()
	for range 2 {
		_ = s.List(t.Context(), "/servers", 3, none, fine)
	}
	if n := len(a.requests()); n != 2 {
		t.Errorf("two calls made %d requests", n)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{`{"data":[{"id":"x"}],"meta":{}}`, `{"data":[1,2,3]} x`, `[]`, `{"data":{"a":[{}]}}`, `{"meta":{"total":1},"data":[]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		valid := json.Valid(body)
		items := 0
		dec := newDecoder(strings.NewReader(string(body)), maxListBytes)
		err := dec.envelope(func(key string) error {
			if key == "data" {
				return dec.items(3, func(raw json.RawMessage) {
					items++
					if !json.Valid(raw) {
						t.Errorf("item is no JSON: %q", raw)
					}
				})
			}
			return dec.skip()
		})
		if err == nil && !valid {
			t.Errorf("taken although it is no JSON: %q", body)
		}
		if items > 3 {
			t.Errorf("%d items, more than 3", items)
		}
	})
}
