// Command simulator serves a simulated rental API, for trying an exporter, a
// dashboard or a script without an account.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"server_rental_exporter/internal/simulator"
)

func main() {
	app := kingpin.New("simulator", "Serves a simulated rental API.")
	address := app.Flag("listen-address", "Address to serve on.").Default("127.0.0.1:10171").String()
	accounts := app.Flag("account", "Account to serve, as NAME:TOKEN; repeatable.").PlaceHolder("NAME:TOKEN").StringMap()
	extra := app.Flag("accounts", "Number of further accounts: account-0 with token-0 and so on.").Int()
	servers := app.Flag("servers", "Number of servers of each further account.").Default("10").Int()
	activity := app.Flag("activity", "Simulate changes of stock, prices, balances and status.").Bool()
	kingpin.MustParse(app.Parse(os.Args[1:]))

	sim := simulator.New(simulator.Options{KeepRequests: -1})
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
	if *activity {
		go sim.Run(ctx)
	}
	err := serve(ctx, *address, sim)
	stop()
	if err != nil {
		slog.Error("simulator failed", "err", err)
		os.Exit(1)
	}
}

// serve serves until ctx ends.
func serve(ctx context.Context, address string, sim http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	slog.Info("listening", "base_url", "http://"+listener.Addr().String()+"/api/v1")
	server := &http.Server{Handler: sim, ReadHeaderTimeout: 10 * time.Second}
	// Close and not Shutdown, because an answer may be endless.
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
