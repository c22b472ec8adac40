// Package exporter is the program: flags, wiring, reload, the demo and the server.
// Tests run it without a process of its own.
package exporter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"

	"server_rental_exporter/config"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/runner"
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

	config    atomic.Pointer[config.Config] // in force
	reloading sync.Mutex                    // one reload at a time, and none while the end is waited for
}

// newExporter wires everything; nothing is fetched or served yet.
func newExporter(ctx context.Context, o *options, env Environment, logger log.Logger, cfg *config.Config) (*exporter, error) {
	e := &exporter{options: o, getenv: env.Getenv, timeouts: env.Timeouts, logger: logger}
	if o.Demo {
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
	level.Info(e.logger).Log("msg", "starting "+name, "version", version.Version, "revision", version.GetRevision(), "go", version.GoVersion)
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
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(e.timeouts.Drain, 20*time.Second))
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
