package exporter

import (
	"context"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"github.com/go-kit/log/level"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/config"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/runner"
)

// loaded is the configuration in force. It is immutable.
type loaded struct {
	config       *config.Config
	at           time.Time
	reloadError  error // says why the last reload failed; nil if it succeeded
	accountFault error // what the last search for account files found wrong
}

// reload reads the configuration again and puts it in force, or returns why not. Collectors that
// it starts run until ctx ends.
func (e *exporter) reload(ctx context.Context) error {
	e.reloading.Lock()
	defer e.reloading.Unlock()
	cfg, err := e.options.configure()
	if err != nil {
		failed := *e.loaded.Load()
		failed.reloadError = err
		e.loaded.Store(&failed)
		e.runner.ApplyConfig(ctx, failed.spec())
		level.Error(e.logger).Log("msg", "reload failed, keeping current configuration", "err", err)
		return err
	}
	e.api.ApplySettings(e.settings(cfg))
	e.loaded.Store(&loaded{config: cfg, at: time.Now()})
	e.runner.ApplyConfig(ctx, e.loaded.Load().spec())
	level.Info(e.logger).Log("msg", "configuration reloaded", "accounts", len(cfg.Accounts), "watches", len(cfg.Watches))
	return nil
}

// lookForAccounts adds the accounts whose files came since the last search, and removes those whose
// files went. Everything else stays as it is.
func (e *exporter) lookForAccounts(ctx context.Context) {
	e.reloading.Lock()
	defer e.reloading.Unlock()
	before := e.loaded.Load()
	after := *before
	after.config, after.accountFault = e.options.FindAccounts(before.config)
	if err := after.accountFault; err != nil && err.Error() != fmt.Sprint(before.accountFault) {
		level.Warn(e.logger).Log("msg", "account file ignored", "err", err)
	}
	e.loaded.Store(&after)
	added, removed := difference(after.config.Accounts, before.config.Accounts), difference(before.config.Accounts, after.config.Accounts)
	if len(added)+len(removed) > 0 {
		e.runner.ApplyConfig(ctx, after.spec())
	}
	for _, a := range removed {
		level.Info(e.logger).Log("msg", "account removed", "account", a.Name)
	}
	for _, a := range added {
		level.Info(e.logger).Log("msg", "account added", "account", a.Name)
	}
}

// difference returns the accounts of a that b does not have.
func difference(a, b []config.Account) []config.Account {
	return slices.DeleteFunc(slices.Clone(a), func(account config.Account) bool { return slices.Contains(b, account) })
}

// settings returns how requests to the API are sent.
func (e *exporter) settings(cfg *config.Config) rentalapi.Settings {
	limits := cfg.API.RateLimit
	s := rentalapi.Settings{BaseURL: cfg.API.BaseURL, Timeout: cfg.API.Timeout, Limits: rentalapi.Limits{Public: int(limits.Public), Account: int(limits.Account)}}
	if e.env.Unlimited || e.demo != nil {
		s.Limits = rentalapi.Limits{Public: math.MaxInt, Account: math.MaxInt}
	}
	s.Transport = rentalapi.Transport{Config: cfg.API.HTTP.HTTPClientConfig, Dial: new(net.Dialer).DialContext}
	if e.demo != nil {
		s.Transport = e.demo
	}
	return s
}

// spec returns what this shard collects. Shard 0 has the public collectors and the watches.
func (l *loaded) spec() runner.Spec {
	cfg, public := l.config, l.config.Shard.Index == 0
	s := runner.Spec{
		API: cfg.API.BaseURL.String(), Collectors: map[string]collector.Timing{},
		Shard: cfg.Shard.Index, Shards: cfg.Shard.Total, LoadedAt: l.at, ReloadFailed: l.reloadError != nil,
	}
	if public {
		s.Watches = cfg.Watches
	}
	for _, r := range collector.Resources() {
		if timing, isEnabled := cfg.Collectors[r.Name]; isEnabled && (public || r.Account) {
			s.Collectors[r.Name] = timing
		}
	}
	for _, a := range cfg.Accounts {
		if config.ShardOf(a.Name, cfg.Shard.Total) == cfg.Shard.Index {
			// A token without a file comes from the environment, which does not change.
			s.Accounts = append(s.Accounts, runner.AccountSpec{Name: a.Name, Identity: a.TokenFile, Token: a.ReadToken})
		}
	}
	return s
}
