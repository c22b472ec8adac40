package exporter

import (
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/config"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestScrapesCauseNoRequests counts the requests, which have the headers that are
// promised, during scrapes.
func TestScrapesCauseNoRequests(t *testing.T) {
	t.Parallel()
	a := startAPI(t)
	p := startReady(t, "--config.file="+configFile(t, a))
	awaitResponses(t, a)
	requests, page := len(a.Requests()), p.Scrape()
	simtest.AssertEqual(t, "collectors", page.CollectorSuccess(), success(1, "main", "lab"))
	for _, r := range a.Requests() {
		simtest.AssertEqual(t, r.Path, []string{r.Header.Get("User-Agent"), r.Header.Get("Accept"), r.Header.Get("Accept-Encoding")},
			[]string{"server_rental_exporter/1.2.3", "application/json", "gzip"})
	}
	for range 20 {
		p.Scrape()
	}
	simtest.AssertEqual(t, "data", p.Scrape().Data(), page.Data())
	simtest.AssertEqual(t, "requests by path", a.CountByPath(requests), map[string]int{})
}

func TestAPIHangs(t *testing.T) {
	t.Parallel()
	a := startAPI(t)
	remove := a.Inject(simtest.Fault{Kind: simtest.Hang})
	p := start(t, "--config.file="+configFile(t, a))
	all := len(success(0, "main", "lab"))
	simtest.Eventually(t, "requests wait for the API", func() bool { return pending(a) == all })

	page := p.Scrape()
	simtest.AssertEqual(t, "status of landing page, health and readiness",
		[]int{p.Get("/").Status, p.Get("/-/healthy").Status, p.Get("/-/ready").Status}, []int{200, 200, 503})
	simtest.AssertEqual(t, "collectors", page.CollectorSuccess(), map[string]float64{})
	remove()
	simtest.AssertEqual(t, "exit status", p.terminate(), 0) // does not wait for the API either
}

// TestPages has flags that change what is served: where the metrics are, without those of
// the process, a landing page without data, service discovery, and a log as JSON.
func TestPages(t *testing.T) {
	t.Parallel()
	demo, other := startReady(t, "--demo"), startReady(t, "--demo", "--web.telemetry-path=/probe/rental", "--web.disable-exporter-metrics", "--no-web.overview", "--web.enable-service-discovery", "--log.format=json")
	simtest.AssertEqual(t, "status", []int{other.Get("/probe/rental").Status, other.Get("/metrics").Status, other.Get("/sd/servers").Status}, []int{200, 404, 200})
	for path, want := range map[string]int{"/metrics": 200, "//metrics": 307, "/": 200, "/-/healthy": 200, "/-/ready": 200, "/sd/servers": 403, "/-/reload": 403, "/nothing": 404} {
		got := demo.Get(path)
		simtest.AssertEqual(t, path+": status and Cache-Control", []any{got.Status, got.Header.Get("Cache-Control")}, []any{want, "no-store"})
	}
	simtest.AssertEqual(t, "status of discovery and reload by default", []int{demo.Get("/sd/servers").Status, demo.postReload().Status}, []int{403, 403})
	families := other.Get("/probe/rental").Exposition(t).Families
	for name := range families {
		if !strings.HasPrefix(name, "server_rental_") {
			t.Errorf("still exposed: %s", name)
		}
	}
	if len(families) < 90 {
		t.Errorf("got %d families", len(families))
	}
	if log := other.log.String(); !strings.HasPrefix(log, `{"accounts":`) {
		t.Errorf("the log is not JSON:\n%s", log)
	}
	with, without := demo.Get("/").Body, other.Get("/").Body
	for text, want := range map[string][]bool{"simulated provider (--demo) &middot; ": {true, true}, "node-5.main.example": {true, false}, `<td class="wrap" translate="no">main</td>`: {true, true}, `<a href="./probe/rental">`: {false, true}} {
		simtest.AssertEqual(t, "pages with "+text, []bool{strings.Contains(with, text), strings.Contains(without, text)}, want)
	}
}

// longServers is how many servers, of long names, have metrics that the buffers of a
// connection cannot hold.
const longServers = 3_000

func longName() string { return strings.Repeat("x", 2_000) }

// startScrape requests the metrics over a connection that takes in little, so that
// the exporter cannot send all of it before more is read. It returns the first bytes.
func startScrape(t *testing.T, address string) (conn *net.TCPConn, head string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
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
	p := startReady(t, serversConfig(t, longServers, longName())...)
	conn, head := startScrape(t, strings.TrimPrefix(p.URL, "http://"))
	p.stop()
	simtest.Eventually(t, "the shutdown", func() bool { return strings.Contains(p.log.String(), `msg="shutting down"`) })
	if err := conn.SetReadBuffer(4 << 20); err != nil { // a small one takes long to read
		t.Fatal(err)
	}
	rest, err := io.ReadAll(conn)
	simtest.AssertEqual(t, "error", err, nil)
	simtest.AssertEqual(t, "samples", strings.Count(head+string(rest), "\nserver_rental_server_info{"), longServers)
	simtest.AssertEqual(t, "exit status", p.terminate(), 0)
}

// TestShard exports the accounts of each shard. The public data and the watches are in the
// first.
func TestShard(t *testing.T) {
	t.Parallel()
	a := startAPI(t)
	file := a.ConfigFile(t.TempDir(), simtest.Tokens(), "watches: [{name: gpu, gpu: true}]\n")
	var got, want [2]map[string]float64
	for i := range 2 {
		page := startReady(t, "--config.file="+file, fmt.Sprint("--shard=", i), "--total-shards=2",
			"--collector.disable-defaults", "--collector.plans", "--collector.servers").Scrape()
		got[i] = page.CollectorSuccess()
		maps.Copy(got[i], page.WithPrefix("server_rental_exporter_shard"))
		maps.Copy(got[i], page.WithPrefix("server_rental_watch_plans{"))
		want[i] = map[string]float64{"server_rental_exporter_shard{}": float64(i), "server_rental_exporter_shards{}": 2}
	}
	want[0]["plans"], want[0][`server_rental_watch_plans{watch="gpu"}`] = 1, 2
	for account := range simtest.Tokens() {
		want[config.ShardOf(account, 2)]["servers "+account] = 1
	}
	simtest.AssertEqual(t, "collectors, index and number of each shard", got, want)
}
