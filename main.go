// Server_rental_exporter exports the Dedicated Server Rental API as Prometheus metrics: plan
// stock and prices, component states, balances, top-ups and servers. See README.md.
package main

import (
	"context"
	_ "embed"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/common/version"

	"github.com/server-rental-exporter/server_rental_exporter/exporter"
)

// versionFile is the version of a build from a copy of the repository.
//
//go:embed VERSION
var versionFile string

// drainTime bounds a shutdown, whatever hangs: a client, a log, an output that nobody reads.
const drainTime = 18 * time.Second

func main() {
	if info, ok := debug.ReadBuildInfo(); ok && version.Version == "" { // built without -ldflags
		version.Version, version.BuildDate = identify(info)
		version.Branch = "unknown" // Go records none
	}
	ctx, cancel := context.WithCancel(context.Background())
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stop
		signal.Stop(stop) // comes first, so that a second signal ends the process at once
		cancel()
		time.Sleep(drainTime)
		os.Exit(1)
	}()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	os.Exit(exporter.Main(ctx, exporter.Environment{
		Args: os.Args[1:], LookupEnv: os.LookupEnv, Stdout: os.Stdout, Stderr: os.Stderr, Hangup: hangup,
	}))
}

// identify returns the version, and the date of the commit if it is known. A module that was downloaded
// has a checksum, and the version that was asked for; others have that of the file.
func identify(info *debug.BuildInfo) (number, date string) {
	number = strings.TrimSpace(versionFile)
	if info.Main.Sum != "" {
		number = strings.TrimPrefix(info.Main.Version, "v")
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			date = s.Value
		}
	}
	return number, date
}
