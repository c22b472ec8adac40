//go:build unix

package exposition

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// BenchmarkScrape serves the same metrics in three ways: with promhttp, from encoded
// blocks, and as ready bytes (the floor), each with the metrics of a Go process.
func BenchmarkScrape(b *testing.B) {
	for _, n := range []int{500, 5_000, 50_000, 200_000} {
		h := newPublishedHarness(b, n)
		dynamic, published := prometheus.NewRegistry(), prometheus.NewRegistry()
		dynamic.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		published.MustRegister(h.Publisher)
		h.Gatherer = dynamic
		ready := h.scrape("Prometheus 2.42", "gzip").Body
		for _, way := range []struct {
			name string
			http.Handler
		}{
			{"promhttp", promhttp.HandlerFor(prometheus.Gatherers{dynamic, published}, promhttp.HandlerOpts{})},
			{"blocks", h},
			{"floor", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", strconv.Itoa(len(ready)))
				_, _ = io.WriteString(w, ready)
			})},
		} {
			b.Run(fmt.Sprintf("series=%d/%s", n, way.name), func(b *testing.B) {
				b.Run("handler", func(b *testing.B) { benchmarkHandler(b, way) })
				b.Run("socket", func(b *testing.B) { benchmarkSocket(b, way) })
			})
		}
	}
}

// newScrape returns a request as Prometheus makes it.
func newScrape(b *testing.B, url string) *http.Request {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Accept", acceptHeaders()["Prometheus 2.42"])
	r.Header.Set("Accept-Encoding", "gzip")
	return r
}

func benchmarkHandler(b *testing.B, h http.Handler) {
	r := newScrape(b, "http://example/metrics")
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(discard{http.Header{}}, r)
	}
}

// benchmarkSocket measures a handler on loopback, its client included.
func benchmarkSocket(b *testing.B, h http.Handler) {
	server := httptest.NewServer(h)
	defer server.Close()
	client, r := server.Client(), newScrape(b, server.URL)
	before := processorTime(b)
	for b.Loop() {
		resp, err := client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
	b.ReportMetric((processorTime(b)-before)*1000/float64(b.N), "cpu-ms/op")
}

// processorTime returns the processor time that this process has used, in seconds.
func processorTime(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// BenchmarkPublish publishes a large group in one variant.
func BenchmarkPublish(b *testing.B) {
	for _, v := range []Variant{{expfmt.FmtOpenMetrics_1_0_0, Identity}, {expfmt.FmtOpenMetrics_1_0_0, Gzip}, {expfmt.FmtProtoDelim, Gzip}} {
		b.Run(strings.SplitN(string(v.Format), ";", 2)[0]+"/"+string(v.Encoding), func(b *testing.B) {
			g := newTestGroup("test", 60_000)
			p := NewPublisher(g.Group)
			p.recordVariant(v)
			b.ReportAllocs()
			for b.Loop() {
				g.Changed()
				p.Publish()
			}
			b.ReportMetric(float64(p.CacheBytes())/1024, "KiB")
		})
	}
}
