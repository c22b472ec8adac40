// Package metric defines metrics as data: descriptors, documentation and drift tests
// derive from a Definition, and a Builder turns values into samples.
package metric

import (
	"fmt"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Namespace begins every metric name of the exporter.
const Namespace = "server_rental_"

// Definition is one metric family. It does not change once made.
type Definition struct {
	Name   string   // name with Namespace
	Help   string   // what it shows, in a sentence or two; ends with a full stop
	Type   string   // gauge, counter or histogram
	Labels []string // label names in the order in which values are given
}

// Set is the definitions of one package or resource, in the order in which they are made: that of the
// documentation. A definition is made by a set, so none can be missing from it.
type Set []*Definition

// Gauge adds a gauge to the set and returns it; name is given without Namespace.
func (s *Set) Gauge(name, help string, labels ...string) *Definition {
	return s.add(name, help, "gauge", labels)
}

// Counter adds a counter to the set and returns it; name is given without Namespace and ends in _total.
func (s *Set) Counter(name, help string, labels ...string) *Definition {
	return s.add(name, help, "counter", labels)
}

// Histogram adds a histogram with classic and native buckets to the set and returns it.
func (s *Set) Histogram(name, help string, labels ...string) *Definition {
	return s.add(name, help, "histogram", labels)
}

func (s *Set) add(name, help, kind string, labels []string) *Definition {
	d := &Definition{Namespace + name, help, kind, labels}
	*s = append(*s, d)
	return d
}

// BaseUnit is the base unit that the name ends in, as OpenMetrics and protobuf declare
// it; empty for others.
func (d *Definition) BaseUnit() string {
	name := strings.TrimSuffix(d.Name, "_total")
	for _, unit := range []string{"seconds", "bytes", "hertz", "ratio", "degrees"} {
		if strings.HasSuffix(name, "_"+unit) {
			return unit
		}
	}
	return ""
}

// Family returns the metric family with the given samples of it.
func (d *Definition) Family(samples []*Sample) *dto.MetricFamily {
	kind := dto.MetricType(dto.MetricType_value[strings.ToUpper(d.Type)])
	f := &dto.MetricFamily{Name: &d.Name, Help: &d.Help, Type: &kind}
	if unit := d.BaseUnit(); unit != "" {
		f.Unit = &unit
	}
	for _, s := range samples {
		f.Metric = append(f.Metric, s.message())
	}
	return f
}

// Sample takes a fraction of the memory of client_golang's constant metrics: label
// pairs are made when it is encoded. It is immutable.
type Sample struct {
	Definition *Definition
	Value      float64
	Labels     []string // values in the order of the definition
	created    int64    // Unix milliseconds; not positive if it is not known
}

// Label returns the value of a label; empty if the family does not have it.
func (s *Sample) Label(name string) string {
	if i := slices.Index(s.Definition.Labels, name); i >= 0 {
		return s.Labels[i]
	}
	return ""
}

// CompareFirst compares the values of the first labels with others.
func (s *Sample) CompareFirst(values []string) int {
	return slices.Compare(s.Labels[:len(values)], values)
}

// message returns the sample as protobuf, with labels sorted by name.
func (s *Sample) message() *dto.Metric {
	out := &dto.Metric{}
	for i := range s.Labels {
		out.Label = append(out.Label, &dto.LabelPair{Name: &s.Definition.Labels[i], Value: &s.Labels[i]})
	}
	slices.SortFunc(out.Label, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	if s.Definition.Type == "gauge" {
		out.Gauge = &dto.Gauge{Value: &s.Value}
		return out
	}
	out.Counter = &dto.Counter{Value: &s.Value}
	if s.created > 0 {
		out.Counter.CreatedTimestamp = timestamppb.New(time.UnixMilli(s.created))
	}
	return out
}

// Builder collects the metrics of one snapshot. The zero value is ready. It is used
// by one goroutine and dropped once Metrics was called.
type Builder struct {
	// ConstLabelValues are the values of the labels that each definition starts with.
	ConstLabelValues []string

	samples []*Sample
}

// Add adds a sample. Label values are UTF-8, and as many as the definition has labels.
func (b *Builder) Add(d *Definition, value float64, labels ...string) {
	b.AddCreated(d, value, time.Time{}, labels...)
}

// AddCreated is Add for a counter that started at a known time.
func (b *Builder) AddCreated(d *Definition, value float64, created time.Time, labels ...string) {
	labels = slices.Concat(b.ConstLabelValues, labels)
	if len(labels) != len(d.Labels) {
		panic(fmt.Sprintf("%s: %d label values for %d labels", d.Name, len(labels), len(d.Labels)))
	}
	b.samples = append(b.samples, &Sample{d, value, labels, created.UnixMilli()})
}

// AddBool adds 1 for true, 0 for false and nothing for nil.
func (b *Builder) AddBool(d *Definition, value *bool, labels ...string) {
	if value != nil {
		b.Add(d, map[bool]float64{true: 1}[*value], labels...)
	}
}

// Metrics returns what was added.
func (b *Builder) Metrics() []*Sample { return b.samples }

// AddOptional adds a value if it is known: nothing for nil.
func AddOptional[T ~float64](b *Builder, d *Definition, value *T, labels ...string) {
	if value != nil {
		b.Add(d, float64(*value), labels...)
	}
}

// Earlier returns the earlier of two times at which metrics expire. A zero time is none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
