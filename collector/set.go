// Package collector turns the resources of the rental API into metrics. One file
// describes each resource: its endpoint, its fields and its metrics. This file runs
// the collectors that are configured, each in the background at its interval; a
// publisher serves their metrics, so that a scrape never causes a request.
package collector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/exposition"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
)

// Config says what is collected.
type Config struct {
	API        string                      // identifies the API: where it changes, all data is dropped
	Collectors map[string]refresh.Settings // the enabled ones, by name
	Accounts   []Account
	Watches    []Watch // with distinct names
}

// Account is one account of the provider.
type Account struct {
	Name     string // value of the label account
	Identity string // where the token comes from; an account is the same while it stays
	Token    rentalapi.Token
}

// accountStagger is the time between the starts of two accounts' collectors.
const accountStagger = 20 * time.Millisecond

// maxOrigin is over how much time the phases of accounts are spread, also where
// intervals are longer.
const maxOrigin = time.Hour

// Set is all collectors of the process.
type Set struct {
	// TokenPollInterval is the time from one comparison of the accounts' tokens with
	// the last ones to the next: 5 seconds, or another value greater than 0. It is set
	// before ApplyConfig.
	TokenPollInterval time.Duration
	// Rand is the source of all jitter; nil means the global one. It is set before
	// ApplyConfig.
	Rand *rand.Rand
	// Publisher publishes the metrics of the collectors, and the groups that New got.
	Publisher *exposition.Publisher

	logger     log.Logger
	client     *rentalapi.Client
	identities identities
	resources  []Resource
	groups     groups
	watches    watches
	ready      atomic.Bool
	running    sync.WaitGroup
	newOrigin  func() time.Time // of a new scope

	mu     sync.RWMutex
	api    string
	scopes map[string]*scope // by account name; empty for public
}

// groups are what the set publishes.
type groups struct {
	resources map[string]*exposition.Group // by name
	derived   map[string][]derivedGroup    // by the names of their inputs
	health    *exposition.Group

	allDerived []*exposition.Group
}

type derivedGroup struct {
	derived
	*exposition.Group
}

// scope is the collectors that use the same token, or none.
type scope struct {
	account  string
	identity string
	api      *rentalapi.Scope
	sources  []*source // in the order of the resources
	stopPoll context.CancelFunc
	origin   time.Time // of the grid on which an account's collectors fetch
}

// source is one collector of one scope.
type source struct {
	*refresh.Source[snapshot]
	resource *Resource
	account  string
	triedAt  atomic.Uint64              // Changes of the publisher once the first attempt was marked; 0 before
	last     atomic.Pointer[goodAnswer] // kept when its data expires
	// incomplete is whether the newest answer that could be read was incomplete.
	incomplete atomic.Bool
	stop       context.CancelFunc
	logger     stateLogger
}

// goodAnswer is what is reported about the last good answer.
type goodAnswer struct {
	invalid rentalapi.Invalid
	age     answerAge
}

// New returns a set without collectors that publishes more groups beside its own;
// ApplyConfig starts collectors.
func New(logger log.Logger, client *rentalapi.Client, more ...*exposition.Group) *Set {
	s := &Set{
		TokenPollInterval: 5 * time.Second,
		logger:            logger, client: client, resources: Resources(), scopes: map[string]*scope{},
		identities: identities{logger: logger, byID: map[string][]string{}},
	}
	s.newOrigin = func() time.Time { // accounts do not stay in step
		if s.Rand != nil {
			return time.Now().Add(-time.Duration(s.Rand.Int64N(int64(maxOrigin))))
		}
		return time.Now().Add(-rand.N(maxOrigin))
	}
	s.groups = s.newGroups()
	all := append(more, s.groups.health)
	for _, r := range s.resources {
		all = append(all, s.groups.resources[r.Name])
	}
	s.Publisher = exposition.NewPublisher(append(all, s.groups.allDerived...)...)
	return s
}

// newGroups returns a group for the state of the collectors, one for each resource and
// one for each derivation.
func (s *Set) newGroups() groups {
	g := groups{resources: map[string]*exposition.Group{}, derived: map[string][]derivedGroup{}}
	g.health = &exposition.Group{Descs: metric.Descs(HealthDefinitions()), Collect: s.collectHealth}
	for i := range s.resources {
		r := &s.resources[i]
		g.resources[r.Name] = &exposition.Group{
			Descs:   metric.Descs(r.Metrics),
			Collect: func(time.Time) ([]prometheus.Metric, time.Time) { return s.collectResource(r) },
		}
	}
	for _, d := range derivations() {
		group := &exposition.Group{
			Descs:   metric.Descs(d.metrics),
			Collect: func(now time.Time) ([]prometheus.Metric, time.Time) { return d.collect(s, now) },
		}
		g.allDerived = append(g.allDerived, group)
		for _, input := range d.inputs {
			g.derived[input] = append(g.derived[input], derivedGroup{d, group})
		}
	}
	return g
}

