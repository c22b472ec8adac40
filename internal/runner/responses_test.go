package runner

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/collector"

	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator/simtest"
)

// Names of resources, one for each way of reading an answer: a single object, a
// list, and a list with pages.
const (
	object = "account"
	listed = "plans"
	paged  = "transactions"
)

// badAnswer is a way in which a whole answer can be unusable.
type badAnswer struct {
	name   string
	answer http.HandlerFunc          // in place of the correct answer, or
	fault  simtest.Kind              // a fault of the simulator, or
	change func(body map[string]any) // a change of the correct answer
	only   []string                  // resources; empty is one for each way of reading

	reason    rentalapi.Reason
	logged    string // part of the message, which starts with the endpoint
	noAnswer  bool   // the provider cannot be connected
	everybody bool   // also tested with all endpoints at once
	large     bool   // megabytes are read
}

func badAnswers() []badAnswer {
	text := func(body string) http.HandlerFunc { return simtest.Reply(http.StatusOK, nil, body) }
	raw := func(answer string) http.HandlerFunc { return hijacked("HTTP/1.1 200 OK\r\n" + answer) }
	soon := http.Header{"Retry-After": {"2"}}
	lists := []string{listed, paged}
	deep := strings.Repeat("[", 200_000)
	const token = simtest.MainToken
	return []badAnswer{
		{name: "400", answer: simtest.Reply(400, nil, `{"error":{"code":"invalid_parameter"}}`), reason: rentalapi.Status, logged: "status 400: invalid_parameter"},
		{name: "401", answer: simtest.Reply(401, nil, `{"error":{"code":"invalid_token","message":"m"}}`), reason: rentalapi.Unauthorized, logged: "status 401: invalid_token", everybody: true},
		{name: "404", answer: simtest.Reply(404, nil, `{"error":{"code":"not_found"}}`), reason: rentalapi.Status, logged: "status 404: not_found; disable the collector if the API does not have this endpoint", everybody: true},
		{name: "429", answer: simtest.Reply(429, soon, `{"error":{"code":"rate_limited"}}`), reason: rentalapi.RateLimited, logged: "status 429: rate_limited"},
		{name: "500", answer: simtest.Reply(500, nil, `oops`), reason: rentalapi.Status, logged: "status 500", everybody: true},
		{name: "502 in HTML", answer: simtest.Reply(502, nil, `<html><h1>Bad Gateway</h1>`), reason: rentalapi.Status, logged: "status 502"},
		{name: "503", answer: simtest.Reply(503, soon, `{"error":{"code":"unavailable"}}`), reason: rentalapi.Unavailable, logged: "status 503: unavailable"},
		{name: "503 without Retry-After", answer: simtest.Reply(503, nil, ``), reason: rentalapi.Unavailable, logged: "status 503", everybody: true},
		{name: "token as error code", answer: simtest.Reply(400, nil, `{"error":{"code":"Bearer `+token+`"}}`), reason: rentalapi.Status, logged: "status 400"},
		{name: "204", answer: simtest.Reply(204, nil, ``), reason: rentalapi.Status, logged: "status 204"},

		{name: "API down", noAnswer: true, reason: rentalapi.Connection, logged: "connection refused", everybody: true},
		{name: "dropped connection", fault: simtest.Drop, reason: rentalapi.Connection, logged: "EOF", everybody: true},
		{name: "no answer", fault: simtest.Hang, reason: rentalapi.Timeout, logged: "no response within 10s", everybody: true},
		{name: "a byte per second", fault: simtest.Trickle, reason: rentalapi.Timeout, logged: "no response within 10s", everybody: true},
		{name: "half a body", fault: simtest.Truncated, reason: rentalapi.Connection, logged: "unexpected EOF", everybody: true},
		{name: "garbage", fault: simtest.Garbage, reason: rentalapi.Decode, logged: "invalid character", everybody: true},
		{name: "no HTTP", answer: hijacked("SSH-2.0-OpenSSH_9.9\r\n"), reason: rentalapi.Connection, logged: "response: not valid HTTP"},
		{name: "token as status", answer: hijacked("HTTP/1.1 " + token + " x\r\n\r\n"), reason: rentalapi.Connection, logged: "response: not valid HTTP"},
		{name: "token as version", answer: hijacked("HTTP/9." + token + " 200 OK\r\n\r\n"), reason: rentalapi.Connection, logged: "response: not valid HTTP"},
		{name: "token as header", answer: raw("Bearer " + token + "\r\n\r\n"), reason: rentalapi.Connection, logged: "response: not valid HTTP"},
		{name: "token as length", answer: raw("Content-Length: " + token + "\r\n\r\n"), reason: rentalapi.Connection, logged: "response: not valid HTTP"},
		{name: "token as encoding", answer: raw("Transfer-Encoding: " + token + "\r\n\r\n"), reason: rentalapi.Connection, logged: "response: not valid HTTP"},
		{name: "token as trailer", answer: raw("Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\n" + token + "\r\n\r\n"), reason: rentalapi.Connection, logged: "response: not valid HTTP"},
		{name: "header of 20 MB", answer: raw("X: " + strings.Repeat("x", 20<<20) + "\r\n\r\n{}"), only: []string{listed}, large: true, reason: rentalapi.Connection, logged: "exceeded"},
		{name: "redirect to another host", answer: simtest.Reply(302, http.Header{"Location": {"http://evil.example/api/v1/plans"}}, ""), reason: rentalapi.Status, logged: "redirects are not followed", everybody: true},
		{name: "permanent redirect to another host", answer: simtest.Reply(308, http.Header{"Location": {"//evil.example/"}}, ""), reason: rentalapi.Status, logged: "redirects are not followed"},
		{name: "redirect to another path", answer: simtest.Reply(301, http.Header{"Location": {"/api/v2/plans"}}, ""), reason: rentalapi.Status, logged: "redirects are not followed"},

		{name: "HTML", answer: text("<!doctype html><title>Sign in</title>"), reason: rentalapi.Decode, logged: "invalid character", everybody: true},
		{name: "nothing", answer: text(""), reason: rentalapi.Decode, logged: "ends too early", everybody: true},
		{name: "white space", answer: text(" \n\t "), reason: rentalapi.Decode, logged: "ends too early"},
		{name: "half of JSON", answer: text(`{"data":[{"id":"a`), reason: rentalapi.Decode, logged: "ends too early"},
		{name: "null", answer: text(`null`), reason: rentalapi.Decode, logged: "not an object", everybody: true},
		{name: "array", answer: text(`[]`), reason: rentalapi.Decode, logged: "not an object"},
		{name: "text", answer: text(`"data"`), reason: rentalapi.Decode, logged: "not an object"},
		{name: "number", answer: text(`5`), reason: rentalapi.Decode, logged: "not an object"},
		{name: "empty object", answer: text(`{}`), reason: rentalapi.Decode, logged: "data: ", everybody: true},
		{name: "null data", answer: text(`{"data":null,"meta":null}`), reason: rentalapi.Decode, logged: "data: not an "},
		{name: "object for a list", answer: text(`{"data":{}}`), only: lists, reason: rentalapi.Decode, logged: "data: not an array"},
		{name: "list for an object", answer: text(`{"data":[{}]}`), only: []string{object}, reason: rentalapi.Decode, logged: "data: not an object"},
		{name: "data twice", answer: text(`{"data":[],"data":[],"meta":{"total":0,"pages":0}}`), only: lists, reason: rentalapi.Decode, logged: "data: given twice"},
		{name: "two answers", answer: text(`{"data":[],"meta":{"total":0,"pages":0}} {"data":[]}`), only: lists, reason: rentalapi.Decode, logged: "more after its end"},
		{name: "200,000 levels", answer: text(deep), reason: rentalapi.Decode, logged: "not an object"},
		{name: "200,000 levels of data", answer: text(`{"data":` + deep), reason: rentalapi.Decode, logged: "exceeded max depth"},
		{name: "200,000 levels in an item", answer: text(`{"data":[{"id":` + deep), only: lists, reason: rentalapi.Decode, logged: "exceeded max depth"},
		{name: "200,000 levels of an unknown field", answer: text(`{"x":` + deep), reason: rentalapi.Decode, logged: "exceeded max depth"},

		{name: "account without id", answer: text(`{"data":{"name":"main"}}`), only: []string{"account"}, reason: rentalapi.Incomplete, logged: "data.id: missing"},
		{name: "status without locations", answer: text(`{"data":{}}`), only: []string{"status"}, reason: rentalapi.Incomplete, logged: "data.locations: missing or empty"},
		{name: "shortened list", change: func(body map[string]any) { simtest.Put(body, 40, "meta", "count") }, only: []string{"servers", "topups", listed, paged}, reason: rentalapi.Incomplete, logged: "items, but meta.count is 40"},
		{name: "emptied list", answer: text(`{"data":[],"meta":{"count":15}}`), only: []string{listed}, reason: rentalapi.Incomplete, logged: "data: 0 items, but meta.count is 15"},
		{name: "shortened page", change: func(body map[string]any) {
			body["data"] = body["data"].([]any)[1:]
			simtest.Put(body, nil, "meta", "count")
		}, only: []string{"topups", paged}, reason: rentalapi.Incomplete, logged: "items, but meta demands"},

		{name: "a billion pages", change: meta("pages", 1e9), only: []string{paged}, reason: rentalapi.Decode, logged: "meta.pages: 1000000000 pages"},
		{name: "a billion entries", change: meta("total", 1e9), only: []string{paged}, reason: rentalapi.TooLarge, logged: "meta.total: 1000000000 entries"},
		{name: "1e999 entries", change: meta("total", json.Number("1e999")), only: []string{paged}, reason: rentalapi.Decode, logged: "meta: "},
		{name: "total missing", change: meta("total", nil), only: []string{paged}, reason: rentalapi.Decode, logged: "meta.total: missing"},
		{name: "pages missing", change: meta("pages", nil), only: []string{paged}, reason: rentalapi.Decode, logged: "meta.pages: missing"},
		{name: "total in words", change: meta("total", "many"), only: []string{paged}, reason: rentalapi.Decode, logged: "meta: "},
		{name: "negative total", change: meta("total", -1), only: []string{paged}, reason: rentalapi.Decode, logged: "meta.total: negative"},
		{name: "negative pages", change: meta("pages", -1), only: []string{paged}, reason: rentalapi.Decode, logged: "meta.pages: "},
		{name: "another page", change: meta("page", 2), only: []string{paged}, reason: rentalapi.Decode, logged: "meta.page: 2"},
		{name: "no meta", change: func(body map[string]any) { delete(body, "meta") }, only: []string{paged}, reason: rentalapi.Decode, logged: "meta.total: missing"},
		{name: "meta as list", change: func(body map[string]any) { body["meta"] = []int{1} }, only: []string{paged}, reason: rentalapi.Decode, logged: "meta: "},

		{name: "endless text", fault: simtest.Endless, large: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "endless white space", answer: endless(`{"data":[`, " "), only: []string{listed}, large: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "endless name", answer: endless(`{"`, "name"), only: []string{listed}, large: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "endless unknown field", answer: endless(`{"extra":[1`, ",1"), only: []string{listed}, large: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "endless unknown fields", answer: endless(`{"x":1`, `,"x":"`+strings.Repeat("x", 9<<10)+`"`), only: []string{listed}, large: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "endless list of nulls", answer: endless(`{"data":[null`, ",null"), only: lists, large: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "endless list of large items", answer: endless(`{"data":[{}`, `,{"id":"`+strings.Repeat("x", 500<<10)+`"}`), only: []string{listed}, large: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "endless object", answer: endless(`{"data":{"x":1`, `,"x":1`), only: []string{object}, large: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "endless meta object", answer: endless(`{"data":[],"meta":{"x":1`, `,"x":1`), only: lists, large: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "unrequested gzip of 4 GiB", answer: gzipBomb(), large: true, reason: rentalapi.Decode, logged: "invalid character"},
		{name: "endless error", answer: func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			endless(`{"error":{"code":"`, "x")(w, r)
		}, large: true, reason: rentalapi.Status, logged: "status 500"},
		{name: "200,000 items", answer: items(200_000), only: lists, large: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "many samples from few items", answer: text(offers(200, 800, 4)), only: []string{"plans"}, large: true, reason: rentalapi.TooLarge, logged: "samples"},
		{name: "large samples from few items", answer: text(offers(100, 200, 2_000)), only: []string{"plans"}, large: true, reason: rentalapi.TooLarge, logged: "samples"},
		{name: "many samples from one location", answer: text(components(10_000)), only: []string{"status"}, large: true, reason: rentalapi.TooLarge, logged: "samples"},
	}
}

