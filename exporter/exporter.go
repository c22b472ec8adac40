// Package exporter is the program: flags, wiring, reload, the demo and the server.
// Tests run it without a process of its own.
package exporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"

	"server_rental_exporter/collector"
	"server_rental_exporter/config"
	"server_rental_exporter/internal/runner"
)

const name = "server_rental_exporter"

// Environment is what Run needs of the process around it.
type Environment struct {
	Args           []string
	Getenv         func(string) string
	Stdout, Stderr io.Writer
	Hangup         <-chan os.Signal // reloads the configuration
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
	if o.Check {
		printSummary(env.Stdout, cfg)
		return 0
	}
	logger := newLogger(env.Stderr, o.logLevel, o.logFormat)
	e, err := newExporter(ctx, o, env, logger, cfg)
	if err != nil {
		level.Error(logger).Log("msg", "start failed", "err", err)
		return 1
	}
	defer e.demo.close()
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
	options *options
	getenv  func(string) string
	logger  log.Logger
	demo    *demo // nil without --demo
	metrics *metrics
	drain   time.Duration // for requests in progress at shutdown

	reloading sync.Mutex // one reload at a time, and none while the end is waited for
}

// newExporter wires everything; nothing is fetched or served yet.
func newExporter(ctx context.Context, o *options, env Environment, logger log.Logger, cfg *config.Config) (*exporter, error) {
	e := &exporter{options: o, getenv: env.Getenv, logger: logger, drain: 20 * time.Second}
	if o.Demo {
		var err error
		if e.demo, err = startDemo(ctx, pageURL(o.web)); err != nil {
			return nil, err
		}
	}
	settings, err := e.apiSettings(cfg)
	if err != nil {
		e.demo.close()
		return nil, err
	}
	e.Runner = runner.New(runner.Options{Logger: logger, UserAgent: name + "/" + version.Version, API: settings})
	e.metrics = newMetrics(e.Runner)
	e.recordReload(cfg)
	return e, nil
}

// once fetches everything, prints it and logs the provider's id and name of each account,
// to show whose tokens are configured. The error says what failed.
func (e *exporter) once(ctx context.Context, w io.Writer) error {
	failed := e.Once(ctx, runnerConfig(e.metrics.loaded.Load().config))
	e.Publisher.Publish()
	all := prometheus.NewRegistry()
	all.MustRegister(e.metrics.registry, e.Publisher)
	families, err := all.Gather()
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return fmt.Errorf("output: %w", err)
		}
	}
	for _, s := range collector.Samples(e.Publisher)["account_info"] {
		level.Info(e.logger).Log("msg", "account found", "account", s.Label("account"), "id", s.Label("id"), "name", s.Label("name"))
	}
	return errors.Join(failed, err)
}

// serve collects and serves until ctx ends, and then completes requests in progress. It
// returns within the drain time, whatever hangs.
func (e *exporter) serve(ctx context.Context, hangup <-chan os.Signal) error {
	signal.Ignore(syscall.SIGPIPE) // of a log that nobody reads any more
	level.Info(e.logger).Log("msg", "starting "+name, "version", version.Version, "revision", version.GetRevision(), "go", version.GoVersion)
	runCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if e.demo != nil {
		level.Info(e.logger).Log("msg", "demo: all data is simulated", "page", pageURL(e.options.web))
	}
	e.Run(runCtx)
	e.ApplyConfig(runCtx, runnerConfig(e.metrics.loaded.Load().config))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.reloads(runCtx, hangup)
		e.reloading.Lock()
		defer e.reloading.Unlock()
		e.Wait()
	}()

	server := e.newServer(e.handler(runCtx))
	failed := make(chan error, 1)
	go func() { failed <- toolkit.ListenAndServe(server, e.options.web, newSlogger(e.logger)) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	level.Info(e.logger).Log("msg", "shutting down")
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.drain)
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
