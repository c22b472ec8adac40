package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"runtime"
	"sync"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/prometheus/client_golang/prometheus/promhttp/zstd" // lets promhttp answer in zstd
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/version"

	"server_rental_exporter/collector"
	"server_rental_exporter/config"
	"server_rental_exporter/internal/exposition"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/process"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/web"
)

var (
	buildInfo = metric.Gauge("exporter_build_info", "Which build of the exporter this is; constant 1.", "the build",
		"version", "revision", "branch", "goversion", "goos", "goarch", "tags").Per("exporter")
	reloadSuccessful = metric.Gauge("exporter_config_last_reload_successful", "Whether the last attempt to load the configuration succeeded: 1 or 0.", "the exporter")
	expositionBytes  = metric.Gauge("exporter_exposition_bytes", "Bytes of encoded and compressed metrics that are kept ready for scrapes.", "the exporter")
	reloadTime       = metric.Gauge("exporter_config_last_reload_success_timestamp_seconds", "When the configuration in force was loaded.", "the exporter")
)

// definitions lists every metric of the exporter, in the order of the documentation.
func definitions() []*metric.Definition {
	var all []*metric.Definition
	for _, r := range collector.Resources() {
		all = append(all, r.Metrics...)
	}
	all = append(all, buildInfo)
	all = append(all, collector.Definitions()...)
	all = append(all, rentalapi.Definitions()...)
	return append(all, reloadSuccessful, reloadTime, expositionBytes)
}

// specs is what the configuration has to know of the collectors.
func specs() []config.CollectorSpec {
	var all []config.CollectorSpec
	for _, r := range collector.Resources() {
		all = append(all, config.CollectorSpec{
			Name: r.Name, Help: r.Help, Account: r.Account,
			Interval: r.Interval, MaxAge: r.MaxAge, MinInterval: r.MinInterval,
			Requests: r.Requests, MaxRequests: r.MaxRequests,
		})
	}
	return all
}

// exporter is the running program.
type exporter struct {
	options *options
	getenv  func(string) string
	logger  log.Logger
	client  *rentalapi.Client
	set     *collector.Set
	own     *prometheus.Registry // what changes all the time
	data    *prometheus.Registry // what the API said, and what collectors say of themselves: it changes with a refresh
	demo    *demo                // nil without --demo

	reloadOK   prometheus.Gauge
	reloadTime prometheus.Gauge

	keeping sync.WaitGroup // what keeps the exposition ready

	mu  sync.Mutex     // held while a configuration is put in force
	cfg *config.Config // the one in force
}

// newExporter wires everything; nothing is asked or served yet.
func newExporter(ctx context.Context, o *options, getenv func(string) string, logger log.Logger, cfg *config.Config) (*exporter, error) {
	e := &exporter{options: o, getenv: getenv, logger: logger, own: prometheus.NewRegistry(), data: prometheus.NewRegistry()}
	if o.Demo() {
		d, err := startDemo(ctx)
		if err != nil {
			return nil, err
		}
		e.demo = d
		e.demo.fill(cfg)
	}
	settings, err := settingsOf(cfg)
	if err != nil {
		e.close()
		return nil, err
	}
	e.cfg = cfg
	e.client = rentalapi.New(name+"/"+version.Version, settings)
	e.set = collector.New(logger, e.client)
	e.reloadOK = newGauge(reloadSuccessful)
	e.reloadTime = newGauge(reloadTime)
	e.loaded()
	e.warnOfTokens()
	e.own.MustRegister(e.client, e.reloadOK, e.reloadTime, newBuildInfo())
	e.data.MustRegister(e.set, e.set.State())
	return e, nil
}

func newGauge(d *metric.Definition) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: d.Name, Help: d.Help})
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

func (e *exporter) close() {
	if e.demo != nil {
		e.demo.close()
	}
}

// settingsOf returns how the API is to be asked.
func settingsOf(cfg *config.Config) (rentalapi.Settings, error) {
	transport, err := rentalapi.NewTransport(cfg.API.HTTP)
	if err != nil {
		return rentalapi.Settings{}, fmt.Errorf("api.http: %w", err)
	}
	limits := rentalapi.Limits{Public: cfg.API.RateLimit.Public, Account: cfg.API.RateLimit.Account}
	for _, c := range cfg.RequestRates(specs()) {
		if c.Account != "" {
			limits.AccountBulk = max(1, limits.Account-int(math.Ceil(c.MaxPerMinute)))
		}
	}
	return rentalapi.Settings{BaseURL: cfg.API.BaseURL, Transport: transport, Timeout: cfg.API.Timeout, Limits: limits}, nil
}

// plan returns what is to be collected.
func plan(cfg *config.Config) collector.Config {
	c := collector.Config{API: cfg.API.BaseURL.String(), Collectors: map[string]refresh.Settings{}}
	for name, s := range cfg.Collectors {
		if s.Enabled {
			c.Collectors[name] = refresh.Settings{Interval: s.Interval, MaxAge: s.MaxAge}
		}
	}
	for _, a := range cfg.Accounts {
		account := collector.Account{Name: a.Name, Identity: "file " + a.TokenFile}
		if a.TokenFile == "" {
			token := string(a.Token)
			account.Identity = "environment"
			account.Token = func() (string, error) { return token, nil }
		} else {
			account.Token = func() (string, error) { return config.ReadToken(a.TokenFile) }
		}
		c.Accounts = append(c.Accounts, account)
	}
	return c
}

