package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"server_rental_exporter/internal/simulator"
)

// The very first scrape after readiness shows every metric there is, and none
// that is not documented.
func TestEveryMetricIsShown(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.Inject(simulator.Fault{ // one account waits, for the metric that shows it
		Path: "/account", Token: labToken, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"60"}},
	})
	p := ready(t, "--config.file="+a.configFile(t, t.TempDir(), map[string]string{"main": mainToken, "lab": labToken}, ""))
	page := p.scrape()

	want := map[string]family{}
	for _, d := range definitions() {
		want[d.Name] = family{Type: string(d.Type), Help: d.Help, Labels: slices.Sorted(slices.Values(d.Labels))}
	}
	got := maps.Clone(page.families)
	maps.DeleteFunc(got, func(name string, _ family) bool { return !strings.HasPrefix(name, "server_rental_") })
	for name, w := range want {
		if g, ok := got[name]; !ok {
			t.Errorf("%s: not shown", name)
		} else if fmt.Sprint(g) != fmt.Sprint(w) {
			t.Errorf("%s:\ngot  %v\nwant %v", name, g, w)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: shown and not defined", name)
		}
	}
	for _, prefix := range []string{"go_", "process_", "promhttp_"} {
		if len(page.with(prefix)) == 0 {
			t.Errorf("no metric begins with %s", prefix)
		}
	}
	if len(page.stamped) > 0 {
		t.Errorf("series with a timestamp: %v", page.stamped)
	}
}

func TestDemo(t *testing.T) {
	t.Parallel()
	p := ready(t, "--demo")
	if got, want := p.scrape().successes(), every(1, "main", "lab"); !reflect.DeepEqual(got, want) {
		t.Errorf("collectors:\ngot  %v\nwant %v", got, want)
	}
	if page := p.get("/").Body; !strings.Contains(page, "data from a simulated provider (--demo) &middot; ready") {
		t.Errorf("the landing page does not say that this is a demo:\n%s", page)
	}
	if !strings.Contains(p.log.String(), `msg="this is a demo: nothing here is real"`) {
		t.Errorf("the log does not say that this is a demo:\n%s", p.log)
	}
}

func TestScrapeAsksNothing(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	p := ready(t, "--config.file="+a.configFile(t, t.TempDir(), map[string]string{"main": mainToken, "lab": labToken}, ""))
	eventually(t, "all requests are answered", a.idle)
	before := a.asked()
	want := p.scrape().data()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 10 {
				got, err := p.send("GET", p.url+"/metrics")
				if err != nil || got.Status != 200 {
					t.Errorf("scrape: status %d, error %v", got.Status, err)
				}
			}
		})
	}
	wg.Wait()
	if got := p.scrape().data(); !reflect.DeepEqual(got, want) {
		t.Errorf("the data changed without a request:\ngot  %v\nwant %v", got, want)
	}
	if got := a.asked(); !reflect.DeepEqual(got, before) {
		t.Errorf("requests by token after 100 scrapes: got %v, want %v as before", got, before)
	}
}

func TestTwoAccounts(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.Change(func(w *simulator.World) { w.Accounts[labToken].Servers = nil })
	p := ready(t, "--config.file="+a.configFile(t, t.TempDir(), map[string]string{"main": mainToken, "lab": labToken}, ""))
	page := p.scrape()
	if got, want := page.successes(), every(1, "main", "lab"); !reflect.DeepEqual(got, want) {
		t.Errorf("collectors:\ngot  %v\nwant %v", got, want)
	}
	got := page.with("server_rental_servers{")
	want := map[string]float64{
		`server_rental_servers{account="lab",status="active"}`:     0,
		`server_rental_servers{account="lab",status="suspended"}`:  0,
		`server_rental_servers{account="main",status="active"}`:    4,
		`server_rental_servers{account="main",status="suspended"}`: 1,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("servers:\ngot  %v\nwant %v", got, want)
	}
	if got := page.with(`server_rental_account_info{account="lab",`); len(got) != 1 {
		t.Errorf("account lab: got %v, want one series", got)
	}
	for _, r := range a.Requests() {
		got := []string{r.Header.Get("User-Agent"), r.Header.Get("Accept")}
		if want := []string{"server_rental_exporter/1.2.3", "application/json"}; !slices.Equal(got, want) {
			t.Errorf("%s: got headers %q, want %q", r.Path, got, want)
		}
	}
}

