package history

import (
	"bufio"
	"bytes"
	"io"
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
	labels prometheus.Labels // added to all series
	times  []int64           // of the scrapes, in Unix seconds
	heads  map[string]string // lines before the samples, by metric family
	series []*series         // in the order of their lines, so that those of one metric follow each other
	byName map[string]*series
}

type series struct {
	family, name string // the name with labels, as it is written
	spans        []span
}

// span is a value that repeats in the scrapes from first to last.
type span struct {
	first, last int
	value       string
}

func newRecorder(labels map[string]string) *recorder {
	return &recorder{labels: labels, heads: map[string]string{}, byName: map[string]*series{}}
}

// record records a scrape: metrics, and those of a collector.
func (r *recorder) record(at time.Time, metrics []prometheus.Metric, more prometheus.Collector) error {
	r.times = append(r.times, at.Unix())
	registry := prometheus.NewRegistry()
	prometheus.WrapRegistererWith(r.labels, registry).MustRegister(more, prometheus.CollectorFunc(func(ch chan<- prometheus.Metric) {
		for _, m := range metrics {
			ch <- m
		}
	}))
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, gathered := range families {
		text.Reset()
		if _, err := expfmt.MetricFamilyToOpenMetrics(&text, gathered); err != nil {
			return err
		}
		family, head := gathered.GetName(), ""
		for line := range strings.Lines(text.String()) {
			if strings.HasPrefix(line, "#") {
				head += line
				continue
			}
			i := strings.LastIndexByte(line, ' ')
			r.add(family, line[:i], line[i+1:len(line)-1])
		}
		r.heads[family] = head
	}
	return nil
}

// add adds a sample of the present scrape.
func (r *recorder) add(family, name, value string) {
	s, scrape := r.byName[name], len(r.times)-1
	if s == nil {
		s = &series{family: family, name: strings.Clone(name)} // not the whole text
		r.byName[s.name] = s
		r.series = append(r.series, s)
	}
	if n := len(s.spans); n > 0 && s.spans[n-1].last == scrape-1 && s.spans[n-1].value == value {
		s.spans[n-1].last = scrape
		return
	}
	s.spans = append(s.spans, span{scrape, scrape, strings.Clone(value)})
}

// write writes the samples in OpenMetrics and returns how many.
func (r *recorder) write(w io.Writer) (samples int, err error) {
	b := bufio.NewWriterSize(w, 1<<20)
	slices.SortStableFunc(r.series, func(x, y *series) int { return strings.Compare(x.family, y.family) })
	var line []byte
	for i, s := range r.series {
		if i == 0 || s.family != r.series[i-1].family {
			b.WriteString(r.heads[s.family]) //nolint:errcheck // Flush returns the first error
		}
		for _, span := range s.spans {
			for _, at := range r.times[span.first : span.last+1] {
				line = append(append(append(line[:0], s.name...), ' '), span.value...)
				line = strconv.AppendInt(append(line, ' '), at, 10)
				b.Write(append(line, '\n')) //nolint:errcheck // Flush returns the first error
				samples++
			}
		}
	}
	b.WriteString("# EOF\n") //nolint:errcheck // Flush returns the first error
	return samples, b.Flush()
}
