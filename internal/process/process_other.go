//go:build !linux

// Package process collects metrics of the own process.
package process

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// New returns client_golang's collector of the own process, which gives what the system tells.
func New() (prometheus.Collector, error) {
	return collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), nil
}