func TestAPIDownAtStart(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + l.Addr().String() + "/api/v1"
	_ = l.Close()

	token := write(t, filepath.Join(t.TempDir(), "token"), mainToken)
	p := start(t, "--api.base-url="+base, "--api.token-file="+token)
	if got := p.get("/-/healthy"); got.Status != 200 {
		t.Errorf("healthy: got status %d, want 200", got.Status)
	}
	p.becomesReady()
	page := p.scrape()
	if got, want := page.successes(), every(0, "default"); !reflect.DeepEqual(got, want) {
		t.Errorf("collectors:\ngot  %v\nwant %v", got, want)
	}
	if got := page.data(); len(got) > 0 {
		t.Errorf("data without an API: %v", got)
	}
	if got, want := page.values[`server_rental_exporter_api_requests_total{code="error",endpoint="/plans"}`], 1.0; got != want {
		t.Errorf("requests to /plans without an answer: got %v, want %v", got, want)
	}
}

func TestAPIHangs(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	remove := a.Inject(simulator.Fault{Kind: simulator.Hang})
	token := write(t, filepath.Join(t.TempDir(), "token"), mainToken)
	p := start(t, "--api.base-url="+a.base, "--api.token-file="+token)
	pending := func() int {
		n := 0
		for _, r := range a.Requests() {
			if r.Status == 0 {
				n++
			}
		}
		return n
	}
	want := len(every(0, "default"))
	eventually(t, "every collector waits for the API", func() bool { return pending() == want })

	page := p.scrape()
	landing, health, readiness := p.get("/"), p.get("/-/healthy"), p.get("/-/ready")
	if got := pending(); got != want {
		t.Fatalf("requests under way after the scrape: got %d, want %d as before", got, want)
	}
	if got := []int{landing.Status, health.Status, readiness.Status}; !slices.Equal(got, []int{200, 200, 503}) {
		t.Errorf("landing, health, readiness: got %v, want [200 200 503]", got)
	}
	if got := page.successes(); len(got) > 0 {
		t.Errorf("collectors that were not tried have a state: %v", got)
	}
	if got := len(page.with("server_rental_exporter_collector_interval_seconds{")); got != want {
		t.Errorf("intervals: got %d, want %d", got, want)
	}

	remove()
	p.stop() // does not wait for the API either
	if got := p.wait(); got != 0 {
		t.Errorf("got exit status %d, want 0; log:\n%s", got, p.log)
	}
	if strings.Contains(p.log.String(), "level=error") {
		t.Errorf("an end is no failure; log:\n%s", p.log)
	}
}

func TestTelemetryPath(t *testing.T) {
	t.Parallel()
	p := ready(t, "--demo", "--web.telemetry-path=/probe/rental")
	var got []int
	for _, path := range []string{"/probe/rental", "/metrics"} {
		got = append(got, p.get(path).Status)
	}
	if want := []int{200, 404}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if page := p.get("/").Body; !strings.Contains(page, `<a href="/probe/rental">Metrics</a>`) {
		t.Errorf("the landing page links elsewhere:\n%s", page)
	}
}

