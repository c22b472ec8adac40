// Package history generates what Prometheus would have stored of the past: it runs
// the exporter of the demo against the simulated provider in simulated time, and
// writes the samples of its scrapes as OpenMetrics with time stamps.
package history

import (
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
	End     time.Time         // of the history, at least Length after 2000-01-01; the last scrape is at most 15 seconds before
	Length  time.Duration     // at most simulator.MaxPast
	Servers int               // of each of the demo's two accounts, at least 1
	Seed    uint64            // of all random events
	Labels  map[string]string // added to all series, such as job and instance
}

// Write generates a history and writes it. It returns the number of samples.
func Write(w io.Writer, o Options) (samples int, err error) {
	if o.Length <= 0 || o.Length > simulator.MaxPast {
		return 0, fmt.Errorf("length %v: must be more than 0 and at most %v", o.Length, simulator.MaxPast)
	}
	if began := o.End.Add(-o.Length); began.Before(epoch) {
		return 0, fmt.Errorf("the history would begin at %s: must begin at %s or later", began.UTC().Format(time.RFC3339), epoch.Format(time.DateOnly))
	}
	if o.Servers < 1 {
		return 0, fmt.Errorf("servers %d: must be at least 1", o.Servers)
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
	var recorders []*recorder
	for _, r := range slices.Backward(runs) {
		recorders = append(recorders, r.recorder)
	}
	return write(w, recorders)
}

// The exporter is restarted this long before the end, and before that at intervals.
const (
	lastRestart     = 3*24*time.Hour + 11*time.Hour
	restartInterval = 14 * 24 * time.Hour
)

// runs divides the history into runs of the exporter, the last one first. They are
// simulated independently of each other, at the same time.
func (o Options) runs() []*run {
	began, end := o.End.Add(-o.Length), o.End
	var runs []*run
	for at := o.End.Add(-lastRestart); at.After(began); at = at.Add(-restartInterval) {
		runs = append(runs, &run{Options: o, start: at, end: end, restarted: true})
		end = at
	}
	runs = append(runs, &run{Options: o, start: began, end: end})
	for _, r := range runs {
		r.recorder = newRecorder(o.Labels)
	}
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
		return 2 * time.Minute, 4 * time.Minute
	}
}
