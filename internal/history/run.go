package history

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing/synctest"
	"time"

	kitlog "github.com/go-kit/log"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/config"

	"server_rental_exporter/collector"
	"server_rental_exporter/exporter"
	"server_rental_exporter/internal/memnet"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// run is one run of the exporter, from its start until it ends for a restart or with
// the history.
type run struct {
	Options
	start, end time.Time
	restarted  bool // whether another run was before
	recorder   *recorder
}

// downtime is how long a restart takes.
const downtime = 150 * time.Second

// run simulates the run. It is called in simulated time.
func (r *run) run() error {
	time.Sleep(time.Until(r.start))
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()

	net := memnet.Listen()
	var faults simtest.Faults
	sim := simulator.New(simulator.Options{Middleware: func(next http.Handler) http.Handler {
		return r.delay(faults.Middleware("/api/v1", next))
	}})
	server := &http.Server{Handler: sim, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	running.Go(func() { _ = server.Serve(net) }) // ends with Close
	defer server.Close()                         //nolint:errcheck // its listener is in memory
	past := simulator.NewPast(r.Seed, r.start, r.End, exporter.DemoTokens(), r.Servers)
	running.Go(func() { replay(ctx, sim, past) })
	running.Go(func() { r.injectFaults(ctx, &faults) })
	synctest.Wait()

	if r.restarted {
		for range r.scrapes(r.start.Add(downtime)) {
			r.recordDown()
		}
	}
	transport, err := rentalapi.NewTransport(config.HTTPClientConfig{}, config.WithDialContextFunc(net.Dial))
	if err != nil {
		return err
	}
	p, c, err := exporter.NewDemoPipeline(kitlog.NewNopLogger(), transport)
	if err != nil {
		return err
	}
	p.Set.Rand = rand.New(rand.NewPCG(r.Seed, hash(r.start.UTC().String())))
	r.slowDown(c)
	started := time.Now()
	p.Start(ctx)
	p.Set.ApplyConfig(ctx, c)
	defer p.Wait()
	defer stop()
	for range r.scrapes(r.end) {
		if err := r.scrape(p, started); err != nil {
			return err
		}
	}
	return nil
}

// replay lets each event of a past happen when it is due, until ctx ends.
func replay(ctx context.Context, sim *simulator.Simulator, past *simulator.Past) {
	for due, more := past.Next(); more; due, more = past.Next() {
		timer := time.NewTimer(time.Until(due))
		select {
		case <-timer.C:
			past.Apply(sim, time.Now())
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// slowDown doubles the intervals of all runs but the last one, which is not seen at
// the resolution of that time: fetches take most of the time of the simulation.
func (r *run) slowDown(c collector.Config) {
	if !r.end.Before(r.End) {
		return
	}
	for name, s := range c.Collectors {
		s.Interval *= 2
		c.Collectors[name] = s
	}
}

// scrapes yields at the time of each scrape until end.
func (r *run) scrapes(end time.Time) func(yield func() bool) {
	return func(yield func() bool) {
		for {
			every, _ := resolution(time.Until(r.End))
			next := time.Now().Truncate(every).Add(every)
			if next.After(end) {
				return
			}
			time.Sleep(time.Until(next))
			synctest.Wait()
			if !yield() {
				return
			}
		}
	}
}

// scrape records everything that the exporter exports.
func (r *run) scrape(p *exporter.Pipeline, started time.Time) error {
	published := make(chan prometheus.Metric)
	go func() {
		defer close(published)
		p.Publisher.Collect(published)
	}()
	n := 0
	for m := range published {
		var out dto.Metric
		if err := m.Write(&out); err != nil {
			for range published { // lets the sender end
			}
			return fmt.Errorf("scrape: %w", err)
		}
		r.record(heads()[m.Desc()], &out)
		n++
	}
	own, err := p.SelfMetrics().Gather()
	if err != nil {
		return fmt.Errorf("scrape: %w", err)
	}
	requests := 0.0
	for _, f := range own {
		for _, m := range f.Metric {
			r.record(f, m)
			n += len(values(m))
			requests += float64(m.Histogram.GetSampleCount())
		}
	}
	r.recordProcess(started, requests)
	r.recordUp(n)
	return nil
}

func (r *run) record(head *dto.MetricFamily, m *dto.Metric) {
	_, every := resolution(time.Until(r.End))
	r.recorder.record(time.Now(), every, head, m)
}

// delay lets each answer take a time that is typical of its endpoint. It depends on
// nothing but the request and when it is made, and hardly ever is the same for two, so
// that the order of the answers does not depend on the scheduler.
func (r *run) delay(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		rng := rand.New(rand.NewPCG(r.Seed^hash(req.URL.String()+req.Header.Get("Authorization")), uint64(time.Now().UnixNano())))
		typical := 35 * time.Millisecond
		if req.Header.Get("Authorization") != "" {
			typical = 70 * time.Millisecond
		}
		time.Sleep(typical + time.Duration(rng.ExpFloat64()*float64(typical)/2))
		next.ServeHTTP(w, req)
	})
}
