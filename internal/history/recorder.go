package history

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// recorder keeps the samples of scrapes until they can be written family by family. It
// keeps a value that repeats once.
type recorder struct {
	labels   map[string]string // added to all series
	times    []int64           // of the scrapes, in Unix seconds
	families map[string]*family
}

// family is a metric family with the samples of all its series.
type family struct {
	head   string            // lines before the samples
	names  []string          // of the series, with labels, as they are written; lines of one metric follow each other
	series map[string][]span // by name
}

// span is a value that repeats in the scrapes from first to last.
type span struct {
	first, last int
	value       string
}

func newRecorder(labels map[string]string) *recorder {
	return &recorder{labels: labels, families: map[string]*family{}}
}

// begin begins a scrape.
func (r *recorder) begin(at time.Time) { r.times = append(r.times, at.Unix()) }

// record records samples of the present scrape and returns how many.
func (r *recorder) record(collectors ...prometheus.Collector) (samples int, err error) {
	registry := prometheus.NewRegistry()
	prometheus.WrapRegistererWith(r.labels, registry).MustRegister(collectors...)
	families, err := registry.Gather()
	if err != nil {
		return 0, err
	}
	var text bytes.Buffer
	for _, gathered := range families {
		text.Reset()
		if _, err := expfmt.MetricFamilyToOpenMetrics(&text, gathered); err != nil {
			return 0, err
		}
		f := r.families[gathered.GetName()]
		if f == nil {
			f = &family{series: map[string][]span{}}
			r.families[gathered.GetName()] = f
		}
		head, lines := cutHead(text.String())
		f.head = head
		for line := range strings.Lines(lines) {
			i := strings.LastIndexByte(line, ' ')
			f.add(len(r.times)-1, line[:i], line[i+1:len(line)-1])
			samples++
		}
	}
	return samples, nil
}

// cutHead cuts the text of a family before its first sample.
func cutHead(text string) (head, lines string) {
	for lines = text; strings.HasPrefix(lines, "#"); {
		_, lines, _ = strings.Cut(lines, "\n")
	}
	return text[:len(text)-len(lines)], lines
}

// list is metrics as a collector.
type list []prometheus.Metric

// Describe implements prometheus.Collector. It describes nothing, so that the metrics may
// be different ones at each scrape.
func (list) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (l list) Collect(ch chan<- prometheus.Metric) {
	for _, m := range l {
		ch <- m
	}
}

func (f *family) add(scrape int, series, value string) {
	spans := f.series[series]
	if spans == nil {
		f.names = append(f.names, series)
	}
	if n := len(spans); n > 0 && spans[n-1].last == scrape-1 && spans[n-1].value == value {
		spans[n-1].last = scrape
		return
	}
	f.series[series] = append(spans, span{scrape, scrape, value})
}

// write writes in OpenMetrics what recorders recorded one after the other, and returns
// the number of samples.
func write(w io.Writer, recorders []*recorder) (samples int, err error) {
	b := bufio.NewWriterSize(w, 1<<20)
	heads := map[string]string{}
	for _, r := range recorders {
		for name, f := range r.families {
			heads[name] = f.head
		}
	}
	for _, name := range slices.Sorted(maps.Keys(heads)) {
		b.WriteString(heads[name]) //nolint:errcheck // Flush returns the first error
		written := map[string]bool{}
		for i, r := range recorders {
			if r.families[name] == nil {
				continue
			}
			for _, series := range r.families[name].names {
				if !written[series] {
					written[series] = true
					samples += writeSeries(b, recorders[i:], name, series)
				}
			}
		}
	}
	if _, err := expfmt.FinalizeOpenMetrics(b); err != nil {
		return 0, err
	}
	return samples, b.Flush()
}

// writeSeries writes the samples of a series and returns how many.
func writeSeries(b *bufio.Writer, recorders []*recorder, family, series string) (samples int) {
	var line []byte
	for _, r := range recorders {
		if r.families[family] == nil {
			continue
		}
		for _, span := range r.families[family].series[series] {
			for _, at := range r.times[span.first : span.last+1] {
				line = append(append(append(line[:0], series...), ' '), span.value...)
				line = strconv.AppendInt(append(line, ' '), at, 10)
				b.Write(append(line, '\n')) //nolint:errcheck // Flush returns the first error
				samples++
			}
		}
	}
	return samples
}
