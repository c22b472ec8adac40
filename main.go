// Server_rental_exporter exports the Dedicated Server Rental API as Prometheus metrics: plan
// stock and prices, component states, balances, top-ups and servers. See README.md.
package main

import (
	"context"
	_ "embed"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/prometheus/common/version"

	"github.com/server-rental-exporter/server_rental_exporter/exporter"
)

// versionFile is the version of a build without -ldflags.
//
//go:embed VERSION
var versionFile string

func main() {
	if version.Version == "" {
		version.Version = strings.TrimSpace(versionFile)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stop
		signal.Stop(stop) // before anything else: from now on, a signal ends the process at once
		cancel()
	}()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	os.Exit(exporter.Main(ctx, exporter.Environment{
		Args: os.Args[1:], LookupEnv: os.LookupEnv, Stdout: os.Stdout, Stderr: os.Stderr, Hangup: hangup,
	}))
}
