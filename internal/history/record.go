package history

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// record writes the samples of a scrape: metrics, and those of a collector, with the labels of
// the target that deploy/compose/prometheus.yml has. It leaves out types and help: promtool
// stores neither.
func record(out *bufio.Writer, at time.Time, metrics []prometheus.Metric, more prometheus.Collector) error {
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
	target := []*dto.LabelPair{{Name: new("instance"), Value: new("exporter:10170")}, {Name: new("job"), Value: new("server_rental")}}
	stamp := at.UnixMilli()
	var text bytes.Buffer
	for _, family := range families {
		for _, m := range family.GetMetric() {
			m.TimestampMs, m.Label = &stamp, slices.Concat(target, m.Label)
		}
		text.Reset()
		if _, err := expfmt.MetricFamilyToOpenMetrics(&text, family); err != nil {
			return err
		}
		for line := range strings.Lines(text.String()) {
			if !strings.HasPrefix(line, "#") {
				out.WriteString(line) //nolint:errcheck // Flush returns the error
			}
		}
	}
	return nil
}
