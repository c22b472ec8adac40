// Package collector turns the resources of the rental API into metrics. One file
// describes each resource: what is asked, what must hold of the answer and what is
// shown of it. This file is the machine that keeps their snapshots fresh in the
// background and shows them: a scrape reads what is ready and asks for nothing.
package collector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
)

var (
	collectorSuccess  = metric.Gauge("exporter_collector_success", "Whether the last fetch of a collector succeeded: 1 or 0; absent before the first. Account is empty for public data.", "the exporter", "collector", "account").Per("collector and account")
	collectorLast     = metric.Gauge("exporter_collector_last_success_timestamp_seconds", "When a collector last fetched its data. What it shows is as old as that: scrapes never ask the API.", "the exporter", "collector", "account").Per("collector and account")
	collectorDuration = metric.Gauge("exporter_collector_duration_seconds", "How long the last fetch of a collector took, waiting for the budget of requests included.", "the exporter", "collector", "account").Per("collector and account")
	collectorInterval = metric.Gauge("exporter_collector_interval_seconds", "Time from one fetch of a collector to the next.", "the configuration", "collector", "account").Per("collector and account")
	collectorInvalid  = metric.Gauge("exporter_collector_invalid_items", "Items of a collector's last good answer that were left out because they could not be understood.", "the exporter", "collector", "account").Per("collector and account")
)

// Definitions lists the metrics that every collector has.
func Definitions() []*metric.Definition {
	return []*metric.Definition{collectorSuccess, collectorLast, collectorDuration, collectorInterval, collectorInvalid}
}

// Config says what is collected.
type Config struct {
	API        string                      // identifies the API: where it changes, everything begins anew
	Collectors map[string]refresh.Settings // the enabled ones, by name
	Accounts   []Account
}

// Account is one account of the provider.
type Account struct {
	Name     string // value of the label account
	Identity string // tells where the token comes from; an account is the same while it stays
	Token    rentalapi.Token
}

// Timing of accounts: begin that far apart, and look that often whether a token changed.
const (
	accountStagger = 20 * time.Millisecond
	tokenPoll      = 5 * time.Second
)

// Set is all collectors of the process. As a prometheus.Collector it gives what the
// API said; State gives how the collectors are.
type Set struct {
	logger    log.Logger
	client    *rentalapi.Client
	resources []Resource
	ready     atomic.Bool
	running   sync.WaitGroup

	applying sync.Mutex
	mu       sync.RWMutex
	api      string
	scopes   map[string]*scope // by account name; empty for public

	renewed chan struct{} // a snapshot was replaced
	shelf   shelf
}

// scope is the collectors that ask with the same token, or with none.
type scope struct {
	account  string
	identity string
	api      *rentalapi.Scope
	sources  []*source // in the order of the resources
	poll     context.CancelFunc
	funding  funding
}

// source is one collector of one scope.
type source struct {
	*refresh.Source[snapshot]
	resource *Resource
	account  string
	invalid  atomic.Int64 // of the last good answer
	stop     context.CancelFunc
	journal  journal
}

// New returns a set without collectors; Apply starts them.
func New(logger log.Logger, client *rentalapi.Client) *Set {
	return &Set{logger: logger, client: client, resources: Resources(), scopes: map[string]*scope{}, renewed: make(chan struct{}, 1)}
}

// Apply makes the configuration the one in force: what it adds begins to fetch at
// once, what it drops ends, and all else goes on with its data and schedule. The
// collectors run until ctx ends; Wait waits for that.
func (s *Set) Apply(ctx context.Context, c Config) {
	s.applying.Lock()
	defer s.applying.Unlock()
	for i, fresh := range s.reconcile(c) {
		s.start(ctx, fresh, time.Duration(i)*accountStagger)
	}
}

