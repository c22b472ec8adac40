package collector

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
)

var (
	collectorSuccess  = metric.Gauge("exporter_collector_success", "Whether the last fetch of a collector succeeded: 1 or 0; absent before the first. Account is empty for public data.", "the exporter", "collector", "account").SeriesPer("collector and account")
	collectorLast     = metric.Gauge("exporter_collector_last_success_timestamp_seconds", "When a collector last fetched its data. Scrapes never cause requests: they return data of that age.", "the exporter", "collector", "account").SeriesPer("collector and account")
	collectorDuration = metric.Gauge("exporter_collector_duration_seconds", "Duration of the last fetch of a collector, including the time it waited for the rate limit.", "the exporter", "collector", "account").SeriesPer("collector and account")
	collectorInterval = metric.Gauge("exporter_collector_interval_seconds", "Configured time between two fetches of a collector.", "the configuration", "collector", "account").SeriesPer("collector and account")
	collectorAge      = metric.Gauge("exporter_collector_answer_age_seconds", "How old the provider's last good answer was when it came; absent where the answer does not say.", "header Age, or plans meta.generated_at or Status updated_at against header Date", "collector", "account").SeriesPer("collector and account")
	collectorInvalid  = metric.Gauge("exporter_collector_invalid_items", "Items of the last good answer that were not understood in full: dropped, or exported without a field.", "the exporter", "collector", "account").SeriesPer("collector and account")
)

// HealthDefinitions lists the metrics that every collector has.
func HealthDefinitions() []*metric.Definition {
	return []*metric.Definition{collectorSuccess, collectorLast, collectorDuration, collectorInterval, collectorAge, collectorInvalid}
}

// Health is the state of one collector. Metrics and pages are made from it.
type Health struct {
	Collector, Account string
	Invalid            rentalapi.Invalid // of the last good answer
	AnswerAge          *time.Duration    // how old the last good answer was when it came; nil where that is not known
	DuplicateOf        string            // another account with the same provider account, for the collector of that id; usually empty
	refresh.State
}

// Health returns the state of every collector: public ones first, then by account.
func (s *Set) Health() []Health {
	var all []Health
	for _, sc := range s.snapshot() {
		for _, src := range sc.sources {
			h := src.health()
			if snap, _, ok := src.Value(); ok && snap.facts.account != nil {
				h.DuplicateOf = s.identities.duplicateOf(src.account, snap.facts.account.id)
			}
			all = append(all, h)
		}
	}
	return all
}

func (src *source) health() Health {
	h := Health{Collector: src.resource.Name, Account: src.account, State: src.State()}
	if last := src.last.Load(); last != nil {
		h.Invalid = last.invalid
		if last.age.known {
			h.AnswerAge = &last.age.age
		}
	}
	return h
}

// collectHealth returns the metrics of all collectors' states.
func (s *Set) collectHealth(time.Time) (metrics []prometheus.Metric, expires time.Time) {
	b := &metric.Builder{}
	for _, h := range s.Health() {
		h.addMetrics(b)
	}
	return b.Metrics(), time.Time{}
}

func (h Health) addMetrics(b *metric.Builder) {
	b.Add(collectorInterval, h.Interval.Seconds(), h.Collector, h.Account)
	if h.Finished {
		success := h.Err == nil
		b.AddBool(collectorSuccess, &success, h.Collector, h.Account)
		b.Add(collectorDuration, h.Duration.Seconds(), h.Collector, h.Account)
	}
	if !h.LastSuccess.IsZero() {
		b.Add(collectorLast, float64(h.LastSuccess.UnixMilli())/1000, h.Collector, h.Account)
		if h.AnswerAge != nil {
			b.Add(collectorAge, h.AnswerAge.Seconds(), h.Collector, h.Account)
		}
		b.Add(collectorInvalid, float64(h.Invalid.Items), h.Collector, h.Account)
	}
}