// collect starts the collectors of the configuration in force.
func (e *exporter) collect(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.demo != nil {
		e.demo.live(ctx)
	}
	e.set.Apply(ctx, plan(e.cfg))
}

// reload reads the configuration again and puts it in force, or returns why not.
func (e *exporter) reload(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	cfg, err := e.options.load(e.getenv)
	var settings rentalapi.Settings
	if err == nil {
		if e.demo != nil {
			e.demo.fill(cfg)
		}
		settings, err = settingsOf(cfg)
	}
	if err != nil {
		e.reloadOK.Set(0)
		level.Error(e.logger).Log("msg", "configuration refused, the running one stays", "err", err)
		return err
	}
	e.cfg = cfg
	e.client.Configure(settings)
	e.set.Apply(ctx, plan(cfg))
	e.loaded()
	e.warnOfTokens()
	level.Info(e.logger).Log("msg", "configuration reloaded")
	return nil
}

func (e *exporter) loaded() {
	e.reloadOK.Set(1)
	e.reloadTime.SetToCurrentTime()
}

// readableByOthers is the permission to read, write or run a file that every user
// of the machine has. Those of the group are no fault: Kubernetes gives a secret
// to a pod's group.
const readableByOthers = 0o007

// warnOfTokens warns of token files that every user of the machine can read.
func (e *exporter) warnOfTokens() {
	if runtime.GOOS == "windows" { // where these bits tell nothing
		return
	}
	for _, a := range e.cfg.Accounts {
		if a.TokenFile == "" {
			continue
		}
		info, err := os.Stat(a.TokenFile) // what a link leads to is what is read
		if err == nil && info.Mode().Perm()&readableByOthers != 0 {
			level.Warn(e.logger).Log("msg", "token file can be read by others", "account", a.Name, "mode", fmt.Sprintf("%04o", info.Mode().Perm()))
		}
	}
}

// once fetches everything and prints it. What failed is missing there, and is the error.
func (e *exporter) once(ctx context.Context, w io.Writer) error {
	failed := e.set.Once(ctx, plan(e.cfg))
	families, err := prometheus.Gatherers{e.own, e.data}.Gather()
	for _, f := range families {
		if _, werr := expfmt.MetricFamilyToText(w, f); werr != nil {
			return fmt.Errorf("output: %w", werr)
		}
	}
	return errors.Join(failed, err)
}

// handler serves everything there is.
func (e *exporter) handler(ctx context.Context) http.Handler {
	e.own.MustRegister(collectors.NewGoCollector())
	if c, err := process.New(); err != nil {
		level.Warn(e.logger).Log("msg", "metrics of the process are missing", "err", err)
	} else {
		e.own.MustRegister(c)
	}
	metrics := promhttp.InstrumentMetricHandler(e.own, e.metrics(ctx))
	o := web.Options{
		Version: version.Info(), API: e.source, MetricsPath: e.options.telemetryPath, Metrics: metrics,
		Discovery: e.options.discovery,
	}
	if e.options.lifecycle {
		o.Reload = func() error { return e.reload(ctx) }
	}
	return web.Handler(e.set, o)
}

// metrics serves the exposition: the data from blocks that are kept until a
// refresh changes them, and the exporter's own metrics afresh.
func (e *exporter) metrics(ctx context.Context) http.Handler {
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "promhttp_metric_handler_errors_total",
		Help: "Total number of internal errors encountered by the promhttp metric handler.",
	}, []string{"cause"})
	failures.WithLabelValues("gathering") // both start at 0, so that the first one is a rise
	failures.WithLabelValues("encoding")
	e.own.MustRegister(failures)
	whole := exposition.HandlerOptions()
	whole.Registry = e.own // promhttp finds the counter above there and uses it too
	whole.ErrorLog = promLogger{e.logger}
	h := &exposition.Handler{
		Blocks: e.set.Blocks,
		Own:    e.own,
		Whole:  promhttp.HandlerFor(prometheus.Gatherers{e.own, e.data}, whole),
		Failed: func(cause string, err error) {
			failures.WithLabelValues(cause).Inc()
			level.Error(e.logger).Log("msg", "metrics", "err", err)
		},
	}
	e.own.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: expositionBytes.Name, Help: expositionBytes.Help},
		func() float64 { return float64(e.set.KeptBytes()) }))
	e.keeping.Go(func() { h.Keep(ctx, e.set.Renewed(), e.set.Due) })
	return h
}

// source says in words where the data comes from.
func (e *exporter) source() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.demo != nil {
		return "a simulated provider (--demo)"
	}
	return e.cfg.API.BaseURL.Host
}

// promLogger hands promhttp's errors to the log.
type promLogger struct{ log.Logger }

func (l promLogger) Println(v ...any) {
	level.Error(l.Logger).Log("msg", "metrics", "err", fmt.Sprint(v...))
}