// Once fetches everything a single time and returns what failed.
func (s *Set) Once(ctx context.Context, c Config) error {
	var all []*source
	for _, fresh := range s.reconcile(c) {
		all = append(all, fresh.sources...)
	}
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, src := range all {
		wg.Go(func() {
			if err := src.Once(ctx); err != nil {
				errs[i] = fmt.Errorf("%s: %w", src, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// fresh is what is new in a scope and has to be started.
type fresh struct {
	*scope
	sources []*source
}

// reconcile changes the set to what the configuration says and returns what is new.
func (s *Set) reconcile(c Config) []fresh {
	wanted := []Account{{}}
	wanted = append(wanted, c.Accounts...)

	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.scopes
	if s.api != c.API {
		old = map[string]*scope{}
	}
	next := map[string]*scope{}
	var started []fresh
	for _, a := range wanted {
		sc := old[a.Name]
		if sc == nil || sc.identity != a.Identity {
			sc = &scope{account: a.Name, identity: a.Identity, api: s.client.Scope(a.Name, a.Token)}
		}
		added := s.adjust(sc, c.Collectors)
		if len(added) > 0 {
			started = append(started, fresh{sc, added})
		}
		next[a.Name] = sc
	}
	for name, sc := range s.scopes {
		if next[name] != sc {
			sc.close()
		}
	}
	s.api, s.scopes = c.API, next
	return started
}

// adjust gives a scope the sources that are enabled, and returns the new ones.
func (s *Set) adjust(sc *scope, enabled map[string]refresh.Settings) []*source {
	var sources, added []*source
	for i := range s.resources {
		r := &s.resources[i]
		at := slices.IndexFunc(sc.sources, func(src *source) bool { return src.resource == r })
		settings, on := enabled[r.Name]
		switch {
		case r.Account != (sc.account != ""):
		case !on && at >= 0:
			sc.sources[at].stop()
		case !on:
		case at >= 0:
			sc.sources[at].Set(settings)
			sources = append(sources, sc.sources[at])
		default:
			src := s.newSource(sc, r, settings)
			sources = append(sources, src)
			added = append(added, src)
		}
	}
	sc.sources = sources
	return added
}

func (s *Set) newSource(sc *scope, r *Resource, settings refresh.Settings) *source {
	src := &source{resource: r, account: sc.account, stop: func() {}}
	src.journal.logger = log.With(s.logger, "collector", r.Name)
	if sc.account != "" {
		src.journal.logger = log.With(src.journal.logger, "account", sc.account)
	}
	s.client.Expect(r.Endpoint)
	ask := r.open()
	src.Source = refresh.New(settings, func(ctx context.Context) (snapshot, error) {
		b := &metric.Builder{}
		if sc.account != "" {
			b.Prefix = []string{sc.account}
		}
		got, err := ask(ctx, sc.api, b)
		if ctx.Err() != nil || errors.Is(err, refresh.ErrMore) {
			return snapshot{}, err
		}
		if err == nil {
			src.invalid.Store(int64(got.invalid.count))
		}
		src.journal.note(got.invalid, err)
		return got, err
	})
	src.Renewed = func() {
		select {
		case s.renewed <- struct{}{}:
		default: // that is known already
		}
	}
	return src
}

// start runs what is new in a scope, and watches the token of a new account.
func (s *Set) start(ctx context.Context, f fresh, delay time.Duration) {
	for _, src := range f.sources {
		runCtx, stop := context.WithCancel(ctx)
		src.stop = stop
		s.running.Go(func() { src.Run(runCtx, delay) })
	}
	if f.account != "" && f.poll == nil {
		pollCtx, stop := context.WithCancel(ctx)
		f.poll = stop
		s.running.Go(func() { s.watchToken(pollCtx, f.scope) })
	}
}

// watchToken lets failing collectors try again as soon as their token has changed.
func (s *Set) watchToken(ctx context.Context, sc *scope) {
	last, _ := sc.api.Fingerprint()
	tick := time.NewTicker(tokenPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := sc.api.Fingerprint()
		if err != nil || now == last {
			continue
		}
		last = now
		level.Info(s.logger).Log("msg", "token changed", "account", sc.account)
		s.mu.RLock()
		for _, src := range sc.sources {
			src.Wake()
		}
		s.mu.RUnlock()
	}
}

func (sc *scope) close() {
	for _, src := range sc.sources {
		src.stop()
	}
	if sc.poll != nil {
		sc.poll()
	}
	sc.api.Close()
}

// String names a source in messages.
func (src *source) String() string {
	if src.account == "" {
		return src.resource.Name
	}
	return src.resource.Name + " of account " + src.account
}

// Wait returns when all collectors have ended.
func (s *Set) Wait() { s.running.Wait() }

// Ready tells whether every collector has been tried once. It stays true.
func (s *Set) Ready() bool {
	if s.ready.Load() {
		return true
	}
	for _, src := range s.all() {
		if !src.State().Tried {
			return false
		}
	}
	s.ready.Store(true)
	return true
}

// all returns the sources: public ones first, then by account.
func (s *Set) all() []*source {
	var all []*source
	for _, sc := range s.ordered() {
		all = append(all, sc.sources...)
	}
	return all
}

// ordered returns copies of the scopes' lists that no reload changes any more.
func (s *Set) ordered() []scopeView {
	s.mu.RLock()
	defer s.mu.RUnlock()
	views := make([]scopeView, 0, len(s.scopes))
	for _, sc := range s.scopes {
		views = append(views, scopeView{sc, sc.sources})
	}
	slices.SortFunc(views, func(a, b scopeView) int { return strings.Compare(a.account, b.account) })
	return views
}

type scopeView struct {
	*scope
	sources []*source
}

// Describe implements prometheus.Collector.
func (s *Set) Describe(ch chan<- *prometheus.Desc) {
	for _, r := range s.resources {
		for _, d := range r.Metrics {
			if d != accountFunded {
				ch <- d.Desc()
			}
		}
	}
}

// Collect implements prometheus.Collector. It waits for nothing.
func (s *Set) Collect(ch chan<- prometheus.Metric) {
	for _, sc := range s.ordered() {
		for _, src := range sc.sources {
			snap, _ := src.Value()
			for _, m := range snap.metrics {
				ch <- m
			}
		}
	}
}

// State returns what collectors say of themselves, and what is drawn from two resources.
func (s *Set) State() prometheus.Collector { return state{s} }

type state struct{ set *Set }

// Describe implements prometheus.Collector.
func (s state) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range stateDefinitions() {
		ch <- d.Desc()
	}
}

func stateDefinitions() []*metric.Definition { return append(Definitions(), accountFunded) }

// Collect implements prometheus.Collector.
func (s state) Collect(ch chan<- prometheus.Metric) {
	for _, sc := range s.set.ordered() {
		sc.showState(func(m prometheus.Metric) { ch <- m })
	}
}

// showState shows how the sources of a scope are, and what follows from two of them.
func (v scopeView) showState(add func(prometheus.Metric)) {
	var usd balance
	var owned *fleet
	for _, src := range v.sources {
		src.showState(add)
		snap, _ := src.Value()
		switch data := snap.data.(type) {
		case balance:
			usd = data
		case *fleet:
			owned = data
		}
	}
	if m := v.funding.of(v.account, usd, owned, time.Now()); m != nil {
		add(m)
	}
}

func (src *source) showState(add func(prometheus.Metric)) {
	state := src.State()
	show := func(d *metric.Definition, v float64) {
		m, err := d.Metric(v, src.resource.Name, src.account)
		if err != nil {
			m = prometheus.NewInvalidMetric(d.Desc(), err)
		}
		add(m)
	}
	show(collectorInterval, state.Interval.Seconds())
	if state.Finished {
		success := 0.0
		if state.Err == nil {
			success = 1
		}
		show(collectorSuccess, success)
		show(collectorDuration, state.Duration.Seconds())
	}
	if !state.LastSuccess.IsZero() {
		show(collectorLast, float64(state.LastSuccess.UnixMilli())/1000)
		show(collectorInvalid, float64(src.invalid.Load()))
	}
}

// Status is the state of one collector, for people.
type Status struct {
	Collector, Account string
	Invalid            int64
	refresh.State
}

// Status returns the state of every collector: public ones first, then by account.
func (s *Set) Status() []Status {
	var all []Status
	for _, src := range s.all() {
		all = append(all, Status{
			Collector: src.resource.Name, Account: src.account,
			Invalid: src.invalid.Load(), State: src.State(),
		})
	}
	return all
}
