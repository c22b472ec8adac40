package exporter

import (
	"net/http"

	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/server-rental-exporter/server_rental_exporter/internal/exposition"
)

// newRegistry returns what is encoded at each scrape.
func newRegistry(o *options) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	if !o.disableExporterMetrics && !o.once { // node_exporter, which reads the output, has its own
		registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	return registry
}

// metrics serves the metrics.
func (e *exporter) metrics() http.Handler {
	handler := &exposition.Handler{
		Publisher: e.runner.Publisher,
		Gatherer:  e.registry,
		OnError: func(err error) {
			level.Error(e.logger).Log("msg", "cannot serve metrics", "err", err)
		},
	}
	if e.options.disableExporterMetrics {
		return handler
	}
	return promhttp.InstrumentMetricHandler(e.registry, handler)
}
