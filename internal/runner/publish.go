package runner

import (
	"slices"
	"time"

	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/exposition"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// groups are what the runner publishes.
type groups struct {
	all       []*exposition.Group
	state     *exposition.Group            // of the collectors, and of the scopes at the API
	watches   *exposition.Group            // from public facts
	funding   *exposition.Group            // from facts of each account
	resources map[string]*exposition.Group // by name
}

func (r *Runner) newGroups() {
	g := &r.groups
	group := func(definitions []*metric.Definition, collect func(now time.Time) ([]prometheus.Metric, time.Time)) *exposition.Group {
		g.all = append(g.all, &exposition.Group{Definitions: definitions, Collect: collect})
		return g.all[len(g.all)-1]
	}
	g.state = group(append(HealthDefinitions(), rentalapi.AccountDefinitions()...), r.collectState)
	g.watches = group(collector.WatchDefinitions(), func(time.Time) ([]prometheus.Metric, time.Time) {
		watches, expires := r.stepWatches()
		return collector.WatchMetrics(watches), expires
	})
	g.funding = group(collector.FundingDefinitions(), func(now time.Time) ([]prometheus.Metric, time.Time) {
		return collector.FundingMetrics(r.Accounts(), now)
	})
	g.resources = map[string]*exposition.Group{}
	for i := range r.resources {
		res := &r.resources[i]
		g.resources[res.Name] = group(res.Metrics, func(time.Time) ([]prometheus.Metric, time.Time) { return r.collectResource(res) })
	}
}

// ended has what follows from an attempt published anew.
func (src *source) ended(updated bool) {
	groups := &src.runner.groups
	groups.state.Changed()
	if updated {
		groups.resources[src.resource.Name].Changed()
		switch facts := src.last.Load().Data; {
		case facts == (collector.Data{}):
		case src.scope.account == "":
			src.runner.stepWatches()
			groups.watches.Changed()
		default:
			groups.funding.Changed()
		}
	}
	src.tried.Store(true) // after the groups were marked as changed
}

// identify warns if an account is another provider account than before, or also that of
// another account: sums over accounts count it twice then.
func (r *Runner) identify(src *source, before string) {
	account, id := src.scope.account, src.providerID()
	if id == before {
		return
	}
	if before != "" {
		level.Warn(r.options.Logger).Log("msg", "account has become another provider account", "account", account, "before", before, "now", id)
	}
	for _, other := range r.sources() {
		if other.scope.account != account && other.providerID() == id {
			level.Warn(r.options.Logger).Log("msg", "same provider account configured more than once", "account", account, "first", other.scope.account)
			return
		}
	}
}

// collectState returns the state of all collectors and what the API last said to each
// scope, and when that changes by the passing of time.
func (r *Runner) collectState(now time.Time) (metrics []prometheus.Metric, expires time.Time) {
	b := &metric.Builder{}
	for _, sc := range r.scopes() { // first: a limit of samples is reached by collectors only
		expires = metric.Earlier(expires, sc.api.AddMetrics(b, now))
	}
	for _, h := range r.Health() {
		h.AddMetrics(b)
	}
	return b.Metrics(), expires
}

// collectResource returns the present metrics of a resource in all scopes, and when
// the first of its snapshots expires.
func (r *Runner) collectResource(res *collector.Resource) (metrics []prometheus.Metric, expires time.Time) {
	for _, src := range r.sources() {
		if src.resource != res {
			continue
		}
		if snap, until, ok := src.Value(); ok {
			metrics = append(metrics, snap.Metrics...)
			expires = metric.Earlier(expires, until)
		}
	}
	return metrics, expires
}

// applyWatches changes the watches to those that are configured. One that did not change
// keeps its state.
func (r *Runner) applyWatches(configured []collector.Watch) {
	r.watchesMu.Lock()
	defer r.watchesMu.Unlock()
	next := make([]collector.Watched, len(configured))
	for i, c := range configured {
		next[i] = collector.NewWatched(c, time.Now())
		if at := slices.IndexFunc(r.watches, func(w collector.Watched) bool { return w.Same(c) }); at >= 0 {
			next[i] = r.watches[at]
		}
	}
	r.watches = next
}

// stepWatches evaluates the watches with the present public facts, and returns them and
// when the first fact expires. It reads the facts under watchesMu, so that no step uses
// older ones than the step before.
func (r *Runner) stepWatches() (watches []collector.Watched, expires time.Time) {
	r.watchesMu.Lock()
	defer r.watchesMu.Unlock()
	public := r.scopes()[0].known()
	for i, w := range r.watches {
		r.watches[i] = w.Step(public, time.Now())
	}
	return slices.Clone(r.watches), public.Until
}
