package runner

import (
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/exposition"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// groups are what the runner publishes.
type groups struct {
	all       []*exposition.Group
	state     *exposition.Group            // of the collectors, and of the accounts at the API
	watches   *exposition.Group            // from public data
	funding   *exposition.Group            // from data of each account
	resources map[string]*exposition.Group // by name
}

func (r *Runner) newGroups() {
	g := &r.groups
	group := func(definitions []*metric.Definition, collect func(now time.Time) ([]*metric.Sample, time.Time)) *exposition.Group {
		g.all = append(g.all, &exposition.Group{Definitions: definitions, Collect: collect})
		return g.all[len(g.all)-1]
	}
	g.state = group(append(HealthDefinitions(), rentalapi.Definitions()...), r.collectState)
	g.watches = group(collector.WatchDefinitions(), r.collectWatches)
	g.funding = group(collector.FundingDefinitions(), func(now time.Time) ([]*metric.Sample, time.Time) {
		return collector.FundingMetrics(r.Accounts(), now)
	})
	g.resources = map[string]*exposition.Group{}
	for i := range r.resources {
		res := &r.resources[i]
		g.resources[res.Name] = group(res.Metrics, func(time.Time) ([]*metric.Sample, time.Time) { return r.collectResource(res) })
	}
	g.all = append(g.all, r.options.Groups...)
}

// collectState returns the state of all collectors and what the API last said to each account,
// and when that changes by the passing of time.
func (r *Runner) collectState(now time.Time) (metrics []*metric.Sample, expires time.Time) {
	b := &metric.Builder{}
	r.mu.Lock()
	for _, a := range r.accounts {
		if len(a.jobs) > 0 {
			expires = metric.Earlier(expires, a.client.AddMetrics(b, now))
		}
	}
	r.mu.Unlock()
	for _, h := range r.Health() {
		h.AddMetrics(b)
		if !h.Made.IsZero() {
			expires = metric.Earlier(expires, h.expires())
		}
	}
	return b.Metrics(), expires
}

// collectWatches returns the metrics of the watches, and when they expire.
func (r *Runner) collectWatches(time.Time) (metrics []*metric.Sample, expires time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stepWatches() // data may have expired
	return collector.WatchMetrics(r.watches), r.accounts[0].known().Until
}

// collectResource returns the present metrics of a resource in all accounts, and when
// the first of its snapshots expires.
func (r *Runner) collectResource(res *collector.Resource) (metrics []*metric.Sample, expires time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range r.jobs() {
		if j.resource == res && j.shown() {
			metrics = append(append(metrics, j.snapshot.Metrics...), j.history.Metrics...)
			expires = metric.Earlier(expires, j.health.expires())
		}
	}
	return metrics, expires
}
