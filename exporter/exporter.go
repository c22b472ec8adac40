// Package exporter is the program: flags, wiring, reload, the demo and the server.
// Tests run it without a process of its own.
package exporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"

	"server_rental_exporter/collector"
	"server_rental_exporter/config"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/runner"
	"server_rental_exporter/web"
)

const name = "server_rental_exporter"

// Environment is what Run needs of the process around it.
type Environment struct {
	Args           []string
	Getenv         func(string) string
	Stdout, Stderr io.Writer
	Hangup         <-chan os.Signal // reloads the configuration
	Timeouts       Timeouts
}

// Timeouts of the server; zero means the default.
type Timeouts struct {
	Drain      time.Duration // for requests in progress at shutdown; 20 s
	ReadHeader time.Duration // for the header of a request; 10 s
	TokenPoll  time.Duration // from one comparison of the token files to the next; 5 s
}

// Run is the whole program; it returns the exit status. It shuts down when ctx ends.
func Run(ctx context.Context, env Environment) int {
	o, err := parse(env.Args, env.Stdout)
	if errors.Is(err, errPrinted) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(env.Stderr, err)
		return 1
	}
	if o.health {
		return o.healthcheck(ctx, env.Stdout, env.Stderr)
	}
	cfg, err := o.load(env.Getenv)
	if err != nil {
		fmt.Fprintln(env.Stderr, err)
		return 1
	}
	if o.Check() {
		printSummary(env.Stdout, cfg)
		return 0
	}
	logger := newLogger(env.Stderr, o.logLevel, o.logFormat)
	e, err := newExporter(ctx, o, env, logger, cfg)
	if err != nil {
		level.Error(logger).Log("msg", "start failed", "err", err)
		return 1
	}
	defer e.close()
	if o.once {
		err = e.once(ctx, env.Stdout)
	} else {
		err = e.serve(ctx, env.Hangup)
	}
	if err != nil {
		level.Error(logger).Log("msg", "exporter stopped", "err", err)
		return 1
	}
	return 0
}

// exporter is the running program.
type exporter struct {
	*runner.Runner
	options  *options
	getenv   func(string) string
	timeouts Timeouts
	logger   log.Logger
	demo     *demo // nil without --demo
	metrics  *metrics

	config   atomic.Pointer[config.Config] // in force
	requests chan chan error               // for a reload, each with its reply
	stopped  chan struct{}                 // closed when requests are no longer read
}

// newExporter wires everything; nothing is fetched or served yet.
func newExporter(ctx context.Context, o *options, env Environment, logger log.Logger, cfg *config.Config) (*exporter, error) {
	e := &exporter{
		options: o, getenv: env.Getenv, timeouts: env.Timeouts, logger: logger, requests: make(chan chan error), stopped: make(chan struct{}),
	}
	if o.Demo() {
		d, err := startDemo(ctx, demoSite(o.web))
		if err != nil {
			return nil, err
		}
		e.demo = d
		e.demo.applyTo(cfg)
	}
	settings, err := apiSettings(cfg)
	if err != nil {
		e.close()
		return nil, err
	}
	e.Runner = runner.New(runner.Options{
		Logger: logger, UserAgent: name + "/" + version.Version, API: settings, TokenPollInterval: env.Timeouts.TokenPoll,
	})
	e.metrics = newMetrics(e.Runner)
	e.recordReload(cfg)
	return e, nil
}

func (e *exporter) close() {
	if e.demo != nil {
		e.demo.close()
	}
}

// once fetches everything, prints it and logs which accounts answered. The error says
// what failed; it is missing from the output.
func (e *exporter) once(ctx context.Context, w io.Writer) error {
	failed := e.Once(ctx, runnerConfig(e.config.Load()))
	e.Publisher.Publish()
	families, err := e.metrics.gatherer().Gather()
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return fmt.Errorf("output: %w", err)
		}
		if f.GetName() == metric.Namespace+"account_info" {
			e.logAccounts(f)
		}
	}
	return errors.Join(failed, err)
}

// logAccounts logs the provider's id and name of each account, to show whose tokens
// are configured.
func (e *exporter) logAccounts(info *dto.MetricFamily) {
	for _, m := range info.Metric {
		labels := map[string]string{}
		for _, l := range m.Label {
			labels[l.GetName()] = l.GetValue()
		}
		level.Info(e.logger).Log("msg", "account found", "account", labels["account"], "id", labels["id"], "name", labels["name"])
	}
}

