package runner

import (
	"slices"
	"time"

	"github.com/prometheus/common/version"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

var (
	healthSet metric.Set

	collectorSuccess  = healthSet.Gauge("exporter_collector_success", "Whether the last fetch of a collector succeeded: 1 or 0; absent before the first. Account is empty for public data.", "collector", "account")
	collectorLast     = healthSet.Gauge("exporter_collector_last_success_timestamp_seconds", "When a collector last fetched its data. Scrapes never cause requests: they return data of that age.", "collector", "account")
	collectorDuration = healthSet.Gauge("exporter_collector_duration_seconds", "Duration of the last fetch of a collector in seconds, including the time it waited for the rate limit.", "collector", "account")
	collectorInterval = healthSet.Gauge("exporter_collector_interval_seconds", "Time in seconds between two fetches of a collector: interval, or sold_out_interval while that is in force.", "collector", "account")
	collectorData     = healthSet.Gauge("exporter_collector_data_timestamp_seconds", "When the provider made the data that is shown: when it was fetched, less the response's own age if it says so.", "collector", "account")
	collectorInvalid  = healthSet.Gauge("exporter_collector_invalid_items", "Invalid items of the last good response: dropped, or exported without a field.", "collector", "account")
)

var (
	ownSet metric.Set

	buildInfo = ownSet.Gauge("exporter_build_info", "Version and platform of this build of the exporter.",
		"version", "revision", "branch", "goversion", "goos", "goarch", "tags")
	reloadSuccessful = ownSet.Gauge("exporter_config_last_reload_successful", "Whether the last attempt to load the configuration succeeded: 1 or 0.")
	reloadTime       = ownSet.Gauge("exporter_config_last_reload_success_timestamp_seconds", "When the configuration in force was loaded.")
	shardIndex       = ownSet.Gauge("exporter_shard", "Index of this shard, from 0.")
	shardTotal       = ownSet.Gauge("exporter_shards", "Number of shards that share the accounts.")
)

// Definitions lists every metric of the exporter, in the order of the documentation.
func Definitions() []*metric.Definition {
	return slices.Concat(collector.Definitions(), healthSet, rentalapi.Definitions(), ownSet)
}

// Health is the state of one collector. Metrics and pages are made from it. Its times but Next
// have no monotonic reading, which stands still while a machine is suspended: ages are by the
// wall clock.
type Health struct {
	Collector, Account string
	collector.Timing

	Err         error         // why the last fetch that ended failed; nil if it succeeded
	Failure     error         // why a fetch failed last, also after later ones succeeded; nil if none did
	FailedAt    time.Time     // when that fetch ended
	LastSuccess time.Time     // zero before the first
	Duration    time.Duration // how long the last fetch that ended took
	Next        time.Time     // when the next one begins; zero while one is under way
	Incomplete  bool          // whether the newest response that could be read was incomplete

	Taken   time.Time         // when the data that is shown was fetched; zero if there has been none
	MadeAt  time.Time         // when the provider made it; zero if none is shown
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
	var all []Health
	for _, j := range r.jobs() {
		all = append(all, j.state())
	}
	return all
}

// state returns the state of the collector. The caller holds mu.
func (j *job) state() Health {
	h := j.health
	if !j.shown() {
		h.MadeAt = time.Time{}
	}
	return h
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

// collect returns all metrics that are published, and when they change by the passing of time.
func (r *Runner) collect(now time.Time) (samples []*metric.Sample, expires time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stepWatches() // data may have expired
	b := &metric.Builder{}
	today := now.UTC().Truncate(24 * time.Hour)
	expires = today.AddDate(0, 0, 1)
	samples = make([]*metric.Sample, 0, r.samples+r.samples/8)
	for _, a := range r.accounts {
		if len(a.jobs) > 0 {
			expires = metric.Earlier(expires, a.client.AddMetrics(b, now))
		}
		for _, j := range a.jobs {
			j.fetchExpired()
			if j.shown() {
				samples = append(append(samples, j.snapshot.Metrics...), j.changes.Metrics...)
				expires = metric.Earlier(expires, j.health.expires())
			}
			j.state().AddMetrics(b)
		}
		if data := a.data(); data.Data != a.derived.data || today != a.derived.day {
			a.derived = derived{data.Data, today, data.Derived(now)}
		}
		samples = append(samples, a.derived.metrics...)
	}
	r.addOwn(b)
	samples = append(append(samples, b.Metrics()...), collector.WatchMetrics(r.watches)...)
	r.samples = len(samples)
	return samples, expires
}

// addOwn adds the metrics of the build and of the configuration.
func (r *Runner) addOwn(b *metric.Builder) {
	b.Add(buildInfo, 1, version.Version, version.GetRevision(), version.Branch, version.GoVersion, version.GoOS, version.GoArch, version.GetTags())
	b.AddBool(reloadSuccessful, new(!r.spec.ReloadFailed))
	b.Add(reloadTime, float64(r.spec.LoadedAt.UnixNano())/1e9)
	b.Add(shardIndex, float64(r.spec.Shard))
	b.Add(shardTotal, float64(r.spec.Shards))
}
