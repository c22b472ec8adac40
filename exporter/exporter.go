// Package exporter is the program: flags, wiring, reload, the demo and the server.
// Tests run it without a process of its own.
package exporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/version"

	"server_rental_exporter/config"
	"server_rental_exporter/internal/exposition"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/runner"
)

const name = "server_rental_exporter"

// Environment is what Run needs of the process around it.
type Environment struct {
	Args           []string
	LookupEnv      func(string) (string, bool)
	Stdout, Stderr io.Writer
	Hangup         <-chan os.Signal // reloads the configuration
}

// Run is the whole program; it returns the exit status. It shuts down when ctx ends.
func Run(ctx context.Context, env Environment) int {
	o, err := parse(env.Args, env.Stdout)
	var cfg *config.Config
	switch {
	case err != nil || o.printed:
	case o.health:
		err = o.healthcheck(ctx)
	default:
		cfg, err = o.configure(env.LookupEnv)
	}
	switch {
	case err != nil:
		fmt.Fprintln(env.Stderr, err)
		return 1
	case o.printed:
		return 0
	case o.health:
		fmt.Fprintln(env.Stdout, "healthy")
		return 0
	case o.Check:
		printSummary(env.Stdout, cfg)
		return 0
	}
	logger := newLogger(env.Stderr, o.logLevel, o.logFormat)
	demoCtx, stop := context.WithCancel(context.WithoutCancel(ctx)) // the demo serves until the end
	defer stop()
	e, err := newExporter(demoCtx, o, env, logger, cfg)
	if err != nil {
		level.Error(logger).Log("msg", "start failed", "err", err)
		return 1
	}
	if o.once {
		err = e.printOnce(ctx, env.Stdout)
	} else {
		err = e.serve(ctx, env.Hangup, drainTime)
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
	lookup  func(string) (string, bool) // of an environment variable
	logger  log.Logger
	demo    *simulator.Simulator // nil without --demo
	demoAPI *url.URL             // of the demo

	registry *prometheus.Registry // of what is encoded at each scrape
	group    *exposition.Group    // of the exporter itself
	loaded   atomic.Pointer[loaded]

	transport http.RoundTripper // of requests to the API

	reloading sync.Mutex // one reload at a time, and none while the end is waited for
}

// newExporter wires everything; nothing is fetched or served yet, but by a demo until ctx
// ends.
func newExporter(ctx context.Context, o *options, env Environment, logger log.Logger, cfg *config.Config) (*exporter, error) {
	e := &exporter{options: o, lookup: env.LookupEnv, logger: logger, registry: prometheus.NewRegistry()}
	e.group = e.newGroup()
	if o.Demo {
		var err error
		if e.demo, e.demoAPI, err = startDemo(ctx, pageURL(o.web)); err != nil {
			return nil, err
		}
	}
	if err := e.use(cfg); err != nil {
		return nil, err
	}
	return e, nil
}

// printOnce fetches everything, prints it and logs the provider's id and name of each account,
// to show whose tokens are configured. The error says what failed.
func (e *exporter) printOnce(ctx context.Context, w io.Writer) error {
	failed := e.Once(ctx, e.loaded.Load().collected)
	e.Publisher.Publish()
	e.registry.MustRegister(e.Publisher)
	families, err := e.registry.Gather()
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return fmt.Errorf("output: %w", err)
		}
	}
	for _, s := range e.Publisher.Samples()["account_info"] {
		level.Info(e.logger).Log("msg", "account found", "account", s.Label("account"), "id", s.Label("id"), "name", s.Label("name"))
	}
	return errors.Join(failed, err)
}

// drainTime is for requests in progress at shutdown.
const drainTime = 20 * time.Second

// serve collects and serves until ctx ends, and then completes requests in progress. It
// returns within the drain time, whatever hangs.
func (e *exporter) serve(ctx context.Context, hangup <-chan os.Signal, drain time.Duration) error {
	signal.Ignore(syscall.SIGPIPE) // of a log that nobody reads any more
	level.Info(e.logger).Log("msg", "starting "+name, "version", version.Version, "revision", version.GetRevision(), "go", version.GoVersion, "accounts", len(e.loaded.Load().config.Accounts))
	listeners, err := listen(ctx, e.options.web)
	if err != nil {
		return err
	}
	runCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if e.demo != nil {
		level.Info(e.logger).Log("msg", "demo: all data is simulated", "page", pageURL(e.options.web))
	}
	e.Run(runCtx)
	e.ApplyConfig(runCtx, e.loaded.Load().collected)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for runCtx.Err() == nil {
			select {
			case <-runCtx.Done():
			case <-hangup:
				_ = e.reload(runCtx) // it logs its outcome
			}
		}
		e.reloading.Lock()
		defer e.reloading.Unlock()
		e.Wait()
	}()

	servers, failed := e.serveAt(listeners, e.handler(runCtx))
	select {
	case err := <-failed:
		for _, server := range servers {
			_ = server.Close()
		}
		return err
	case <-ctx.Done():
	}
	level.Info(e.logger).Log("msg", "shutting down")
	drainCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err = shutdown(drainCtx, servers)
	stop()
	select {
	case <-ended:
	case <-drainCtx.Done():
	}
	return err
}
