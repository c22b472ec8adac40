package collector

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	kitlog "github.com/go-kit/log"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/config"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
)

// withServers is a client of a simulated provider on loopback with one account of n servers.
func withServers(b *testing.B, n int) *rentalapi.Client {
	b.Helper()
	sim := simulator.New(simulator.Options{AccountLimit: -1, KeepRequests: -1})
	sim.Change(func(w *simulator.World) {
		w.Accounts[mainToken] = &simulator.Account{Servers: simulator.Servers(n, time.Now())}
	})
	server := httptest.NewServer(sim)
	b.Cleanup(server.Close)
	base, err := url.Parse(server.URL + prefix)
	if err != nil {
		b.Fatal(err)
	}
	transport, err := rentalapi.NewTransport(config.HTTPClientConfig{})
	if err != nil {
		b.Fatal(err)
	}
	return rentalapi.New("bench/1", rentalapi.Settings{
		BaseURL: base, Transport: transport, Timeout: time.Minute, Limits: rentalapi.Limits{Public: 1e6, Account: 1e6, AccountBulk: 1e6},
	})
}

// nowhere takes an answer and forgets it.
type nowhere struct {
	header http.Header
	bytes  int
}

func (n *nowhere) Header() http.Header { return n.header }
func (n *nowhere) WriteHeader(int)     {}

func (n *nowhere) Write(p []byte) (int, error) {
	n.bytes += len(p)
	return len(p), nil
}

// BenchmarkScrape gathers and encodes everything afresh, as a request for the
// text format does that no kept block can answer.
func BenchmarkScrape(b *testing.B) {
	const seriesPerServer = 5
	for _, series := range []int{500, 5_000, 50_000} {
		b.Run(fmt.Sprint(series), func(b *testing.B) {
			client := withServers(b, series/seriesPerServer)
			set := New(kitlog.NewNopLogger(), client)
			if err := set.Once(context.Background(), every(time.Minute, time.Hour, "servers")); err != nil {
				b.Fatal(err)
			}
			registry := prometheus.NewRegistry()
			registry.MustRegister(set, set.State(), client)
			handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
			request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			w := &nowhere{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				handler.ServeHTTP(w, request)
			}
			b.ReportMetric(float64(w.bytes)/float64(b.N), "B/scrape")
		})
	}
}

// BenchmarkRefreshServers10000 fetches 10,000 servers over loopback, decodes and
// checks them and builds their metrics.
func BenchmarkRefreshServers10000(b *testing.B) {
	client := withServers(b, 10_000)
	scope := client.Scope("main", func() (string, error) { return mainToken, nil })
	ask := servers().open()
	b.ReportAllocs()
	for b.Loop() {
		snap, err := ask(context.Background(), scope, &metric.Builder{Prefix: []string{"main"}})
		if err != nil {
			b.Fatal(err)
		}
		if n := len(snap.metrics); n < 50_000 {
			b.Fatalf("%d metrics of 10,000 servers", n)
		}
	}
}
