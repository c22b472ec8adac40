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

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/runner"
	"server_rental_exporter/internal/simulator"
)

// run is one run of the exporter, from its start until it ends for a restart or with
// the history.
type run struct {
	Options
	start, end time.Time
	downtime   time.Duration // until the exporter runs; 0 if no other run was before
	recorder   *recorder
	rand       *rand.Rand

	sim      *simulator.Simulator
	past     *simulator.Past
	outages  []outage
	requests *rentalapi.RequestMetrics
	registry *prometheus.Registry // of requests
	scopes   []*scope             // the public one first
	sources  []*source            // of all scopes
	watches  []collector.Watched
}

// scope is the collectors of one account, or the public ones.
type scope struct {
	account, token string
	sources        []*source
	pausedUntil    time.Time   // the end of the last pause that the API asked for
	admitted       []time.Time // requests of the last minute
}

// source is one collector of a scope.
type source struct {
	*scope
	resource collector.Resource
	fetch    collector.Fetch
	due      time.Time          // of the next fetch
	phase    time.Duration      // of its fetches, after multiples of the interval
	snapshot collector.Snapshot // the last good one
	mapped   time.Time          // the time of the data in it
	health   runner.Health
}

func newRun(o Options, start, end time.Time, downtime time.Duration) *run {
	r := &run{
		Options: o, start: start, end: end, downtime: downtime, recorder: newRecorder(o.Labels),
		rand: rand.New(rand.NewPCG(o.Seed, uint64(start.Unix()))), //nolint:gosec // after 2000
		sim:  simulator.New(simulator.Options{}), past: simulator.NewPast(o.Seed, start, o.End, o.Accounts, o.Servers),
		outages: o.outages(), requests: rentalapi.NewRequestMetrics(), registry: prometheus.NewRegistry(),
	}
	r.registry.MustRegister(r.requests)
	r.sim.Change(func(w *simulator.World) {
		simulator.Put(w.Status, start.UTC().AddDate(0, 0, -30).Format(time.DateOnly), "since") // until the first incident
	})
	started := start.Add(downtime)
	r.addScope("", "", started)
	for _, token := range slices.Sorted(maps.Keys(o.Accounts)) {
		r.addScope(o.Accounts[token], token, started)
	}
	for _, w := range o.Watches {
		r.watches = append(r.watches, collector.NewWatched(w, started))
	}
	return r
}

// addScope adds the collectors of an account, or the public ones if it is empty. All of
// an account have the same phase; public ones follow the turnover of the provider's cache.
func (r *run) addScope(account, token string, started time.Time) {
	sc := &scope{account: account, token: token}
	phase := r.random(time.Hour)
	for _, res := range collector.Resources() {
		if res.Account != (account != "") {
			continue
		}
		if !res.Account {
			phase = r.random(2 * time.Second)
		}
		src := &source{scope: sc, resource: res, fetch: res.NewFetch(), due: started, phase: phase}
		src.health.Collector, src.health.Account, src.health.Interval = res.Name, account, res.Interval
		r.requests.InitErrorCounters(res.Endpoint)
		sc.sources = append(sc.sources, src)
	}
	r.scopes = append(r.scopes, sc)
	r.sources = append(r.sources, sc.sources...)
}

// random returns a random duration below a limit.
func (r *run) random(limit time.Duration) time.Duration {
	return time.Duration(r.rand.Int64N(int64(limit)))
}

