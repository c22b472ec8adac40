// Command simulator serves a simulated rental API, for trying an exporter, a
// dashboard or a script without an account. It also writes a history of metrics, for
// trying dashboards and rules without waiting for a month.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/ntfy"
)

const help = `Simulates the rental API.

"serve", the default, serves it. It can be told what happens, such as

    curl -d plan=epyc-9654 -d location=fra -d in_stock=true http://127.0.0.1:10173/stock

The paths and their parameters, of which those in brackets can be left out:

    /stock      plan in_stock [location]             the stock of a plan, and of its saved configurations
    /plan       plan [usd] [listed=false]            its price; adds an unknown plan, or removes one
    /server     server [status] [usd] [listed=false] [account]
                                                     adds an unknown server to the account, or removes one
    /ssh-key    account ssh_key [fingerprint] [listed=false]
    /topup      account status                       of the newest open top-up; pending adds one
    /component  location component state
    /failure    path status                          lasts until the status is 200

"history" writes the metrics that Prometheus would have stored of --demo, as OpenMetrics that "promtool tsdb create-blocks-from openmetrics" reads. The last samples are at --end, and a demo that is started then continues the data. "webhook" prints the messages that an Alertmanager sends to ntfy.`

func main() {
	app := kingpin.New("simulator", help)
	app.HelpFlag.Short('h')
	serveCommand(app)
	historyCommand(app)
	webhookCommand(app)
	_, err := app.Parse(os.Args[1:])
	app.FatalIfError(err, "")
}

func serveCommand(app *kingpin.Application) {
	c := app.Command("serve", "Serve a simulated rental API.").Default()
	address := c.Flag("listen-address", "Address to serve on.").Default("127.0.0.1:10171").String()
	control := c.Flag("control.listen-address", "Address at which to tell it what happens.").Default("127.0.0.1:10173").String()
	accounts := c.Flag("account", "Account to serve, as NAME:TOKEN; repeatable.").PlaceHolder("NAME:TOKEN").StringMap()
	activity := c.Flag("activity", "Simulate changes of stock, prices, balances and status.").Bool()
	c.Action(func(*kingpin.ParseContext) error {
		names := map[string]string{} // names of accounts by token
		for name, token := range *accounts {
			names[token] = name
		}
		sim := simulator.New(simulator.Options{Accounts: names})
		if *activity {
			go sim.Run(context.Background())
		}
		return serve(map[string]http.Handler{*address: sim, *control: simulator.Control(sim)})
	})
}

// serve serves handlers by address until one of them fails.
func serve(handlers map[string]http.Handler) error {
	failed := make(chan error, len(handlers))
	for address, h := range handlers {
		slog.Info("listening", "address", address)
		server := &http.Server{Addr: address, Handler: h, ReadHeaderTimeout: 10 * time.Second}
		go func() { failed <- server.ListenAndServe() }()
	}
	return <-failed
}

func historyCommand(app *kingpin.Application) {
	c := app.Command("history", "Write the metrics of the past days as OpenMetrics.")
	days := c.Flag("days", "Number of days.").Default("30").Int()
	end := c.Flag("end", "End of the history, as a Unix timestamp (default: now).").Default(strconv.FormatInt(time.Now().Unix(), 10)).Int64()
	c.Action(func(*kingpin.ParseContext) error {
		return writePast(os.Stdout, time.Unix(*end, 0), time.Duration(*days)*24*time.Hour)
	})
}

func webhookCommand(app *kingpin.Application) {
	c := app.Command("webhook", "Print the messages that an Alertmanager sends to ntfy.")
	address := c.Flag("listen-address", "Address to serve on.").Default("127.0.0.1:10172").String()
	c.Action(func(*kingpin.ParseContext) error {
		return serve(map[string]http.Handler{*address: ntfy.Handler(func(message string, err error) {
			if err != nil {
				slog.Error("notification refused", "err", err)
				return
			}
			fmt.Println(message)
		})})
	})
}
