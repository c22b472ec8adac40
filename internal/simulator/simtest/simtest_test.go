package simtest

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

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
