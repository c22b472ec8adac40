package web

import "server_rental_exporter/collector"

// samples are the published metrics of one moment, by name without namespace. All data
// of the provider in the overview comes from them, so that it shows none that is not in
// /metrics.
type samples map[string][]*collector.Sample

// by returns the samples of a metric by the value of a label that tells them apart.
func (s samples) by(name, label string) map[string]*collector.Sample {
	found := make(map[string]*collector.Sample, len(s[name]))
	for _, v := range s[name] {
		found[v.Label(label)] = v
	}
	return found
}

// group returns the samples of a metric by the value of a label that many share.
func (s samples) group(name, label string) map[string][]*collector.Sample {
	found := map[string][]*collector.Sample{}
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
func value(s *collector.Sample) *float64 {
	if s == nil {
		return nil
	}
	v := s.Value()
	return &v
}

// label returns the value of a label; empty where the sample is absent.
func label(s *collector.Sample, name string) string {
	if s == nil {
		return ""
	}
	return s.Label(name)
}