// run generates the run.
func (r *run) run() error {
	started := r.start.Add(r.downtime)
	for at := range r.scrapes(r.start, started) {
		r.recorder.begin(at)
		r.recordDown()
	}
	for at := range r.scrapes(started, r.end) {
		if err := r.fetchUntil(at); err != nil {
			return fmt.Errorf("history: %w", err)
		}
		if err := r.scrape(at, started); err != nil {
			return fmt.Errorf("history: %w", err)
		}
	}
	return nil
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

// fetchUntil makes the fetches that are due until a scrape, in their order.
func (r *run) fetchUntil(scrape time.Time) error {
	for {
		src := slices.MinFunc(r.sources, func(a, b *source) int { return a.due.Compare(b.due) })
		switch {
		case src.due.After(scrape):
			return nil
		case src.due.Before(src.pausedUntil):
			src.due = src.pausedUntil
		default:
			if err := r.fetch(src, scrape); err != nil {
				return fmt.Errorf("%s: %w", src.resource.Name, err)
			}
		}
	}
}

// fetch fetches the resource of a source, before a scrape. Its error is one that no outage
// explains.
func (r *run) fetch(src *source, scrape time.Time) error {
	at, h := src.due, &src.health
	src.due = at.Add(-src.phase).Truncate(h.Interval).Add(h.Interval + src.phase)
	changed := r.advance(at)
	api := &getter{run: r, scope: src.scope, now: at}
	snapshot, mapped := src.snapshot, src.mapped
	var err error
	if src.mapped.After(changed) && !src.due.After(scrape) {
		// The response is the same as the last one, and a later one is mapped before the
		// scrape: no need to map this one, which takes most of the time.
		err = api.request(src.resource.Endpoint)
	} else {
		snapshot, err = src.fetch(context.Background(), api, src.builder())
		mapped = at
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
		for i, w := range r.watches {
			r.watches[i] = w.Step(src.inputs(api.now), api.now)
		}
	}
	return nil
}

// advance changes the provider's data to that of a time, and returns when the last change
// was before.
func (r *run) advance(at time.Time) (changed time.Time) {
	r.sim.Change(func(w *simulator.World) {
		changed = r.past.Apply(w, at)
		w.GeneratedAt = turnover(at, time.Minute, changed)
		w.Status["updated_at"] = turnover(at, 30*time.Second, changed)
	})
	return changed
}

// turnover returns when the provider's cache got its present data: at a multiple of the
// cache time, or when the data changed after that.
func turnover(now time.Time, cacheTime time.Duration, changed time.Time) string {
	at := now.Truncate(cacheTime)
	if changed.After(at) {
		at = changed
	}
	return at.UTC().Format(time.RFC3339)
}

// fresh returns the last good snapshot and when it expires; false if it has.
func (src *source) fresh(now time.Time) (s collector.Snapshot, expires time.Time, ok bool) {
	expires = src.health.LastSuccess.Add(src.resource.MaxAge)
	return src.snapshot, expires, now.Before(expires)
}

// inputs returns the facts of the scope that have not expired.
func (sc *scope) inputs(now time.Time) collector.Inputs {
	var in collector.Inputs
	for _, src := range sc.sources {
		if s, expires, ok := src.fresh(now); ok {
			in.Add(s.Facts, expires)
		}
	}
	return in
}

// builder returns a builder for metrics of the scope.
func (sc *scope) builder() *metric.Builder {
	if sc.account == "" {
		return &metric.Builder{}
	}
	return &metric.Builder{ConstLabelValues: []string{sc.account}}
}

// scrape records everything that the exporter exports.
func (r *run) scrape(at, started time.Time) error {
	metrics, _ := collector.WatchMetrics(r.watches, at)
	states := &metric.Builder{}
	for _, sc := range r.scopes {
		for _, src := range sc.sources {
			if snapshot, _, ok := src.fresh(at); ok {
				metrics = append(metrics, snapshot.Metrics...)
			}
			src.health.AddMetrics(states)
		}
		rentalapi.AddAccountMetrics(states, sc.account, sc.state(at))
		if sc.account != "" {
			b := sc.builder()
			collector.AddFunding(b, sc.inputs(at), at)
			metrics = append(metrics, b.Metrics()...)
		}
	}
	requests, err := r.registry.Gather()
	if err != nil {
		return err
	}
	r.recorder.begin(at)
	for _, m := range slices.Concat(metrics, states.Metrics()) {
		if err := r.recorder.recordSample(m.(*metric.Sample)); err != nil {
			return err
		}
	}
	made := 0.0
	for _, f := range requests {
		for _, m := range f.Metric {
			r.recorder.record(f, m)
			made += float64(m.Histogram.GetSampleCount())
		}
	}
	r.recordProcess(at, started, made)
	r.recordUp()
	return nil
}
