//go:build unix

package exporter

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// readyHandler runs an exporter without a socket, and returns its handler once
// everything is fetched.
func readyHandler(b *testing.B, args ...string) http.Handler {
	b.Helper()
	e := newTestExporter(b, args...)
	b.Cleanup(e.Wait) // the context of the benchmark has ended by then
	e.Publish(b.Context())
	e.ApplyConfig(b.Context(), runnerConfig(e.config.Load()))
	h := e.handler()
	simtest.Eventually(b, "ready", func() bool { return simtest.ServeGet(h, "/-/ready").Status == http.StatusOK })
	return h
}

// serversConfig starts a provider with one account of so many servers, and returns
// the arguments to export it.
func serversConfig(b *testing.B, servers int) (args []string) {
	b.Helper()
	a := simtest.Start(b, simulator.Options{})
	a.Change(func(w *simulator.World) {
		w.Accounts[simtest.MainToken].Servers = simulator.Servers(servers, time.Now())
	})
	return []string{"--config.file=" + a.ConfigFile(b.TempDir(), map[string]string{"main": simtest.MainToken}, "")}
}

func encodings() []string { return []string{"identity", "gzip"} }

// measure runs scrape and reports the median time and the processor time of the
// whole process, a client in it included.
func measure(b *testing.B, scrape func() int) {
	b.Helper()
	var times []time.Duration
	size := scrape() // the first one allocates what the later ones use again
	b.ReportAllocs()
	before := processorTime()
	for b.Loop() {
		began := time.Now()
		size = scrape()
		times = append(times, time.Since(began))
	}
	used := processorTime() - before
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(times[len(times)*99/100].Seconds()*1000, "p99-ms")
	b.ReportMetric(used.Seconds()*1000/float64(len(times)), "cpu-ms/op")
	b.ReportMetric(float64(size)/1024, "KiB/answer")
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// discard is a response of which only the size is kept.
type discard struct {
	header http.Header
	size   int
}

func (d *discard) Header() http.Header { return d.header }
func (d *discard) WriteHeader(int)     {}
func (d *discard) Write(p []byte) (int, error) {
	d.size += len(p)
	return len(p), nil
}

func handled(h http.Handler, encoding string) func() int {
	return func() int {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Accept-Encoding", encoding)
		w := &discard{header: http.Header{}}
		h.ServeHTTP(w, r)
		return w.size
	}
}

func BenchmarkScrapeDemo(b *testing.B) {
	for _, encoding := range encodings() {
		b.Run("handler/"+encoding, func(b *testing.B) { measure(b, handled(readyHandler(b, "--demo"), encoding)) })
		b.Run("socket/"+encoding, func(b *testing.B) {
			server := httptest.NewServer(readyHandler(b, "--demo"))
			defer server.Close()
			client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
			defer client.CloseIdleConnections()
			measure(b, func() int {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL+"/metrics", nil)
				if err != nil {
					b.Fatal(err)
				}
				r.Header.Set("Accept-Encoding", encoding)
				resp, err := client.Do(r)
				if err != nil {
					b.Fatal(err)
				}
				defer resp.Body.Close()
				n, err := io.Copy(io.Discard, resp.Body)
				if err != nil {
					b.Fatal(err)
				}
				return int(n)
			})
		})
	}
}

// BenchmarkScrapeSeries scrapes an account of ever more servers, of five series each.
func BenchmarkScrapeSeries(b *testing.B) {
	for _, series := range []int{500, 5_000, 50_000} {
		for _, encoding := range encodings() {
			b.Run(fmt.Sprintf("%d/%s", series, encoding), func(b *testing.B) {
				measure(b, handled(readyHandler(b, serversConfig(b, series/5)...), encoding))
			})
		}
	}
}

// startComplete runs the binary and returns once its first complete scrape was
// answered.
func startComplete(b *testing.B, args ...string) *simtest.Process {
	b.Helper()
	p := simtest.StartProcess(b, args...)
	for p.Get("/-/ready").Status != http.StatusOK {
		time.Sleep(time.Millisecond)
	}
	if page := p.Get("/metrics"); !strings.Contains(page.Body, "\nserver_rental_account_funded_until_timestamp_seconds{") {
		b.Fatalf("the first scrape is not complete:\n%s", page.Body)
	}
	return p
}

func stop(b *testing.B, p *simtest.Process) {
	b.Helper()
	p.Signal(syscall.SIGTERM)
	simtest.AssertEqual(b, "exit status", p.Wait(), 0)
}

// BenchmarkDemoStart is the time from executing the binary to the end of its first
// complete scrape.
func BenchmarkDemoStart(b *testing.B) {
	simtest.Binary(b)
	for b.Loop() {
		p := startComplete(b, "--demo")
		b.StopTimer()
		stop(b, p)
		b.StartTimer()
	}
}

// BenchmarkRefreshServers is one refresh of an account of 10,000 servers: asked from a
// simulated provider in the same process, decoded, checked, made into metrics, and
// encoded as Prometheus asks for it.
func BenchmarkRefreshServers(b *testing.B) {
	args := serversConfig(b, 10_000)
	for _, s := range collector.Resources() {
		if s.Name != "servers" {
			args = append(args, "--no-collector."+s.Name)
		}
	}
	b.ReportAllocs()
	before := processorTime()
	for b.Loop() {
		e := newTestExporter(b, args...)
		simtest.ServeGet(e.handler(), "/metrics", "Accept", "application/openmetrics-text;version=1.0.0", "Accept-Encoding", "gzip") // so that this variant is encoded
		if err := e.Once(b.Context(), runnerConfig(e.config.Load())); err != nil {
			b.Fatal(err)
		}
		e.Publisher.Publish()
		b.ReportMetric(float64(e.Publisher.CacheBytes())/1024, "KiB-encoded")
	}
	b.ReportMetric((processorTime()-before).Seconds()*1000/float64(b.N), "cpu-ms/op")
}

// BenchmarkMemory reports the resident memory of the built binary: after the first
// scrape, and after a minute's worth of scrapes; and the most it ever had.
func BenchmarkMemory(b *testing.B) {
	for _, tc := range []struct {
		name string
		args func(b *testing.B) []string
	}{
		{"demo", func(*testing.B) []string { return []string{"--demo"} }},
		{"10000 servers", func(b *testing.B) []string { return serversConfig(b, 10_000) }},
	} {
		b.Run(tc.name, func(b *testing.B) {
			args := tc.args(b)
			var first, later, peak float64
			n := 0
			for b.Loop() {
				p := startComplete(b, args...)
				first += resident(b, p.Cmd.Process.Pid, "VmRSS")
				for range 60 {
					p.Get("/metrics")
				}
				later += resident(b, p.Cmd.Process.Pid, "VmRSS")
				peak += resident(b, p.Cmd.Process.Pid, "VmHWM")
				stop(b, p)
				n++
			}
			b.ReportMetric(first/float64(n), "MiB-idle")
			b.ReportMetric(later/float64(n), "MiB-after-60-scrapes")
			b.ReportMetric(peak/float64(n), "MiB-peak")
		})
	}
}

// resident reads a process' memory in MiB.
func resident(b *testing.B, pid int, field string) float64 {
	b.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		b.Skip("this system has no /proc")
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == field+":" {
			kib, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib / 1024
		}
	}
	b.Fatalf("no %s in %s", field, status)
	return 0
}
