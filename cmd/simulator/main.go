// Command simulator serves a simulated rental API: something to point an
// exporter, a dashboard or a script at without an account and without a
// network.
package main

import (
	"context"
	"errors"
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
	live := app.Flag("live", "Let the world move: stock, prices, balances, incidents.").Bool()
	kingpin.MustParse(app.Parse(os.Args[1:]))

	sim := simulator.New(simulator.Options{KeepRequests: -1})
	sim.Change(func(w *simulator.World) {
		for name, token := range *accounts {
			w.Accounts[token] = simulator.ExampleAccount(name, time.Now())
		}
	})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *live {
		go sim.Live(ctx)
	}
	if err := serve(ctx, *address, sim); err != nil {
		slog.Error("simulator failed", "err", err)
		os.Exit(1)
	}
}

// serve answers until ctx ends.
func serve(ctx context.Context, address string, sim http.Handler) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	slog.Info("simulator serves", "base_url", "http://"+listener.Addr().String()+"/api/v1")
	server := &http.Server{Handler: sim, ReadHeaderTimeout: 10 * time.Second}
	// Closed, not shut down: nobody depends on the answers under way, and an
	// answer may be one that never ends.
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
