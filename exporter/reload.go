package exporter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/go-kit/log/level"
	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/version"

	"server_rental_exporter/collector"
	"server_rental_exporter/config"
	"server_rental_exporter/internal/exposition"
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
	cfg, err := e.options.configure(e.lookup)
	if err == nil {
		err = e.use(cfg)
	}
	if err != nil {
		failed := *e.loaded.Load()
		failed.reloadError = err
		e.loaded.Store(&failed)
		e.group.Changed()
		e.Publisher.Publish()
		level.Error(e.logger).Log("msg", "reload failed, keeping current configuration", "err", err)
		return err
	}
	e.ApplyConfig(ctx, e.loaded.Load().collected)
	level.Info(e.logger).Log("msg", "configuration reloaded", "accounts", len(cfg.Accounts), "watches", len(cfg.Watches))
	return nil
}

// use makes a configuration the one in force, but for what is collected. With --demo, it sets
// the simulated API and its accounts.
func (e *exporter) use(cfg *config.Config) error {
	if e.demo != nil {
		configureDemo(cfg, e.demoAPI)
	}
	before := e.loaded.Load()
	if before == nil || !reflect.DeepEqual(before.config.API.HTTP, cfg.API.HTTP) { // else its connections stay open
		transport, err := promconfig.NewRoundTripperFromConfig(cfg.API.HTTP.HTTPClientConfig, "rental_api")
		if err != nil {
			return fmt.Errorf("api.http: %w", err)
		}
		defer (&http.Client{Transport: e.transport}).CloseIdleConnections()
		e.transport = transport
	}
	limits := rentalapi.Limits{Public: cfg.API.RateLimit.Public, Account: cfg.API.RateLimit.Account}
	settings := rentalapi.Settings{BaseURL: cfg.API.BaseURL, Transport: e.transport, Timeout: time.Duration(cfg.API.Timeout), Limits: limits}
	if e.Runner == nil {
		e.Runner = runner.New(runner.Options{Logger: e.logger, UserAgent: name + "/" + version.Version, API: settings, Groups: []*exposition.Group{e.group}})
	} else {
		e.API.ApplySettings(settings)
	}
	e.loaded.Store(&loaded{config: cfg, collected: collected(cfg), at: time.Now()})
	return nil
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
