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

	Bytes int   // of what was added in the text format, roughly
	Err   error // ErrLimitReached if a sample was refused

	metrics []prometheus.Metric
	last    []string // label values of the last sample
}

// ErrLimitReached is the error of a snapshot with more than MaxSamples or MaxBytes.
var ErrLimitReached = fmt.Errorf("more than %d samples, or more text in them than %d MiB (%d MiB except for servers)", MaxSamples, MaxBytes>>20, MaxBytesShort>>20)

// Add adds a sample unless a bound is reached; that sets Err. Label values are
// UTF-8, and as many as the definition has labels.
func (b *Builder) Add(d *Definition, value float64, labels ...string) {
	b.AddCreated(d, value, time.Time{}, labels...)
}

// AddCreated is Add for a counter that started at a known time.
func (b *Builder) AddCreated(d *Definition, value float64, created time.Time, labels ...string) {
	if len(b.metrics) >= MaxSamples || b.Bytes >= cmp.Or(b.MaxBytes, MaxBytes) {
		b.Err = ErrLimitReached
		return
	}
	labels = b.withConst(labels)
	if len(labels) != len(d.Labels) {
		panic(fmt.Sprintf("%s: %d label values for %d labels", d.Name, len(labels), len(d.Labels)))
	}
	b.Bytes += len(d.Name) + sampleBytes
	for i, l := range labels {
		b.Bytes += len(d.Labels[i]) + len(l) + labelBytes
	}
	b.metrics = append(b.metrics, &Sample{d, value, created.UnixMilli(), labels})
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
	if value != nil {
		b.Add(d, map[bool]float64{true: 1}[*value], labels...)
	}
}

// Metrics returns what was added.
func (b *Builder) Metrics() []prometheus.Metric { return b.metrics }

// AddOptional adds a value if it is known: nothing for nil.
func AddOptional[T ~float64](b *Builder, d *Definition, value *T, labels ...string) {
	if value != nil {
		b.Add(d, float64(*value), labels...)
	}
}
