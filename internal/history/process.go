package history

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/version"
)

// The metrics of this file belong to a process and to Prometheus, which do not exist
// here. They are those that the dashboards show, with values as of an exporter that was
// measured, and a little noise.

// processMetrics returns the metrics of the process, which made a number of requests since
// it started, and those that Prometheus adds to a scrape.
func (r *run) processMetrics(uptime time.Duration, requests int) list {
	start := float64(r.started.UnixMilli()) / 1000
	handlerErrors := func(cause string) prometheus.Metric {
		return constant(prometheus.CounterValue, "promhttp_metric_handler_errors_total", "Total number of internal errors encountered by the promhttp metric handler.", 0, prometheus.Labels{"cause": cause})
	}
	return list{
		gauge("up", "Whether the last scrape succeeded: 1 or 0.", 1),
		gauge("scrape_duration_seconds", "Duration of the scrape.", math.Round(2000+1000*r.rand.ExpFloat64())/1e6),
		constant(prometheus.CounterValue, "process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", math.Floor(100*(0.05+0.0006*float64(requests)+0.0001*uptime.Seconds()))/100, nil),
		gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", start),
		gauge("process_resident_memory_bytes", "Resident memory size in bytes.", math.Round(5200+300*math.Tanh(uptime.Hours())+40*r.rand.Float64())*4096),
		gauge("process_open_fds", "Number of open file descriptors.", 11+float64(r.rand.IntN(3))),
		gauge("go_goroutines", "Number of goroutines that currently exist.", 31+float64(r.rand.IntN(4))),
		gauge("go_memstats_heap_inuse_bytes", "Number of heap bytes that are in use.", math.Round(340+80*r.rand.Float64())*8192),
		handlerErrors("encoding"), handlerErrors("gathering"),
		constant(prometheus.GaugeValue, "server_rental_exporter_build_info", "Version and platform of this build of the exporter; constant 1.", 1, prometheus.Labels{
			"version": version.Version, "revision": version.GetRevision(), "branch": version.Branch,
			"goversion": version.GoVersion, "goos": version.GoOS, "goarch": version.GoArch, "tags": version.GetTags(),
		}),
		gauge("server_rental_exporter_config_last_reload_successful", "Whether the last attempt to load the configuration succeeded: 1 or 0.", 1),
		gauge("server_rental_exporter_shard", "Index of this shard, from 0.", 0),
		gauge("server_rental_exporter_shards", "Number of shards that share the accounts.", 1),
		gauge("server_rental_exporter_config_last_reload_success_timestamp_seconds", "When the configuration in force was loaded.", start),
	}
}

func gauge(name, help string, value float64) prometheus.Metric {
	return constant(prometheus.GaugeValue, name, help, value, nil)
}

func constant(kind prometheus.ValueType, name, help string, value float64, labels prometheus.Labels) prometheus.Metric {
	return prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, labels), kind, value)
}
