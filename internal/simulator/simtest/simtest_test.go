package simtest

import (
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"

	"server_rental_exporter/internal/simulator"
)

func TestAPI(t *testing.T) {
	a := Start(t, simulator.Options{})
	remove := a.Override("/servers", Reply(503, nil, ""))
	for _, path := range []string{"/servers", "/topups?limit=1"} {
		if _, err := Do(a.Client(), http.MethodGet, a.URL.String()+path, "Authorization", "Bearer "+MainToken); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	AssertEqual(t, "body", Get(t, a.URL.String()+"/servers", "Authorization", "Bearer "+MainToken).Body, a.Body("/servers", MainToken))
	AssertEqual(t, "counts", []any{a.CountByPath(1), a.CountByToken(), len(a.RequestsFor("/servers")), a.RequestsFor("/servers")[0].Status, a.Idle()},
		[]any{map[string]int{"/topups": 1, "/servers": 1}, map[string]int{MainToken: 3}, 2, 503, true})
}

func TestParseExposition(t *testing.T) {
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c_total", Help: "A c_total counter."}, []string{"b", "a"})
	counter.WithLabelValues("2", "x\"\n").Add(3)
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Help: "A histogram.", Buckets: []float64{1}, NativeHistogramBucketFactor: 2})
	histogram.Observe(2)
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "g", Help: "A gauge."}, func() float64 { return 7 })
	registry.MustRegister(counter, histogram, gauge)
	h := promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
	series := Series("c_total", "b", "2", "a", "x\"\n")
	AssertEqual(t, "labels", Label(series, "a")+Label(series, "b")+Label(series, "c"), "x\"\n2")
	for _, format := range []expfmt.FormatType{expfmt.TypeTextPlain, expfmt.TypeOpenMetrics, expfmt.TypeProtoDelim} {
		r := ServeGet(h, "/metrics", "Accept", string(expfmt.NewFormat(format)), "Accept-Encoding", "gzip")
		AssertEqual(t, string(expfmt.NewFormat(format)), r.Exposition(t), Exposition{
			Families: map[string]Family{
				"c_total": {Type: "counter", Help: "A c_total counter.", Labels: "a b"},
				"h":       {Type: "histogram", Help: "A histogram.", Classic: true, Native: format == expfmt.TypeProtoDelim},
				"g":       {Type: "gauge", Help: "A gauge."},
			},
			Values: map[string]float64{series: 3, "h{}": 1, "g{}": 7},
		})
	}
	e := ParseExposition(t, `server_rental_a 1
server_rental_exporter_collector_success{account="",collector="plans"} 1
server_rental_exporter_collector_success{account="main",collector="servers"} 0
`, "text/plain")
	AssertEqual(t, "data", e.Data(), map[string]float64{"server_rental_a{}": 1})
	AssertEqual(t, "success", e.CollectorSuccess(), map[string]float64{"plans": 1, "servers main": 0})
}
