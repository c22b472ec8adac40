package metric

import (
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// MaxLabelLength is the longest label value that is shown, in bytes: the usual
// limit of long-term stores, which refuse a whole write over a longer one.
const MaxLabelLength = 2048

// What one snapshot may be. An answer within all other bounds can make far more
// than it is itself, where long labels meet many samples: a plan's id stands in
// each of its samples, and on each line of a scrape.
const (
	MaxSamples = 150_000
	MaxBytes   = 32 << 20 // in the text format, roughly
)

// sampleBytes is what a line of the text format takes besides its name and labels,
// and labelBytes what a label takes besides its name and value.
const (
	sampleBytes = 24
	labelBytes  = 4
)

// Builder collects the metrics of one snapshot. The zero value is ready. It is
// used by one goroutine and thrown away once Metrics was called.
type Builder struct {
	// Prefix holds the values of the labels that each definition starts with.
	Prefix []string

	metrics []prometheus.Metric
	bytes   int
	err     error
}

// Full tells whether a sample was refused because of MaxSamples or MaxBytes.
func (b *Builder) Full() bool { return len(b.metrics) >= MaxSamples || b.bytes >= MaxBytes }

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

// Add adds a sample, unless the builder is Full. A fault is remembered for the Item
// it stands in.
func (b *Builder) Add(d *Definition, value float64, labels ...string) {
	if b.Full() {
		return
	}
	b.bytes += len(d.Name) + sampleBytes
	for i, l := range labels {
		if len(l) > MaxLabelLength {
			b.err = fmt.Errorf("label %s: %d bytes, more than %d", d.Labels[len(b.Prefix)+i], len(l), MaxLabelLength)
			return
		}
	}
	all := slices.Concat(b.Prefix, labels)
	m, err := d.Metric(value, all...)
	if err != nil {
		b.err = err
		return
	}
	for i, l := range all {
		b.bytes += len(d.Labels[i]) + len(l) + labelBytes
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
