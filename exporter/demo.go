package exporter

import (
	"maps"
	"net/url"
	"slices"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/config"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator"
)

// DemoTokens returns the names of the accounts of a demo by token.
func DemoTokens() map[string]string {
	return map[string]string{"demo-token-of-lab": "lab", "demo-token-of-main": "main"}
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

// newDemo returns a simulated provider with the accounts of a demo.
func newDemo() *simulator.Simulator {
	demo := simulator.New(simulator.Options{})
	demo.Change(func(w *simulator.World) {
		for token, account := range DemoTokens() {
			w.Accounts[token] = simulator.ExampleAccount(account, time.Now())
		}
	})
	return demo
}

// configureDemo sets the accounts and the watches of a demo in a configuration. Its base URL
// leads nowhere: requests do not leave the process.
func configureDemo(cfg *config.Config) {
	cfg.API.BaseURL = &url.URL{Scheme: "https", Host: "rental.example", Path: simulator.Prefix}
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
