package web

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
)

// samples are the published metrics of one moment, by name without namespace. The
// overview is made of nothing else, so that it shows nothing that is not in /metrics.
type samples map[string][]*metric.Sample

// collect returns everything that is published.
func collect(published prometheus.Collector) samples {
	ch := make(chan prometheus.Metric, 256)
	go func() {
		defer close(ch)
		published.Collect(ch)
	}()
	all := samples{}
	for m := range ch {
		if s, ok := m.(*metric.Sample); ok {
			name := strings.TrimPrefix(s.Definition().Name, metric.Namespace)
			all[name] = append(all[name], s)
		}
	}
	return all
}

// by returns the samples of a metric by the value of a label that tells them apart.
func (s samples) by(name, label string) map[string]*metric.Sample {
	found := make(map[string]*metric.Sample, len(s[name]))
	for _, v := range s[name] {
		found[v.Label(label)] = v
	}
	return found
}

// group returns the samples of a metric by the value of a label that many share.
func (s samples) group(name, label string) map[string][]*metric.Sample {
	found := map[string][]*metric.Sample{}
	for _, v := range s[name] {
		found[v.Label(label)] = append(found[v.Label(label)], v)
	}
	return found
}

// single returns the value of a metric without labels; nil where it is absent.
func (s samples) single(name string) *float64 {
	if len(s[name]) == 0 {
		return nil
	}
	return value(s[name][0])
}

// value returns the value of a sample; nil where the sample is absent.
func value(s *metric.Sample) *float64 {
	if s == nil {
		return nil
	}
	v := s.Value()
	return &v
}

// label returns the value of a label; empty where the sample is absent.
func label(s *metric.Sample, name string) string {
	if s == nil {
		return ""
	}
	return s.Label(name)
}
