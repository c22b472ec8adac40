package history

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// recorder writes the samples of scrapes, one scrape after the other. It leaves out types
// and help: promtool stores neither.
type recorder struct {
	out    *bufio.Writer
	labels []*dto.LabelPair // added to all series
}

// newRecorder returns a recorder of scrapes of the target that deploy/compose/prometheus.yml has.
func newRecorder(w io.Writer) *recorder {
	return &recorder{out: bufio.NewWriterSize(w, 1<<20), labels: []*dto.LabelPair{
		{Name: new("instance"), Value: new("exporter:10170")}, {Name: new("job"), Value: new("server_rental")},
	}}
}

// record writes a scrape: metrics, and those of a collector.
func (r *recorder) record(at time.Time, metrics []prometheus.Metric, more prometheus.Collector) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(more, prometheus.CollectorFunc(func(ch chan<- prometheus.Metric) {
		for _, m := range metrics {
			ch <- m
		}
	}))
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	stamp := at.UnixMilli()
	var text bytes.Buffer
	for _, family := range families {
		for _, m := range family.GetMetric() {
			m.TimestampMs, m.Label = &stamp, slices.Concat(r.labels, m.Label)
		}
		text.Reset()
		if _, err := expfmt.MetricFamilyToOpenMetrics(&text, family); err != nil {
			return err
		}
		for line := range strings.Lines(text.String()) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			if _, err := r.out.WriteString(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// end ends the text.
func (r *recorder) end() error {
	r.out.WriteString("# EOF\n") //nolint:errcheck // Flush returns the error
	return r.out.Flush()
}
