package campaign_test

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
)

// load is what a crowd of scrapers met.
type load struct {
	took  []time.Duration
	bytes int64
}

func (l load) String() string {
	slices.Sort(l.took)
	at := func(share int) time.Duration { return l.took[len(l.took)*share/1000].Round(10 * time.Microsecond) }
	return fmt.Sprintf("%d scrapes, median %v, 99 %% within %v, slowest %v", len(l.took), at(500), at(990), at(999))
}

// crowd lets n scrapers scrape without pause; each answer must be whole.
func crowd(t *testing.T, address string, n int, during time.Duration) load {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: n, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: soon}
	var all load
	var mu sync.Mutex
	var scrapers sync.WaitGroup
	until := time.Now().Add(during)
	for range n {
		scrapers.Go(func() {
			var own load
			for time.Now().Before(until) {
				began := time.Now()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Accept", asText)
				r.Header.Set("Accept-Encoding", "gzip")
				resp, err := client.Do(r)
				if err != nil {
					t.Errorf("scrape: %v", err)
					return
				}
				size, err := io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != http.StatusOK || size < 1000 {
					t.Errorf("scrape: status %d, %d bytes, error %v", resp.StatusCode, size, err)
					return
				}
				own.took = append(own.took, time.Since(began))
				own.bytes += size
			}
			mu.Lock()
			defer mu.Unlock()
			all.took = append(all.took, own.took...)
			all.bytes += own.bytes
		})
	}
	scrapers.Wait()
	return all
}

// loadTime is how long the crowd scrapes.
func loadTime(t *testing.T) time.Duration {
	t.Helper()
	given := os.Getenv("CAMPAIGN_LOAD")
	switch {
	case given == "" && testing.Short():
		return 2 * time.Second
	case given == "":
		return 10 * time.Second
	}
	d, err := time.ParseDuration(given)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestLoad has 100 scrapers scrape without pause, beside a scraper that reads a
// byte a second and 1,000 connections that ask for nothing: no error, no memory
// that grows, and the API sees not one request more. The exporter has one processor.
func TestLoad(t *testing.T) {
	during := loadTime(t)
	r := newRental(t)
	e := ready(t, []string{"GOMAXPROCS=1"}, "--config.file="+r.configuration(t, t.TempDir(), both(), hourly))
	eventually(t, "all requests are answered", r.idle)
	asked := fmt.Sprint(r.asked())

	alone := crowd(t, e.address, 1, during/10)
	t.Logf("one scraper: %v", alone)
	crowd(t, e.address, 100, during/5) // as much memory as the crowd takes
	before := e.scrape()
	busy := crowd(t, e.address, 100, during)
	after := e.scrape()
	t.Logf("100 scrapers for %v: %v; %.0f answers a second", during, busy, float64(len(busy.took))/during.Seconds())
	const resident, heap, cpu = "process_resident_memory_bytes{}", "go_memstats_heap_inuse_bytes{}", "process_cpu_seconds_total{}"
	t.Logf("resident memory %.1f, then %.1f MiB; heap in use %.1f, then %.1f MiB; %.2f ms of processor time a scrape",
		before[resident]/(1<<20), after[resident]/(1<<20), before[heap]/(1<<20), after[heap]/(1<<20),
		1000*(after[cpu]-before[cpu])/float64(len(busy.took)))
	if grown := after[resident] - before[resident]; grown > 16<<20 {
		t.Errorf("resident memory grew by %.1f MiB", grown/(1<<20))
	}
	if got := fmt.Sprint(r.asked()); got != asked {
		t.Errorf("requests by token: got %v, want %v as before", got, asked)
	}

	undisturbed := crowd(t, e.address, 4, during/4)
	slow := slowScraper(t, e.address)
	idle := idleConnections(t, e.address, 1000)
	disturbed := crowd(t, e.address, 4, during/4)
	t.Logf("4 scrapers: %v; beside a slow scraper and %d idle connections: %v", undisturbed, idle, disturbed)
	slices.Sort(undisturbed.took)
	slices.Sort(disturbed.took)
	m, n := undisturbed.took[len(undisturbed.took)/2], disturbed.took[len(disturbed.took)/2]
	if n > 10*m+50*time.Millisecond {
		t.Errorf("median beside them: got %v, without them %v", n, m)
	}
	if slow.Load() == 0 {
		t.Error("the slow scraper got nothing")
	}
	if got := e.scrape()[resident] - after[resident]; got > 64<<20 {
		t.Errorf("resident memory grew by %.1f MiB with idle connections", got/(1<<20))
	}
}

// slowScraper reads a byte a second, and counts them.
func slowScraper(t *testing.T, address string) *atomic.Int64 {
	t.Helper()
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		controlErr := c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2048)
		})
		if err == nil {
			err = controlErr
		}
		return err
	}}
	conn, err := d.DialContext(t.Context(), "tcp", address)
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

