// Package promqltest checks PromQL expressions in tests: that they parse, that every
// metric and label they name exists, and which labels their result has.
package promqltest

import (
	"maps"
	"slices"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// Labels is a set of label names.
type Labels map[string]bool

// LabelSet returns the set of the given names.
func LabelSet(names ...string) Labels {
	s := Labels{}
	for _, name := range names {
		s[name] = true
	}
	return s
}

// Sorted returns the names in order.
func (s Labels) Sorted() []string { return slices.Sorted(maps.Keys(s)) }

func union(a, b Labels) Labels {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// Catalog maps each metric to its labels as Prometheus stores them.
type Catalog map[string]Labels

// Add adds a metric as Prometheus scrapes it: with the labels of its target.
func (c Catalog) Add(name string, labels ...string) {
	c[name] = LabelSet(append([]string{"job", "instance"}, labels...)...)
}

// Exported returns the exporter's own metrics.
func Exported() Catalog {
	c := Catalog{}
	for _, d := range definitions() {
		if d.Type != metric.HistogramType {
			c.Add(d.Name, d.Labels...)
			continue
		}
		c.Add(d.Name+"_count", d.Labels...)
		c.Add(d.Name+"_sum", d.Labels...)
		c.Add(d.Name+"_bucket", append([]string{"le"}, d.Labels...)...)
	}
	return c
}

// definitions is the only place in the tests of rules and dashboards that knows where
// metrics are defined. Package main cannot be imported; its metrics are listed here.
func definitions() []*metric.Definition {
	all := []*metric.Definition{
		{Name: "server_rental_exporter_build_info", Labels: []string{"version", "revision", "branch", "goversion", "goos", "goarch", "tags"}},
		{Name: "server_rental_exporter_config_last_reload_successful"},
		{Name: "server_rental_exporter_config_last_reload_success_timestamp_seconds"},
	}
	for _, r := range collector.Resources() {
		all = append(all, r.Metrics...)
	}
	return slices.Concat(all, collector.Definitions(), rentalapi.Definitions())
}
