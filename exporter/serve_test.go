package exporter

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-kit/log"
	promconfig "github.com/prometheus/common/config"

	"server_rental_exporter/collector"
	"server_rental_exporter/config"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/runner"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/web"
)

func TestDemo(t *testing.T) {
	t.Parallel()
	p := startReady(t, "--demo")
	page := p.scrape()
	simtest.AssertEqual(t, "collectors", page.CollectorSuccess(), success(1, demoAccounts()...))
	simtest.AssertEqual(t, "watches", page.WithPrefix("server_rental_watch_plans{"), map[string]float64{
		`server_rental_watch_plans{watch="cheap-in-europe"}`: 3, `server_rental_watch_plans{watch="gpu-in-frankfurt"}`: 2, `server_rental_watch_plans{watch="midrange"}`: 10,
	})
	if page := p.get("/").Body; !strings.Contains(page, "data from a simulated provider (--demo) &middot; ready") {
		t.Errorf("the landing page does not say that this is a demo:\n%s", page)
	}
	simtest.AssertEqual(t, "status of discovery and reload", []int{p.get("/sd/servers").Status, p.postReload().Status}, []int{403, 403})
	if want := `msg="demo: all data is simulated" page=http://127.0.0.1:`; !strings.Contains(p.log.String(), want) {
		t.Errorf("the log lacks %s:\n%s", want, p.log)
	}
}

// TestDemoHits asserts that a watch of the demo hits every few minutes.
func TestDemoHits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := simtest.StartInMemory(t, simulator.Options{})
		go a.Run(t.Context())
		o, err := parse([]string{"--demo"}, t.Output())
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := o.load(env())
		if err != nil {
			t.Fatal(err)
		}
		(&demo{base: a.URL}).applyTo(cfg)
		cfg.Accounts = nil
		transport, err := rentalapi.NewTransport(promconfig.HTTPClientConfig{}, a.Dial)
		if err != nil {
			t.Fatal(err)
		}
		r := runner.New(runner.Options{Logger: log.NewNopLogger(), UserAgent: "test", API: rentalapi.Settings{
			BaseURL: a.URL, Transport: transport, Timeout: 10 * time.Second, Limits: rentalapi.Limits{Public: 30},
		}})
		r.ApplyConfig(t.Context(), runnerConfig(cfg))
		t.Cleanup(r.Wait) // the context of the test has ended by then
		time.Sleep(time.Hour)
		r.Publisher.Publish()
		hits := map[string]float64{}
		h := NewHandler(r, log.NewNopLogger(), web.Options{API: func() string { return "" }, MetricsPath: "/metrics"})
		for series, n := range simtest.ServeGet(h, "/metrics").Exposition(t).WithPrefix("server_rental_watch_hits_total{") {
			hits[simtest.Label(series, "watch")] += n
		}
		if n := hits["midrange"]; n < 8 || n > 20 || len(hits) != 3 {
			t.Errorf("got hits within an hour %v", hits)
		}
	})
}

// TestScrapesCauseNoRequests counts the requests, which have the headers that are
// promised, while many scrape.
func TestScrapesCauseNoRequests(t *testing.T) {
	t.Parallel()
	a, p := startProvider(t)
	requests, page := len(a.Requests()), p.scrape()
	simtest.AssertEqual(t, "collectors", page.CollectorSuccess(), success(1, "main", "lab"))
	for _, r := range a.Requests() {
		simtest.AssertEqual(t, r.Path, []string{r.Header.Get("User-Agent"), r.Header.Get("Accept")},
			[]string{"server_rental_exporter/1.2.3", "application/json"})
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 5 {
				r, err := simtest.Do(http.DefaultClient, http.MethodGet, p.url+"/metrics")
				if err != nil || r.Status != http.StatusOK {
					t.Errorf("scrape: status %d, error %v", r.Status, err)
				}
			}
		})
	}
	wg.Wait()
	simtest.AssertEqual(t, "data", p.scrape().Data(), page.Data())
	a.AssertNoRequests(requests)
}

