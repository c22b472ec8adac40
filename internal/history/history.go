// Package history generates what Prometheus would have stored of the past: it maps the
// data of a simulated provider at each moment to the metrics that an exporter would have
// had then, and writes the samples of its scrapes as OpenMetrics with time stamps.
package history

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/version"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
)

// Options says which history is generated. The result depends on nothing else.
type Options struct {
	End      time.Time         // of the history; the last scrape is at most 15 seconds before
	Length   time.Duration     // at most simulator.MaxPast
	Accounts map[string]string // names by token
	Watches  []collector.Watch
	Site     string // address to which links lead; empty for that of simulator.Options
}

// Write generates a history and writes it.
func Write(w io.Writer, o Options) error {
	if o.Length <= 0 || o.Length > simulator.MaxPast {
		return fmt.Errorf("length %v: must be more than 0 and at most %v", o.Length, simulator.MaxPast)
	}
	return newRun(o, w, o.End.Add(-o.Length)).run(o.End)
}

// resolution returns how often the exporter is scraped, by the time before the end: a
// graph of the newest 6 hours up to the newest 2 days has a sample for each pixel, and
// rate() of the newest hours finds the samples that it needs in a minute. Older ones have
// no gap, which Prometheus sees after 5 minutes.
//
// A month at the resolution of the newest hours would have 170 million samples. So an
// average over the samples of more than 6 hours gives too much weight to the newest ones;
// a subquery with a step does not.
func resolution(age time.Duration) time.Duration {
	switch {
	case age <= 6*time.Hour:
		return 15 * time.Second
	case age <= 12*time.Hour:
		return 30 * time.Second
	case age <= 24*time.Hour:
		return time.Minute
	case age <= 48*time.Hour:
		return 2 * time.Minute
	default:
		return 4 * time.Minute
	}
}

// processMetrics returns the metrics of the process, which made a number of requests since
// it started, and those that Prometheus adds to a scrape. Neither exists here: they are
// those that the dashboards show, with values as of an exporter that was measured, and a
// little noise.
func (r *run) processMetrics(uptime time.Duration, requests int) (metrics []prometheus.Metric) {
	add := func(kind prometheus.ValueType, name, help string, value float64, labels prometheus.Labels) {
		metrics = append(metrics, prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, labels), kind, value))
	}
	gauge := func(name, help string, value float64) { add(prometheus.GaugeValue, name, help, value, nil) }
	start := float64(r.started.UnixMilli()) / 1000
	gauge("up", "Whether the last scrape succeeded: 1 or 0.", 1)
	gauge("scrape_duration_seconds", "Duration of the scrape.", math.Round(2000+1000*r.rand.ExpFloat64())/1e6)
	gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", start)
	gauge("process_resident_memory_bytes", "Resident memory size in bytes.", math.Round(5200+300*math.Tanh(uptime.Hours())+40*r.rand.Float64())*4096)
	gauge("process_open_fds", "Number of open file descriptors.", 11+float64(r.rand.IntN(3)))
	gauge("go_goroutines", "Number of goroutines that currently exist.", 31+float64(r.rand.IntN(4)))
	gauge("go_memstats_heap_inuse_bytes", "Number of heap bytes that are in use.", math.Round(340+80*r.rand.Float64())*8192)
	gauge("server_rental_exporter_config_last_reload_successful", "Whether the last attempt to load the configuration succeeded: 1 or 0.", 1)
	gauge("server_rental_exporter_shard", "Index of this shard, from 0.", 0)
	gauge("server_rental_exporter_shards", "Number of shards that share the accounts.", 1)
	gauge("server_rental_exporter_config_last_reload_success_timestamp_seconds", "When the configuration in force was loaded.", start)
	add(prometheus.CounterValue, "process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", math.Floor(100*(0.05+0.0006*float64(requests)+0.0001*uptime.Seconds()))/100, nil)
	for _, cause := range []string{"encoding", "gathering"} {
		add(prometheus.CounterValue, "promhttp_metric_handler_errors_total", "Total number of internal errors encountered by the promhttp metric handler.", 0, prometheus.Labels{"cause": cause})
	}
	add(prometheus.GaugeValue, "server_rental_exporter_build_info", "Version and platform of this build of the exporter; constant 1.", 1, prometheus.Labels{
		"version": version.Version, "revision": version.GetRevision(), "branch": version.Branch,
		"goversion": version.GoVersion, "goos": version.GoOS, "goarch": version.GoArch, "tags": version.GetTags(),
	})
	return metrics
}

