package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"server_rental_exporter/internal/exposition"
	"server_rental_exporter/internal/simulator"
)

// wire makes an exporter that does nothing yet.
func wire(b *testing.B, args ...string) *exporter {
	b.Helper()
	o, err := parse(args)
	if err != nil {
		b.Fatal(err)
	}
	cfg, err := o.load(func(string) string { return "" })
	if err != nil {
		b.Fatal(err)
	}
	e, err := newExporter(b.Context(), o, func(string) string { return "" }, newLogger(io.Discard, "info", "logfmt"), cfg)
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// serving runs an exporter without a socket, and returns its handler once
// everything is fetched.
func serving(b *testing.B, args ...string) http.Handler {
	b.Helper()
	e, ctx := wire(b, args...), b.Context()
	b.Cleanup(func() { // the benchmark's context has ended by now
		e.set.Wait()
		e.keeping.Wait()
		e.close()
	})
	e.collect(ctx)
	h := e.handler(ctx)
	eventually(b, "ready", func() bool {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/-/ready", nil))
		return w.Code == http.StatusOK
	})
	return h
}

// fleet is a provider with one account of so many servers, and the arguments to
// export it.
func fleet(b *testing.B, servers int) (args []string) {
	b.Helper()
	a := newAPI(b)
	a.Change(func(w *simulator.World) { w.Accounts[mainToken].Servers = simulator.Servers(servers, time.Now()) })
	return []string{"--config.file=" + a.configFile(b, b.TempDir(), map[string]string{"main": mainToken}, "")}
}

// encodings are what a scraper may ask for.
func encodings() []string { return []string{"identity", "gzip", "zstd"} }

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

// discard is a response that is counted and forgotten.
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
		b.Run("handler/"+encoding, func(b *testing.B) { measure(b, handled(serving(b, "--demo"), encoding)) })
		b.Run("socket/"+encoding, func(b *testing.B) {
			server := httptest.NewServer(serving(b, "--demo"))
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
				measure(b, handled(serving(b, fleet(b, series/5)...), encoding))
			})
		}
	}
}

var series = regexp.MustCompile(`(?m)^server_rental_account_funded_until_timestamp_seconds\{`)

// running executes the built binary until the benchmark ends, and returns the URL
// it serves at and its process id, once its first complete scrape was answered.
func running(b *testing.B, args ...string) (url string, cmd *exec.Cmd) {
	b.Helper()
	cmd = exec.CommandContext(b.Context(), binary(b), append(args, "--web.listen-address=127.0.0.1:0")...)
	cmd.Env = []string{}
	log, err := cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	for url == "" && lines.Scan() {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			url = "http://" + m[1]
		}
	}
	go func() {
		for lines.Scan() { // so that the log never blocks it
			continue
		}
	}()
	for end := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
		if resp, err := http.Get(url + "/-/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(end) {
			b.Fatal("not ready")
		}
	}
	if page := fetch(b, url); !series.MatchString(page) {
		b.Fatalf("the first scrape is not complete:\n%s", page)
	}
	return url, cmd
}

func fetch(b *testing.B, url string) string {
	b.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	return string(page)
}

// end ends a process and waits for it.
func end(b *testing.B, cmd *exec.Cmd) {
	b.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkDemoStart is the time from executing the binary to the end of its first
// complete scrape.
func BenchmarkDemoStart(b *testing.B) {
	binary(b)
	for b.Loop() {
		_, cmd := running(b, "--demo")
		b.StopTimer()
		end(b, cmd)
		b.StartTimer()
	}
}

// BenchmarkRefreshServers is one refresh of an account of 10,000 servers: asked from a
// simulated provider in the same process, decoded, checked, made into metrics, and
// encoded as Prometheus asks for it.
func BenchmarkRefreshServers(b *testing.B) {
	args := fleet(b, 10_000)
	for _, s := range specs() {
		if s.Name != "servers" {
			args = append(args, "--no-collector."+s.Name)
		}
	}
	b.ReportAllocs()
	before := processorTime()
	for b.Loop() {
		e := wire(b, args...)
		if err := e.set.Once(b.Context(), plan(e.cfg)); err != nil {
			b.Fatal(err)
		}
		kept := 0
		for _, block := range e.set.Blocks() {
			block.Prepare(exposition.Form{Format: expfmt.FmtOpenMetrics_1_0_0, Coding: exposition.Gzip})
			kept += block.Size()
		}
		b.ReportMetric(float64(kept)/1024, "KiB-encoded")
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
		{"10000 servers", func(b *testing.B) []string { return fleet(b, 10_000) }},
	} {
		b.Run(tc.name, func(b *testing.B) {
			args := tc.args(b)
			var first, later, peak float64
			n := 0
			for b.Loop() {
				url, cmd := running(b, args...)
				first += resident(b, cmd.Process.Pid, "VmRSS")
				for range 60 {
					fetch(b, url)
				}
				later += resident(b, cmd.Process.Pid, "VmRSS")
				peak += resident(b, cmd.Process.Pid, "VmHWM")
				end(b, cmd)
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
