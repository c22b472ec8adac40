package exporter

import (
	"maps"
	"net/url"
	"slices"

	promconfig "github.com/prometheus/common/config"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/config"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/demo"
)

// configureDemo sets the accounts and the watches of a demo in a configuration. Its base URL
// leads nowhere: requests do not leave the process.
func configureDemo(cfg *config.Config) {
	cfg.API.BaseURL = &url.URL{Scheme: "https", Host: "rental.example", Path: simulator.Prefix}
	tokens := demo.Accounts()
	for _, token := range slices.Sorted(maps.Keys(tokens)) {
		cfg.Accounts = append(cfg.Accounts, config.Account{Name: tokens[token], Token: promconfig.Secret(token)})
	}
	if len(cfg.Watches) == 0 {
		cfg.Watches = slices.DeleteFunc(demo.Watches(), func(w collector.Watch) bool {
			return slices.ContainsFunc(w.Inputs(), func(name string) bool { return !cfg.Collectors[name].Enabled })
		})
	}
}
