// Package history generates what Prometheus would have stored of the past, except of the
// exporter itself: moment by moment, the data of a simulated provider is mapped to the metrics
// that an exporter would have had then, and written as OpenMetrics with time stamps.
package history

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator"
)

// interval is the time between two moments, which are multiples of it. It is that of the
// recording rules about history, and below Prometheus' lookback of 5 minutes.
const interval = 3 * time.Minute

// Options says which history is generated. Its samples depend on nothing else.
type Options struct {
	End      time.Time         // of the history; the last moment is at most an interval before
	Length   time.Duration     // at most a year
	Accounts map[string]string // names by token
	Watches  []collector.Watch
}

// Write generates a history and writes it.
func Write(w io.Writer, o Options) error {
	start, out := o.End.Add(-o.Length), bufio.NewWriter(w)
	past := simulator.NewPast(start, o.End, o.Accounts)
	m := moment{Options: o, Simulator: simulator.New(simulator.Options{}), histories: map[string]collector.History{}}
	for _, watch := range o.Watches {
		m.watches = append(m.watches, collector.Watched{Watch: watch})
	}
	for m.now = start.Add(interval - 1).Truncate(interval); !m.now.After(o.End); m.now = m.now.Add(interval) {
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
	Options
	*simulator.Simulator
	now       time.Time
	histories map[string]collector.History // by token and resource
	watches   []collector.Watched
	token     string // of the present request
}

// Get implements rentalapi.Getter.
func (m *moment) Get(_ context.Context, path string, query url.Values, read func(io.Reader) error) (rentalapi.Response, error) {
	return rentalapi.Response{Received: m.now, Date: m.now}, read(strings.NewReader(m.Body(path+"?"+query.Encode(), m.token)))
}

// metrics fetches everything, and returns all metrics.
func (m *moment) metrics() (metrics []*collector.Sample, err error) {
	var known []collector.Known // of the public data, and then of each account
	for _, m.token = range append([]string{""}, slices.Sorted(maps.Keys(m.Accounts))...) {
		of := collector.Known{Account: m.Accounts[m.token]}
		for _, r := range collector.Resources() {
			if r.Account != (m.token != "") {
				continue
			}
			fetcher := collector.Fetcher{Resource: &r, Account: of.Account, API: m}
			snapshot, err := fetcher.Fetch(context.Background())
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.Name, err)
			}
			history := m.histories[m.token+r.Name].Step(&r, of.Account, snapshot, m.now)
			m.histories[m.token+r.Name] = history
			metrics = slices.Concat(metrics, snapshot.Metrics, history.Metrics)
			of.Add(snapshot.Data, m.now.Add(interval))
		}
		known = append(known, of)
	}
	for i, w := range m.watches {
		m.watches[i] = w.Step(known[0], m.now)
	}
	funding, _ := collector.FundingMetrics(known[1:], m.now)
	return slices.Concat(metrics, collector.WatchMetrics(m.watches), funding), nil
}

// write writes the samples of a scrape, with the labels of the target that
// deploy/compose/prometheus.yml has.
func write(out *bufio.Writer, now time.Time, metrics []*collector.Sample) {
	const target = `{instance="exporter:10170",job="server_rental"`
	fmt.Fprintf(out, "up%s} 1 %d\n", target, now.Unix())
	fmt.Fprintf(out, "server_rental_exporter_build_info%s,version=%q} 1 %d\n", target, version.Version, now.Unix())
	for _, sample := range metrics {
		out.WriteString(sample.Definition.Name + target) //nolint:errcheck // Flush returns the error; likewise above and below
		for i, name := range sample.Definition.Labels {
			if sample.Labels[i] != "" { // as an absent one
				fmt.Fprintf(out, ",%s=%q", name, sample.Labels[i])
			}
		}
		fmt.Fprintf(out, "} %v %d\n", sample.Value, now.Unix())
	}
}
