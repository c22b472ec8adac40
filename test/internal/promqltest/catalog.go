// Package promqltest checks PromQL expressions in tests: that they parse, that every
// metric and label they name exists, and which labels their result has.
package promqltest

import (
	"maps"
	"slices"

	"server_rental_exporter/exporter"
	"server_rental_exporter/internal/metric"
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
	for _, d := range exporter.Definitions() {
		if d.Type != metric.HistogramType {
			c.Add(d.Name, d.Labels...)
			continue
		}
		c.Add(d.Name, d.Labels...) // with native buckets
		c.Add(d.Name+"_count", d.Labels...)
		c.Add(d.Name+"_sum", d.Labels...)
		c.Add(d.Name+"_bucket", append([]string{"le"}, d.Labels...)...)
	}
	return c
}
