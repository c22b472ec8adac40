// Server_rental_exporter shows the Dedicated Server Rental API as Prometheus
// metrics: plan stock and prices, component states, balances, top-ups, servers.
//
// It asks the API in the background, within its rate limits, and answers scrapes
// from what it has. See README.md.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/go-kit/log/level"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"
)

const name = "server_rental_exporter"

// versionFile is the version of a build that was not told one.
//
//go:embed VERSION
var versionFile string

// gcPercent is how much garbage there may be for each hundred bytes in use. What a
// refresh makes is dropped at once, so that half of Go's usual 100 costs little
// processor time, and saves a quarter of the memory. GOGC sets another.
const gcPercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if version.Version == "" {
		version.Version = strings.TrimSpace(versionFile)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	code := run(ctx, invocation{
		args: os.Args[1:], getenv: os.Getenv, stdout: os.Stdout, stderr: os.Stderr, hangup: hangup,
	})
	stop()
	os.Exit(code)
}

// invocation is what run needs of the world around it.
type invocation struct {
	args           []string
	getenv         func(string) string
	stdout, stderr io.Writer
	hangup         <-chan os.Signal
}

// run is the whole program; it returns the exit status. It ends well when ctx ends.
func run(ctx context.Context, in invocation) int {
	o, err := parse(in.args)
	if err != nil {
		fmt.Fprintln(in.stderr, err)
		return 1
	}
	cfg, err := o.load(in.getenv)
	if err != nil {
		fmt.Fprintln(in.stderr, err)
		return 1
	}
	if o.Check() {
		printCost(in.stdout, cfg)
		return 0
	}
	logger := newLogger(in.stderr, o.logLevel, o.logFormat)
	e, err := newExporter(ctx, o, in.getenv, logger, cfg)
	if err != nil {
		level.Error(logger).Log("msg", "start failed", "err", err)
		return 1
	}
	defer e.close()
	if o.once {
		err = e.once(ctx, in.stdout)
	} else {
		err = e.serve(ctx, in.hangup)
	}
	if err != nil {
		level.Error(logger).Log("msg", "failed", "err", err)
		return 1
	}
	return 0
}

// serve collects and serves until ctx ends, and then lets running scrapes finish.
func (e *exporter) serve(ctx context.Context, hangup <-chan os.Signal) error {
	level.Info(e.logger).Log("msg", "starting "+name, "version", version.Info(), "build", version.BuildContext())
	collecting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer e.keeping.Wait()
	defer e.set.Wait()
	defer stop()
	e.collect(collecting)
	if e.demo != nil {
		level.Info(e.logger).Log("msg", "this is a demo: nothing here is real", "page", pageURL(e.options.web))
	}

	slogger := newSlogger(e.logger)
	server := &http.Server{
		Handler:           e.handler(collecting),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(slogger.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- toolkit.ListenAndServe(server, e.options.web, slogger) }()
	for {
		select {
		case err := <-failed:
			return err
		case <-hangup:
			_ = e.reload(collecting) // it logs its outcome
		case <-ctx.Done():
			level.Info(e.logger).Log("msg", "ending")
			return drain(collecting, server)
		}
	}
}

// drain ends the server: no new connections, and time for requests under way.
func drain(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("shutdown: %w", err), server.Close())
	}
	return nil
}

// pageURL is where a browser on this machine finds the landing page.
func pageURL(flags *toolkit.FlagConfig) string {
	scheme := "http"
	if *flags.WebConfigFile != "" {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort((*flags.WebListenAddresses)[0])
	if err != nil || *flags.WebSystemdSocket {
		return "" // whoever made the socket knows
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/"
}
