// Package runner runs the collectors that are configured: it fetches each resource in
// the background at its interval, with the token of its account, keeps the last good
// snapshots, and publishes their metrics, so that a scrape never causes a request. It
// knows no resource by name.
package runner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-kit/log"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/exposition"
	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// Spec says what is collected.
type Spec struct {
	API        string                      // identifies the API, and is not empty: if it changes, all data is dropped
	Collectors map[string]collector.Timing // the enabled ones, by name
	Accounts   []AccountSpec               // their names are distinct
	Watches    []collector.Watch           // their names are distinct

	Shard, Shards int       // index of this shard, and how many there are
	LoadedAt      time.Time // when the configuration was loaded
	ReloadFailed  bool      // whether a later one was refused
}

// AccountSpec says which account is collected.
type AccountSpec struct {
	Name     string // value of the label account
	Identity string // where the token comes from; an account is the same while it stays
	Token    rentalapi.Token
}

// Runner runs all collectors of the process. Its methods may be used by any goroutine, except
// ApplyConfig and Once, which must not be called concurrently.
type Runner struct {
	Publisher *exposition.Publisher

	logger  log.Logger
	api     *rentalapi.API
	running sync.WaitGroup
	ready   atomic.Bool

	// mu guards the rest, and what its accounts and jobs know. Locks are taken in this order:
	// publishing (of Publisher), mu, those of rentalapi. While one is held, no client is waited for,
	// nor a log: the logger must not block.
	mu        sync.Mutex
	spec      Spec                 // in force
	samples   int                  // number of samples that were collected last
	accounts  []*account           // the public one first, then by name
	watches   []*collector.Watched // sorted as in the configuration
	unmatched int                  // number of watches beyond collector.MaxMatches
	events    []collector.Event    // the last ones, newest first; immutable
}

// New returns a runner without collectors; ApplyConfig starts them.
func New(logger log.Logger, api *rentalapi.API) *Runner {
	r := &Runner{logger: logger, api: api, accounts: []*account{{}}}
	r.Publisher = exposition.NewPublisher(Definitions(), r.collect)
	return r
}

// Run publishes until ctx ends; Wait waits for that.
func (r *Runner) Run(ctx context.Context) {
	r.running.Go(func() { r.Publisher.Run(ctx) })
}

// ApplyConfig puts a configuration in force: added collectors start at once, removed
// ones stop, and all others keep their data and schedule. When it returns, the metrics are
// those of the configuration. Collectors run until ctx ends; Wait waits for that.
func (r *Runner) ApplyConfig(ctx context.Context, s Spec) {
	added := r.configure(s)
	r.Publisher.Publish()
	for _, j := range added {
		jobCtx, stop := context.WithCancel(ctx)
		j.stop = stop
		r.running.Go(func() { j.run(jobCtx) })
	}
}

// Once fetches everything a single time. The error says how many collectors failed;
// why is in the log.
func (r *Runner) Once(ctx context.Context, s Spec) error {
	var all sync.WaitGroup
	jobs := r.configure(s)
	for _, j := range jobs {
		all.Go(func() { j.attempt(ctx) })
	}
	all.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	failed := 0
	for _, j := range jobs {
		j.health.Next = time.Time{} // there is none
		if j.health.Err != nil {
			failed++
		}
	}
	if failed > 0 && ctx.Err() == nil {
		return fmt.Errorf("%d of %d collectors failed", failed, len(jobs))
	}
	return ctx.Err()
}

// configure puts a configuration in force, and returns the jobs that are new. All metrics are
// published again: those of a removed collector disappear.
func (r *Runner) configure(s Spec) (added []*job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spec = s
	added = r.reconcile(s)
	watches := make([]*collector.Watched, len(s.Watches))
	for i, w := range s.Watches { // one that did not change keeps its state
		watches[i] = &collector.Watched{Watch: w}
		if at := slices.IndexFunc(r.watches, func(before *collector.Watched) bool { return reflect.DeepEqual(before.Watch, w) }); at >= 0 {
			watches[i] = r.watches[at]
		}
	}
	r.watches = watches
	r.stepWatches()
	r.Publisher.Changed()
	return added
}

