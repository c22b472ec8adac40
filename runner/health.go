package runner

import (
	"slices"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/exposition"
	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

var (
	healthSet metric.Set

	collectorSuccess  = healthSet.Gauge("exporter_collector_success", "Whether the last fetch of a collector succeeded: 1 or 0; absent before the first. Account is empty for public data.", "collector", "account")
	collectorLast     = healthSet.Gauge("exporter_collector_last_success_timestamp_seconds", "When a collector last fetched its data. Scrapes never cause requests: they return data of that age.", "collector", "account")
	collectorDuration = healthSet.Gauge("exporter_collector_duration_seconds", "Duration of the last fetch of a collector in seconds, including the time it waited for the rate limit.", "collector", "account")
	collectorInterval = healthSet.Gauge("exporter_collector_interval_seconds", "Time in seconds between two fetches of a collector that is in force: the configured one, or that of a sold-out configuration.", "collector", "account")
	collectorData     = healthSet.Gauge("exporter_collector_data_timestamp_seconds", "When the provider made the data that is shown: when it was fetched, less the response's own age if it says so.", "collector", "account")
	collectorInvalid  = healthSet.Gauge("exporter_collector_invalid_items", "Items of the last good response that were not understood in full: dropped, or exported without a field.", "collector", "account")
)

// Definitions lists the metrics of a runner, in the order of the documentation.
func Definitions() []*metric.Definition {
	return slices.Concat(collector.Definitions(), healthSet, rentalapi.Definitions())
}

// Health is the state of one collector. Metrics and pages are made from it. Its times but Next
// have no monotonic reading, which stands still while a machine is suspended: ages are by the
// wall clock.
type Health struct {
	Collector, Account string
	collector.Timing

	Err         error         // why the last fetch that ended failed; nil if it succeeded
	LastSuccess time.Time     // zero before the first
	Duration    time.Duration // how long the last fetch that ended took
	Next        time.Time     // when the next one begins; zero while one is under way
	Incomplete  bool          // whether the newest response that could be read was incomplete

	Taken   time.Time         // when the data that is shown was fetched; zero if there has been none
	MadeAt  time.Time         // when the provider made it; zero if none is shown
	Sunset  string            // what the last response says about the end of the API; empty if nothing
	SoldOut bool              // whether an item is sold out, or came in stock within the hour before
	Invalid rentalapi.Invalid // invalid items of the response that was shown last
}

// Tried returns whether a fetch has ended.
func (h Health) Tried() bool { return h.Err != nil || !h.LastSuccess.IsZero() }

// expires returns when the data is not shown any more; a time long ago if there has been none.
func (h Health) expires() time.Time { return h.Taken.Add(h.MaxAge) }

// CurrentInterval returns the time from one fetch to the next that is in force.
func (h Health) CurrentInterval() time.Duration {
	if h.SoldOut && h.SoldOutInterval > 0 {
		return h.SoldOutInterval
	}
	return h.Interval
}

// Health returns the state of every collector: public ones first, then by account.
func (r *Runner) Health() []Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.health()
}

// health is Health for a caller that holds mu.
func (r *Runner) health() (all []Health) {
	for _, j := range r.jobs() {
		h := j.health
		if !j.shown() {
			h.MadeAt = time.Time{}
		}
		all = append(all, h)
	}
	return all
}

// AddMetrics adds the metrics of the collector's state.
func (h Health) AddMetrics(b *metric.Builder) {
	b.Add(collectorInterval, h.CurrentInterval().Seconds(), h.Collector, h.Account)
	if h.Tried() {
		b.AddBool(collectorSuccess, new(h.Err == nil), h.Collector, h.Account)
		b.Add(collectorDuration, h.Duration.Seconds(), h.Collector, h.Account)
	}
	if !h.LastSuccess.IsZero() {
		b.Add(collectorLast, float64(h.LastSuccess.UnixMilli())/1000, h.Collector, h.Account)
		b.Add(collectorInvalid, float64(h.Invalid.Items), h.Collector, h.Account)
	}
	if !h.MadeAt.IsZero() {
		b.Add(collectorData, float64(h.MadeAt.UnixMilli())/1000, h.Collector, h.Account)
	}
}

// newGroups makes the groups of metrics that are published.
func (r *Runner) newGroups() {
	group := func(definitions []*metric.Definition, collect func(now time.Time) ([]*metric.Sample, time.Time)) *exposition.Group {
		g := &exposition.Group{Definitions: definitions, Collect: collect}
		r.groups = append(r.groups, g)
		return g
	}
	for _, res := range collector.Resources() {
		g := group(res.Metrics, nil)
		g.Collect = func(time.Time) ([]*metric.Sample, time.Time) { return r.collectResource(g) }
		r.resources = append(r.resources, collected{res, g})
	}
	r.state = group(slices.Concat(healthSet, rentalapi.Definitions()), r.collectState)
	r.watching = group(collector.WatchDefinitions(), r.collectWatches)
	r.derived = group(collector.DerivedDefinitions(), func(now time.Time) ([]*metric.Sample, time.Time) {
		return collector.DerivedMetrics(r.Accounts(), now)
	})
	r.groups = append(r.groups, r.options.Groups...)
}

// collectState returns the state of all collectors and what the API last said to each account,
// and when that changes by the passing of time.
func (r *Runner) collectState(now time.Time) (metrics []*metric.Sample, expires time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := &metric.Builder{}
	for _, a := range r.accounts {
		if len(a.jobs) > 0 {
			expires = metric.Earlier(expires, a.client.AddMetrics(b, now))
		}
	}
	for _, h := range r.health() {
		h.AddMetrics(b)
		if !h.MadeAt.IsZero() {
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
	return collector.WatchMetrics(r.watches), r.public().known().Until
}

// collectResource returns the present metrics of the resource of a group in all accounts, and when
// the first of its snapshots expires.
func (r *Runner) collectResource(g *exposition.Group) (metrics []*metric.Sample, expires time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range r.jobs() {
		if j.group != g {
			continue
		}
		j.fetchExpired()
		if j.shown() {
			metrics = append(append(metrics, j.snapshot.Metrics...), j.changes.Metrics...)
			expires = metric.Earlier(expires, j.health.expires())
		}
	}
	return metrics, expires
}
