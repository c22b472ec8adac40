package history

import (
	"math"
	"math/rand/v2"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// The metrics of this file cannot be measured in simulated time. They are those that
// the dashboards show, with values as of an exporter that was measured, and a little
// noise.

func (r *run) noise() *rand.Rand {
	return rand.New(rand.NewPCG(r.Seed, uint64(time.Now().UnixNano())))
}

// recordProcess records the metrics of the process, which made a number of requests
// since it started.
func (r *run) recordProcess(started time.Time, requests float64) {
	rng := r.noise()
	uptime := time.Since(started).Seconds()
	r.gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", "seconds", float64(started.UnixMilli())/1000)
	r.counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", "seconds", math.Floor(100*(0.05+0.0006*requests+0.0001*uptime))/100)
	r.gauge("process_resident_memory_bytes", "Resident memory size in bytes.", "bytes", math.Round(5200+300*math.Tanh(uptime/3600)+40*rng.Float64())*4096)
	r.gauge("process_open_fds", "Number of open file descriptors.", "", 11+float64(rng.IntN(3)))
	r.gauge("go_goroutines", "Number of goroutines that currently exist.", "", 31+float64(rng.IntN(4)))
	r.gauge("go_memstats_heap_inuse_bytes", "Number of heap bytes that are in use.", "bytes", math.Round(340+80*rng.Float64())*8192)
	for _, cause := range []string{"encoding", "gathering"} {
		r.counter("promhttp_metric_handler_errors_total", "Total number of internal errors encountered by the promhttp metric handler.", "", 0,
			&dto.LabelPair{Name: proto.String("cause"), Value: &cause})
	}
}

// recordUp records what Prometheus adds to a scrape.
func (r *run) recordUp(samples int) {
	rng := r.noise()
	seconds := 0.002 + 0.001*rng.ExpFloat64()
	r.recordScrape(1, math.Round(seconds*1e6)/1e6, samples)
}

// recordDown records what Prometheus adds where nothing answers.
func (r *run) recordDown() { r.recordScrape(0, 0.0005, 0) }

func (r *run) recordScrape(up, seconds float64, samples int) {
	r.gauge("up", "", "", up)
	r.gauge("scrape_duration_seconds", "", "", seconds)
	r.gauge("scrape_samples_scraped", "", "", float64(samples))
	r.gauge("scrape_samples_post_metric_relabeling", "", "", float64(samples))
}

func (r *run) gauge(name, help, unit string, value float64) {
	r.record(newFamily(name, help, unit, dto.MetricType_GAUGE), &dto.Metric{Gauge: &dto.Gauge{Value: &value}})
}

func (r *run) counter(name, help, unit string, value float64, labels ...*dto.LabelPair) {
	r.record(newFamily(name, help, unit, dto.MetricType_COUNTER), &dto.Metric{Label: labels, Counter: &dto.Counter{Value: &value}})
}

func newFamily(name, help, unit string, t dto.MetricType) *dto.MetricFamily {
	f := &dto.MetricFamily{Name: &name, Type: t.Enum()}
	if help != "" {
		f.Help = proto.String(help)
	}
	if unit != "" {
		f.Unit = proto.String(unit)
	}
	return f
}
