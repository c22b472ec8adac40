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
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"server_rental_exporter/internal/metric"
)

// recorder keeps the samples of scrapes until they can be written family by family. It
// keeps a value that repeats once.
type recorder struct {
	labels   []*dto.LabelPair // added to all series
	families map[string]*family
	times    []int64 // of the scrapes, in Unix seconds
	samples  int     // of the present scrape
}

// family is a metric family with the samples of all its series.
type family struct {
	head   *dto.MetricFamily // without metrics
	series map[string]*series
}

// series is one metric: a sample of a histogram has several values.
type series struct {
	prefixes []string // of the lines of each sample: name and labels
	spans    []span
}

// span is values that repeat in the scrapes from first to last.
type span struct {
	first, last int
	values      []float64
}

func newRecorder(labels map[string]string) *recorder {
	r := &recorder{families: map[string]*family{}}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		value := labels[name]
		r.labels = append(r.labels, &dto.LabelPair{Name: &name, Value: &value})
	}
	return r
}

// begin begins a scrape.
func (r *recorder) begin(at time.Time) {
	r.times = append(r.times, at.Unix())
	r.samples = 0
}

// recordSample adds a sample of the present scrape.
func (r *recorder) recordSample(s *metric.Sample) error {
	var m dto.Metric
	if err := s.Write(&m); err != nil {
		return err
	}
	d := s.Definition()
	f := r.families[d.Name]
	if f == nil {
		kind := dto.MetricType_GAUGE
		if d.Type == metric.CounterType {
			kind = dto.MetricType_COUNTER
		}
		head := newFamily(d.Name, d.Help, kind)
		if unit := d.BaseUnit(); unit != "" {
			head.Unit = &unit
		}
		f = r.addFamily(head)
	}
	r.add(f, &m)
	return nil
}

// record adds a sample of the present scrape, or all of a histogram, to a family.
func (r *recorder) record(head *dto.MetricFamily, m *dto.Metric) {
	f := r.families[head.GetName()]
	if f == nil {
		f = r.addFamily(&dto.MetricFamily{Name: head.Name, Help: head.Help, Type: head.Type, Unit: head.Unit})
	}
	r.add(f, m)
}

func (r *recorder) addFamily(head *dto.MetricFamily) *family {
	f := &family{head: head, series: map[string]*series{}}
	r.families[head.GetName()] = f
	return f
}

func (r *recorder) add(f *family, m *dto.Metric) {
	key := labelKey(m)
	s := f.series[key]
	if s == nil {
		s = &series{prefixes: r.prefixes(f.head, m)}
		f.series[key] = s
	}
	scrape, values := len(r.times)-1, values(m)
	r.samples += len(values)
	if n := len(s.spans); n > 0 && s.spans[n-1].last == scrape-1 && slices.Equal(s.spans[n-1].values, values) {
		s.spans[n-1].last = scrape
		return
	}
	s.spans = append(s.spans, span{scrape, scrape, values})
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
		panic(fmt.Sprintf("history: %v", err)) // a buffer does not fail
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line[:strings.LastIndexByte(line, ' ')+1])
		}
	}
	return lines
}

// write writes in OpenMetrics what recorders recorded one after the other, and returns
// the number of samples.
func write(w io.Writer, recorders []*recorder) (samples int, err error) {
	b := bufio.NewWriterSize(w, 1<<20)
	heads := map[string]*dto.MetricFamily{}
	for _, r := range recorders {
		for name, f := range r.families {
			heads[name] = f.head
		}
	}
	for _, name := range slices.Sorted(maps.Keys(heads)) {
		if _, err := expfmt.MetricFamilyToOpenMetrics(b, heads[name]); err != nil {
			return 0, err
		}
		keys := map[string]bool{}
		for _, r := range recorders {
			for key := range r.series(name) {
				keys[key] = true
			}
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			for _, r := range recorders {
				if s := r.series(name)[key]; s != nil {
					samples += s.write(b, r.times)
				}
			}
		}
	}
	if _, err := expfmt.FinalizeOpenMetrics(b); err != nil {
		return 0, err
	}
	return samples, b.Flush()
}

// series returns the series of a family by key.
func (r *recorder) series(name string) map[string]*series {
	if f := r.families[name]; f != nil {
		return f.series
	}
	return nil
}

// write writes the samples of the series, scraped at times, and returns how many.
func (s *series) write(b *bufio.Writer, times []int64) (samples int) {
	var line []byte
	for _, span := range s.spans {
		for _, at := range times[span.first : span.last+1] {
			for n, prefix := range s.prefixes {
				line = append(line[:0], prefix...)
				line = appendValue(line, span.values[n])
				line = append(line, ' ')
				line = strconv.AppendInt(line, at, 10)
				b.Write(append(line, '\n')) //nolint:errcheck // Flush returns the first error
			}
			samples += len(s.prefixes)
		}
	}
	return samples
}

// appendValue writes whole numbers without exponent: they take less space.
func appendValue(line []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.AppendInt(line, int64(v), 10)
	}
	return strconv.AppendFloat(line, v, 'g', -1, 64)
}
