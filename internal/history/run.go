package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/runner"
)

// run is the run of the exporter.
type run struct {
	Options
	started time.Time
	rand    *rand.Rand

	provider *provider
	requests *rentalapi.Client
	scopes   []*scope
	watches  []collector.Watched
	recorder *recorder
}

// source is one collector of an account, or a public one.
type source struct {
	*scope
	resource collector.Resource
	fetch    func(context.Context, rentalapi.Getter) (collector.Snapshot, error)
	due      time.Time     // of the next fetch
	phase    time.Duration // of its fetches, after multiples of the interval

	health   runner.Health
	snapshot collector.Snapshot // the last good one
	mapped   time.Time          // the time of the data in it
}

func newRun(o Options, rec *recorder, started time.Time) *run {
	r := &run{
		Options: o, started: started, recorder: rec,
		rand:     rand.New(rand.NewPCG(o.Seed, uint64(started.Unix()))), //nolint:gosec // after 2000
		provider: newProvider(o, started), requests: rentalapi.New("", rentalapi.Settings{}),
	}
	for _, token := range append([]string{""}, slices.Sorted(maps.Keys(o.Accounts))...) {
		r.addScope(&scope{account: o.Accounts[token], token: token})
	}
	for _, w := range o.Watches {
		r.watches = append(r.watches, collector.NewWatched(w, started))
	}
	return r
}

// addScope adds the collectors of an account, or the public ones. All of an account have
// the same phase; public ones follow the turnover of the provider's cache.
func (r *run) addScope(sc *scope) {
	phase := r.rand.Int64N(int64(time.Hour))
	for _, res := range collector.Resources() {
		if res.Account != (sc.account != "") {
			continue
		}
		if !res.Account {
			phase = r.rand.Int64N(int64(2 * time.Second))
		}
		src := &source{scope: sc, resource: res, fetch: res.NewFetcher(sc.account), due: r.started, phase: time.Duration(phase)}
		src.health.Collector, src.health.Account, src.health.Interval = res.Name, sc.account, res.Interval
		r.requests.InitErrorCounters(res.Endpoint)
		sc.sources = append(sc.sources, src)
	}
	r.scopes = append(r.scopes, sc)
}

// run records the scrapes until end.
func (r *run) run(end time.Time) error {
	for at := r.nextScrape(r.started); !at.After(end); at = r.nextScrape(at) {
		r.recorder.begin(at)
		if err := r.scrape(at); err != nil {
			return err
		}
	}
	return nil
}

// nextScrape returns the time of the next scrape after a time.
func (r *run) nextScrape(at time.Time) time.Time {
	every := resolution(r.End.Sub(at))
	return at.Truncate(every).Add(every)
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

// retryInterval is the longest time after a failure until the next attempt.
const retryInterval = time.Minute

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
		snapshot, err = src.fetch(context.Background(), api)
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
		src.due = at.Add(min(h.Interval, retryInterval))
		return nil
	}
	src.snapshot, src.mapped = snapshot, mapped
	h.LastSuccess, h.Invalid, h.ResponseAge = api.now, snapshot.Invalid, snapshot.Age.Age
	if src.account == "" && snapshot.Facts != (collector.Facts{}) {
		r.stepWatches(api.now)
	}
	return nil
}

// stepWatches evaluates the watches with the public facts, which are of the first scope.
func (r *run) stepWatches(now time.Time) {
	public := r.scopes[0].known(now)
	for i, w := range r.watches {
		r.watches[i] = w.Step(public, now)
	}
}

// expires returns when the snapshot expires.
func (src *source) expires() time.Time { return src.health.LastSuccess.Add(src.resource.MaxAge) }

// scrape records everything that the exporter exports.
func (r *run) scrape(at time.Time) error {
	for src := r.next(); !src.due.After(at); src = r.next() {
		if err := r.get(src, at); err != nil {
			return fmt.Errorf("%s: %w", src.resource.Name, err)
		}
	}
	r.stepWatches(at)
	metrics := collector.WatchMetrics(r.watches)
	var accounts []collector.Scope
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
			accounts = append(accounts, sc.known(at))
		}
		requests += sc.requests
	}
	funding, _ := collector.FundingMetrics(accounts, at)
	return r.recorder.record(list(slices.Concat(metrics, funding, states.Metrics())), r.requests, r.processMetrics(at.Sub(r.started), requests))
}