// Wait returns when all that was started has ended.
func (r *Runner) Wait() { r.running.Wait() }

// Ready reports whether every collector was tried once and the outcome is served. It
// stays true.
func (r *Runner) Ready() bool {
	r.mu.Lock()
	tried := r.spec.API != "" && !slices.ContainsFunc(r.jobs(), func(j *job) bool { return !j.health.Tried() })
	r.mu.Unlock()
	if tried && !r.ready.Load() {
		r.Publisher.Publish()
		r.ready.Store(true)
	}
	return r.ready.Load()
}

// account holds the collectors that use one token. The account without a name holds the public
// ones, which use none.
type account struct {
	name     string
	identity string // identifies the API and the token
	client   *rentalapi.Client
	jobs     []*job // sorted like the resources

	derived derived
}

// derived holds the metrics that follow from the data of an account on a day (UTC).
type derived struct {
	data    collector.Data
	day     time.Time
	metrics []*metric.Sample
}

// maxJitter is the largest share of an interval by which the second fetches of an account are
// late, so that accounts which start together do not stay in step.
const maxJitter = 0.1

// accountStagger is the time between the starts of two accounts' collectors.
const accountStagger = 20 * time.Millisecond

// reconcile changes the accounts and their jobs to what is configured, and returns the new
// jobs. The caller holds mu; likewise below.
func (r *Runner) reconcile(s Spec) (added []*job) {
	before, delay := map[string]*account{}, time.Duration(0)
	for _, a := range r.accounts {
		before[a.identity] = a
	}
	r.accounts = nil
	for _, spec := range append([]AccountSpec{{}}, s.Accounts...) {
		identity := fmt.Sprintf("%s %q %s", s.API, spec.Name, spec.Identity)
		a := before[identity]
		if a == nil {
			a = &account{name: spec.Name, identity: identity, client: r.api.Client(spec.Name, spec.Token)}
		}
		delete(before, identity)
		r.accounts = append(r.accounts, a)
		if started := r.enable(a, s.Collectors, delay); len(started) > 0 {
			added, delay = append(added, started...), delay+accountStagger
		}
	}
	for _, a := range before {
		r.enable(a, nil, 0)
	}
	slices.SortFunc(r.accounts, func(a, b *account) int { return strings.Compare(a.name, b.name) })
	return added
}

// enable changes the jobs of an account to the collectors that are enabled. It returns the new
// ones, which fetch after delay, and stops those that are not enabled any more.
func (r *Runner) enable(a *account, collectors map[string]collector.Timing, delay time.Duration) (added []*job) {
	before, jitter := a.jobs, maxJitter*rand.Float64() // the same for all: balance and servers are of one moment
	a.jobs = nil
	for _, res := range collector.Resources() {
		timing, enabled := collectors[res.Name]
		at := slices.IndexFunc(before, func(j *job) bool { return j.resource.Name == res.Name })
		switch {
		case res.Account != (a.name != ""):
		case enabled && at >= 0:
			before[at].setTiming(timing)
			a.jobs = append(a.jobs, before[at])
		case enabled:
			j := r.newJob(a, res, timing, delay)
			j.schedule.startJitter = time.Duration(jitter * float64(timing.Interval))
			a.jobs, added = append(a.jobs, j), append(added, j)
		case at >= 0:
			before[at].stop()
		}
	}
	return added
}

// jobs returns the jobs of all accounts, in their order.
func (r *Runner) jobs() []*job {
	var all []*job
	for _, a := range r.accounts {
		all = append(all, a.jobs...)
	}
	return all
}

// data returns the present data of the account.
func (a *account) data() collector.AccountData {
	data := collector.AccountData{Name: a.name}
	for _, j := range a.jobs {
		if j.shown() {
			data.Add(j.snapshot.Data)
		}
		if j.health.Incomplete {
			data.Incomplete = append(data.Incomplete, j.resource.Name)
		}
	}
	return data
}

// Accounts returns the present data of each account, in the order of their names.
func (r *Runner) Accounts() []collector.AccountData {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []collector.AccountData
	for _, a := range r.accounts[1:] {
		all = append(all, a.data())
	}
	return all
}
