package runner

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/exposition"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// groups are what the runner publishes.
type groups struct {
	all       []*exposition.Group
	health    *exposition.Group
	accounts  *exposition.Group            // state of the scopes at the API
	watches   *exposition.Group            // from public facts
	funding   *exposition.Group            // from facts of each account
	resources map[string]*exposition.Group // by name
}

func (r *Runner) newGroups() {
	g := &r.groups
	group := func(definitions []*metric.Definition, collect func(now time.Time) ([]prometheus.Metric, time.Time)) *exposition.Group {
		g.all = append(g.all, &exposition.Group{Descs: metric.Descs(definitions), Collect: collect})
		return g.all[len(g.all)-1]
	}
	g.health = group(HealthDefinitions(), r.collectHealth)
	g.accounts = group(rentalapi.AccountDefinitions(), r.collectAccounts)
	g.watches = group(collector.WatchDefinitions(), r.collectWatches)
	g.funding = group(collector.FundingDefinitions(), r.collectFunding)
	g.resources = map[string]*exposition.Group{}
	for i := range r.resources {
		res := &r.resources[i]
		g.resources[res.Name] = group(res.Metrics, func(time.Time) ([]prometheus.Metric, time.Time) { return r.collectResource(res) })
	}
}

// changed publishes anew what follows from a source's snapshots.
func (r *Runner) changed(src *source) {
	r.groups.resources[src.resource.Name].Changed()
	if snap, _, ok := src.Value(); ok && snap.Facts.IsZero() {
		return
	}
	if src.scope.account == "" {
		r.stepWatches()
	} else {
		r.groups.funding.Changed()
	}
}

// collectAccounts returns what the API last said to each scope, and when that changes by
// the passing of time.
func (r *Runner) collectAccounts(now time.Time) (metrics []prometheus.Metric, expires time.Time) {
	b := &metric.Builder{}
	for _, sc := range r.sortedScopes() {
		expires = metric.Earlier(expires, sc.api.AddMetrics(b, now))
	}
	return b.Metrics(), expires
}

// collectResource returns the present metrics of a resource in all scopes, and when
// the first of its snapshots expires.
func (r *Runner) collectResource(res *collector.Resource) (metrics []prometheus.Metric, expires time.Time) {
	for _, sc := range r.sortedScopes() {
		for _, src := range sc.sources {
			if src.resource != res {
				continue
			}
			if snap, until, ok := src.Value(); ok {
				metrics = append(metrics, snap.Metrics...)
				expires = metric.Earlier(expires, until)
			}
		}
	}
	return metrics, expires
}

// collectFunding returns what follows from the facts of each account.
func (r *Runner) collectFunding(now time.Time) (metrics []prometheus.Metric, expires time.Time) {
	for _, sc := range r.sortedScopes() {
		b := sc.builder()
		expires = metric.Earlier(expires, collector.AddFunding(b, sc.inputs(), now))
		metrics = append(metrics, b.Metrics()...)
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
		for _, old := range r.watches {
			if old.Same(c) {
				next[i] = old
			}
		}
	}
	r.watches = next
}

// stepWatches evaluates the watches with the present public facts. It reads these under
// its lock, so that no step uses older ones than the step before.
func (r *Runner) stepWatches() {
	r.watchesMu.Lock()
	defer r.watchesMu.Unlock()
	r.mu.RLock()
	public := r.scopes[""]
	r.mu.RUnlock()
	in, now := public.inputs(), time.Now()
	for i := range r.watches {
		r.watches[i] = r.watches[i].Step(in, now)
	}
	r.groups.watches.Changed()
}

func (r *Runner) collectWatches(now time.Time) ([]prometheus.Metric, time.Time) {
	r.watchesMu.Lock()
	defer r.watchesMu.Unlock()
	return collector.WatchMetrics(r.watches, now)
}
