//go:build unix

package exporter

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"server_rental_exporter/internal/simulator/simtest"
)

// BenchmarkScrape compares a scrape with that of an empty exporter, which has the
// default metrics of client_golang only, and sends a body of the same size besides. Both
// run in turns, so that other load on the machine affects both.
func BenchmarkScrape(b *testing.B) {
	for _, series := range []int{1_000, 50_000} {
		b.Run(fmt.Sprintf("series=%d", series), func(b *testing.B) {
			e := newTestExporter(b, serversConfig(b, series/5, "")...)
			b.Cleanup(e.runner.Wait) // the context of the benchmark has ended by then
			e.runner.Run(b.Context())
			e.runner.ApplyConfig(b.Context(), e.loaded.Load().collected)
			h := e.handler(b.Context())
			simtest.Eventually(b, "ready", e.runner.Ready)
			body := simtest.ServeGet(h, "/metrics", prometheusHeaders()...).Body
			handlers := []http.Handler{h, emptyExporter([]byte(body))}
			request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			for pair := range slices.Chunk(prometheusHeaders(), 2) {
				request.Header.Set(pair[0], pair[1])
			}
			var used [2]time.Duration
			n := 0
			for ; b.Loop(); n += 50 {
				for i, h := range handlers {
					before := processorTime()
					for range 50 {
						h.ServeHTTP(&discard{ResponseRecorder: httptest.NewRecorder()}, request)
					}
					used[i] += processorTime() - before
				}
			}
			b.ReportMetric(float64(used[0].Microseconds())/float64(n), "cpu-µs/scrape")
			b.ReportMetric(float64(used[1].Microseconds())/float64(n), "cpu-µs/empty")
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

// discard is a response whose body is copied, as to a socket, and dropped.
type discard struct {
	*httptest.ResponseRecorder
	buffer [4096]byte
}

// Write implements io.Writer.
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
