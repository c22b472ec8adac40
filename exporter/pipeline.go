package exporter

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/version"

	"server_rental_exporter/collector"
	"server_rental_exporter/config"
	"server_rental_exporter/internal/exposition"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

var (
	buildInfo = metric.Gauge("exporter_build_info", "Version and platform of this build of the exporter; constant 1.", "the build",
		"version", "revision", "branch", "goversion", "goos", "goarch", "tags").SeriesPer("exporter")
	reloadSuccessful = metric.Gauge("exporter_config_last_reload_successful", "Whether the last attempt to load the configuration succeeded: 1 or 0.", "the exporter")
	reloadTime       = metric.Gauge("exporter_config_last_reload_success_timestamp_seconds", "When the configuration in force was loaded.", "the exporter")
	cacheBytes       = metric.Gauge("exporter_exposition_cache_bytes", "Bytes of encoded metrics that are kept ready for scrapes.", "the exporter")
)

// Definitions lists every metric of the exporter, in the order of the documentation.
func Definitions() []*metric.Definition {
	return slices.Concat(
		collector.Definitions(),
		[]*metric.Definition{buildInfo},
		collector.HealthDefinitions(),
		rentalapi.Definitions(),
		[]*metric.Definition{reloadSuccessful, reloadTime, cacheBytes},
	)
}

// collectorSpecs is what the configuration needs to know about the collectors.
func collectorSpecs() []config.CollectorSpec {
	var specs []config.CollectorSpec
	for _, r := range collector.Resources() {
		specs = append(specs, config.CollectorSpec{
			Name: r.Name, Help: r.Help, Account: r.Account,
			Interval: r.Interval, MaxAge: r.MaxAge, MinInterval: r.MinInterval,
			Requests: r.Requests, MaxRequests: r.MaxRequests,
		})
	}
	return specs
}

// Pipeline is the way of the data from the API to a scrape, without flags and
// sockets.
type Pipeline struct {
	Client    *rentalapi.Client
	Set       *collector.Set
	Publisher *exposition.Publisher

	logger       log.Logger
	selfRegistry *prometheus.Registry // what changes all the time; the publisher has the rest
	publishing   sync.WaitGroup
}

// NewPipeline wires a pipeline; nothing runs yet.
func NewPipeline(logger log.Logger, userAgent string, settings rentalapi.Settings) *Pipeline {
	p := &Pipeline{
		Client:       rentalapi.New(userAgent, settings),
		logger:       logger,
		selfRegistry: prometheus.NewRegistry(),
	}
	accounts := &exposition.Group{Descs: metric.Descs(rentalapi.AccountDefinitions()), Collect: p.Client.AccountMetrics}
	p.Set = collector.New(logger, p.Client, accounts)
	p.Publisher = p.Set.Publisher
	p.Client.OnAccountUpdate = accounts.Changed
	p.selfRegistry.MustRegister(p.Client)
	return p
}

// Start publishes until ctx ends; collectors start with Set.ApplyConfig.
func (p *Pipeline) Start(ctx context.Context) {
	p.publishing.Go(func() { p.Publisher.Run(ctx) })
}

// Wait returns when all that was started has ended.
func (p *Pipeline) Wait() {
	p.Set.Wait()
	p.publishing.Wait()
}

// MetricsHandler serves the metrics, those of the process included. It is called
// once.
func (p *Pipeline) MetricsHandler() http.Handler {
	errorsTotal := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "promhttp_metric_handler_errors_total",
		Help: "Total number of internal errors encountered by the promhttp metric handler.",
	}, []string{"cause"})
	errorsTotal.WithLabelValues("gathering") // both start at 0, so that the first error is an increase
	errorsTotal.WithLabelValues("encoding")
	p.selfRegistry.MustRegister(
		errorsTotal, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: cacheBytes.Name, Help: cacheBytes.Help, Unit: cacheBytes.BaseUnit()},
			func() float64 { return float64(p.Publisher.CacheBytes()) }),
	)
	return promhttp.InstrumentMetricHandler(p.selfRegistry, &exposition.Handler{
		Publisher: p.Publisher,
		Gatherer:  withoutAllocGauge{p.selfRegistry},
		OnError: func(cause string, err error) {
			errorsTotal.WithLabelValues(cause).Inc()
			level.Error(p.logger).Log("msg", "cannot serve metrics", "err", err)
		},
	})
}

// SelfMetrics returns what changes all the time and is therefore not published; those
// of the process only after MetricsHandler was called.
func (p *Pipeline) SelfMetrics() prometheus.Gatherer { return p.selfRegistry }

// gatherer returns everything that is exported.
func (p *Pipeline) gatherer() prometheus.Gatherer {
	published := prometheus.NewRegistry()
	published.MustRegister(p.Publisher)
	return disjointGatherers{withoutAllocGauge{p.selfRegistry}, published}
}

// disjointGatherers gathers from all of them; they share no family. Unlike
// prometheus.Gatherers it keeps the units of families.
type disjointGatherers []prometheus.Gatherer

// Gather implements prometheus.Gatherer.
func (gs disjointGatherers) Gather() ([]*dto.MetricFamily, error) {
	var all []*dto.MetricFamily
	var errs error
	for _, g := range gs {
		families, err := g.Gather()
		all = append(all, families...)
		errs = errors.Join(errs, err)
	}
	slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all, errs
}

// withoutAllocGauge drops the gauge go_memstats_alloc_bytes, whose name is also that
// of a counter in OpenMetrics, which strict parsers refuse.
type withoutAllocGauge struct{ prometheus.Gatherer }

// Gather implements prometheus.Gatherer.
func (g withoutAllocGauge) Gather() ([]*dto.MetricFamily, error) {
	families, err := g.Gatherer.Gather()
	return slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "go_memstats_alloc_bytes" }), err
}

func newGauge(d *metric.Definition) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: d.Name, Help: d.Help, Unit: d.BaseUnit()})
}

func newBuildInfo() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: buildInfo.Name, Help: buildInfo.Help,
		ConstLabels: prometheus.Labels{
			"version": version.Version, "revision": version.GetRevision(), "branch": version.Branch,
			"goversion": version.GoVersion, "goos": version.GoOS, "goarch": version.GoArch, "tags": version.GetTags(),
		},
	}, func() float64 { return 1 })
}
