package history

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/runner"
)

// run is one run of the exporter, from its start until it ends for a restart or with
// the history.
type run struct {
	Options
	start, end time.Time
	downtime   time.Duration // until the exporter runs; 0 if no other run was before
	rand       *rand.Rand

	provider *provider
	requests *rentalapi.RequestMetrics
	scopes   []*scope
	watches  []collector.Watched
	recorder *recorder
}

// source is one collector of an account, or a public one.
type source struct {
	*scope
	resource collector.Resource
	fetch    collector.Fetch
	due      time.Time     // of the next fetch
	phase    time.Duration // of its fetches, after multiples of the interval

	health   runner.Health
	snapshot collector.Snapshot // the last good one
	mapped   time.Time          // the time of the data in it
}

func newRun(o Options, start, end time.Time, downtime time.Duration) *run {
	r := &run{
		Options: o, start: start, end: end, downtime: downtime,
		rand:     rand.New(rand.NewPCG(o.Seed, uint64(start.Unix()))), //nolint:gosec // after 2000
		provider: newProvider(o, start), requests: rentalapi.NewRequestMetrics(), recorder: newRecorder(o.Labels),
	}
	started := start.Add(downtime)
	for _, token := range append([]string{""}, slices.Sorted(maps.Keys(o.Accounts))...) {
		r.addScope(&scope{account: o.Accounts[token], token: token}, started)
	}
	for _, w := range o.Watches {
		r.watches = append(r.watches, collector.NewWatched(w, started))
	}
	return r
}

// addScope adds the collectors of an account, or the public ones. All of an account have
// the same phase; public ones follow the turnover of the provider's cache.
func (r *run) addScope(sc *scope, started time.Time) {
	phase := r.rand.Int64N(int64(time.Hour))
	for _, res := range collector.Resources() {
		if res.Account != (sc.account != "") {
			continue
		}
		if !res.Account {
			phase = r.rand.Int64N(int64(2 * time.Second))
		}
		src := &source{scope: sc, resource: res, fetch: res.NewFetch(), due: started, phase: time.Duration(phase)}
		src.health.Collector, src.health.Account, src.health.Interval = res.Name, sc.account, res.Interval
		r.requests.InitErrorCounters(res.Endpoint)
		sc.sources = append(sc.sources, src)
	}
	r.scopes = append(r.scopes, sc)
}

// run generates the run.
func (r *run) run() error {
	started := r.start.Add(r.downtime)
	for at := range r.scrapes(r.start, started) {
		r.recorder.begin(at)
		if _, err := r.recorder.record(r.scrapeMetrics(0)); err != nil {
			return err
		}
	}
	for at := range r.scrapes(started, r.end) {
		for src := r.next(); !src.due.After(at); src = r.next() {
			if err := r.get(src, at); err != nil {
				return fmt.Errorf("%s: %w", src.resource.Name, err)
			}
		}
		if err := r.scrape(at, started); err != nil {
			return err
		}
	}
	return nil
}

// next returns the source that fetches next.
func (r *run) next() (first *source) {
	for _, sc := range r.scopes {
		for _, src := range sc.sources {
			if src.due.Before(sc.pausedUntil) {
				src.due = sc.pausedUntil
			}
			if first == nil || src.due.Before(first.due) {
				first = src
			}
		}
	}
	return first
}

// scrapes returns the times of the scrapes after begin, until end.
func (r *run) scrapes(begin, end time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for at := begin; ; {
			every := resolution(r.End.Sub(at))
			at = at.Truncate(every).Add(every)
			if at.After(end) || !yield(at) {
				return
			}
		}
	}
}

// get fetches the resource of a source, before a scrape. Its error is one that no outage
// explains.
func (r *run) get(src *source, scrape time.Time) (err error) {
	at, h := src.due, &src.health
	src.due = at.Add(-src.phase).Truncate(h.Interval).Add(h.Interval + src.phase)
	api := &getter{run: r, scope: src.scope, now: at}
	snapshot, mapped := src.snapshot, src.mapped
	if changed := r.provider.advance(at); src.mapped.After(changed) && !src.due.After(scrape) {
		// The response is the same as the last one, and a later one is mapped before the
		// scrape: no need to map this one, which takes most of the time.
		err = api.request(src.resource.Endpoint)
	} else {
		mapped = at
		snapshot, err = src.fetch(context.Background(), api, src.builder())
		if err == nil && snapshot.Commit != nil {
			snapshot.Commit()
		}
	}
	var failure *rentalapi.Error
	if err != nil && !errors.As(err, &failure) {
		return err
	}
	h.Finished, h.Err, h.Duration = true, err, api.now.Sub(at)
	if err != nil {
		return nil
	}
	src.snapshot, src.mapped = snapshot, mapped
	h.LastSuccess, h.Invalid, h.ResponseAge = api.now, snapshot.Invalid, nil
	if snapshot.Age.Known {
		h.ResponseAge = &snapshot.Age.Age
	}
	if src.account == "" && !snapshot.Facts.IsZero() {
		in := src.inputs(api.now)
		for i, w := range r.watches {
			r.watches[i] = w.Step(in, api.now)
		}
	}
	return nil
}

// expires returns when the snapshot expires.
func (src *source) expires() time.Time { return src.health.LastSuccess.Add(src.resource.MaxAge) }

// scrape records everything that the exporter exports, and what Prometheus adds.
func (r *run) scrape(at, started time.Time) error {
	metrics, _ := collector.WatchMetrics(r.watches, at)
	states := &metric.Builder{}
	requests := 0
	for _, sc := range r.scopes {
		for _, src := range sc.sources {
			if at.Before(src.expires()) {
				metrics = append(metrics, src.snapshot.Metrics...)
			}
			src.health.AddMetrics(states)
		}
		rentalapi.AddAccountMetrics(states, sc.account, sc.state(at))
		if sc.account != "" {
			b := sc.builder()
			collector.AddFunding(b, sc.inputs(at), at)
			metrics = append(metrics, b.Metrics()...)
		}
		requests += sc.requests
	}
	r.recorder.begin(at)
	samples, err := r.recorder.record(list(slices.Concat(metrics, states.Metrics())), r.requests, r.processMetrics(started, at.Sub(started), requests))
	if err != nil {
		return err
	}
	_, err = r.recorder.record(r.scrapeMetrics(samples))
	return err
}
