package exporter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/go-kit/log/level"
	promconfig "github.com/prometheus/common/config"

	"server_rental_exporter/collector"
	"server_rental_exporter/config"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/runner"
)

// reload reads the configuration again and puts it in force, or returns why not. What it
// starts runs until ctx ends.
func (e *exporter) reload(ctx context.Context) error {
	e.reloading.Lock()
	defer e.reloading.Unlock()
	if ctx.Err() != nil {
		return errors.New("shutting down")
	}
	cfg, err := e.options.configure(e.env.LookupEnv)
	if err == nil {
		err = e.use(cfg)
	}
	if err != nil {
		failed := *e.loaded.Load()
		failed.reloadError = err
		e.loaded.Store(&failed)
		e.group.Changed()
		e.runner.Publisher.Publish()
		level.Error(e.logger).Log("msg", "reload failed, keeping current configuration", "err", err)
		return err
	}
	e.runner.ApplyConfig(ctx, e.loaded.Load().collected)
	level.Info(e.logger).Log("msg", "configuration reloaded", "accounts", len(cfg.Accounts), "watches", len(cfg.Watches))
	return nil
}

// use puts a configuration in force, except for its accounts, collectors and watches.
func (e *exporter) use(cfg *config.Config) error {
	settings, err := e.apiSettings(cfg)
	if err != nil {
		return err
	}
	e.runner.API.ApplySettings(settings)
	e.loaded.Store(newLoaded(cfg))
	return nil
}

// apiSettings returns the settings of requests to the API. With --demo, it sets the simulated
// API and its accounts in the configuration.
func (e *exporter) apiSettings(cfg *config.Config) (rentalapi.Settings, error) {
	if e.demo != nil {
		configureDemo(cfg, e.demoAPI)
	}
	before := e.loaded.Load()
	if before == nil || !reflect.DeepEqual(before.config.API.HTTP, cfg.API.HTTP) { // else its connections stay open
		transport, err := promconfig.NewRoundTripperFromConfig(cfg.API.HTTP.HTTPClientConfig, "rental_api")
		if err != nil {
			return rentalapi.Settings{}, fmt.Errorf("api.http: %w", err)
		}
		defer (&http.Client{Transport: e.transport}).CloseIdleConnections()
		e.transport = transport
	}
	limits := cmp.Or(e.env.Limits, rentalapi.Limits{Public: cfg.API.RateLimit.Public, Account: cfg.API.RateLimit.Account})
	return rentalapi.Settings{BaseURL: cfg.API.BaseURL, Transport: e.transport, Timeout: time.Duration(cfg.API.Timeout), Limits: limits}, nil
}

func newLoaded(cfg *config.Config) *loaded {
	return &loaded{config: cfg, collected: collected(cfg), at: time.Now()}
}

// collected returns what this shard collects. Shard 0 has the public collectors and the
// watches.
func collected(cfg *config.Config) runner.Spec {
	public := cfg.Shard.Index == 0
	c := runner.Spec{API: cfg.API.BaseURL.String(), Collectors: map[string]runner.Timing{}}
	if public {
		c.Watches = cfg.Watches
	}
	for _, r := range collector.Resources() {
		if s := cfg.Collectors[r.Name]; s.Enabled && (public || r.Account) {
			c.Collectors[r.Name] = runner.Timing{Interval: s.Interval, MaxAge: s.MaxAge, SoldOutInterval: s.SoldOutInterval}
		}
	}
	for _, a := range cfg.Accounts {
		if config.ShardOf(a.Name, cfg.Shard.Total) == cfg.Shard.Index {
			// A token that is not in a file is that of the environment, which stays.
			c.Accounts = append(c.Accounts, runner.AccountSpec{Name: a.Name, Identity: a.TokenFile, Token: a.ReadToken})
		}
	}
	return c
}
