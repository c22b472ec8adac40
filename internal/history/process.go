package history

import (
	"math"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/version"
)

// The metrics of this file belong to a process and to Prometheus, which do not exist
// here. They are those that the dashboards show, with values as of an exporter that was
// measured, and a little noise.

// recordProcess records the metrics of the process, which made a number of requests
// since it started.
func (r *run) recordProcess(at, started time.Time, requests float64) {
	uptime := at.Sub(started).Seconds()
	start := float64(started.UnixMilli()) / 1000
	r.counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", math.Floor(100*(0.05+0.0006*requests+0.0001*uptime))/100)
	r.gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", start)
	r.gauge("process_resident_memory_bytes", "Resident memory size in bytes.", math.Round(5200+300*math.Tanh(uptime/3600)+40*r.rand.Float64())*4096)
	r.gauge("process_open_fds", "Number of open file descriptors.", 11+float64(r.rand.IntN(3)))
	r.gauge("go_goroutines", "Number of goroutines that currently exist.", 31+float64(r.rand.IntN(4)))
	r.gauge("go_memstats_heap_inuse_bytes", "Number of heap bytes that are in use.", math.Round(340+80*r.rand.Float64())*8192)
	for _, cause := range []string{"encoding", "gathering"} {
		r.counter("promhttp_metric_handler_errors_total", "Total number of internal errors encountered by the promhttp metric handler.", 0, "cause", cause)
	}
	r.gauge("server_rental_exporter_build_info", "Version and platform of this build of the exporter; constant 1.", 1,
		"branch", version.Branch, "goarch", version.GoArch, "goos", version.GoOS, "goversion", version.GoVersion,
		"revision", version.GetRevision(), "tags", version.GetTags(), "version", version.Version)
	r.gauge("server_rental_exporter_config_last_reload_successful", "Whether the last attempt to load the configuration succeeded: 1 or 0.", 1)
	r.gauge("server_rental_exporter_config_last_reload_success_timestamp_seconds", "When the configuration in force was loaded.", start)
}

// recordUp records what Prometheus adds to a scrape.
func (r *run) recordUp() {
	samples := r.recorder.samples
	seconds := 0.002 + 0.001*r.rand.ExpFloat64()
	r.recordScrape(1, math.Round(seconds*1e6)/1e6, samples)
}

// recordDown records what Prometheus adds if nothing responds.
func (r *run) recordDown() { r.recordScrape(0, 0.0005, 0) }

func (r *run) recordScrape(up, seconds float64, samples int) {
	r.gauge("up", "", up)
	r.gauge("scrape_duration_seconds", "", seconds)
	r.gauge("scrape_samples_scraped", "", float64(samples))
	r.gauge("scrape_samples_post_metric_relabeling", "", float64(samples))
}

// gauge records a gauge; labels are names and values.
func (r *run) gauge(name, help string, value float64, labels ...string) {
	r.recorder.record(newFamily(name, help, dto.MetricType_GAUGE), &dto.Metric{Label: pairs(labels), Gauge: &dto.Gauge{Value: &value}})
}

// counter records a counter; labels are names and values.
func (r *run) counter(name, help string, value float64, labels ...string) {
	r.recorder.record(newFamily(name, help, dto.MetricType_COUNTER), &dto.Metric{Label: pairs(labels), Counter: &dto.Counter{Value: &value}})
}

func newFamily(name, help string, t dto.MetricType) *dto.MetricFamily {
	f := &dto.MetricFamily{Name: &name, Type: &t}
	if help != "" {
		f.Help = &help
	}
	return f
}

func pairs(labels []string) []*dto.LabelPair {
	var all []*dto.LabelPair
	for pair := range slices.Chunk(labels, 2) {
		all = append(all, &dto.LabelPair{Name: &pair[0], Value: &pair[1]})
	}
	return all
}
