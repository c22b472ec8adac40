package exposition

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"server_rental_exporter/internal/metric"
)

// gathered is a metric of a registry as it was gathered, for a group.
type gathered struct {
	definition *metric.Definition
	metric     *dto.Metric
}

// Gathered returns the metrics of families whose names are those of definitions. The families
// must not be changed any more.
func Gathered(families []*dto.MetricFamily, definitions []*metric.Definition) (metrics []prometheus.Metric) {
	for _, f := range families {
		at := slices.IndexFunc(definitions, func(d *metric.Definition) bool { return d.Name == f.GetName() })
		if at < 0 {
			continue
		}
		for _, m := range f.GetMetric() {
			metrics = append(metrics, &gathered{definitions[at], m})
		}
	}
	return metrics
}

// Desc implements prometheus.Metric.
func (g *gathered) Desc() *prometheus.Desc { return g.definition.Desc }

// Write implements prometheus.Metric.
func (g *gathered) Write(out *dto.Metric) error {
	out.Label = slices.Clip(g.metric.GetLabel())
	out.Gauge, out.Counter, out.Histogram = g.metric.GetGauge(), g.metric.GetCounter(), g.metric.GetHistogram()
	return nil
}

// labelValues returns values of labels by which the metrics of a family can be sorted.
func labelValues(m prometheus.Metric) (values []string) {
	if s, ok := m.(*metric.Sample); ok {
		return s.Labels
	}
	if g, ok := m.(*gathered); ok {
		for _, pair := range g.metric.GetLabel() {
			values = append(values, pair.GetValue())
		}
	}
	return values
}
