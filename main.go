// Server_rental_exporter exports the Dedicated Server Rental API as Prometheus metrics: plan
// stock and prices, component states, balances, top-ups and servers. See README.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/common/version"

	"github.com/server-rental-exporter/server_rental_exporter/exporter"
)

// drainTime bounds a shutdown, whatever hangs: a client, a log, an output that nobody reads.
const drainTime = 18 * time.Second

func main() {
	if info, ok := debug.ReadBuildInfo(); ok && version.Version == "" { // built without -ldflags
		version.Version = strings.Trim(strings.TrimPrefix(info.Main.Version, "v"), "()") // "(devel)" is no token of a User-Agent
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop() // a second signal ends the process at once
		time.Sleep(drainTime)
		os.Exit(1)
	})
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	os.Exit(exporter.Main(ctx, exporter.Environment{Args: os.Args[1:], Stdout: os.Stdout, Stderr: os.Stderr, Hangup: hangup}))
}
