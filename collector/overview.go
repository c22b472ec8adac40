package collector

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
)

// Sample is a published sample, for pages.
type Sample = metric.Sample

// Samples returns everything that is published, by name without namespace.
func Samples(published prometheus.Collector) map[string][]*Sample {
	ch := make(chan prometheus.Metric, 256)
	go func() {
		defer close(ch)
		published.Collect(ch)
	}()
	all := map[string][]*Sample{}
	for m := range ch {
		if s, ok := m.(*Sample); ok {
			name := strings.TrimPrefix(s.Definition().Name, metric.Namespace)
			all[name] = append(all[name], s)
		}
	}
	return all
}