// idleConnections opens n connections: half of them never ask, half asked once.
func idleConnections(t *testing.T, address string, n int) int {
	t.Helper()
	for i := range n {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
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
	return n
}

// TestSize measures many accounts of 500 servers each; see docs/limits.md.
func TestSize(t *testing.T) {
	accounts := int(min(number(t, "CAMPAIGN_ACCOUNTS", 0), 10_000))
	if accounts == 0 {
		t.Skip("CAMPAIGN_ACCOUNTS is not set")
	}
	r := newRental(t)
	tokens := map[string]string{}
	r.Change(func(w *simulator.World) {
		clear(w.Accounts)
		for i := range accounts {
			name := fmt.Sprintf("account-%03d", i)
			tokens[name] = "secret-token-of-" + name
			a := simulator.ExampleAccount(name, time.Now())
			a.Servers = simulator.Servers(500, time.Now())
			w.Accounts[tokens[name]] = a
		}
	})
	config := r.configuration(t, t.TempDir(), tokens, "")
	began := time.Now()
	e := ready(t, []string{"GOMAXPROCS=1"}, "--config.file="+config)
	t.Logf("ready after %v", time.Since(began).Round(10*time.Millisecond))
	landing := ""
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		_, landing = e.get("/")
		if !strings.Contains(landing, "failing") {
			break // a processor that is busy with the start may let requests time out; they are repeated
		}
	}
	t.Logf("everything fetched after %v", time.Since(began).Round(10*time.Millisecond))
	page := e.scrape()
	t.Logf("%d series, %d servers", len(page), len(page.with("server_rental_server_info")))
	if got, want := len(page.with("server_rental_server_info")), 500*accounts; got != want {
		t.Fatalf("got %d servers, want %d; %d collectors fail:\n%s", got, want, failing(page), tail(e.log.String()))
	}
	// What is measured by asking the exporter would be a part of what is measured.
	rest := func(what string, scrapes bool) {
		requests, began, before := len(r.Requests()), time.Now(), e.processorTime()
		var took []time.Duration
		size := int64(0)
		for time.Since(began) < 2*time.Minute {
			next := time.Now().Add(15 * time.Second)
			if scrapes {
				one := crowd(t, e.address, 1, time.Millisecond)
				took, size = append(took, one.took...), one.bytes/int64(len(one.took))
			}
			time.Sleep(time.Until(next))
		}
		minutes := time.Since(began).Minutes()
		t.Logf("%s: %.0f requests a minute, %.2f s of processor time a minute, resident memory %d MiB", what,
			float64(len(r.Requests())-requests)/minutes, (e.processorTime()-before).Seconds()/minutes, e.memory("VmRSS")>>20)
		if scrapes {
			slices.Sort(took)
			t.Logf("  a scrape every 15 s, gzip, %d KiB: median %v, slowest %v", size>>10, took[len(took)/2], took[len(took)-1])
		}
	}
	t.Logf("after the start: %.1f s of processor time, resident memory %d MiB, at most %d MiB", e.processorTime().Seconds(), e.memory("VmRSS")>>20, e.memory("VmHWM")>>20)
	rest("refreshing", false)
	rest("refreshing and scraped", true)
}
