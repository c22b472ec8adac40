package history

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"server_rental_exporter/exporter"
	"server_rental_exporter/internal/metric"
)

// recorder keeps samples until they can be written family by family. It leaves out
// those that repeat a value or change all the time, as far as graphs do not need them.
type recorder struct {
	labels   []*dto.LabelPair // added to all series
	families map[string]*family
	samples  int
}

// family is a metric family with the samples of all its series.
type family struct {
	head   *dto.MetricFamily // without metrics
	series map[string]*series
}

// series is one metric: a point of a histogram has several values.
type series struct {
	prefixes  []string // of the lines of each point: name and labels
	times     []int64  // Unix seconds
	values    []float64
	changes   float64 // how many changes may be recorded before their time
	allowance int64   // when changes was updated
}

// Changes are recorded when they are seen, this many in a row, and one more in each
// period. A series that changes more often, such as a counter of requests, is recorded
// at the usual spacing only.
const (
	maxChanges   = 10
	changePeriod = 20 * time.Minute
)

func newRecorder(labels map[string]string) *recorder {
	r := &recorder{families: map[string]*family{}}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		value := labels[name]
		r.labels = append(r.labels, &dto.LabelPair{Name: &name, Value: &value})
	}
	return r
}

// record adds a sample of a scrape, or all of a histogram, to a family.
func (r *recorder) record(at time.Time, every time.Duration, head *dto.MetricFamily, m *dto.Metric) {
	f := r.families[head.GetName()]
	if f == nil {
		f = &family{
			head:   &dto.MetricFamily{Name: head.Name, Help: head.Help, Type: head.Type, Unit: head.Unit},
			series: map[string]*series{},
		}
		r.families[head.GetName()] = f
	}
	key := labelKey(m)
	s := f.series[key]
	if s == nil {
		s = &series{prefixes: r.prefixes(f.head, m), changes: maxChanges}
		f.series[key] = s
	}
	r.samples += s.add(at.Unix(), every, values(m))
}

// append adds what a recorder of a later time recorded.
func (r *recorder) append(later *recorder) {
	for name, f := range later.families {
		have := r.families[name]
		if have == nil {
			r.families[name] = f
			continue
		}
		for key, s := range f.series {
			if old := have.series[key]; old != nil {
				old.times, old.values = append(old.times, s.times...), append(old.values, s.values...)
			} else {
				have.series[key] = s
			}
		}
	}
	r.samples += later.samples
}

// heads returns the families of published metrics.
var heads = sync.OnceValue(func() map[*prometheus.Desc]*dto.MetricFamily {
	types := map[metric.Type]dto.MetricType{metric.GaugeType: dto.MetricType_GAUGE, metric.CounterType: dto.MetricType_COUNTER}
	all := map[*prometheus.Desc]*dto.MetricFamily{}
	for _, d := range exporter.Definitions() {
		all[d.Desc()] = newFamily(d.Name, d.Help, d.BaseUnit(), types[d.Type])
	}
	return all
})

// add adds a point if it is due, and returns the number of its samples.
func (s *series) add(at int64, every time.Duration, values []float64) int {
	if n := len(s.times); n > 0 {
		s.changes = min(s.changes+float64(at-s.allowance)/changePeriod.Seconds(), maxChanges)
		s.allowance = at
		due := at-s.times[n-1] >= int64(every.Seconds())
		changed := !slices.Equal(values, s.values[len(s.values)-len(values):])
		switch {
		case due:
		case changed && s.changes >= 1:
			s.changes--
		default:
			return 0
		}
	}
	s.times, s.values = append(s.times, at), append(s.values, values...)
	return len(values)
}

func labelKey(m *dto.Metric) string {
	var b strings.Builder
	for _, l := range m.Label {
		b.WriteString(l.GetValue())
		b.WriteByte(0xff)
	}
	return b.String()
}

// values returns the values of a metric in the order of its lines.
func values(m *dto.Metric) []float64 {
	switch {
	case m.Counter != nil:
		return []float64{m.Counter.GetValue()}
	case m.Gauge != nil:
		return []float64{m.Gauge.GetValue()}
	case m.Histogram != nil:
		var all []float64
		for _, b := range m.Histogram.Bucket {
			all = append(all, float64(b.GetCumulativeCount()))
		}
		n := float64(m.Histogram.GetSampleCount())
		return append(all, n, m.Histogram.GetSampleSum(), n)
	}
	panic(fmt.Sprintf("history: metric type without values: %v", m))
}

// prefixes returns the beginnings of the lines of a metric, as the exporter encodes
// them.
func (r *recorder) prefixes(head *dto.MetricFamily, m *dto.Metric) []string {
	labelled := &dto.Metric{Label: slices.Concat(m.Label, r.labels), Counter: m.Counter, Gauge: m.Gauge, Histogram: m.Histogram}
	var b bytes.Buffer
	one := &dto.MetricFamily{Name: head.Name, Type: head.Type, Unit: head.Unit, Metric: []*dto.Metric{labelled}}
	if _, err := expfmt.MetricFamilyToOpenMetrics(&b, one); err != nil {
		panic(fmt.Sprintf("history: %v", err)) // it was gathered by a registry
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line[:strings.LastIndexByte(line, ' ')+1])
		}
	}
	return lines
}

// write writes everything in OpenMetrics.
func (r *recorder) write(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<20)
	for _, name := range slices.Sorted(maps.Keys(r.families)) {
		f := r.families[name]
		if _, err := expfmt.MetricFamilyToOpenMetrics(b, f.head); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(f.series)) {
			f.series[key].write(b)
		}
	}
	if _, err := expfmt.FinalizeOpenMetrics(b); err != nil {
		return err
	}
	return b.Flush()
}

func (s *series) write(b *bufio.Writer) {
	var line []byte
	for i, at := range s.times {
		for n, prefix := range s.prefixes {
			line = append(line[:0], prefix...)
			line = appendValue(line, s.values[i*len(s.prefixes)+n])
			line = append(line, ' ')
			line = strconv.AppendInt(line, at, 10)
			b.Write(append(line, '\n')) //nolint:errcheck // Flush returns the first error
		}
	}
}

// appendValue writes whole numbers without exponent: they take less space.
func appendValue(line []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.AppendInt(line, int64(v), 10)
	}
	return strconv.AppendFloat(line, v, 'g', -1, 64)
}
