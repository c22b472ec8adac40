// Server_rental_exporter exports the Dedicated Server Rental API as Prometheus
// metrics: plan stock and prices, component states, balances, top-ups and servers.
//
// It fetches the data in the background, within the API's rate limits, and answers
// scrapes from memory. See README.md.
package main

import (
	"context"
	_ "embed"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/prometheus/common/version"

	"server_rental_exporter/exporter"
)

// versionFile is the version of a build without -ldflags.
//
//go:embed VERSION
var versionFile string

// gcPercent is the garbage allowed for each hundred bytes in use. The garbage of a
// refresh is dropped at once, so that half of Go's default costs little processor time
// and saves a quarter of the memory. The environment variable GOGC overrides it.
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
	code := exporter.Run(ctx, exporter.Environment{
		Args: os.Args[1:], Getenv: os.Getenv, Stdout: os.Stdout, Stderr: os.Stderr, Hangup: hangup,
	})
	stop()
	os.Exit(code)
}