func TestAPIHangs(t *testing.T) {
	t.Parallel()
	a := simtest.Start(t, simulator.Options{})
	a.Timeout = "5m"
	remove := a.Inject(simtest.Fault{Kind: simtest.Hang})
	p := start(t, Environment{}, "--config.file="+configFile(t, a))
	pending := func() int {
		return len(slices.DeleteFunc(a.Requests(), func(r simtest.Request) bool { return r.Status != 0 }))
	}
	all := len(success(0, "main", "lab"))
	simtest.Eventually(t, "every collector waits for the API", func() bool { return pending() == all })

	page := p.scrape()
	simtest.AssertEqual(t, "status of landing page, health and readiness",
		[]int{p.get("/").Status, p.get("/-/healthy").Status, p.get("/-/ready").Status}, []int{200, 200, 503})
	simtest.AssertEqual(t, "requests under way", pending(), all)
	simtest.AssertEqual(t, "collectors", page.CollectorSuccess(), map[string]float64{})
	simtest.AssertEqual(t, "number of intervals", len(page.WithPrefix("server_rental_exporter_collector_interval_seconds{")), all)

	remove()
	simtest.AssertEqual(t, "exit status", p.terminate(), 0) // does not wait for the API either
	if strings.Contains(p.log.String(), "level=error") {
		t.Errorf("a shutdown is no error:\n%s", p.log)
	}
}

func TestTelemetryPath(t *testing.T) {
	t.Parallel()
	p := start(t, Environment{}, "--demo", "--web.telemetry-path=/probe/rental")
	simtest.AssertEqual(t, "status", []int{p.get("/probe/rental").Status, p.get("/metrics").Status}, []int{200, 404})
	if page := p.get("/").Body; !strings.Contains(page, `<a href="./probe/rental">Metrics</a>`) {
		t.Errorf("the landing page lacks the link:\n%s", page)
	}
}

func TestOverview(t *testing.T) {
	t.Parallel()
	for flag, shown := range map[string]bool{"--web.overview": true, "--no-web.overview": false} {
		page := startReady(t, "--demo", flag).get("/").Body
		simtest.AssertNoSecrets(t, "landing page", page)
		for _, text := range []string{"Needs attention", `<th scope="row">cheap-in-europe</th>`, "EPYC 7443P", "Frankfurt", "node-5.main.example", "btc (Bitcoin)"} {
			if strings.Contains(page, text) != shown {
				t.Errorf("%s: the landing page contains %q: %t, want %t", flag, text, !shown, shown)
			}
		}
		if !strings.Contains(page, `transactions</th><td class="wrap">main</td>`) {
			t.Errorf("%s: the landing page lacks a collector", flag)
		}
	}
}

func TestServiceDiscovery(t *testing.T) {
	t.Parallel()
	a, p := startProvider(t, "--web.enable-service-discovery")
	var want []string
	a.Read(func(w *simulator.World) {
		for _, s := range w.Accounts[simtest.MainToken].Servers {
			if s["status"] == "active" {
				want = append(want, simulator.Text(s, "id")+" "+simulator.Text(s, "ipv4")+":9100")
			}
		}
	})
	r := p.get("/sd/servers?account=main&port=9100")
	var targets []struct {
		Targets []string
		Labels  map[string]string
	}
	if err := json.Unmarshal([]byte(r.Body), &targets); err != nil || r.Status != http.StatusOK {
		t.Fatalf("status %d, error %v:\n%s", r.Status, err, r.Body)
	}
	var got []string
	for _, target := range targets {
		got = append(got, target.Labels["__meta_server_rental_server"]+" "+target.Targets[0])
	}
	slices.Sort(want)
	simtest.AssertEqual(t, "targets of account main", got, want)
	simtest.AssertEqual(t, "targets of both accounts", strings.Count(p.get("/sd/servers").Body, `"targets"`), 8)
}

