// Package runner runs the collectors that are configured: it fetches each resource in
// the background at its interval, with the token of its account, keeps the last good
// snapshots, and publishes their metrics, so that a scrape never causes a request. It
// knows no resource by name.
package runner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-kit/log"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/exposition"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
)

// Config says what is collected.
type Config struct {
	API        string                      // identifies the API: if it changes, all data is dropped
	Collectors map[string]refresh.Settings // the enabled ones, by name
	Accounts   []Account
	Watches    []collector.Watch // with distinct names
}

// Account is one account of the provider.
type Account struct {
	Name     string // value of the label account
	Identity string // where the token comes from; an account is the same while it stays
	Token    rentalapi.Token
}

// Options of a runner.
type Options struct {
	Logger    log.Logger
	UserAgent string
	API       rentalapi.Settings
}

// accountStagger is the time between the starts of two accounts' collectors.
const accountStagger = 20 * time.Millisecond

// Runner is all collectors of the process. Its methods may be used by any goroutine,
// except ApplyConfig and Once, which must not be called concurrently.
type Runner struct {
	API       *rentalapi.API
	Publisher *exposition.Publisher

	options   Options
	resources []collector.Resource
	groups    groups
	running   sync.WaitGroup
	origin    func() time.Time // of a new scope

	ready atomic.Bool

	watchesMu sync.Mutex
	watches   []collector.Watched // in the order of the configuration

	allScopes atomic.Pointer[[]*scope] // immutable
}

// New returns a runner without collectors; ApplyConfig starts them.
func New(o Options) *Runner {
	r := &Runner{options: o, resources: collector.Resources()}
	r.origin = func() time.Time { return time.Now().Add(-rand.N(maxOrigin)) } // random, so that accounts do not stay in step
	r.newGroups()
	r.API = rentalapi.New(o.UserAgent, o.API)
	r.allScopes.Store(&[]*scope{{api: r.API.Client("", nil)}})
	r.Publisher = exposition.NewPublisher(r.groups.all...)
	return r
}

// Run publishes, and looks for changed tokens, until ctx ends; Wait waits for that.
func (r *Runner) Run(ctx context.Context) {
	r.running.Go(func() { r.Publisher.Run(ctx) })
	r.running.Go(func() { r.pollTokens(ctx) })
}

// ApplyConfig puts a configuration in force: added collectors start at once, removed
// ones stop, and all others keep their data and schedule. What is exported is that of the
// configuration when it returns. Collectors run until ctx ends; Wait waits for that.
func (r *Runner) ApplyConfig(ctx context.Context, c Config) {
	added, scopes := r.apply(c), map[*scope]bool{}
	r.Publisher.Publish()
	for _, src := range added {
		scopes[src.scope] = true
		delay := time.Duration(len(scopes)-1) * accountStagger
		runCtx, stop := context.WithCancel(ctx)
		src.stop = stop
		r.running.Go(func() { src.Run(runCtx, delay) })
	}
}

// Once fetches everything a single time. The error says how many collectors failed;
// why is in the log.
func (r *Runner) Once(ctx context.Context, c Config) error {
	var failed atomic.Int64
	var all sync.WaitGroup
	sources := r.apply(c)
	for _, src := range sources {
		all.Go(func() {
			if src.Once(ctx) != nil {
				failed.Add(1)
			}
		})
	}
	all.Wait()
	if n := failed.Load(); n > 0 && ctx.Err() == nil {
		return fmt.Errorf("%d of %d collectors failed", n, len(sources))
	}
	return ctx.Err()
}

// apply puts a configuration in force, and returns the sources that are new. All metrics
// are published anew: those of a removed collector disappear.
func (r *Runner) apply(c Config) []*source {
	r.applyWatches(c.Watches)
	added := r.reconcile(c)
	for _, src := range r.sources() {
		src.ApplySettings(c.Collectors[src.resource.Name])
	}
	for _, group := range r.groups.all {
		group.Changed()
	}
	return added
}

// Wait returns when all that was started has ended.
func (r *Runner) Wait() { r.running.Wait() }

// Ready reports whether every collector was tried once and the outcome is served. It
// stays true.
func (r *Runner) Ready() bool {
	untried := func(src *source) bool { return !src.tried.Load() }
	if !r.ready.Load() && r.scopes()[0].identity != "" && !slices.ContainsFunc(r.sources(), untried) {
		r.Publisher.Publish()
		r.ready.Store(true)
	}
	return r.ready.Load()
}