func meta(key string, value any) func(map[string]any) {
	return func(body map[string]any) { simtest.Put(body, value, "meta", key) }
}

// hijacked sends bytes in place of an HTTP response.
func hijacked(raw string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, raw)
		_ = conn.Close()
	}
}

// endless sends begin once and then again without an end.
func endless(begin, again string) http.HandlerFunc {
	piece := []byte(strings.Repeat(again, 1+(32<<10)/len(again)))
	return func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.WriteString(w, begin)
		for err == nil {
			_, err = w.Write(piece)
		}
	}
}

// gzipBomb sends 4 GiB in a few megabytes.
func gzipBomb() http.HandlerFunc {
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	_, _ = io.WriteString(z, `{"data":"`)
	_ = z.Flush()
	head := slices.Clone(packed.Bytes())
	packed.Reset()
	_, _ = z.Write(bytes.Repeat([]byte("a"), 4<<20))
	_ = z.Flush()
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, err := w.Write(head)
		for i := 0; i < 1024 && err == nil; i++ {
			_, err = w.Write(packed.Bytes())
		}
	}
}

// items sends n correct items.
func items(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		format := `{"id":"item-%d","name":"a name"}`
		if strings.HasSuffix(r.URL.Path, "/transactions") {
			format = `{"id":%d,"type":"topup","amount":{"usd":1}}`
		}
		_, err := io.WriteString(w, `{"meta":{"total":200000,"pages":2000},"data":[{}`)
		for i := 0; i < n && err == nil; i++ {
			_, err = fmt.Fprintf(w, ","+format, i)
		}
		_, _ = io.WriteString(w, `]}`)
	}
}

