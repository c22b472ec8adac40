package metric

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Bounds of one snapshot. A response within all other bounds can make far more than
// it is itself, if long labels meet many samples: a plan's id stands in each of
// its samples, and on each line of a scrape.
const (
	MaxSamples = 150_000
	MaxBytes   = 16 << 20 // in the text format, roughly

	// MaxBytesShort is the bound of what does not grow with the number of servers: the
	// bounds of all collectors of an account add up.
	MaxBytesShort = 6 << 20
)

// sampleBytes is the size of a line of the text format without name and labels, and
// labelBytes that of a label without name and value.
const (
	sampleBytes = 24
	labelBytes  = 4
)

// Builder collects the metrics of one snapshot. The zero value is ready. It is used
// by one goroutine and dropped once Metrics was called.
type Builder struct {
	// ConstLabelValues are the values of the labels that each definition starts with.
	ConstLabelValues []string
	MaxBytes         int // 0 means the constant

	metrics []prometheus.Metric
	last    []string // label values of the last sample
	bytes   int
	err     error
}

// Err returns why a sample was refused: a label that is not UTF-8, a wrong number of
// labels, or more than MaxSamples or MaxBytes (ErrLimitReached).
func (b *Builder) Err() error { return b.err }

// ErrLimitReached is the error of a snapshot with more than MaxSamples or MaxBytes.
var ErrLimitReached = fmt.Errorf("more than %d samples, or more text in them than %d MiB (%d MiB except for servers)", MaxSamples, MaxBytes>>20, MaxBytesShort>>20)

// Add adds a sample unless a bound is reached; the error is kept for Err.
func (b *Builder) Add(d *Definition, value float64, labels ...string) {
	b.AddCreated(d, value, time.Time{}, labels...)
}

// AddCreated is Add for a counter that started at a known time.
func (b *Builder) AddCreated(d *Definition, value float64, created time.Time, labels ...string) {
	if len(b.metrics) >= MaxSamples || b.bytes >= cmp.Or(b.MaxBytes, MaxBytes) {
		b.err = ErrLimitReached
		return
	}
	labels = b.withConst(labels)
	m, err := d.newSample(value, created, labels)
	if err != nil {
		b.err = err
		return
	}
	b.bytes += len(d.Name) + sampleBytes
	for i, l := range labels {
		b.bytes += len(d.Labels[i]) + len(l) + labelBytes
	}
	b.metrics = append(b.metrics, m)
}

// withConst returns all label values of a sample. Samples of one item mostly have the
// same first values: they share memory with those of the sample before.
func (b *Builder) withConst(labels []string) []string {
	first, n := len(b.ConstLabelValues), len(b.ConstLabelValues)+len(labels)
	if n > len(b.last) || !slices.Equal(b.last[:first], b.ConstLabelValues) || !slices.Equal(b.last[first:n], labels) {
		b.last = slices.Concat(b.ConstLabelValues, labels)
	}
	return b.last[:n:n]
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

// Bytes returns the size of what was added in the text format, roughly.
func (b *Builder) Bytes() int { return b.bytes }

// Metrics returns what was added.
func (b *Builder) Metrics() []prometheus.Metric { return b.metrics }

// AddOptional adds a value if it is known: nothing for nil.
func AddOptional[T ~float64](b *Builder, d *Definition, value *T, labels ...string) {
	if value != nil {
		b.Add(d, float64(*value), labels...)
	}
}
