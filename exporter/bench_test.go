//go:build unix

package exporter

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"server_rental_exporter/internal/simulator/simtest"
)

// readyHandler runs an exporter without a socket, and returns its handler once
// everything is fetched.
func readyHandler(b *testing.B, args ...string) http.Handler {
	b.Helper()
	e := newTestExporter(b, args...)
	b.Cleanup(e.Wait) // the context of the benchmark has ended by then
	e.Run(b.Context())
	e.ApplyConfig(b.Context(), e.loaded.Load().collected)
	h := e.handler(b.Context())
	simtest.Eventually(b, "ready", func() bool { return simtest.ServeGet(h, "/-/ready").Status == http.StatusOK })
	return h
}

// BenchmarkScrape compares a scrape with that of an empty exporter, which has the
// default metrics of client_golang only, and sends a body of the same size besides. Both
// run in turns, so that other load on the machine affects both.
func BenchmarkScrape(b *testing.B) {
	for _, series := range []int{1_000, 50_000} {
		b.Run(fmt.Sprintf("series=%d", series), func(b *testing.B) {
			h := readyHandler(b, serversConfig(b, series/5)...)
			body := simtest.ServeGet(h, "/metrics", prometheusHeaders()...).Body
			var ours, empty time.Duration
			handlers := []struct {
				http.Handler
				used *time.Duration
			}{{h, &ours}, {emptyExporter([]byte(body)), &empty}}
			n := 0
			for b.Loop() {
				for _, h := range handlers {
					before := processorTime()
					for range 50 {
						scrape(h)
					}
					*h.used += processorTime() - before
				}
				n += 50
			}
			b.ReportMetric(float64(ours.Microseconds())/float64(n), "cpu-µs/scrape")
			b.ReportMetric(float64(empty.Microseconds())/float64(n), "cpu-µs/empty")
			b.ReportMetric(float64(ours)/float64(empty), "ratio")
			b.ReportMetric(float64(len(body))/1024, "KiB/response")
		})
	}
}

// emptyExporter returns the handler of an exporter without metrics of its own that sends
// more bytes after its response.
func emptyExporter(more []byte) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics := promhttp.InstrumentMetricHandler(r, promhttp.HandlerFor(r, promhttp.HandlerOpts{}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		metrics.ServeHTTP(w, r)
		_, _ = w.Write(more)
	})
}

// prometheusHeaders are the headers with which Prometheus scrapes.
func prometheusHeaders() []string {
	return []string{
		"Accept", "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
		"Accept-Encoding", "gzip",
	}
}

// scrape copies the bytes of a response and drops them.
func scrape(h http.Handler) {
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	headers := prometheusHeaders()
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	h.ServeHTTP(&discard{header: http.Header{}}, r)
}

// discard is a response that is copied, as to a socket, and dropped.
type discard struct {
	header http.Header
	buffer [4096]byte
}

func (d *discard) Header() http.Header { return d.header }
func (d *discard) WriteHeader(int)     {}
func (d *discard) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		rest = rest[copy(d.buffer[:], rest):]
	}
	return len(p), nil
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
