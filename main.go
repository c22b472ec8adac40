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
	"strings"
	"syscall"

	"github.com/prometheus/common/version"

	"server_rental_exporter/exporter"
)

// versionFile is the version of a build without -ldflags.
//
//go:embed VERSION
var versionFile string

func main() {
	if version.Version == "" {
		version.Version = strings.TrimSpace(versionFile)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	code := exporter.Run(ctx, exporter.Environment{
		Args: os.Args[1:], LookupEnv: os.LookupEnv, Stdout: os.Stdout, Stderr: os.Stderr, Hangup: hangup,
	})
	os.Exit(code)
}
