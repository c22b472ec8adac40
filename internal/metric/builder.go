package metric

import (
	"fmt"
	"slices"
	"time"
)

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
	switch {
	case value == nil:
	case *value:
		b.Add(d, 1, labels...)
	default:
		b.Add(d, 0, labels...)
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