func TestListenAddresses(t *testing.T) {
	t.Parallel()
	needIPv6(t)
	p := launch(t, Environment{}, "--demo", "--web.listen-address=127.0.0.1:0", "--web.listen-address=[::1]:0")
	hosts := map[string]int{}
	for _, address := range p.addresses(2) {
		host, _, _ := net.SplitHostPort(address)
		hosts[host] = simtest.Get(t, "http://"+address+"/-/healthy").Status
	}
	simtest.AssertEqual(t, "status by host", hosts, map[string]int{"127.0.0.1": 200, "::1": 200})
}

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	p := finish(t, Environment{}, "--demo", "--log.level=error", "--web.listen-address="+l.Addr().String())
	want := fmt.Sprintf(` msg="exporter stopped" err="listen tcp %s: bind: address already in use"`+"\n", l.Addr())
	if p.code != 1 || !strings.HasSuffix(p.log.String(), want) || strings.Count(p.log.String(), "\n") != 1 {
		t.Errorf("got status %d, log:\n%s\nwant 1 and one line with %s", p.code, p.log, want)
	}
}

func TestJSONLog(t *testing.T) {
	t.Parallel()
	p := startReady(t, "--demo", "--log.format=json", "--log.level=debug")
	simtest.AssertEqual(t, "exit status", p.terminate(), 0)
	var messages []string
	for line := range strings.Lines(p.log.String()) {
		var record struct{ TS, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.TS == "" || record.Level == "" || record.Msg == "" {
			t.Errorf("not a record: %v: %s", err, line)
		}
		messages = append(messages, record.Msg)
	}
	simtest.AssertEqual(t, "first and last message", []string{messages[0], messages[len(messages)-1]},
		[]string{"starting server_rental_exporter", "shutting down"})
}

// longPage returns an API with more metrics than the sockets between hold, and how many
// series of server_info that gives.
func longPage(t *testing.T) (a *simtest.API, series int) {
	t.Helper()
	a = simtest.Start(t, simulator.Options{})
	servers := simulator.Servers(2000, time.Now())
	for i, s := range servers {
		s["id"] = fmt.Sprint(strings.Repeat("long-", 200), i)
	}
	a.Change(func(w *simulator.World) { w.Accounts[simtest.MainToken].Servers = servers })
	return a, len(servers)
}

// startScrape requests the metrics over a connection that takes in little, so that
// the exporter cannot send all of it before more is read. It returns the first bytes.
func startScrape(t *testing.T, p *program) (conn *net.TCPConn, head string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	conn = c.(*net.TCPConn)
	if err := conn.SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /metrics HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 512)
	if _, err := io.ReadFull(conn, first); err != nil {
		t.Fatal(err)
	}
	return conn, string(first)
}

func TestShutdownCompletesScrapes(t *testing.T) {
	t.Parallel()
	a, want := longPage(t)
	// At this address no other server can follow.
	p := startReady(t, "--web.listen-address="+simtest.FreeAddress(t), "--config.file="+a.ConfigFile(t.TempDir(), map[string]string{"main": simtest.MainToken}, ""))
	conn, head := startScrape(t, p)
	p.stop()
	simtest.Eventually(t, "new connections are refused", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	select {
	case <-p.ended:
		t.Fatal("ended before the scrape was complete")
	default:
	}
	if err := conn.SetReadBuffer(1 << 20); err != nil { // no longer slow
		t.Fatal(err)
	}
	rest, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("the scrape was cut off after %d bytes: %v", len(rest), err)
	}
	page := head + string(rest)
	if got := strings.Count(page, "\nserver_rental_server_info{"); got != want || !strings.HasSuffix(page, "\n") {
		t.Errorf("got %d of %d samples, ...%q", got, want, page[len(page)-100:])
	}
	simtest.AssertEqual(t, "exit status", p.terminate(), 0)
}