// state returns what the API last said to the account.
func (a *account) state(now time.Time) rentalapi.AccountState {
	var s rentalapi.AccountState
	if a.name != "" {
		limit, remaining, rejected := accountLimit, accountLimit-float64(len(a.newest)), false
		s = rentalapi.AccountState{Limit: &limit, Remaining: &remaining, Rejected: &rejected}
	}
	if a.pausedUntil.After(now) {
		s.BackoffUntil = a.pausedUntil
	}
	return s
}

// accountLimit is the provider's rate limit: requests of an account in a minute.
const accountLimit = 120.0

// getter makes the requests of one fetch: it responds with the provider's data, or fails
// while an outage is under way.
type getter struct {
	*run
	*account
	now time.Time // when the next request begins
}

// Get implements rentalapi.Getter.
func (g *getter) Get(_ context.Context, path string, query url.Values, read func(io.Reader) error) (rentalapi.Response, error) {
	if err := g.request(path); err != nil {
		return rentalapi.Response{}, err
	}
	err := read(strings.NewReader(g.sim.Body(path+"?"+query.Encode(), g.token)))
	return rentalapi.Response{Received: g.now, Date: g.now}, err
}

// request makes and counts a request. It fails if an outage is under way. The duration
// differs for accounts and public data.
func (g *getter) request(path string) error {
	o := outage{code: "200"}
	for _, other := range g.outages {
		if !g.now.Before(other.at) && g.now.Before(other.at.Add(other.length)) && (other.path == "" || other.path == path) {
			o = other
		}
	}
	typical := 35 * time.Millisecond
	if g.name != "" {
		typical = 70 * time.Millisecond
	}
	duration := o.delay + typical + time.Duration(g.rand.ExpFloat64()*float64(typical)/2)
	g.now = g.now.Add(duration)
	g.account.requests++
	g.newest = append(slices.DeleteFunc(g.newest, func(at time.Time) bool { return g.now.Sub(at) >= time.Minute }), g.now)
	g.run.requests.CountRequest(path, o.code, duration)
	if o.reason == "" {
		return nil
	}
	g.run.requests.CountError(path, o.reason)
	if o.pause > 0 {
		g.pausedUntil = g.now.Add(o.pause)
	}
	return &rentalapi.Error{Path: path, Reason: o.reason}
}

// outage is a time in which the provider fails, or is slow.
type outage struct {
	at     time.Time
	length time.Duration
	path   string           // empty for all
	reason rentalapi.Reason // empty if the provider is only slow
	code   string           // value of the label code
	delay  time.Duration    // of a response
	pause  time.Duration    // that the provider asks for
}

// outages returns those of the whole history: one every few days, and one that the
// dashboard of the last 6 hours shows.
func (o Options) outages() []outage {
	kinds := []outage{
		{length: 14 * time.Minute, reason: rentalapi.Connection, code: "error"},
		{length: 8 * time.Minute, path: "/status", reason: rentalapi.Timeout, code: "error", delay: 10 * time.Second},
		{length: 25 * time.Minute, path: "/servers", reason: rentalapi.Unavailable, code: "503", pause: time.Minute},
		{length: 3 * time.Minute, path: "/plans", reason: rentalapi.RateLimited, code: "429", pause: time.Minute},
		{length: 40 * time.Minute, code: "200", delay: 3 * time.Second},
		{length: 12 * time.Minute, path: "/locations", reason: rentalapi.Decode, code: "200"},
		{length: 5 * time.Minute, reason: rentalapi.Status, code: "500"},
	}
	recent := kinds[2]
	recent.at, recent.length, recent.path = o.End.Add(-4*time.Hour-20*time.Minute), 6*time.Minute, "/topups"
	all := []outage{recent}
	rng := rand.New(rand.NewPCG(1, 20))
	at := o.End.Add(-24 * time.Hour)
	for i := 0; at.After(o.End.Add(-o.Length)); i++ {
		next := kinds[i%len(kinds)]
		next.at = at
		all = append(all, next)
		at = at.Add(-36*time.Hour - time.Duration(rng.Int64N(int64(72*time.Hour))))
	}
	return all
}
