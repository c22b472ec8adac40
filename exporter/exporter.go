// Package exporter is the program: flags, wiring, reload, the demo and the server.
// Tests run it without a process of its own.
package exporter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/version"
	"golang.org/x/sync/errgroup"

	"github.com/server-rental-exporter/server_rental_exporter/config"
	"github.com/server-rental-exporter/server_rental_exporter/exporter/demo"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/runner"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
)

const name = "server_rental_exporter"

// Environment holds the inputs and outputs of the process.
type Environment struct {
	Args           []string
	Stdout, Stderr io.Writer
	Hangup         <-chan os.Signal // reloads the configuration
	Unlimited      bool             // tests set it, to send requests without rate limits
}

// memoryLimit is the default of GOMEMLIMIT in bytes, with which the process stays below 256 MiB; in a
// smaller container, it is four fifths of the container's.
const memoryLimit = 200 << 20

func limitMemory() {
	_, _ = memlimit.Set(memlimit.WithRatio(1), memlimit.WithProvider(func() (uint64, error) {
		container, err := memlimit.FromCgroup()
		if err != nil { // no limit, or no cgroups
			return memoryLimit, nil
		}
		return min(memoryLimit, container/5*4), nil
	}))
}

// Main is the whole program; it returns the exit status. It shuts down when ctx ends.
func Main(ctx context.Context, env Environment) int {
	limitMemory()
	var text bytes.Buffer
	o, cfg, err := prepare(ctx, env.Args, &text)
	if err == nil && cfg != nil {
		err = run(ctx, o, env, cfg)
	} else {
		if err == nil {
			_, err = text.WriteTo(env.Stdout)
		}
		o.printFaults(env.Stderr, errors.Join(err, o.unknown)) // which may be the cause
	}
	if err != nil {
		return 1
	}
	return 0
}

// prepare returns the configuration to run with; nil if text is all that was asked for.
func prepare(ctx context.Context, args []string, text io.Writer) (*options, *config.Config, error) {
	o, err := parse(args, text)
	switch {
	case err != nil || o.printed:
		return o, nil, err
	case o.health:
		fmt.Fprintln(text, "healthy")
		return o, nil, o.healthcheck(ctx)
	}
	o.unknown = o.unknownVariables(os.Environ())
	cfg, err := o.configure()
	if err == nil && o.Check {
		fmt.Fprintln(text, "configuration OK; API and tokens not tested: run with --once to ask the API")
		for _, a := range cfg.Accounts {
			fmt.Fprintf(text, "  account: %s\n", config.Line(a.Name))
		}
		return o, nil, nil
	}
	return o, cfg, err
}

// run exports once, or until ctx ends. It logs why that failed.
func run(ctx context.Context, o *options, env Environment, cfg *config.Config) (err error) {
	logger, flush := newLogger(env.Stderr, o.logLevel, o.logFormat)
	defer flush()
	if o.unknown != nil {
		level.Warn(logger).Log("msg", "unknown environment variables", "err", o.unknown)
	}
	e := newExporter(o, env, logger, cfg)
	if o.once {
		err = e.printOnce(ctx)
	} else {
		err = e.serve(ctx)
	}
	if err != nil {
		level.Error(logger).Log("msg", "exporter stopped", "err", err)
	}
	return err
}

// exporter is the running program.
type exporter struct {
	api     *rentalapi.API
	runner  *runner.Runner
	options *options
	env     Environment
	logger  log.Logger
	demo    *simulator.Simulator // nil without --demo

	registry *prometheus.Registry // metrics that are encoded at each scrape
	loaded   atomic.Pointer[loaded]

	reloading sync.Mutex // held during a reload
}

// newExporter wires everything; nothing is fetched or served yet.
func newExporter(o *options, env Environment, logger log.Logger, cfg *config.Config) *exporter {
	e := &exporter{options: o, env: env, logger: logger, registry: prometheus.NewRegistry()}
	if !o.disableExporterMetrics && !o.once { // node_exporter, which reads the output, has its own
		e.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	if o.Demo {
		e.demo = simulator.New(simulator.Options{Accounts: demo.Accounts()})
	}
	e.api = rentalapi.New(name+"/"+version.Version, e.settings(cfg), e.registry)
	e.runner = runner.New(logger, e.api)
	e.loaded.Store(&loaded{config: cfg, at: time.Now()})
	return e
}

// printOnce fetches everything and prints it, or nothing if it is interrupted. The error says what
// failed.
func (e *exporter) printOnce(ctx context.Context) error {
	if isClosed(e.env.Stdout) {
		return errors.New("standard output: closed")
	}
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
	_, writeErr := text.WriteTo(e.env.Stdout)
	return errors.Join(failed, err, writeErr)
}

// isClosed returns whether an output was closed at the start. Go then opens the null device in its place, to
// be read, too, which a shell's > does not.
func isClosed(w io.Writer) bool {
	f, isFile := w.(*os.File)
	if !isFile {
		return false
	}
	info, err := f.Stat()
	null, nullErr := os.Stat(os.DevNull)
	if err != nil || nullErr != nil || !os.SameFile(info, null) {
		return false
	}
	_, err = f.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// serve collects and serves until ctx ends, and then completes requests in progress.
func (e *exporter) serve(ctx context.Context) error {
	signal.Ignore(syscall.SIGPIPE) // a log that nobody reads any more raises it
	level.Info(e.logger).Log("msg", "starting "+name, "version", version.Version, "revision", version.GetRevision(), "go", version.GoVersion, "accounts", len(e.loaded.Load().config.Accounts))
	listeners, err := listen(ctx, e.options.web)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if e.demo != nil {
		level.Info(e.logger).Log("msg", "demo: all data is simulated", "page", localURL(e.options.web, listeners[0].Addr().String()))
		group.Go(func() error {
			e.demo.Run(ctx)
			return nil
		})
	}
	e.runner.Run(ctx)
	e.runner.ApplyConfig(ctx, e.loaded.Load().spec())
	group.Go(func() error { return e.follow(ctx) })
	e.serveAt(ctx, group, listeners)
	err = group.Wait()
	e.runner.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// follow reloads the configuration when it is asked to, and looks for account files, until ctx ends.
func (e *exporter) follow(ctx context.Context) error {
	look := time.NewTicker(time.Minute)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			level.Info(e.logger).Log("msg", "shutting down")
			return nil
		case <-e.env.Hangup:
			_ = e.reload(ctx) // it logs its outcome
		case <-look.C:
			e.lookForAccounts(ctx)
		}
	}
}