// TestShutdownIsBounded has a client that never reads to the end.
func TestShutdownIsBounded(t *testing.T) {
	t.Parallel()
	a, _ := longPage(t)
	p := start(t, Environment{Timeouts: Timeouts{Drain: 50 * time.Millisecond}}, "--config.file="+a.ConfigFile(t.TempDir(), map[string]string{"main": simtest.MainToken}, ""))
	p.waitReady()
	startScrape(t, p)
	simtest.AssertEqual(t, "exit status", p.terminate(), 1)
	if want := `msg="exporter stopped" err="shutdown: context deadline exceeded"`; !strings.Contains(p.log.String(), want) {
		t.Errorf("the log lacks %s:\n%s", want, p.log)
	}
}

// TestSlowRequestIsCutOff has a client that never sends its header.
func TestSlowRequestIsCutOff(t *testing.T) {
	t.Parallel()
	p := start(t, Environment{Timeouts: Timeouts{ReadHeader: 50 * time.Millisecond}}, "--demo")
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: x\r\n"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(conn)
	if err != nil || strings.Contains(string(rest), " 200 ") {
		t.Errorf("got %q, error %v, want the end of the connection", rest, err)
	}
}

func TestServerLimits(t *testing.T) {
	e := &exporter{logger: log.NewNopLogger()}
	s := e.newServer(nil)
	simtest.AssertEqual(t, "limits", []any{s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout, s.MaxHeaderBytes},
		[]any{10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 16 << 10})
}

// TestWithoutExporterMetrics leaves out the metrics of the process only.
func TestWithoutExporterMetrics(t *testing.T) {
	t.Parallel()
	page := startReady(t, "--demo", "--web.disable-exporter-metrics").scrape()
	for name := range page.Families {
		if !strings.HasPrefix(name, "server_rental_") {
			t.Errorf("still exposed: %s", name)
		}
	}
	if len(page.Families) < 90 {
		t.Errorf("got %d families", len(page.Families))
	}
}

// TestDisableDefaults leaves what is enabled by a flag or in the file.
func TestDisableDefaults(t *testing.T) {
	t.Parallel()
	a, dir := simtest.Start(t, simulator.Options{}), t.TempDir()
	file := a.ConfigFile(dir, simtest.Tokens(), "collectors: {status: {enabled: true}, os: {interval: 2h}}\n")
	page := startReady(t, "--config.file="+file, "--collector.disable-defaults", "--collector.plans").scrape()
	simtest.AssertEqual(t, "collectors", page.CollectorSuccess(), map[string]float64{"plans": 1, "status": 1})
}

// TestShard exports the accounts of a shard. The public data is in the other one.
func TestShard(t *testing.T) {
	t.Parallel()
	a, dir := simtest.Start(t, simulator.Options{}), t.TempDir()
	file, exported := a.ConfigFile(dir, simtest.Tokens(), ""), map[string]int{}
	for _, shard := range []string{"0", "1"} {
		page := startReady(t, "--config.file="+file, "--shard="+shard, "--total-shards=2").scrape()
		for name := range page.CollectorSuccess() {
			_, account, _ := strings.Cut(name, " ")
			if account != "" || shard == "1" {
				exported[account+shard]++
			}
		}
		simtest.AssertEqual(t, "index and number", page.WithPrefix("server_rental_exporter_shard"), map[string]float64{
			"server_rental_exporter_shard{}": float64(shard[0] - '0'), "server_rental_exporter_shards{}": 2,
		})
	}
	want := map[string]int{}
	for _, s := range collector.Resources() {
		for _, account := range []string{"main", "lab"} {
			if s.Account {
				want[account+fmt.Sprint(config.ShardOf(account, 2))]++
			}
		}
	}
	simtest.AssertEqual(t, "collectors by account and shard", exported, want)
}
