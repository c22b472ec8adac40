package collector

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
)

// derived describes metrics that follow from several resources of one scope.
type derived struct {
	inputs  []string // names of resources, all public or all of accounts
	metrics []*metric.Definition
	// update is called after each refresh of an input and each change of the
	// configuration, before collect. It may be nil.
	update func(*Set)
	// collect returns the present metrics, and when they change by the passing of
	// time. It may be called less often than the inputs change.
	collect func(s *Set, now time.Time) (metrics []prometheus.Metric, expires time.Time)
}

// derivations returns everything that is derived.
func derivations() []derived {
	return []derived{watchMetrics(), funding()}
}

// collectScopes returns the metrics that add computes in each scope in which all
// inputs are known, from their facts by resource. They change on each new day (UTC).
func (s *Set) collectScopes(inputs []string, now time.Time, add func(b *metric.Builder, in map[string]facts)) (metrics []prometheus.Metric, expires time.Time) {
	expires = now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	for _, sc := range s.snapshot() {
		in, until, ok := sc.facts(inputs)
		if !ok {
			continue
		}
		if until.Before(expires) {
			expires = until
		}
		b := sc.builder()
		add(b, in)
		metrics = append(metrics, b.Metrics()...)
	}
	return metrics, expires
}

// facts returns the facts of the named resources, and when the first of them
// expires; false where one is not known.
func (sc scopeSnapshot) facts(resources []string) (in map[string]facts, expires time.Time, ok bool) {
	in = make(map[string]facts, len(resources))
	for _, name := range resources {
		src := sc.source(name)
		if src == nil {
			return nil, time.Time{}, false
		}
		snap, until, ok := src.Value()
		if !ok {
			return nil, time.Time{}, false
		}
		in[name] = snap.facts
		if expires.IsZero() || until.Before(expires) {
			expires = until
		}
	}
	return in, expires, true
}

// Definitions lists the metrics of all resources, and what is derived from them, in
// the order of the documentation.
func Definitions() []*metric.Definition {
	var all []*metric.Definition
	for _, r := range Resources() {
		all = append(all, r.Metrics...)
	}
	for _, d := range derivations() {
		all = append(all, d.metrics...)
	}
	return all
}