// serve collects and serves until ctx ends, and then completes requests in progress. It
// returns within the drain time, whatever hangs.
func (e *exporter) serve(ctx context.Context, hangup <-chan os.Signal) error {
	signal.Ignore(syscall.SIGPIPE) // of a log that nobody reads any more
	level.Info(e.logger).Log("msg", "starting "+name, "version", version.Info(), "build", version.BuildContext())
	runCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if e.demo != nil {
		e.demo.run(runCtx)
		level.Info(e.logger).Log("msg", "demo: all data is simulated", "page", pageURL(e.options.web))
	}
	e.Publish(runCtx)
	e.ApplyConfig(runCtx, runnerConfig(e.config.Load()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.reloads(runCtx, hangup)
		e.Wait()
	}()

	server := e.newServer(e.handler())
	failed := make(chan error, 1)
	go func() { failed <- toolkit.ListenAndServe(server, e.options.web, newSlogger(e.logger)) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	level.Info(e.logger).Log("msg", "shutting down")
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), orDefault(e.timeouts.Drain, 20*time.Second))
	defer cancel()
	err := server.Shutdown(drain)
	if err != nil {
		err = errors.Join(fmt.Errorf("shutdown: %w", err), server.Close())
	}
	stop()
	select {
	case <-ended:
	case <-drain.Done():
	}
	return err
}

// handler serves all paths.
func (e *exporter) handler() http.Handler {
	process := processCollectors()
	if e.options.disableExporterMetrics {
		process = nil
	}
	o := web.Options{
		Version: version.Info(), API: e.apiDescription, MetricsPath: e.options.telemetryPath, Metrics: e.metrics.handler(e.logger, process),
		Discovery: e.options.discovery, Configured: e.configured,
	}
	if e.options.overview {
		o.Published = e.Publisher
	}
	if e.options.lifecycle {
		o.Reload = e.requestReload
	}
	h := web.Handler(pages{e.Runner}, o)
	if e.demo != nil {
		return e.demo.withPages(h)
	}
	return h
}

// configured returns what the landing page shows of the configuration in force.
func (e *exporter) configured() web.Configured {
	cfg := e.config.Load().Own(collector.Resources())
	var reloaded dto.Metric
	_ = e.metrics.reloadOK.Write(&reloaded) // a gauge returns no error
	c := web.Configured{Watches: cfg.Watches, ReloadFailed: reloaded.GetGauge().GetValue() == 0}
	for _, a := range cfg.Accounts {
		c.Accounts = append(c.Accounts, a.Name)
	}
	return c
}

// NewHandler serves the data of a runner with the options of its pages, as the program
// does, without flags and sockets. It sets the handler of the metrics.
func NewHandler(r *runner.Runner, logger log.Logger, o web.Options) http.Handler {
	o.Metrics = newMetrics(r).handler(logger, processCollectors())
	return web.Handler(pages{r}, o)
}

// pages is what the pages read.
type pages struct{ *runner.Runner }

// ActiveServers implements web.Collectors.
func (p pages) ActiveServers(account string) ([]collector.Server, error) {
	return collector.ActiveServers(p.Accounts(), account)
}

// apiDescription says in words where the data comes from.
func (e *exporter) apiDescription() string {
	if e.demo != nil {
		return "a simulated provider (--demo)"
	}
	return e.config.Load().API.BaseURL.Host
}

// maxConnections bounds the memory that clients take who connect and do nothing.
const maxConnections = 512

// connections counts the open connections of a server.
type connections struct{ open atomic.Int64 }

// track closes a new connection if there are too many. It is a hook of http.Server.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if c.open.Add(1) > maxConnections {
			_ = conn.Close() // the server notices
		}
	case http.StateClosed, http.StateHijacked:
		c.open.Add(-1)
	}
}

func (e *exporter) newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ConnState:         new(connections).track,
		ReadHeaderTimeout: orDefault(e.timeouts.ReadHeader, 10*time.Second),
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          newErrorLog(e.logger),
	}
}

func orDefault(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}

// pageURL is the landing page's URL for a browser on this machine; empty if it is
// not known.
func pageURL(flags *toolkit.FlagConfig) string {
	settings, err := readTLSConfig(*flags.WebConfigFile)
	if err != nil || *flags.WebSystemdSocket {
		return ""
	}
	host, port, err := net.SplitHostPort((*flags.WebListenAddresses)[0])
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return schemeOf(settings) + "://" + net.JoinHostPort(host, port) + "/"
}

// demoSite is the address at which a browser on this machine can reach the pages of a
// demo although only the exporter's port is published, as that of a container; empty if
// the exporter does not listen on all addresses.
func demoSite(flags *toolkit.FlagConfig) string {
	page := strings.TrimSuffix(pageURL(flags), "/")
	if !strings.Contains(page, "://localhost:") {
		return ""
	}
	return page
}
