package exporter

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"

	"server_rental_exporter/collector"
	"server_rental_exporter/config"
	"server_rental_exporter/internal/simulator"
)

// DemoSite is where the links of a demo lead if it listens at the default address.
const DemoSite = "http://localhost:10170"

// DemoTokens returns the names of the accounts of a demo by token.
func DemoTokens() map[string]string {
	return map[string]string{"demo-token-of-lab": "lab", "demo-token-of-main": "main"}
}

// startDemo serves a simulated provider in this process, on a loopback address, and returns
// it with its base URL. If the landing page is at localhost, the links of its data lead
// there: of a container, only the exporter's port is published. The exporter serves its
// pages, too. It serves, and its data changes, until ctx ends.
func startDemo(ctx context.Context, page string) (*simulator.Simulator, *url.URL, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("demo: %w", err)
	}
	site := "http://" + l.Addr().String()
	if strings.Contains(page, "://localhost:") {
		site = strings.TrimSuffix(page, "/")
	}
	sim := simulator.New(simulator.Options{Site: site})
	sim.Change(func(w *simulator.World) {
		for token, account := range DemoTokens() {
			w.Accounts[token] = simulator.ExampleAccount(account, time.Now())
		}
	})
	go func() { _ = simulator.Serve(ctx, l, sim) }()
	go sim.Run(ctx)
	return sim, &url.URL{Scheme: "http", Host: l.Addr().String(), Path: simulator.Prefix}, nil
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

// configureDemo sets the simulated API, its accounts and its watches in a configuration.
func configureDemo(cfg *config.Config, base *url.URL) {
	cfg.API.BaseURL = base
	cfg.API.HTTP = config.HTTP{}                                                   // the API is in this process: no proxy
	cfg.API.RateLimit.Public, cfg.API.RateLimit.Account = math.MaxInt, math.MaxInt // and nothing to wait for
	cfg.Accounts = nil
	tokens := DemoTokens()
	for _, token := range slices.Sorted(maps.Keys(tokens)) {
		cfg.Accounts = append(cfg.Accounts, config.Account{Name: tokens[token], Token: promconfig.Secret(token)})
	}
	if len(cfg.Watches) == 0 {
		cfg.Watches = slices.DeleteFunc(DemoWatches(), func(w collector.Watch) bool {
			return slices.ContainsFunc(w.Inputs(), func(name string) bool { return !cfg.Collectors[name].Enabled })
		})
	}
}
