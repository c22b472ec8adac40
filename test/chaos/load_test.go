//go:build unix

package chaos_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// load is what a number of scrapers measured.
type load struct {
	durations []time.Duration // sorted
	bytes     int64
}

// quantile returns a duration that this many of 1000 scrapes did not exceed.
func (l load) quantile(permille int) time.Duration {
	return l.durations[(len(l.durations)-1)*permille/1000].Round(10 * time.Microsecond)
}

func (l load) String() string {
	return fmt.Sprintf("%d scrapes, median %v, 99%% within %v, slowest %v", len(l.durations), l.quantile(500), l.quantile(990), l.quantile(1000))
}

// scrapeInParallel lets n scrapers scrape without pause; each answer must be complete.
func scrapeInParallel(t *testing.T, url string, n int, duration time.Duration) load {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: n, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var all load
	var mu sync.Mutex
	var scrapers sync.WaitGroup
	end := time.Now().Add(duration)
	for range n {
		scrapers.Go(func() {
			for first := true; first || time.Now().Before(end); first = false {
				began := time.Now()
				r, err := simtest.Do(client, http.MethodGet, url+"/metrics", "Accept", textFormat, "Accept-Encoding", "gzip")
				if err != nil || r.Status != http.StatusOK || len(r.Body) < 1000 {
					t.Errorf("scrape: status %d, %d bytes, error %v", r.Status, len(r.Body), err)
					return
				}
				mu.Lock()
				all.durations = append(all.durations, time.Since(began))
				all.bytes += int64(len(r.Body))
				mu.Unlock()
			}
		})
	}
	scrapers.Wait()
	slices.Sort(all.durations)
	return all
}

// loadSize returns the number of scrapers, how long they scrape, and the number of
// idle connections.
func loadSize(t *testing.T) (scrapers int, duration time.Duration, idle int) {
	t.Helper()
	scrapers, duration, idle = 20, 300*time.Millisecond, 100
	if long() {
		scrapers, duration, idle = 100, 10*time.Second, 1000
	}
	if s := os.Getenv("CHAOS_LOAD"); s != "" {
		var err error
		if duration, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	return scrapers, duration, idle
}

// TestLoad runs many scrapers without pause, beside a scraper that reads one byte a
// second and many idle connections: no error, and no request to the API. The long run
// also checks that memory does not grow. The exporter has one processor.
func TestLoad(t *testing.T) {
	skipShort(t)
	scrapers, duration, idle := loadSize(t)
	api := simtest.Start(t, simulator.Options{})
	p := startReady(t, []string{"GOMAXPROCS=1"}, "--config.file="+api.ConfigFile(t.TempDir(), simtest.Tokens(), hourly()))
	p.Eventually("all requests answered", api.Idle)
	requests := len(api.Requests())

	t.Logf("one scraper: %v", scrapeInParallel(t, p.URL, 1, duration/10))
	scrapeInParallel(t, p.URL, scrapers, duration/5) // until memory has its size
	residentBefore := memory(p, t, "VmRSS")
	began := processorTime(p, t)
	busy := scrapeInParallel(t, p.URL, scrapers, duration)
	resident := memory(p, t, "VmRSS")
	t.Logf("%d scrapers for %v: %v; %v of processor time a scrape; resident memory %d, then %d MiB", scrapers, duration, busy,
		(processorTime(p, t)-began)/time.Duration(len(busy.durations)), residentBefore, resident)

	began = processorTime(p, t)
	alone := scrapeInParallel(t, p.URL, 4, duration/4)
	costAlone := (processorTime(p, t) - began) / time.Duration(len(alone.durations))
	received := scrapeSlowly(t, p.URL)
	openIdle(t, p.URL, idle)
	began = processorTime(p, t)
	beside := scrapeInParallel(t, p.URL, 4, duration/4)
	costBeside := (processorTime(p, t) - began) / time.Duration(len(beside.durations))
	t.Logf("4 scrapers: %v, %v of processor time a scrape; beside a slow scraper and %d idle connections: %v, %v",
		alone, costAlone, idle, beside, costBeside)
	simtest.Eventually(t, "the slow scraper receives data", func() bool { return received.Load() > 0 })
	api.AssertNoRequests(requests)
	if !long() {
		return
	}
	if grown := resident - residentBefore; grown > 32 {
		t.Errorf("resident memory grew by %d MiB", grown)
	}
	if grown := memory(p, t, "VmRSS") - resident; grown > 64 {
		t.Errorf("resident memory grew by %d MiB with idle connections", grown)
	}
	// Durations also depend on what else the machine does.
	if costBeside > 2*costAlone+time.Millisecond {
		t.Errorf("processor time of a scrape beside them: got %v, without them %v", costBeside, costAlone)
	}
}

// scrapeSlowly scrapes at one byte a second, and counts the bytes.
func scrapeSlowly(t *testing.T, url string) *atomic.Int64 {
	t.Helper()
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		controlErr := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2048) })
		if err != nil {
			return err
		}
		return controlErr
	}}
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
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

// openIdle opens n connections: half of them never send a request, half sent one.
func openIdle(t *testing.T, url string, n int) {
	t.Helper()
	for i := range n {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if i%2 == 0 {
			continue
		}
		if _, err := io.WriteString(conn, "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if status, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(status, "200") {
			t.Fatalf("connection %d: %q, %v", i, status, err)
		}
	}
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
	p := startReady(t, nil, "--config.file="+api.ConfigFile(t.TempDir(), map[string]string{"main": simtest.MainToken}, "collectors: {servers: {interval: "+interval+"}}\n"))
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
