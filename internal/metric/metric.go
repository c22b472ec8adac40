// Package metric holds what the exporter shows as data: the definition of each
// metric, from which the descriptors, the documentation and the drift tests are
// derived, and the builder that turns values into constant metrics.
package metric

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

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
	per    string
	desc   *prometheus.Desc
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
	return &Definition{
		Name: name, Help: help, Type: t, Labels: labels, Source: source,
		desc: prometheus.NewDesc(name, help, labels, nil),
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

// Metric makes one sample of the definition. Labels that are no UTF-8 are an
// error, as is any count of values other than that of the labels.
func (d *Definition) Metric(value float64, labels ...string) (prometheus.Metric, error) {
	t := prometheus.GaugeValue
	if d.Type == CounterType {
		t = prometheus.CounterValue
	}
	return prometheus.NewConstMetric(d.desc, t, value, labels...)
}
