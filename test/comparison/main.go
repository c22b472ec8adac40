// Command comparison measures what a scrape of an exporter costs, and what it answers
// when its API fails. It runs this exporter and exporters of other providers against
// simulated APIs. See docs/comparison.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"
)

var (
	series  = flag.Int("series", 5000, "approximate number of series of the API's items")
	scrapes = flag.Int("scrapes", 40, "number of scrapes, four a second")
	rounds  = flag.Int("rounds", 3, "number of times that the exporter is started and measured")
	idle    = flag.Duration("idle", 0, "then measure this long without scrapes")
	faults  = flag.Bool("faults", false, "scrape while the API is down, and while it does not answer, instead of measuring")
	wait    = flag.Duration("wait", 3*time.Minute, "with -faults: scrape again after this time, if the exporter does not fetch during a scrape")
	refresh = flag.Duration("refresh", time.Minute, "time between two fetches of YACE, whose default is 5 minutes")
	timeout = flag.Duration("timeout", 0, "time that an exporter that fetches during a scrape may take; 0: its default")
	api     = flag.String("api", "", "serve this API only (hetzner, digitalocean or cloudwatch); used by the command itself")
)

func main() {
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: comparison [flags] rental|hcloud|digitalocean|yace EXPORTER [SIMULATOR]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "comparison:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if *api != "" {
		return serve(ctx, *api)
	}
	subject, ok := subjects[flag.Arg(0)]
	if !ok || flag.NArg() < 2 {
		flag.Usage()
		return errors.New("name an exporter and its program")
	}
	if *faults {
		return showFaults(ctx, subject)
	}
	results := make([]result, *rounds)
	for i := range results {
		var err error
		if results[i], err = measure(ctx, subject); err != nil {
			return err
		}
	}
	report(results)
	return nil
}

// A result is the cost of one run.
type result struct {
	series, bytes int           // of a scrape
	cpu           time.Duration // processor time of a scrape
	latency       time.Duration // median
	requests      float64       // to the API, of a scrape
	memory        int           // resident, in KiB
	idleCPU       time.Duration // processor time without scrapes, in a minute
	idleRequests  float64       // in a minute
}

func measure(ctx context.Context, subject subject) (result, error) {
	t, err := start(ctx, subject)
	if err != nil {
		return result{}, err
	}
	defer t.stop()
	if err := t.warmUp(ctx); err != nil {
		return result{}, err
	}
	var (
		r         result
		latencies []time.Duration
		before    = t.requests(ctx)
		cpu       = t.exporter.cpu()
		ticker    = time.NewTicker(250 * time.Millisecond)
	)
	defer ticker.Stop()
	for range *scrapes {
		<-ticker.C
		s := scrape(ctx, t.url)
		if s.err != nil {
			return r, s.err
		}
		r.series, r.bytes = s.series, s.bytes
		latencies = append(latencies, s.took)
	}
	n := *scrapes
	r.cpu = (t.exporter.cpu() - cpu) / time.Duration(n)
	r.requests = (t.requests(ctx) - before) / float64(n)
	r.memory = t.exporter.memory()
	slices.Sort(latencies)
	r.latency = latencies[n/2]
	if *idle > 0 {
		before, cpu = t.requests(ctx), t.exporter.cpu()
		time.Sleep(*idle)
		minutes := idle.Minutes()
		r.idleCPU = time.Duration(float64(t.exporter.cpu()-cpu) / minutes)
		r.idleRequests = (t.requests(ctx) - before) / minutes
	}
	return r, nil
}

// report prints the median of all runs, and the range of what varies.
func report(results []result) {
	median := func(value func(result) float64) (low, middle, high float64) {
		slices.SortFunc(results, func(a, b result) int { return cmp.Compare(value(a), value(b)) })
		n := len(results)
		return value(results[0]), value(results[n/2]), value(results[n-1])
	}
	show := func(name, format string, value func(result) float64) {
		low, middle, high := median(value)
		fmt.Printf("%-34s "+format+"  ("+format+" to "+format+")\n", name, middle, low, high)
	}
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	fmt.Printf("%s, %d runs of %d scrapes\n", flag.Arg(0), len(results), *scrapes)
	show("series", "%.0f", func(r result) float64 { return float64(r.series) })
	show("compressed bytes", "%.0f", func(r result) float64 { return float64(r.bytes) })
	show("processor time of a scrape, ms", "%.2f", func(r result) float64 { return ms(r.cpu) })
	show("median latency, ms", "%.1f", func(r result) float64 { return ms(r.latency) })
	show("requests of a scrape", "%.1f", func(r result) float64 { return r.requests })
	show("resident memory, MiB", "%.1f", func(r result) float64 { return float64(r.memory) / 1024 })
	if *idle > 0 {
		show("idle processor time, ms/minute", "%.0f", func(r result) float64 { return ms(r.idleCPU) })
		show("idle requests a minute", "%.1f", func(r result) float64 { return r.idleRequests })
	}
}

// showFaults prints the answers to scrapes while the API works, does not answer, and
// refuses connections.
func showFaults(ctx context.Context, subject subject) error {
	return errors.Join(
		showFault(ctx, subject, "does not answer", (*process).pause),
		showFault(ctx, subject, "refuses connections", (*process).kill),
	)
}

func showFault(ctx context.Context, subject subject, state string, fail func(*process)) error {
	t, err := start(ctx, subject)
	if err != nil {
		return err
	}
	defer t.stop()
	if err := t.warmUp(ctx); err != nil {
		return err
	}
	show := func(when string) {
		client.CloseIdleConnections() // a request that fails on one would be sent again
		fmt.Printf("%s, API %s: %s\n", flag.Arg(0), when, scrape(ctx, t.url))
	}
	show("works")
	fail(t.api)
	show(state)
	if subject.background {
		time.Sleep(*wait)
		show(state + " for " + wait.String())
	}
	return nil
}