// changed updates everything that follows from a resource's snapshots, and has it
// published anew.
func (s *Set) changed(resource string) {
	s.groups.resources[resource].Changed()
	for _, d := range s.groups.derived[resource] {
		if d.update != nil {
			d.update(s)
		}
		d.Changed()
	}
}

// ApplyConfig puts a configuration in force: added collectors start at once, removed
// ones stop, and all others keep their data and schedule. Collectors run until ctx
// ends; Wait waits for that. It must not be called concurrently.
func (s *Set) ApplyConfig(ctx context.Context, c Config) {
	added := s.apply(c)
	// A removed collector's metrics disappear, and watches forget its data before a new
	// collector can answer.
	for i := range s.resources {
		s.changed(s.resources[i].Name)
	}
	s.groups.health.Changed()
	for i, a := range added {
		s.start(ctx, a, time.Duration(i)*accountStagger)
	}
}

// Once fetches everything a single time and returns what failed.
func (s *Set) Once(ctx context.Context, c Config) error {
	var all []*source
	for _, added := range s.apply(c) {
		all = append(all, added.sources...)
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

// apply puts the watches and the settings of all sources in force, and returns the
// sources that are new.
func (s *Set) apply(c Config) []addedSources {
	s.watches.apply(c.Watches)
	added := s.reconcile(c)
	for _, sc := range s.snapshot() {
		for _, src := range sc.sources {
			src.ApplySettings(c.Collectors[src.resource.Name])
		}
	}
	return added
}

// addedSources are new sources of a scope that are not started yet.
type addedSources struct {
	*scope
	sources []*source
}

// reconcile changes the set to what the configuration says and returns what is new.
func (s *Set) reconcile(c Config) []addedSources {
	wanted := []Account{{}}
	wanted = append(wanted, c.Accounts...)

	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.scopes
	if s.api != c.API {
		old = map[string]*scope{}
	}
	next := map[string]*scope{}
	var added []addedSources
	for _, a := range wanted {
		sc := old[a.Name]
		if sc == nil || sc.identity != a.Identity || !s.anyEnabled(a.Name, c.Collectors) { // an idle one keeps no state of its token
			sc = &scope{account: a.Name, identity: a.Identity, api: s.client.Scope(a.Name, a.Token), stopPoll: func() {}}
			sc.origin = s.newOrigin()
		}
		if sources := s.adjust(sc, c.Collectors); len(sources) > 0 {
			added = append(added, addedSources{sc, sources})
		}
		next[a.Name] = sc
	}
	for name, sc := range s.scopes {
		if next[name] != sc {
			sc.close()
			s.identities.forget(name)
		}
	}
	s.api, s.scopes = c.API, next
	return added
}

// anyEnabled returns whether an account, or the public scope, has an enabled collector.
func (s *Set) anyEnabled(account string, enabled map[string]refresh.Settings) bool {
	return slices.ContainsFunc(s.resources, func(r Resource) bool {
		_, on := enabled[r.Name]
		return on && r.Account == (account != "")
	})
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
	src.logger.logger = log.With(s.logger, "collector", r.Name)
	if sc.account != "" {
		src.logger.logger = log.With(src.logger.logger, "account", sc.account)
	}
	s.client.InitErrorCounters(r.Endpoint)
	options := refresh.Options[snapshot]{
		PhaseOf: func(snap snapshot, began time.Time) refresh.Phase {
			if r.Account {
				return grid(sc.origin, src.State().Interval, began)
			}
			return snap.age.phase(r.MinInterval)
		},
		OnUpdate: func() { s.changed(r.Name) },
		OnAttempt: func() {
			s.groups.health.Changed()
			src.triedAt.CompareAndSwap(0, s.Publisher.Changes()) // after the groups were marked as changed
		},
	}
	if s.Rand != nil {
		options.Rand = rand.New(rand.NewPCG(s.Rand.Uint64(), s.Rand.Uint64()))
	}
	fetch := r.newFetch()
	src.Source = refresh.New(settings, func(ctx context.Context) (snapshot, error) {
		snap, err := fetch(ctx, sc.api, scopeSnapshot{scope: sc}.builder())
		if ctx.Err() != nil || errors.Is(err, refresh.ErrIncomplete) {
			return snapshot{}, err
		}
		if errors.Is(err, metric.ErrLimitReached) {
			err = sc.api.TooLarge(r.Endpoint, err)
		}
		err = withHint(err)
		var failure *rentalapi.Error
		switch {
		case err == nil:
			src.last.Store(&goodAnswer{snap.invalid, snap.age})
			if a := snap.facts.account; a != nil {
				s.identities.record(sc.account, a.id)
			}
			src.incomplete.Store(false)
		case errors.As(err, &failure) && failure.Reason == rentalapi.Incomplete:
			src.incomplete.Store(true)
		}
		src.logger.record(snap.invalid, err)
		return snap, err
	}, options)
	return src
}

// withHint adds what an operator can do about an endpoint that the API does not have.
func withHint(err error) error {
	var failure *rentalapi.Error
	if errors.As(err, &failure) && failure.Code == http.StatusNotFound {
		return fmt.Errorf("%w; disable the collector if the API does not have this endpoint", err)
	}
	return err
}

// start runs new sources, and polls the token of a new account.
func (s *Set) start(ctx context.Context, added addedSources, delay time.Duration) {
	for _, src := range added.sources {
		runCtx, stop := context.WithCancel(ctx)
		src.stop = stop
		s.running.Go(func() { src.Run(runCtx, delay) })
	}
	sc := added.scope
	if sc.account == "" {
		return
	}
	sc.stopPoll() // of sources that were there before
	pollCtx, stop := context.WithCancel(ctx)
	sc.stopPoll = stop
	s.running.Go(func() { s.pollToken(pollCtx, sc) })
}

// pollToken lets failing collectors retry as soon as their token has changed, or can be
// read again.
func (s *Set) pollToken(ctx context.Context, sc *scope) {
	last, _ := sc.api.Fingerprint()
	tick := time.NewTicker(s.TokenPollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := sc.api.Fingerprint()
		changed := now != last
		last = now
		if err != nil || !changed {
			continue
		}
		level.Info(s.logger).Log("msg", "token changed", "account", sc.account)
		s.mu.RLock()
		sources := sc.sources
		s.mu.RUnlock()
		for _, src := range sources {
			src.RetryNow()
		}
	}
}

func (sc *scope) close() {
	for _, src := range sc.sources {
		src.stop()
	}
	sc.stopPoll()
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

// scopeSnapshot is a scope with the sources that it had when it was taken.
type scopeSnapshot struct {
	*scope
	sources []*source
}

// snapshot returns the scopes: the public one first, then by account.
func (s *Set) snapshot() []scopeSnapshot {
	s.mu.RLock()
	defer s.mu.RUnlock()
	scopes := make([]scopeSnapshot, 0, len(s.scopes))
	for _, sc := range s.scopes {
		scopes = append(scopes, scopeSnapshot{sc, sc.sources})
	}
	slices.SortFunc(scopes, func(a, b scopeSnapshot) int { return strings.Compare(a.account, b.account) })
	return scopes
}

// source returns the source of a resource; nil where it is not enabled.
func (sc scopeSnapshot) source(resource string) *source {
	for _, src := range sc.sources {
		if src.resource.Name == resource {
			return src
		}
	}
	return nil
}

// builder returns a builder for metrics of the scope.
func (sc scopeSnapshot) builder() *metric.Builder {
	if sc.account == "" {
		return &metric.Builder{}
	}
	return &metric.Builder{ConstLabelValues: []string{sc.account}}
}

// Ready returns whether every collector was tried once and the outcome is served. It
// stays true.
func (s *Set) Ready() bool {
	if s.ready.Load() {
		return true
	}
	scopes, published := s.snapshot(), s.Publisher.Published()
	for _, sc := range scopes {
		if slices.ContainsFunc(sc.sources, func(src *source) bool {
			at := src.triedAt.Load()
			return at == 0 || published < at
		}) {
			return false
		}
	}
	if len(scopes) == 0 { // none before the first configuration
		return false
	}
	s.ready.Store(true)
	return true
}

// collectResource returns the present metrics of a resource in all scopes, and when
// the first of its snapshots expires.
func (s *Set) collectResource(r *Resource) (metrics []prometheus.Metric, expires time.Time) {
	for _, sc := range s.snapshot() {
		src := sc.source(r.Name)
		if src == nil {
			continue
		}
		snap, until, ok := src.Value()
		if !ok {
			continue
		}
		metrics = append(metrics, snap.metrics...)
		if expires.IsZero() || until.Before(expires) {
			expires = until
		}
	}
	return metrics, expires
}
