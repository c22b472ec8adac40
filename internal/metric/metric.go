// Package metric holds what the exporter shows as data: the definition of each
// metric, from which the descriptors, the documentation and the drift tests are
// derived, and the builder that turns values into samples.
package metric

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// firstVersion is where every metric comes from that no later version brought.
const firstVersion = "0.1.0"

// Namespace begins every metric name of the exporter.
const Namespace = "server_rental_"

// Definition is one metric family: name, help, type, labels and the field of
// the provider's document that it is taken from. It does not change once made.
type Definition struct {
	Name   string   // with Namespace
	Help   string   // one sentence; ends with a full stop
	Type   Type     // how Prometheus reads it
	Labels []string // in the order in which values are given
	Source string   // the field or the fact it shows
	Since  string   // the version that brought it
	per    string
	desc   *prometheus.Desc
	sorted []int // the labels' places in order of their names
}

// Type is a metric type as the exposition formats name it.
type Type string

// The types that the exporter uses.
const (
	GaugeType     Type = "gauge"
	CounterType   Type = "counter"
	HistogramType Type = "histogram"
)

// Gauge defines a gauge; name is given without Namespace.
func Gauge(name, help, source string, labels ...string) *Definition {
	return define(GaugeType, name, help, source, labels)
}

// Counter defines a counter; name is given without Namespace and ends in _total.
func Counter(name, help, source string, labels ...string) *Definition {
	return define(CounterType, name, help, source, labels)
}

// Histogram defines a histogram with classic and native buckets.
func Histogram(name, help, source string, labels ...string) *Definition {
	return define(HistogramType, name, help, source, labels)
}

func define(t Type, name, help, source string, labels []string) *Definition {
	name = Namespace + name
	sorted := make([]int, len(labels))
	for i := range sorted {
		sorted[i] = i
	}
	slices.SortFunc(sorted, func(a, b int) int { return strings.Compare(labels[a], labels[b]) })
	return &Definition{
		Name: name, Help: help, Type: t, Labels: labels, Source: source, Since: firstVersion,
		desc: prometheus.NewDesc(name, help, labels, nil), sorted: sorted,
	}
}

// Per says of what there is one series each, where the labels alone do not tell.
func (d *Definition) Per(what string) *Definition {
	d.per = what
	return d
}

// Desc is the descriptor for a registry.
func (d *Definition) Desc() *prometheus.Desc { return d.desc }

// Series says in words how many series the metric has.
func (d *Definition) Series() string {
	switch {
	case d.per != "":
		return "one per " + d.per
	case len(d.Labels) == 0:
		return "one"
	case d.Labels[0] == "account" && len(d.Labels) > 1:
		return "one per account and " + d.Labels[1]
	default:
		return "one per " + d.Labels[0]
	}
}

// Unit is the unit that the name states, and empty for plain numbers.
func (d *Definition) Unit() string {
	name := strings.TrimSuffix(d.Name, "_total")
	for _, u := range []struct{ suffix, unit string }{
		{"_timestamp_seconds", "Unix seconds"},
		{"_seconds", "seconds"},
		{"_bytes", "bytes"},
		{"_hertz", "hertz"},
		{"_degrees", "degrees"},
		{"_ratio", "ratio, 0 to 1"},
		{"_usd_per_month", "USD per month"},
		{"_eur_per_month", "EUR per month"},
		{"_usd_per_core_month", "USD per core and month"},
		{"_usd", "USD"},
	} {
		if strings.HasSuffix(name, u.suffix) {
			return u.unit
		}
	}
	return ""
}

// Metric makes one sample of the definition. A label that is no UTF-8 is an error,
// as is any count of values other than that of the labels.
func (d *Definition) Metric(value float64, labels ...string) (prometheus.Metric, error) {
	if len(labels) != len(d.Labels) {
		return nil, fmt.Errorf("%s: %d label values for %d labels", d.Name, len(labels), len(d.Labels))
	}
	for i, l := range labels {
		if !utf8.ValidString(l) {
			return nil, fmt.Errorf("label %s: not UTF-8", d.Labels[i])
		}
	}
	return &sample{d, value, labels}, nil
}

// sample is a metric that takes a fraction of the memory of client_golang's
// constant ones: what they keep for each label is made when it is written.
type sample struct {
	def    *Definition
	value  float64
	labels []string
}

// Desc implements prometheus.Metric.
func (s *sample) Desc() *prometheus.Desc { return s.def.desc }

// Write implements prometheus.Metric.
func (s *sample) Write(out *dto.Metric) error {
	pairs := make([]dto.LabelPair, len(s.labels))
	out.Label = make([]*dto.LabelPair, len(s.labels))
	for i, at := range s.def.sorted {
		pairs[i].Name, pairs[i].Value = &s.def.Labels[at], &s.labels[at]
		out.Label[i] = &pairs[i]
	}
	if s.def.Type == CounterType {
		out.Counter = &dto.Counter{Value: &s.value}
	} else {
		out.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}
