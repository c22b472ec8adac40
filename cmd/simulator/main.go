// Command simulator serves a simulated rental API, for trying an exporter, a
// dashboard or a script without an account. It also writes a history of metrics, for
// trying dashboards and rules without waiting for a month.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"server_rental_exporter/exporter"
	"server_rental_exporter/internal/history"
	"server_rental_exporter/internal/simulator"
)

const help = `Simulates the rental API.

"serve", the default, serves it. "history" writes the metrics that Prometheus would have stored if the exporter had run with --demo, as OpenMetrics that "promtool tsdb create-blocks-from openmetrics" reads. The last sample is at --end, and a demo that is started then continues the data. "webhook" prints the notifications of an Alertmanager.`

func main() {
	app := kingpin.New("simulator", help)
	app.HelpFlag.Short('h')
	commands := map[string]func() error{}
	serveCommand(app, commands)
	historyCommand(app, commands)
	webhookCommand(app, commands)
	chosen := kingpin.MustParse(app.Parse(os.Args[1:]))
	if err := commands[chosen](); err != nil {
		slog.Error("simulator failed", "err", err)
		os.Exit(1)
	}
}

func serveCommand(app *kingpin.Application, commands map[string]func() error) {
	c := app.Command("serve", "Serve a simulated rental API.").Default()
	address := c.Flag("listen-address", "Address to serve on.").Default("127.0.0.1:10171").String()
	site := c.Flag("site", "Address at which the pages that links lead to can be reached (default: the address to serve on).").PlaceHolder("URL").String()
	accounts := c.Flag("account", "Account to serve, as NAME:TOKEN; repeatable.").PlaceHolder("NAME:TOKEN").StringMap()
	extra := c.Flag("accounts", "Number of further accounts: account-0 with token-0 and so on.").Int()
	servers := c.Flag("servers", "Number of servers of each further account.").Default("10").Int()
	activity := c.Flag("activity", "Simulate changes of stock, prices, balances and status.").Bool()
	commands[c.FullCommand()] = func() error {
		if *servers < 0 {
			return fmt.Errorf("--servers: %d: must not be negative", *servers)
		}
		sim := simulator.New(simulator.Options{Site: cmp.Or(*site, "http://"+*address)})
		sim.Change(func(w *simulator.World) {
			for name, token := range *accounts {
				w.Accounts[token] = simulator.ExampleAccount(name, time.Now())
			}
			for i := range *extra {
				a := simulator.ExampleAccount(fmt.Sprintf("account-%d", i), time.Now())
				a.Servers = simulator.Servers(*servers, time.Now())
				w.Accounts[fmt.Sprintf("token-%d", i)] = a
			}
		})
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if *activity {
			go sim.Run(ctx)
		}
		return serve(ctx, *address, sim)
	}
}

// serve serves until ctx ends.
func serve(ctx context.Context, address string, h http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	slog.Info("listening", "base_url", "http://"+listener.Addr().String()+"/api/v1")
	return simulator.Serve(ctx, listener, h)
}

func historyCommand(app *kingpin.Application, commands map[string]func() error) {
	c := app.Command("history", "Write the metrics of the past days as OpenMetrics. By default it needs 2 minutes of processor time, 500 MB of memory and 2 GB of disk.")
	days := c.Flag("days", "Number of days, 1 to 90.").Default("30").Int()
	end := c.Flag("end", "End of the history, in RFC 3339 or as a Unix timestamp (default: now).").String()
	servers := c.Flag("servers", "Number of servers of each of the two accounts, 1 to 1000.").Default(strconv.Itoa(simulator.ExampleServers)).Int()
	seed := c.Flag("seed", "Seed of all random events. The same days, end, servers and seed give the same history.").Default("1").Uint64()
	job := c.Flag("job", "Label job of all series.").Default("server_rental").String()
	instance := c.Flag("instance", "Label instance of all series.").Default("exporter:10170").String()
	output := c.Flag("output", "File to write (default: standard output).").PlaceHolder("FILE").String()
	commands[c.FullCommand()] = func() error {
		at, err := parseTime(cmp.Or(*end, time.Now().Format(time.RFC3339)))
		if err != nil {
			return fmt.Errorf("--end: %w", err)
		}
		return writeHistory(*output, history.Options{
			End: at, Length: time.Duration(*days) * 24 * time.Hour,
			Accounts: exporter.DemoTokens(), Servers: *servers, Watches: exporter.DemoWatches(), Site: exporter.DemoSite, Seed: *seed,
			Labels: map[string]string{"job": *job, "instance": *instance},
		})
	}
}

// parseTime reads a time in one of the forms that promtool accepts.
func parseTime(text string) (time.Time, error) {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(seconds, 0), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q: must be RFC 3339, such as 2026-01-31T12:00:00Z, or a Unix timestamp", text)
	}
	return t, nil
}

// writeHistory writes a history to a file, or to standard output.
func writeHistory(output string, o history.Options) error {
	debug.SetGCPercent(400) // little is kept of much that is allocated
	debug.SetMemoryLimit(600 << 20)
	file := os.Stdout
	if output != "" {
		var err error
		if file, err = os.Create(output); err != nil { //nolint:gosec // the user names it
			return err
		}
	}
	samples, err := history.Write(file, o)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	slog.Info("history written", "samples", samples, "end", o.End)
	return nil
}
