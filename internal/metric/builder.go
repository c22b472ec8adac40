package metric

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// MaxLabelLength is the longest label value that is shown, in bytes: the usual
// limit of long-term stores, which refuse a whole write over a longer one.
const MaxLabelLength = 2048

// Builder collects the metrics of one snapshot. The zero value is ready. It is
// used by one goroutine and thrown away once Metrics was called.
type Builder struct {
	// Prefix holds the values of the labels that each definition starts with.
	Prefix []string

	metrics []prometheus.Metric
	err     error
}

// Item runs f and keeps what it added as a whole or, where one of the samples
// could not be made, not at all; then it returns the reason. Items may be nested.
func (b *Builder) Item(f func()) error {
	mark, outer := len(b.metrics), b.err
	b.err = nil
	f()
	err := b.err
	b.err = outer
	if err != nil {
		clear(b.metrics[mark:])
		b.metrics = b.metrics[:mark]
	}
	return err
}

// Add adds a sample. A fault is remembered for the Item it stands in.
func (b *Builder) Add(d *Definition, value float64, labels ...string) {
	for i, l := range labels {
		if len(l) > MaxLabelLength {
			b.err = fmt.Errorf("label %s: %d bytes, more than %d", d.Labels[len(b.Prefix)+i], len(l), MaxLabelLength)
			return
		}
	}
	m, err := d.Metric(value, append(b.Prefix[:len(b.Prefix):len(b.Prefix)], labels...)...)
	if err != nil {
		b.err = err
		return
	}
	b.metrics = append(b.metrics, m)
}

// Bool adds 1 for true, 0 for false and nothing for nil.
func (b *Builder) Bool(d *Definition, value *bool, labels ...string) {
	switch {
	case value == nil:
	case *value:
		b.Add(d, 1, labels...)
	default:
		b.Add(d, 0, labels...)
	}
}

// Metrics returns what was added.
func (b *Builder) Metrics() []prometheus.Metric { return b.metrics }

// Put adds a value where it is known: nothing for nil.
func Put[T ~float64](b *Builder, d *Definition, value *T, labels ...string) {
	if value != nil {
		b.Add(d, float64(*value), labels...)
	}
}
