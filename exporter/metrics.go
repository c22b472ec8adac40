package exporter

import (
	"net/http"
	"slices"
	"time"

	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/version"

	"github.com/server-rental-exporter/server_rental_exporter/internal/exposition"
	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/runner"
)

// ownSet lists the metrics of this package.
var (
	ownSet metric.Set

	buildInfo = ownSet.Gauge("exporter_build_info", "Version and platform of this build of the exporter.",
		"version", "revision", "branch", "goversion", "goos", "goarch", "tags")
	reloadSuccessful = ownSet.Gauge("exporter_config_last_reload_successful", "Whether the last attempt to load the configuration succeeded: 1 or 0.")
	reloadTime       = ownSet.Gauge("exporter_config_last_reload_success_timestamp_seconds", "When the configuration in force was loaded.")
	shardIndex       = ownSet.Gauge("exporter_shard", "Index of this shard, from 0.")
	shardTotal       = ownSet.Gauge("exporter_shards", "Number of shards that share the accounts.")
)

// Definitions lists every metric of the exporter, in the order of the documentation.
func Definitions() []*metric.Definition {
	return slices.Concat(runner.Definitions(), ownSet)
}

// newGroup returns the group of the metrics of the exporter itself.
func (e *exporter) newGroup() *exposition.Group {
	return &exposition.Group{Definitions: ownSet, Collect: func(time.Time) ([]*metric.Sample, time.Time) {
		l, b := e.loaded.Load(), &metric.Builder{}
		b.Add(buildInfo, 1, version.Version, version.GetRevision(), version.Branch, version.GoVersion, version.GoOS, version.GoArch, version.GetTags())
		successful := l.reloadError == nil
		b.AddBool(reloadSuccessful, &successful)
		b.Add(reloadTime, float64(l.at.UnixNano())/1e9)
		b.Add(shardIndex, float64(l.config.Shard.Index))
		b.Add(shardTotal, float64(l.config.Shard.Total))
		return b.Metrics(), time.Time{}
	}}
}

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
