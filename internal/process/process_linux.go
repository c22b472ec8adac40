// Package process collects metrics of the own process at a small cost.
//
// They are those of client_golang's collector, without two: the bytes that went
// over the network. These count the traffic of all programs that share the network,
// and reading them costs more than all other metrics of a scrape together.
package process

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
)

type collector struct {
	proc    procfs.Proc
	started float64 // Unix seconds

	cpu, memory, virtual, maxVirtual, files, maxFiles, start *prometheus.Desc
}

// New returns a collector of the own process, or an error where /proc cannot be read.
func New() (prometheus.Collector, error) {
	proc, err := procfs.Self()
	if err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	stat, err := proc.Stat()
	if err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	started, err := stat.StartTime()
	if err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc("process_"+name, help, nil, nil) }
	return &collector{
		proc: proc, started: started,
		cpu:        desc("cpu_seconds_total", "Total user and system CPU time spent in seconds."),
		memory:     desc("resident_memory_bytes", "Resident memory size in bytes."),
		virtual:    desc("virtual_memory_bytes", "Virtual memory size in bytes."),
		maxVirtual: desc("virtual_memory_max_bytes", "Maximum amount of virtual memory available in bytes."),
		files:      desc("open_fds", "Number of open file descriptors."),
		maxFiles:   desc("max_fds", "Maximum number of open file descriptors."),
		start:      desc("start_time_seconds", "Start time of the process since unix epoch in seconds."),
	}, nil
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.cpu, c.memory, c.virtual, c.maxVirtual, c.files, c.maxFiles, c.start} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. What cannot be read is absent.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	gauge(c.start, c.started)
	if stat, err := c.proc.Stat(); err == nil {
		ch <- prometheus.MustNewConstMetric(c.cpu, prometheus.CounterValue, stat.CPUTime())
		gauge(c.memory, float64(stat.ResidentMemory()))
		gauge(c.virtual, float64(stat.VirtualMemory()))
	}
	if files, err := c.proc.FileDescriptorsLen(); err == nil {
		gauge(c.files, float64(files))
	}
	if limits, err := c.proc.Limits(); err == nil {
		gauge(c.maxFiles, float64(limits.OpenFiles))
		gauge(c.maxVirtual, float64(limits.AddressSpace))
	}
}
