package collector

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
)

// mostHeap is how large the heap may become whatever the API answers.
const mostHeap = 300 << 20

// misery is a way in which a whole answer can be bad.
type misery struct {
	name   string
	answer http.HandlerFunc                         // instead of the right answer, or
	fault  simulator.Kind                           // a fault of the simulator's, or
	change func(good map[string]any) map[string]any // a change to the right answer
	only   []string                                 // endpoints; empty is every one

	reason  rentalapi.Reason
	logged  string // part of the message, which has the endpoint before it
	network bool   // may also befall every endpoint at once
	huge    bool   // megabytes arrive
}

func miseries() []misery {
	json200 := http.Header{"Content-Type": {"application/json"}}
	text := func(body string) http.HandlerFunc { return reply(http.StatusOK, json200, body) }
	soon := http.Header{"Retry-After": {"2"}}
	paged := []string{"/topups", "/transactions"}
	lists := []string{"/plans", "/locations", "/os", "/configurations", "/ssh-keys", "/servers", "/topups", "/transactions"}
	objects := []string{"/status", "/account"}
	some := []string{"/plans", "/transactions"} // where each costs much and all are read alike
	deep := strings.Repeat("[", 200_000)
	return []misery{
		{name: "400", answer: reply(400, nil, `{"error":{"code":"invalid_parameter"}}`), reason: rentalapi.Status, logged: "status 400: invalid_parameter"},
		{name: "401", answer: reply(401, nil, `{"error":{"code":"invalid_token","message":"m"}}`), reason: rentalapi.Unauthorized, logged: "status 401: invalid_token", network: true},
		{name: "404", answer: reply(404, nil, `{"error":{"code":"not_found"}}`), reason: rentalapi.Status, logged: "status 404: not_found", network: true},
		{name: "429", answer: reply(429, soon, `{"error":{"code":"rate_limited"}}`), reason: rentalapi.RateLimited, logged: "status 429: rate_limited"},
		{name: "500", answer: reply(500, nil, `oops`), reason: rentalapi.Status, logged: "status 500", network: true},
		{name: "502 in HTML", answer: reply(502, nil, `<html><h1>Bad Gateway</h1>`), reason: rentalapi.Status, logged: "status 502", network: true},
		{name: "503", answer: reply(503, soon, `{"error":{"code":"unavailable"}}`), reason: rentalapi.Unavailable, logged: "status 503: unavailable"},
		{name: "503 without Retry-After", answer: reply(503, nil, ``), reason: rentalapi.Unavailable, logged: "status 503", network: true},
		{name: "error code that tells a secret", answer: reply(400, nil, `{"error":{"code":"Bearer `+mainToken+`"}}`), reason: rentalapi.Status, logged: "status 400"},
		{name: "204", answer: reply(204, nil, ``), reason: rentalapi.Status, logged: "status 204"},

		{name: "dropped connection", fault: simulator.Drop, reason: rentalapi.Connection, logged: "EOF", network: true},
		{name: "no answer", fault: simulator.Hang, reason: rentalapi.Timeout, logged: "deadline exceeded", network: true},
		{name: "a byte a second", fault: simulator.Trickle, reason: rentalapi.Timeout, logged: "deadline exceeded", network: true},
		{name: "half a body", fault: simulator.Truncated, reason: rentalapi.Connection, logged: "unexpected EOF", network: true},
		{name: "garbage", fault: simulator.Garbage, reason: rentalapi.Decode, logged: "invalid character", network: true},
		{name: "no HTTP", answer: hijacked("SSH-2.0-OpenSSH_9.9\r\n"), reason: rentalapi.Connection, logged: "answer: not sound HTTP", network: true},
		{name: "token for a status", answer: hijacked("HTTP/1.1 " + mainToken + " x\r\n\r\n"), only: some, reason: rentalapi.Connection, logged: "answer: not sound HTTP"},
		{name: "token for a version", answer: hijacked("HTTP/9." + mainToken + " 200 OK\r\n\r\n"), only: some, reason: rentalapi.Connection, logged: "answer: not sound HTTP"},
		{name: "token for a header", answer: hijacked("HTTP/1.1 200 OK\r\nBearer " + mainToken + "\r\n\r\n"), only: some, reason: rentalapi.Connection, logged: "answer: not sound HTTP"},
		{name: "token for a length", answer: hijacked("HTTP/1.1 200 OK\r\nContent-Length: " + mainToken + "\r\n\r\n"), only: some, reason: rentalapi.Connection, logged: "answer: not sound HTTP"},
		{name: "token for a coding", answer: hijacked("HTTP/1.1 200 OK\r\nTransfer-Encoding: " + mainToken + "\r\n\r\n"), only: some, reason: rentalapi.Connection, logged: "answer: not sound HTTP"},
		{name: "token for a trailer", answer: hijacked("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\n" + mainToken + "\r\n\r\n"), only: some, reason: rentalapi.Connection, logged: "answer: not sound HTTP"},
		{name: "header of 20 MB", answer: hijacked("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 20<<20) + "\r\n\r\n{}"), only: some, huge: true, reason: rentalapi.Connection, logged: "exceeded"},

		{name: "HTML", answer: text("<!doctype html><title>Sign in</title>"), reason: rentalapi.Decode, logged: "invalid character", network: true},
		{name: "nothing", answer: text(""), reason: rentalapi.Decode, logged: "ends too early", network: true},
		{name: "white space", answer: text(" \n\t "), reason: rentalapi.Decode, logged: "ends too early"},
		{name: "half of JSON", answer: text(`{"data":[{"id":"a`), reason: rentalapi.Decode, logged: "ends too early", network: true},
		{name: "null", answer: text(`null`), reason: rentalapi.Decode, logged: "not an object", network: true},
		{name: "array", answer: text(`[]`), reason: rentalapi.Decode, logged: "not an object", network: true},
		{name: "text", answer: text(`"data"`), reason: rentalapi.Decode, logged: "not an object"},
		{name: "number", answer: text(`5`), reason: rentalapi.Decode, logged: "not an object"},
		{name: "empty object", answer: text(`{}`), reason: rentalapi.Decode, logged: "data: "},
		{name: "null data", answer: text(`{"data":null,"meta":null}`), reason: rentalapi.Decode, logged: "data: not an "},
		{name: "object for a list", answer: text(`{"data":{}}`), only: lists, reason: rentalapi.Decode, logged: "data: not an array"},
		{name: "list for an object", answer: text(`{"data":[{}]}`), only: objects, reason: rentalapi.Decode, logged: "data: not an object"},
		{name: "data twice", answer: text(`{"data":[],"data":[],"meta":{"total":0,"pages":0}}`), only: lists, reason: rentalapi.Decode, logged: "data: given twice"},
		{name: "two answers", answer: text(`{"data":[],"meta":{"total":0,"pages":0}} {"data":[]}`), only: lists, reason: rentalapi.Decode, logged: "more after its end"},
		{name: "200,000 levels", answer: text(deep), reason: rentalapi.Decode, logged: "not an object"},
		{name: "200,000 levels of data", answer: text(`{"data":` + deep), reason: rentalapi.Decode, logged: "exceeded max depth"},
		{name: "200,000 levels in an item", answer: text(`{"data":[{"id":` + deep), only: lists, reason: rentalapi.Decode, logged: "exceeded max depth"},
		{name: "200,000 levels of an unknown field", answer: text(`{"x":` + deep), reason: rentalapi.Decode, logged: "exceeded max depth"},
		{name: "wrong values in an object", answer: text(`{"data":{"overall":1,"id":[],"balance":"1"}}`), only: objects, reason: rentalapi.Decode, logged: "not a"},
		{name: "1e999 in an object", answer: text(`{"data":{"ongoing":1e999,"balance":{"usd":-1e999}}}`), only: objects, reason: rentalapi.Decode, logged: "not a"},
		{name: "year 0001 in an object", answer: text(`{"data":{"updated_at":"0001-01-01T00:00:00Z","created_at":"0001-01-01T00:00:00Z"}}`), only: objects, reason: rentalapi.Decode, logged: "not a time from 1970 on"},
		{name: "negative counts in an object", answer: text(`{"data":{"scheduled":-1,"balance":{"usd":-1e300}}}`), only: objects, reason: rentalapi.Decode, logged: "not a"},
		{name: "no id", answer: text(`{"data":{"name":"main"}}`), only: []string{"/account"}, reason: rentalapi.Decode, logged: "id: missing"},
		{name: "300 KB of text in an object", answer: text(`{"data":{"id":"acc","overall":"` + strings.Repeat("x", 300<<10) + `","name":"` + strings.Repeat("x", 300<<10) + `"}}`), only: objects, reason: rentalapi.Decode, logged: "307200 bytes, more than 2048"},

		{name: "endless text", fault: simulator.Endless, huge: true, reason: rentalapi.TooLarge, logged: "too large", network: true},
		{name: "endless white space", answer: endless(`{"data":[`, " "), only: some, huge: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "endless name", answer: endless(`{"`, "name"), only: some, huge: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "endless unknown field", answer: endless(`{"extra":[1`, ",1"), only: some, huge: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "endless unknown fields", answer: endless(`{"x":1`, `,"x":"`+strings.Repeat("x", 9<<10)+`"`), only: some, huge: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "endless list of nothing", answer: endless(`{"data":[null`, ",null"), only: lists, huge: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "endless list of large items", answer: endless(`{"data":[{}`, `,{"id":"`+strings.Repeat("x", 500<<10)+`"}`), only: some, huge: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "endless object", answer: endless(`{"data":{"x":1`, `,"x":1`), only: objects, huge: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "endless meta object", answer: endless(`{"data":[],"meta":{"x":1`, `,"x":1`), only: lists, huge: true, reason: rentalapi.TooLarge, logged: "too large"},
		{name: "gzip that nobody asked for", answer: bomb(), huge: true, reason: rentalapi.Decode, logged: "invalid character"},
		{name: "endless error", answer: func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			endless(`{"error":{"code":"`, "x")(w, r)
		}, huge: true, reason: rentalapi.Status, logged: "status 500"},
		{name: "200,000 items", answer: many(200_000), only: lists, huge: true, reason: rentalapi.TooLarge, logged: "too large"},

		{name: "few items of many samples", answer: text(dense(1_500, 800, 2_000)), only: []string{"/plans"}, huge: true, reason: rentalapi.TooLarge, logged: "samples"},
		{name: "few items of many short samples", answer: text(dense(1_500, 800, 4)), only: []string{"/plans"}, huge: true, reason: rentalapi.TooLarge, logged: "samples"},
		{name: "a location of many components", answer: text(components(100_000)), only: []string{"/status"}, huge: true, reason: rentalapi.TooLarge, logged: "samples"},

		{name: "redirect to another host", answer: reply(302, http.Header{"Location": {"http://evil.example/api/v1/plans"}}, ""), reason: rentalapi.Status, logged: "redirects are not followed", network: true},
		{name: "permanent redirect to another host", answer: reply(308, http.Header{"Location": {"//evil.example/"}}, ""), reason: rentalapi.Status, logged: "redirects are not followed", network: true},
		{name: "redirect to another path", answer: reply(301, http.Header{"Location": {"/api/v2/plans"}}, ""), reason: rentalapi.Status, logged: "redirects are not followed"},

		{name: "a billion pages", change: meta("pages", 1e9), only: paged, reason: rentalapi.Decode, logged: "meta.pages: 1000000000 pages"},
		{name: "a billion entries", change: meta("total", 1e9), only: paged, reason: rentalapi.TooLarge, logged: "meta.total: 1000000000 entries"},
		{name: "1e999 entries", change: meta("total", json.Number("1e999")), only: paged, reason: rentalapi.Decode, logged: "meta: "},
		{name: "total missing", change: meta("total", nil), only: paged, reason: rentalapi.Decode, logged: "meta.total: missing"},
		{name: "pages missing", change: meta("pages", nil), only: paged, reason: rentalapi.Decode, logged: "meta.pages: missing"},
		{name: "total in words", change: meta("total", "many"), only: paged, reason: rentalapi.Decode, logged: "meta: "},
		{name: "negative total", change: meta("total", -1), only: paged, reason: rentalapi.Decode, logged: "meta.total: negative"},
		{name: "negative pages", change: meta("pages", -1), only: paged, reason: rentalapi.Decode, logged: "meta.pages: "},
		{name: "another page", change: meta("page", 2), only: paged, reason: rentalapi.Decode, logged: "meta.page: 2"},
		{name: "no meta", change: func(good map[string]any) map[string]any { delete(good, "meta"); return good }, only: paged, reason: rentalapi.Decode, logged: "meta.total: missing"},
		{name: "meta that is a list", change: func(good map[string]any) map[string]any { good["meta"] = []int{1}; return good }, only: paged, reason: rentalapi.Decode, logged: "meta: "},
	}
}

func meta(key string, value any) func(map[string]any) map[string]any {
	return func(good map[string]any) map[string]any {
		good["meta"].(map[string]any)[key] = value
		return good
	}
}

// hijacked sends bytes without any HTTP around them.
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

// endless sends a beginning and then the same for ever.
func endless(begin, again string) http.HandlerFunc {
	piece := []byte(strings.Repeat(again, 1+(32<<10)/len(again)))
	return func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.WriteString(w, begin)
		for err == nil {
			_, err = w.Write(piece)
		}
	}
}