// Nothing is open that was not asked for.
func TestClosedByDefault(t *testing.T) {
	t.Parallel()
	p := ready(t, "--demo")
	got := map[string]int{"discovery": p.get("/sd/servers").Status}
	reload, err := p.send("POST", p.url+"/-/reload")
	if err != nil {
		t.Fatal(err)
	}
	got["reload"] = reload.Status
	if want := map[string]int{"discovery": 403, "reload": 403}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestServiceDiscovery(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.Change(func(w *simulator.World) { // as revision 1.0 of the API sends it
		w.Accounts[mainToken].Servers[0]["ipv4"] = []string{"192.0.2.7", "192.0.2.8"}
	})
	p := ready(t, "--web.enable-service-discovery",
		"--config.file="+a.configFile(t, t.TempDir(), map[string]string{"main": mainToken, "lab": labToken}, ""))

	type target struct {
		Targets []string
		Labels  map[string]string
	}
	list := func(query string) (got []target) {
		answer := p.get("/sd/servers" + query)
		if err := json.Unmarshal([]byte(answer.Body), &got); err != nil || answer.Status != 200 {
			t.Fatalf("status %d, error %v:\n%s", answer.Status, err, answer.Body)
		}
		return got
	}
	var want []target
	a.Read(func(w *simulator.World) {
		for _, s := range w.Accounts[mainToken].Servers {
			if s["status"] != "active" {
				continue
			}
			address := fmt.Sprint(s["ipv4"])
			if list, is := s["ipv4"].([]string); is {
				address = list[0]
			}
			want = append(want, target{[]string{address + ":9100"}, map[string]string{
				"__meta_server_rental_account": "main", "__meta_server_rental_server": fmt.Sprint(s["id"]),
				"__meta_server_rental_plan": fmt.Sprint(s["plan"]), "__meta_server_rental_location": fmt.Sprint(s["location"]),
				"__meta_server_rental_os": fmt.Sprint(s["os"]), "__meta_server_rental_hostname": fmt.Sprint(s["hostname"]),
				"__meta_server_rental_status": "active",
			}})
		}
	})
	slices.SortFunc(want, func(a, b target) int {
		return strings.Compare(a.Labels["__meta_server_rental_server"], b.Labels["__meta_server_rental_server"])
	})
	if got := list("?account=main&port=9100"); !reflect.DeepEqual(got, want) {
		t.Errorf("account main:\ngot  %v\nwant %v", got, want)
	}
	if got, want := len(list("")), 8; got != want {
		t.Errorf("both accounts: got %d targets, want %d", got, want)
	}
}

func TestListenAddresses(t *testing.T) {
	t.Parallel()
	p := start(t, "--demo", "--web.listen-address=127.0.0.1:0")
	second := launch(t, nil, "--demo", "--web.listen-address=127.0.0.1:0", "--web.listen-address=127.0.0.1:0")
	for _, address := range append(second.addresses(2), strings.TrimPrefix(p.url, "http://")) {
		got, err := p.send("GET", "http://"+address+"/-/healthy")
		if err != nil || got.Status != 200 {
			t.Errorf("%s: got status %d, error %v, want 200", address, got.Status, err)
		}
	}
}

func TestIPv6(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("this machine has no IPv6")
	}
	_ = l.Close()
	p := start(t, "--demo", "--web.listen-address=[::1]:0")
	if !strings.HasPrefix(p.url, "http://[::1]:") || p.get("/-/healthy").Status != 200 {
		t.Errorf("not served at %s", p.url)
	}
}

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	p := finish(t, nil, "--demo", "--log.level=error", "--web.listen-address="+l.Addr().String())
	if p.code != 1 {
		t.Errorf("got exit status %d, want 1", p.code)
	}
	want := fmt.Sprintf(`msg=failed err="listen tcp %s: bind: address already in use"`, l.Addr())
	if got := p.log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) {
		t.Errorf("log:\ngot  %s\nwant one line with %s", got, want)
	}
}

func TestJSONLog(t *testing.T) {
	t.Parallel()
	p := ready(t, "--demo", "--log.format=json", "--log.level=debug")
	p.stop()
	p.wait()
	for line := range strings.Lines(p.log.String()) {
		var record struct{ TS, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.TS == "" || record.Level == "" || record.Msg == "" {
			t.Errorf("not a record: %v: %s", err, line)
		}
	}
}

// slowly asks for the metrics over a connection that takes in little, so that
// the exporter cannot send all of it before more is read.
func slowly(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	tcp := conn.(*net.TCPConn)
	if err := tcp.SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /metrics HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return tcp
}

func TestRunningScrapeFinishes(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	want := 0
	a.Change(func(w *simulator.World) { // more bytes than the sockets between can hold
		example := w.Plans[0]
		w.Plans = nil
		for i := range 50 {
			availability := maps.Clone(example["availability"].(simulator.Object))
			var places []string
			for j := range 60 {
				places = append(places, fmt.Sprint("place-", j))
			}
			availability["locations"] = places
			plan := maps.Clone(example)
			plan["id"], plan["availability"] = fmt.Sprint(strings.Repeat("long-", 400), i), availability
			w.Plans = append(w.Plans, plan)
			want += len(places)
		}
	})
	p := ready(t, "--config.file="+a.configFile(t, t.TempDir(), nil, ""))

	address := strings.TrimPrefix(p.url, "http://")
	conn := slowly(t, address)
	head := make([]byte, 512)
	if _, err := io.ReadFull(conn, head); err != nil {
		t.Fatal(err)
	}
	p.stop()
	eventually(t, "new connections are refused", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	select {
	case <-p.ended:
		t.Fatalf("ended before the scrape had finished; log:\n%s", p.log)
	default:
	}

	if err := conn.SetReadBuffer(1 << 20); err != nil { // no longer slow
		t.Fatal(err)
	}
	rest, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("the scrape was cut off after %d bytes: %v", len(rest), err)
	}
	page := string(head) + string(rest)
	if got := strings.Count(page, "\nserver_rental_plan_offered{"); got != want || !strings.HasSuffix(page, "\n") {
		t.Errorf("got %d of %d samples, ...%q", got, want, page[len(page)-100:])
	}
	if got := p.wait(); got != 0 {
		t.Errorf("got exit status %d, want 0; log:\n%s", got, p.log)
	}
}
