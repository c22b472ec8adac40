//go:build unix

package chaos_test

import (
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// scrapeInParallel lets n scrapers scrape without pause; each response must be complete.
func scrapeInParallel(t *testing.T, p *simtest.Process, n int, duration time.Duration) {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: n, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	end := time.Now().Add(duration)
	var scrapers sync.WaitGroup
	for range n {
		scrapers.Go(func() {
			for first := true; first || time.Now().Before(end); first = false {
				r, err := simtest.Do(client, http.MethodGet, p.URL+"/metrics", "Accept", textFormat, "Accept-Encoding", "gzip")
				if err != nil || r.Status != http.StatusOK || len(r.Body) < 1000 {
					t.Errorf("scrape: status %d, %d bytes, error %v", r.Status, len(r.Body), err)
					return
				}
			}
		})
	}
	scrapers.Wait()
}

// TestLoad runs many scrapers without pause, beside a scraper that reads one byte a
// second and many idle connections: no error, and no request to the API. The long run also
// checks that memory does not grow. The exporter has one processor.
func TestLoad(t *testing.T) {
	skipShort(t)
	scrapers, idle, duration := 20, 100, 300*time.Millisecond
	if long() {
		scrapers, idle, duration = 100, 1_000, 10*time.Second
	}
	api := simtest.Start(t, simulator.Options{})
	p := startReady(t, []string{"GOMAXPROCS=1"}, "--config.file="+api.ConfigFile(t.TempDir(), simtest.Tokens(), hourly()))
	p.Eventually("a response to every request", api.Idle)
	requests := len(api.Requests())

	received := scrapeSlowly(t, p.URL)
	for range idle {
		connect(t, p.URL, net.Dialer{})
	}
	scrapeInParallel(t, p, scrapers, duration/5) // until memory has its size
	before := memory(p, t, "VmRSS")
	scrapeInParallel(t, p, scrapers, duration)
	resident := memory(p, t, "VmRSS")
	simtest.Eventually(t, "the slow scraper receives data", func() bool { return received.Load() > 0 })
	simtest.AssertEqual(t, "requests by path", api.CountByPath(requests), map[string]int{})
	t.Logf("resident memory %d, then %d MiB", before, resident)
	if long() && resident-before > 32 {
		t.Error("resident memory grew")
	}
}

// connect opens a connection until the end of the test.
func connect(t *testing.T, url string, d net.Dialer) net.Conn {
	t.Helper()
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// scrapeSlowly scrapes at one byte a second, and counts the bytes.
func scrapeSlowly(t *testing.T, url string) *atomic.Int64 {
	t.Helper()
	conn := connect(t, url, net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2048) })
	}})
	if _, err := io.WriteString(conn, "GET /metrics HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	n := new(atomic.Int64)
	go func() {
		for one := make([]byte, 1); ; time.Sleep(time.Second) {
			if _, err := conn.Read(one); err != nil {
				return
			}
			n.Add(1)
		}
	}()
	return n
}

// TestMemory scrapes many series in all formats and encodings while refreshes replace
// them: the cache of encoded metrics is bounded, and the long run needs at most 140 MiB for
// 50,000 series.
func TestMemory(t *testing.T) {
	t.Parallel()
	skipShort(t)
	servers, refreshes, interval, pause := 1_000, 1, "2s", 50*time.Millisecond
	if long() {
		servers, refreshes, interval, pause = 10_000, 3, "10s", time.Second
	}
	api := simtest.Start(t, simulator.Options{})
	api.Change(func(w *simulator.World) {
		w.Accounts[simtest.MainToken].Servers = simulator.Servers(servers, time.Now())
	})
	limit := []string{"GOMEMLIMIT=103MiB"} // as docs/limits.md says for 10,000 servers
	p := startReady(t, limit, "--config.file="+api.ConfigFile(t.TempDir(), map[string]string{"main": simtest.MainToken}, "collectors: {servers: {interval: "+interval+"}}\n"))
	first := p.Scrape().Values[lastSuccess("servers", "main")]
	for last := first; refreshes > 0; time.Sleep(pause) { // as scrapers pause
		for _, format := range formats() {
			for _, coding := range []string{"identity", "gzip"} {
				simtest.AssertEqual(t, format, p.Get("/metrics", "Accept", format, "Accept-Encoding", coding).Status, http.StatusOK)
			}
		}
		if at := p.Scrape().Values[lastSuccess("servers", "main")]; at > last {
			last = at
			refreshes--
		}
	}
	page := p.Scrape()
	cache := int(page.Values["server_rental_exporter_exposition_cache_bytes{}"])
	t.Logf("%d series, cache of %d KiB, resident memory %d MiB, at most %d MiB", len(page.Values), cache>>10, memory(p, t, "VmRSS"), memory(p, t, "VmHWM"))
	if len(page.Values) < 5*servers || cache < 100*servers || cache > 3200*servers {
		t.Errorf("got %d series and a cache of %d bytes for %d servers", len(page.Values), cache, servers)
	}
	if resident := memory(p, t, "VmRSS"); long() && resident > 140 {
		t.Errorf("resident memory: got %d MiB, want at most 140", resident)
	}
}

// TestWritesNothing: the exporter writes no file, and works and reloads if it cannot: a limit of 0 bytes
// for each file stands for a full disk and for a read-only file system, and nobody reads its log any more.
func TestWritesNothing(t *testing.T) {
	t.Parallel()
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		t.Skip("no prlimit")
	}
	api, dir, address := simtest.Start(t, simulator.Options{}), t.TempDir(), simtest.FreeAddress(t)
	config := api.ConfigFile(dir, simtest.Tokens(), "")
	files := func() []string {
		found, _ := filepath.Glob(filepath.Join(dir, "*")) // the pattern is valid
		return found
	}
	before := files()
	cmd := exec.Command("bash", "-c", `exec "$@" 2> >(true)`, "bash", prlimit, "--fsize=0", simtest.Binary(t),
		"--log.level=debug", "--config.file="+config, "--web.listen-address="+address)
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "TMPDIR=" + dir}
	p := simtest.StartCommand(t, cmd)
	p.URL = "http://" + address
	p.Eventually("serving", func() bool {
		_, err := simtest.Do(http.DefaultClient, http.MethodGet, p.URL+"/-/healthy")
		return err == nil
	})
	p.Eventually("every collector works", func() bool { return failing(p.Scrape()) == 0 })
	loaded := func() float64 {
		return p.Scrape().Values["server_rental_exporter_config_last_reload_success_timestamp_seconds{}"]
	}
	started := loaded()
	p.Signal(syscall.SIGHUP)
	p.Eventually("reload", func() bool { return loaded() > started })
	for _, path := range []string{"/", "/metrics", "/-/ready"} {
		simtest.AssertEqual(t, path, p.Get(path).Status, http.StatusOK)
	}
	simtest.AssertEqual(t, "files", files(), before)
	p.Signal(syscall.SIGTERM)
	simtest.AssertEqual(t, "exit status", p.Wait(), 0)
}