// offers returns a list of plans with ids of a length, each offered in many locations.
func offers(plans, locations, idLength int) string {
	places, list := make([]string, locations), make([]string, plans)
	for i := range places {
		places[i] = fmt.Sprintf(`"loc-%04d"`, i)
	}
	for i := range list {
		list[i] = fmt.Sprintf(`{"id":"%0*d","availability":{"locations":[%s]}}`, idLength, i, strings.Join(places, ","))
	}
	return `{"data":[` + strings.Join(list, ",") + `]}`
}

// components returns a status of one location with a long name.
func components(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"c%d":"up"`, i)
	}
	return `{"data":{"overall":"ok","locations":{"` + strings.Repeat("x", 2_000) + `":{"components":{` + strings.Join(list, ",") + `}}}}}`
}

// TestBadAnswers lets the answers of one resource be unusable from the start, then
// correct: all other collectors are unaffected. Each fault is tested with one
// resource for each way of reading an answer.
func TestBadAnswers(t *testing.T) {
	for _, b := range badAnswers() {
		if b.noAnswer || b.large && testing.Short() {
			continue
		}
		names := b.only
		switch {
		case names != nil:
		case b.large:
			names = []string{listed}
		case testing.Short():
			names = []string{paged}
		default:
			names = []string{object, listed, paged}
		}
		for _, r := range collector.Resources() {
			if slices.Contains(names, r.Name) {
				subtest(t, b.name+"/"+r.Name, func(_ *testing.T, h *harness) { h.testBadAnswer(b, r) })
			}
		}
	}
}

// TestBadAnswersOfAll lets the answers of all resources be unusable.
func TestBadAnswersOfAll(t *testing.T) {
	for _, b := range badAnswers() {
		if b.everybody && (!b.large || !testing.Short()) {
			subtest(t, b.name, func(_ *testing.T, h *harness) { h.testBadAnswer(b, collector.Resources()...) })
		}
	}
}

func (h *harness) testBadAnswer(b badAnswer, victims ...collector.Resource) {
	names := []string{object, listed, paged, "servers"}
	for _, r := range victims {
		names = append(names, r.Name)
	}
	c := configure(time.Minute, 10*time.Minute, names...)
	others := func(r collector.Resource) bool { return !slices.Contains(names, r.Name) }
	duration, attempts := 150*time.Second, 3
	if b.large {
		duration, attempts = 15*time.Second, 2
	}
	want := h.once(c)
	h.reset()
	before := len(h.Requests())
	var absent []string
	var failures, recoveries []logLine
	var repair []func()
	wantErrors := map[string]float64{}
	for _, r := range victims {
		absent = append(absent, families(r)...)
		failures = append(failures, failed(r, r.Endpoint+": ", b.logged))
		recoveries = append(recoveries, recovered(r))
		repair = append(repair, h.inject(b, r.Endpoint))
	}
	h.setDown(b.noAnswer)
	h.run(c)
	h.runFor(duration)

	h.assertEqual("data", h.data(), without(want, absent...))
	h.assertSuccess(others, victims...)
	for _, r := range victims {
		n := len(h.RequestsFor(r.Endpoint)) - countIn(h.Requests()[:before], r.Endpoint)
		if n < attempts && !b.noAnswer {
			h.t.Errorf("%s: %d requests, want at least %d", r.Endpoint, n, attempts)
		}
		wantErrors[r.Endpoint+" "+string(b.reason)] = float64(n)
	}
	if len(victims) == 1 {
		h.assertEqual("api_errors_total", h.apiErrors(), wantErrors)
	} else {
		h.assertEqual("reasons", keysOf(h.apiErrors()), keysOf(wantErrors)) // a request may have waited for the rate limit
	}
	for series := range h.scrape().WithPrefix(collectorInvalid.Name + "{") {
		if slices.ContainsFunc(victims, func(r collector.Resource) bool { return r.Name == simtest.Label(series, "collector") }) {
			h.t.Errorf("without any answer: %s", series)
		}
	}
	h.assertLog(failures...)

	for _, f := range repair {
		f()
	}
	h.setDown(false)
	h.runFor(2 * time.Minute)
	h.assertEqual("data after recovery", h.data(), want)
	h.assertSuccess(others)
	for series, n := range h.scrape().WithPrefix(collectorInvalid.Name + "{") {
		h.assertEqual(series+" after recovery", n, 0.0)
	}
	h.assertLog(recoveries...)

	const maxBytes = 40 << 20 // of the longest answer that is read, with what is buffered
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.maxRead > maxBytes {
		h.t.Errorf("read %d MiB of an answer, want at most %d", h.maxRead>>20, maxBytes>>20)
	}
	for _, address := range h.dialed {
		if address != h.URL.Host+":80" {
			h.t.Errorf("connected to %s", address)
		}
	}
}

func countIn(requests []simtest.Request, path string) int {
	n := 0
	for _, r := range requests {
		if r.Path == path {
			n++
		}
	}
	return n
}

func keysOf(m map[string]float64) map[string]bool {
	keys := map[string]bool{}
	for k := range m {
		keys[k] = true
	}
	return keys
}

// inject makes the answers for a path unusable until repair is called.
func (h *harness) inject(b badAnswer, path string) (repair func()) {
	switch {
	case b.noAnswer:
		return func() {}
	case b.answer != nil:
		return h.Override(path, b.answer)
	case b.change != nil:
		return h.Override(path, func(w http.ResponseWriter, r *http.Request) {
			body := simtest.Decode(h.t, []byte(h.Body(path+"?"+r.URL.RawQuery, simtest.MainToken)))
			b.change(body)
			_, _ = w.Write(simtest.Encode(h.t, body))
		})
	default:
		return h.Inject(simtest.Fault{Path: path, Kind: b.fault})
	}
}
