package runner

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/exposition"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// groups are what the runner publishes.
type groups struct {
	health    *exposition.Group
	accounts  *exposition.Group            // state of the scopes at the API
	watches   *exposition.Group            // from public facts
	funding   *exposition.Group            // from facts of each account
	resources map[string]*exposition.Group // by name
}

func (r *Runner) newGroups() groups {
	group := func(definitions []*metric.Definition, collect func(now time.Time) ([]prometheus.Metric, time.Time)) *exposition.Group {
		return &exposition.Group{Descs: metric.Descs(definitions), Collect: collect}
	}
	g := groups{
		health:    group(HealthDefinitions(), r.collectHealth),
		accounts:  group(rentalapi.AccountDefinitions(), func(now time.Time) ([]prometheus.Metric, time.Time) { return r.Client.AccountMetrics(now) }),
		watches:   group(collector.WatchDefinitions(), r.watches.collect),
		funding:   group(collector.FundingDefinitions(), r.collectFunding),
		resources: map[string]*exposition.Group{},
	}
	for i := range r.resources {
		res := &r.resources[i]
		g.resources[res.Name] = group(res.Metrics, func(time.Time) ([]prometheus.Metric, time.Time) { return r.collectResource(res) })
	}
	return g
}

func (g groups) all() []*exposition.Group {
	all := []*exposition.Group{g.health, g.accounts, g.watches, g.funding}
	for _, group := range g.resources {
		all = append(all, group)
	}
	return all
}

func (g groups) changed() {
	for _, group := range g.all() {
		group.Changed()
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

// stepWatches evaluates the watches with the present public facts.
func (r *Runner) stepWatches() {
	r.watches.step(r.public().inputs, time.Now())
	r.groups.watches.Changed()
}

// collectResource returns the present metrics of a resource in all scopes, and when
// the first of its snapshots expires.
func (r *Runner) collectResource(res *collector.Resource) (metrics []prometheus.Metric, expires time.Time) {
	for _, sc := range r.snapshot() {
		at := slices.IndexFunc(sc.sources, func(src *source) bool { return src.resource == res })
		if at < 0 {
			continue
		}
		if snap, until, ok := sc.sources[at].Value(); ok {
			metrics = append(metrics, snap.Metrics...)
			expires = earlier(expires, until)
		}
	}
	return metrics, expires
}

// collectFunding returns what follows from the facts of each account.
func (r *Runner) collectFunding(now time.Time) (metrics []prometheus.Metric, expires time.Time) {
	for _, sc := range r.snapshot() {
		b := sc.builder()
		expires = earlier(expires, collector.AddFunding(b, sc.inputs(), now))
		metrics = append(metrics, b.Metrics()...)
	}
	return metrics, expires
}

// earlier returns the earlier of two times, of which a zero one does not count.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// watches are the configured watches, in the order of the configuration.
type watches struct {
	mu     sync.Mutex
	states []collector.Watched
}

// apply changes the watches to those that are configured. One that did not change keeps
// its state.
func (w *watches) apply(configured []collector.Watch, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := make([]collector.Watched, len(configured))
	for i, c := range configured {
		next[i] = collector.NewWatched(c, now)
		for _, old := range w.states {
			if old.Same(c) {
				next[i] = old
			}
		}
	}
	w.states = next
}

// step evaluates all watches. It reads the inputs under its lock, so that no step uses
// older ones than the step before.
func (w *watches) step(inputs func() collector.Inputs, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := inputs()
	for i := range w.states {
		w.states[i] = w.states[i].Step(in, now)
	}
}

func (w *watches) collect(now time.Time) ([]prometheus.Metric, time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return collector.WatchMetrics(w.states, now)
}
