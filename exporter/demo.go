package exporter

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	promconfig "github.com/prometheus/common/config"

	"server_rental_exporter/collector"
	"server_rental_exporter/config"
	"server_rental_exporter/internal/simulator"
)

// demo is a simulated provider in this process, on a loopback address.
type demo struct {
	sim     *simulator.Simulator
	server  *http.Server
	base    *url.URL
	running sync.WaitGroup
}

// DemoSite is the address to which the links of a demo lead that listens as by default.
const DemoSite = "http://localhost:10170"

// DemoTokens returns the names of the accounts of a demo by token.
func DemoTokens() map[string]string {
	names := map[string]string{}
	for _, account := range demoAccounts() {
		names[demoToken(account)] = account
	}
	return names
}

// demoAccounts are the names of the accounts of a demo.
func demoAccounts() []string { return []string{"main", "lab"} }

func demoToken(account string) string { return "demo-token-of-" + account }

// startDemo serves a simulated provider. The links of its data lead to site, which serves
// its pages too, or to the provider's own address if site is empty.
func startDemo(ctx context.Context, site string) (*demo, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	d := &demo{
		sim:  simulator.New(simulator.Options{Site: cmp.Or(site, "http://"+l.Addr().String())}),
		base: &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/api/v1"},
	}
	d.sim.Change(func(w *simulator.World) {
		for token, account := range DemoTokens() {
			w.Accounts[token] = simulator.ExampleAccount(account, time.Now())
		}
	})
	d.server = &http.Server{Handler: d.sim, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = d.server.Serve(l) }() // ends with close
	return d, nil
}

// run changes the simulated data until ctx ends.
func (d *demo) run(ctx context.Context) {
	d.running.Go(func() { d.sim.Run(ctx) })
}

// withPages adds the pages of the provider's website to a handler.
func (d *demo) withPages(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	for _, path := range simulator.Pages() {
		mux.Handle(path, d.sim)
	}
	return mux
}

func (d *demo) close() {
	d.running.Wait()
	_ = d.server.Close() // its listener is gone either way
}

// DemoWatches are the watches of a demo whose configuration has none.
func DemoWatches() []collector.Watch {
	gpu, memory, cheap, midrange := true, 64.0, 100.0, 300.0
	return []collector.Watch{
		{Name: "cheap-in-europe", Regions: []string{"Europe"}, MinMemoryGiB: &memory, MaxUSDPerMonth: &cheap},
		{Name: "midrange", MinMemoryGiB: &memory, MaxUSDPerMonth: &midrange}, // hits every few minutes
		{Name: "gpu-in-frankfurt", Locations: []string{"fra"}, GPU: &gpu},
	}
}

// applyTo sets the simulated API, its accounts and its watches in a configuration.
func (d *demo) applyTo(cfg *config.Config) {
	cfg.API.BaseURL = d.base
	cfg.API.HTTP = promconfig.HTTPClientConfig{} // the API is in this process: no proxy
	cfg.Accounts = nil
	for _, account := range demoAccounts() {
		cfg.Accounts = append(cfg.Accounts, config.Account{Name: account, Token: promconfig.Secret(demoToken(account))})
	}
	if len(cfg.Watches) == 0 {
		cfg.Watches = slices.DeleteFunc(DemoWatches(), func(w collector.Watch) bool {
			return slices.ContainsFunc(w.Inputs(), func(name string) bool { return !cfg.Collectors[name].Enabled })
		})
	}
}
