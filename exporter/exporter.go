// Package exporter is the program: flags, wiring, reload, the demo and the server.
// Tests run it without a process of its own.
package exporter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/version"

	"github.com/server-rental-exporter/server_rental_exporter/config"
	"github.com/server-rental-exporter/server_rental_exporter/internal/exposition"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/demo"
	"github.com/server-rental-exporter/server_rental_exporter/runner"
)

const name = "server_rental_exporter"

// Environment holds the inputs and outputs of the process.
type Environment struct {
	Args           []string
	LookupEnv      func(string) (string, bool)
	Stdout, Stderr io.Writer
	Hangup         <-chan os.Signal // reloads the configuration
	Unlimited      bool             // tests set it, to send requests without rate limits
}

// gcPercent is the default of GOGC. Large catalogs take 256 MiB at most with it; collecting garbage more
// often costs little, because little is made.
const gcPercent = 50

// Main is the whole program; it returns the exit status. It shuts down when ctx ends.
func Main(ctx context.Context, env Environment) int {
	if _, isSet := env.LookupEnv("GOGC"); !isSet {
		debug.SetGCPercent(gcPercent)
	}
	o, err := parse(env.Args, env.Stdout)
	var cfg *config.Config
	switch {
	case err == nil && o.printed:
		return 0
	case err == nil && o.health:
		if err = o.healthcheck(ctx); err == nil {
			fmt.Fprintln(env.Stdout, "healthy")
			return 0
		}
	case err == nil:
		cfg, err = o.configure(env.LookupEnv)
	}
	if err != nil {
		printFaults(env.Stderr, env.Args, err)
		return 1
	}
	if o.Check {
		printSummary(env.Stdout, cfg)
		return 0
	}
	logger := newLogger(env.Stderr, o.logLevel, o.logFormat)
	e, err := newExporter(o, env, logger, cfg)
	switch {
	case err != nil:
	case o.once:
		err = e.printOnce(ctx)
	default:
		err = e.serve(ctx, drainTime)
	}
	if err != nil {
		level.Error(logger).Log("msg", "exporter stopped", "err", err)
		return 1
	}
	return 0
}

// exporter is the running program.
type exporter struct {
	api     *rentalapi.API
	runner  *runner.Runner
	options *options
	env     Environment
	logger  log.Logger
	demo    *simulator.Simulator // nil without --demo

	registry     *prometheus.Registry // metrics that are encoded at each scrape
	scrapeErrors *prometheus.CounterVec
	group        *exposition.Group // metrics of this package
	loaded       atomic.Pointer[loaded]

	reloading sync.Mutex // held during a reload, and once the collectors end: no reload starts others then
}

// newExporter wires everything; nothing is fetched or served yet.
func newExporter(o *options, env Environment, logger log.Logger, cfg *config.Config) (*exporter, error) {
	e := &exporter{options: o, env: env, logger: logger}
	e.registry, e.scrapeErrors = newRegistry(o)
	e.group = e.newGroup()
	if o.Demo {
		e.demo = demo.New()
	}
	settings, err := e.settings(cfg)
	if err != nil {
		return nil, err
	}
	e.api = rentalapi.New(name+"/"+version.Version, settings, e.registry)
	e.runner = runner.New(runner.Options{Logger: logger, API: e.api, Groups: []*exposition.Group{e.group}})
	e.loaded.Store(&loaded{config: cfg, at: time.Now()})
	return e, nil
}

// printOnce fetches everything and prints it, or nothing if it is interrupted. The error says what
// failed.
func (e *exporter) printOnce(ctx context.Context) error {
	failed := e.runner.Once(ctx, e.loaded.Load().spec())
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: %w", ctx.Err())
	}
	e.runner.Publisher.Publish()
	families, err := prometheus.Gatherers{e.registry, e.runner.Publisher}.Gather()
	var text bytes.Buffer
	for _, f := range families {
		_, encodeErr := expfmt.MetricFamilyToText(&text, f)
		err = errors.Join(err, encodeErr)
	}
	written := make(chan error, 1)
	go func() {
		_, err := text.WriteTo(e.env.Stdout)
		written <- err
	}()
	select {
	case <-ctx.Done(): // nobody reads it
		return fmt.Errorf("output: interrupted: %w", ctx.Err())
	case writeErr := <-written:
		if writeErr != nil {
			return fmt.Errorf("output: %w", writeErr)
		}
	}
	return errors.Join(failed, err)
}

const (
	accountInterval = time.Minute      // time between two searches for account files
	drainTime       = 18 * time.Second // bound on a shutdown; the end of a log that blocks takes another second
)

// serve collects and serves until ctx ends, and then completes requests in progress. It
// returns within the drain time, whatever hangs.
func (e *exporter) serve(ctx context.Context, drain time.Duration) error {
	signal.Ignore(syscall.SIGPIPE) // a log that nobody reads any more raises it
	level.Info(e.logger).Log("msg", "starting "+name, "version", version.Version, "revision", version.GetRevision(), "go", version.GoVersion, "accounts", len(e.loaded.Load().config.Accounts))
	listeners, err := listen(ctx, e.options.web)
	if err != nil {
		return err
	}
	runCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var background sync.WaitGroup
	if e.demo != nil {
		level.Info(e.logger).Log("msg", "demo: all data is simulated", "page", localURL(e.options.web, listeners[0].Addr().String()))
		background.Go(func() { e.demo.Run(runCtx) })
	}
	e.runner.Run(runCtx)
	e.runner.ApplyConfig(runCtx, e.loaded.Load().spec())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		look := time.NewTicker(accountInterval)
		defer look.Stop()
		for runCtx.Err() == nil {
			select {
			case <-runCtx.Done():
			case <-e.env.Hangup:
				_ = e.reload(runCtx) // it logs its outcome
			case <-look.C:
				e.lookForAccounts(runCtx)
			}
		}
		e.reloading.Lock()
		defer e.reloading.Unlock()
		e.runner.Wait()
		background.Wait()
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