// bomb is an answer of 4 GiB that is small on the wire.
func bomb() http.HandlerFunc {
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

// many answers with n good items.
func many(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		format := `{"id":"item-%d","name":"a good item"}`
		if strings.HasSuffix(r.URL.Path, "/transactions") {
			format = `{"id":%d,"type":"topup","amount":{"usd":1}}`
		}
		_, _ = io.WriteString(w, `{"meta":{"total":200000,"pages":2000},"data":[`)
		for i := range n {
			if i > 0 {
				_, _ = io.WriteString(w, ",")
			}
			if _, err := fmt.Fprintf(w, format, i); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `]}`)
	}
}

// dense is a list of plans with ids of a length, each offered at many locations.
func dense(plans, locations, id int) string {
	var places, all []string
	for i := range locations {
		places = append(places, fmt.Sprintf(`"loc-%04d"`, i))
	}
	for i := range plans {
		all = append(all, fmt.Sprintf(`{"id":"%0*d","availability":{"locations":[%s]}}`, id, i, strings.Join(places, ",")))
	}
	return `{"data":[` + strings.Join(all, ",") + `]}`
}

// components is a status with one location that has a long name.
func components(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"c%d":"up"`, i))
	}
	return `{"data":{"overall":"ok","locations":{"` + strings.Repeat("x", 2_000) + `":{"components":{` + strings.Join(all, ",") + `}}}}}`
}

// TestBadAnswers has one endpoint misbehave from the start on while all others
// are well, and then recover.
func TestBadAnswers(t *testing.T) {
	for i, m := range miseries() {
		for _, victim := range m.victims(i) {
			t.Run(m.name+victim.Endpoint, func(t *testing.T) {
				inBubble(t, func(t *testing.T, r *rig) { befallOne(t, r, m, victim) })
			})
		}
	}
}

// victims are the endpoints that a misery befalls one by one: with the race
// detector some of them, others for each misery.
func (m misery) victims(i int) []Resource {
	possible := slices.DeleteFunc(Resources(), func(r Resource) bool {
		return len(m.only) > 0 && !slices.Contains(m.only, r.Endpoint)
	})
	switch {
	case !racing || len(possible) == 1:
		return possible
	case m.huge:
		return nil // a matter of memory, and very slow
	default:
		return []Resource{possible[i%len(possible)], possible[(i+3)%len(possible)]}
	}
}

func befallOne(t *testing.T, r *rig, m misery, victim Resource) {
	evil := r.lure(t)
	c := every(time.Minute, 10*time.Minute)
	want := r.once(c)
	hidden := []string{}
	for _, d := range victim.Metrics {
		hidden = append(hidden, d.Name)
	}
	if victim.Name == "account" {
		hidden = append(hidden, accountFunded.Name)
	}
	heap := r.watchHeap()
	r.fresh()
	before := len(r.provider.requests(victim.Endpoint))
	recover := r.befall(m, victim.Endpoint)
	r.run(c)
	time.Sleep(150 * time.Second) // each collector has fetched three times
	r.settle()

	same(t, "data", r.data(), without(want, hidden...))
	asked := len(r.provider.requests(victim.Endpoint)) - before
	if asked < 3 {
		t.Errorf("%d requests for %s, want at least 3", asked, victim.Endpoint)
	}
	same(t, "collector_success", r.samples(collectorSuccess.Name), successes(victim.Name))
	same(t, "invalid_items", r.samples(collectorInvalid.Name), invalids(victim.Name, -1))
	same(t, "api_errors_total", r.faults(), map[string]int{victim.Endpoint + " " + string(m.reason): asked})
	sameLog(t, r.log.take(t), fails(victim, victim.Endpoint+": ", m.logged))

	recover()
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	same(t, "data after recovery", r.data(), want)
	same(t, "collector_success after recovery", r.samples(collectorSuccess.Name), successes())
	sameLog(t, r.log.take(t), logLine{"level=info", named(victim), `msg="collector works again"`})
	heap(t)
	evil(t)
}

// TestBadAnswersEverywhere has every endpoint misbehave from the start on, and then recover.
func TestBadAnswersEverywhere(t *testing.T) {
	down := misery{name: "API down", reason: rentalapi.Connection, logged: "connection refused", network: true}
	for _, m := range append(miseries(), down) {
		if !m.network || racing && m.huge {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				evil := r.lure(t)
				c := every(time.Minute, 10*time.Minute)
				want := r.once(c)
				heap := r.watchHeap()
				r.fresh()
				var recover func()
				if m.name == down.name {
					r.network.cut(true)
					recover = func() { r.network.cut(false) }
				} else {
					recover = r.befall(m, "")
				}
				r.run(c)
				time.Sleep(150 * time.Second)
				r.settle()

				var failed []string
				var lines []logLine
				reasons := map[string]bool{}
				for _, res := range Resources() {
					failed = append(failed, res.Name)
					lines = append(lines, fails(res, res.Endpoint+": ", m.logged))
					reasons[res.Endpoint+" "+string(m.reason)] = true
				}
				same(t, "data", r.data(), "")
				same(t, "collector_success", r.samples(collectorSuccess.Name), successes(failed...))
				same(t, "reasons", slices.Sorted(maps.Keys(r.faults())), slices.Sorted(maps.Keys(reasons)))
				sameLog(t, r.log.take(t), lines...)

				recover()
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				same(t, "data after recovery", r.data(), want)
				lines = nil
				for _, res := range Resources() {
					lines = append(lines, logLine{"level=info", named(res), `msg="collector works again"`})
				}
				sameLog(t, r.log.take(t), lines...)
				heap(t)
				evil(t)
			})
		})
	}
}

// befall makes answers for a path bad, or all where it is empty.
func (r *rig) befall(m misery, path string) (recover func()) {
	switch {
	case m.answer != nil:
		return r.provider.answer(path, m.answer)
	case m.change != nil:
		return r.provider.answer(path, func(w http.ResponseWriter, _ *http.Request) {
			changed := m.change(decoded(r.t, r.good(path)))
			_, _ = w.Write(encoded(r.t, changed))
		})
	default:
		return r.sim.Inject(simulator.Fault{Path: path, Kind: m.fault})
	}
}

// lure serves another host, and returns a check that nobody went there.
func (r *rig) lure(t *testing.T) (check func(*testing.T)) {
	var visits atomic.Int64
	r.network.serve(t, "evil.example:80", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	return func(t *testing.T) {
		t.Helper()
		same(t, "visits of another host", visits.Load(), 0)
		want := []string{apiHost}
		if got := r.network.contacted(); !slices.Equal(got, want) {
			t.Errorf("hosts contacted:\n got %v\nwant %v", got, want)
		}
	}
}

// watchHeap looks at the size of the heap at every piece that arrives, and
// returns a check of the largest.
func (r *rig) watchHeap() (check func(*testing.T)) {
	runtime.GC()
	var peak atomic.Uint64
	look := func() {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(s)
		for n := s[0].Value.Uint64(); ; {
			old := peak.Load()
			if n <= old || peak.CompareAndSwap(old, n) {
				return
			}
		}
	}
	r.network.mu.Lock()
	r.network.wrap = func(c net.Conn) net.Conn { return &watched{Conn: c, look: look} }
	r.network.mu.Unlock()
	return func(t *testing.T) {
		t.Helper()
		look()
		if got := peak.Load(); got > mostHeap {
			t.Errorf("heap: %d MiB, want at most %d", got>>20, mostHeap>>20)
		}
	}
}

type watched struct {
	net.Conn
	look func()
	read int
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if w.read += n; w.read > 256<<10 || err != nil {
		w.read = 0
		w.look()
	}
	return n, err
}

// successes are the samples of collector_success where the named collectors fail.
func successes(failing ...string) []string {
	var lines []string
	for _, r := range Resources() {
		value := 1
		if slices.Contains(failing, r.Name) {
			value = 0
		}
		lines = append(lines, fmt.Sprintf("{account=%q,collector=%q} %d", accountLabel(r), r.Name, value))
	}
	slices.Sort(lines)
	return lines
}

// invalids are the samples of invalid_items where one collector has left out n
// items, or has had no answer where n is negative.
func invalids(name string, n int) []string {
	var lines []string
	for _, r := range Resources() {
		switch {
		case r.Name != name:
			lines = append(lines, fmt.Sprintf("{account=%q,collector=%q} 0", accountLabel(r), r.Name))
		case n >= 0:
			lines = append(lines, fmt.Sprintf("{account=%q,collector=%q} %d", accountLabel(r), r.Name, n))
		}
	}
	slices.Sort(lines)
	return lines
}

func accountLabel(r Resource) string {
	if r.Account {
		return "main"
	}
	return ""
}

// faults are the errors of the API that were counted.
func (r *rig) faults() map[string]int {
	r.t.Helper()
	counted := map[string]int{}
	for _, line := range r.samples("server_rental_exporter_api_errors_total") {
		var endpoint, reason string
		var n int
		line = strings.NewReplacer(`{endpoint="`, "", `",reason="`, " ", `"}`, "").Replace(line)
		if _, err := fmt.Sscan(line, &endpoint, &reason, &n); err != nil {
			r.t.Fatalf("sample %q: %v", line, err)
		}
		if n > 0 {
			counted[endpoint+" "+reason] = n
		}
	}
	return counted
}

// logLine is what a line must contain.
type logLine []string

func named(r Resource) string {
	if r.Account {
		return "collector=" + r.Name + " account=main "
	}
	return "collector=" + r.Name + " msg="
}

func fails(r Resource, parts ...string) logLine {
	return append(logLine{"level=error", named(r), `msg="collector fails"`}, parts...)
}

// sameLog wants exactly these lines, in any order.
func sameLog(t *testing.T, got []string, want ...logLine) {
	t.Helper()
	matches := func(line string, w logLine) bool {
		return !slices.ContainsFunc(w, func(part string) bool { return !strings.Contains(line, part) })
	}
	left := slices.Clone(got)
	var missing []logLine
	for _, w := range want {
		i := slices.IndexFunc(left, func(line string) bool { return matches(line, w) })
		if i < 0 {
			missing = append(missing, w)
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	if len(left)+len(missing) > 0 {
		t.Errorf("log:\nunexpected %.2000q\n   missing %q", left, missing)
	}
}

func decoded(t testing.TB, body string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%.100s: %v", body, err)
	}
	return v
}

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
