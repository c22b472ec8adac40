package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/exporter/demo"
	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
)

// interval is the time between two moments; a moment is a multiple of it. It is below Prometheus'
// lookback of 5 minutes. The recording rules that average history have the same interval.
const interval = 3 * time.Minute

// writePast writes the metrics of the demo, without the exporter's own, for at most a year up to end,
// as OpenMetrics with time stamps. For each moment it maps the provider's data to metrics, as an
// exporter would have done then. The result depends on the arguments only.
func writePast(w io.Writer, end time.Time, length time.Duration) error {
	start, out := end.Add(-length), bufio.NewWriter(w)
	past := simulator.NewPast(start, end, demo.Accounts())
	m := moment{Simulator: simulator.New(simulator.Options{}), changes: map[string]*collector.Changes{}}
	for _, watch := range demo.Watches() {
		m.watches = append(m.watches, &collector.Watched{Watch: watch})
	}
	for m.now = start.Add(interval - 1).Truncate(interval); !m.now.After(end); m.now = m.now.Add(interval) {
		m.Change(func(w *simulator.World) { past.Apply(w, m.now) })
		metrics, err := m.metrics()
		if err != nil {
			return err
		}
		write(out, m.now, metrics)
	}
	out.WriteString("# EOF\n") //nolint:errcheck // Flush returns the error
	return out.Flush()
}

// moment is what an exporter would know at a time.
type moment struct {
	*simulator.Simulator
	now     time.Time
	changes map[string]*collector.Changes // changes by token and resource
	watches []*collector.Watched
	token   string // token of the present request
}

// Get implements rentalapi.Getter.
func (m *moment) Get(_ context.Context, path string, query url.Values, read func(*json.Decoder) error) (rentalapi.Response, error) {
	body := m.Body(path+"?"+query.Encode(), m.token)
	return rentalapi.Response{Received: m.now, Date: m.now}, read(json.NewDecoder(strings.NewReader(body)))
}

// metrics fetches everything, and returns all metrics.
func (m *moment) metrics() (metrics []*metric.Sample, err error) {
	accounts := demo.Accounts()
	for _, m.token = range append([]string{""}, slices.Sorted(maps.Keys(accounts))...) {
		data := collector.AccountData{Name: accounts[m.token]}
		for _, r := range collector.Resources() {
			if r.Account != (m.token != "") {
				continue
			}
			snapshot, err := r.Fetch(context.Background(), m, data.Name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.Name, err)
			}
			changes := cmp.Or(m.changes[m.token+r.Name], &collector.Changes{})
			m.changes[m.token+r.Name] = changes
			changes.Step(&r, data.Name, &snapshot, m.now)
			metrics = slices.Concat(metrics, snapshot.Metrics, changes.Metrics)
			data.Add(snapshot.Data)
		}
		if m.token == "" {
			collector.StepWatches(m.watches, data.Data, m.now)
			metrics = slices.Concat(metrics, collector.WatchMetrics(m.watches))
		}
		metrics = slices.Concat(metrics, data.Derived(m.now))
	}
	return metrics, nil
}

// write writes the samples of a scrape, with the labels of the target that
// deploy/compose/prometheus.yml has.
func write(out *bufio.Writer, now time.Time, metrics []*metric.Sample) {
	const target = `{instance="exporter:10170",job="server_rental"`
	fmt.Fprintf(out, "up%s} 1 %d\n", target, now.Unix())
	fmt.Fprintf(out, "server_rental_exporter_build_info%s,version=%q} 1 %d\n", target, version.Version, now.Unix())
	for _, sample := range metrics {
		out.WriteString(sample.Definition.Name + target) //nolint:errcheck // Flush returns the error; likewise above and below
		for i, name := range sample.Definition.Labels {
			fmt.Fprintf(out, ",%s=%q", name, sample.Labels[i])
		}
		fmt.Fprintf(out, "} %v %d\n", sample.Value, now.Unix())
	}
}
