// Package history generates what Prometheus would have stored of the past: it runs
// the exporter of the demo against the simulated provider in simulated time, and
// writes the samples of its scrapes as OpenMetrics with time stamps.
package history

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"server_rental_exporter/internal/simulator"
)

// Options says which history is generated. The result depends on nothing else.
type Options struct {
	End    time.Time         // of the history; the last scrape is at most 15 seconds before
	Length time.Duration     // at most simulator.MaxPast
	Seed   uint64            // of all random events
	Labels map[string]string // added to all series, such as job and instance
}

// Write generates a history and writes it. It returns the number of samples.
func Write(w io.Writer, o Options) (samples int, err error) {
	if o.Length <= 0 || o.Length > simulator.MaxPast {
		return 0, fmt.Errorf("length %v: must be more than 0 and at most %v", o.Length, simulator.MaxPast)
	}
	runs := o.runs()
	errs := make([]error, len(runs))
	var running sync.WaitGroup
	for i, r := range runs {
		running.Go(func() { simulate(func() { errs[i] = r.run() }) })
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	all := runs[0].recorder
	for _, r := range runs[1:] {
		all.append(r.recorder)
	}
	return all.samples, all.write(w)
}

// restarts are when the exporter is started again, before the end. Each run of it is
// simulated by itself, at the same time as the others.
var restarts = []time.Duration{23*24*time.Hour + 5*time.Hour, 15*24*time.Hour + 14*time.Hour, 7*24*time.Hour + 9*time.Hour}

// runs divides the history into runs of the exporter.
func (o Options) runs() []*run {
	began := o.End.Add(-o.Length)
	starts := []time.Time{began}
	for _, r := range restarts {
		if at := o.End.Add(-r); at.After(began) {
			starts = append(starts, at)
		}
	}
	var runs []*run
	for i, start := range starts {
		next := o.End
		if i+1 < len(starts) {
			next = starts[i+1]
		}
		runs = append(runs, &run{
			Options: o, number: uint64(i), start: start, end: next, recorder: newRecorder(o.Labels),
		})
	}
	slices.SortFunc(runs, func(a, b *run) int { return cmp.Compare(a.number, b.number) })
	return runs
}

// resolution returns how often the exporter is scraped and how often each series is
// recorded, by the time before the end: a graph of the newest 6 hours up to the newest
// 2 days has a sample for each pixel, and older ones have no gap, which Prometheus
// sees after 5 minutes.
func resolution(age time.Duration) (scrape, record time.Duration) {
	switch {
	case age <= 6*time.Hour:
		return 15 * time.Second, 15 * time.Second
	case age <= 12*time.Hour:
		return 30 * time.Second, 30 * time.Second
	case age <= 24*time.Hour:
		return time.Minute, time.Minute
	case age <= 48*time.Hour:
		return time.Minute, 2 * time.Minute
	default:
		return time.Minute, 4 * time.Minute
	}
}
