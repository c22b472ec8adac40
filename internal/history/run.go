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
	"server_rental_exporter/internal/simulator"
)

// tick is the time between two moments before which the exporter fetches what is due, with
// the provider's data of the moment before.
const tick = 15 * time.Second

// run is the run of the exporter.
type run struct {
	Options
	started time.Time
	rand    *rand.Rand

	sim      *simulator.Simulator
	past     *simulator.Past
	outages  []outage
	requests *rentalapi.API
	scopes   []*scope // the public one first
	watches  []collector.Watched
	recorder *recorder
}

// scope is the collectors of one account, or the public ones if it has no name.
type scope struct {
	account, token string
	lead           time.Duration // from its fetches to the end of a tick
	sources        []*source
	requests       int         // made
	newest         []time.Time // of these, those of the last minute
	pausedUntil    time.Time   // the end of the last pause that the API asked for
}

// source is one collector of an account, or a public one.
type source struct {
	*scope
	resource collector.Resource
	fetch    func(context.Context, rentalapi.Getter) (collector.Snapshot, error)
	due      time.Time // of the next fetch

	health   runner.Health
	snapshot collector.Snapshot // the last good one
	mapped   time.Time          // the time of the data in it
}

func newRun(o Options, rec *recorder, started time.Time) *run {
	r := &run{
		Options: o, started: started, recorder: rec,
		rand:     rand.New(rand.NewPCG(o.Seed, uint64(started.Unix()))), //nolint:gosec // after 2000
		sim:      simulator.New(simulator.Options{Site: o.Site}),
		past:     simulator.NewPast(o.Seed, started, o.End, o.Accounts, o.Servers),
		outages:  o.outages(),
		requests: rentalapi.New("", rentalapi.Settings{}),
	}
	r.sim.Change(func(w *simulator.World) {
		simulator.Put(w.Status, started.UTC().AddDate(0, 0, -30).Format(time.DateOnly), "since") // until the first incident
	})
	for _, token := range append([]string{""}, slices.Sorted(maps.Keys(o.Accounts))...) {
		sc := &scope{account: o.Accounts[token], token: token, lead: time.Duration(r.rand.Int64N(int64(tick - time.Second)))}
		for _, res := range collector.Resources() {
			if res.Account == (token != "") {
				src := &source{scope: sc, resource: res, fetch: res.NewFetcher(sc.account)}
				src.health.Collector, src.health.Account, src.health.Interval = res.Name, sc.account, res.Interval
				r.requests.InitErrorCounters(res.Path)
				sc.sources = append(sc.sources, src)
			}
		}
		r.scopes = append(r.scopes, sc)
	}
	for _, w := range o.Watches {
		r.watches = append(r.watches, collector.NewWatched(w, started))
	}
	return r
}

// run fetches, and records the scrapes from the first whole tick until end.
func (r *run) run(end time.Time) error {
	for at := r.started.Add(2*tick - 1).Truncate(tick); !at.After(end); at = at.Add(tick) {
		changed, every := r.advance(at.Add(-tick)), resolution(r.End.Sub(at))
		scrape := at.Add(every - 1).Truncate(every)
		for _, sc := range r.scopes {
			for _, src := range sc.sources {
				if at.Before(src.due) || at.Before(sc.pausedUntil) {
					continue
				}
				if err := r.get(src, at, changed, scrape); err != nil {
					return fmt.Errorf("%s: %w", src.resource.Name, err)
				}
			}
		}
		if at.Equal(scrape) || at.Second() == 0 { // plans are fetched each minute
			public := r.scopes[0].known(at)
			for i, w := range r.watches {
				r.watches[i] = w.Step(public, at)
			}
		}
		if at.Equal(scrape) {
			if err := r.scrape(at); err != nil {
				return err
			}
		}
	}
	return nil
}

// advance changes the data to that of a time, and returns when the last change was.
func (r *run) advance(at time.Time) (changed time.Time) {
	r.sim.Change(func(w *simulator.World) {
		changed = r.past.Apply(w, at)
		made := at.UTC().Format(time.RFC3339)
		w.GeneratedAt, w.Status["updated_at"] = made, made
	})
	return changed
}

// retryInterval is the longest time after a failure until the next attempt.
const retryInterval = time.Minute

// get fetches the resource of a source in the tick before a time. Its error is one that no
// outage explains.
func (r *run) get(src *source, at, changed, scrape time.Time) (err error) {
	h, begin := &src.health, at.Add(-src.lead-time.Second)
	src.due = at.Truncate(h.Interval).Add(h.Interval)
	api := &getter{run: r, scope: src.scope, now: begin}
	snapshot, mapped := src.snapshot, src.mapped
	if !changed.After(mapped) && !src.due.After(scrape) {
		// The response is the same as the last one, and a later one is mapped before the
		// scrape: no need to map this one, which takes most of the time.
		err = api.request(src.resource.Path)
	} else {
		mapped = at.Add(-tick)
		snapshot, err = src.fetch(context.Background(), api)
		if err == nil && snapshot.Commit != nil {
			snapshot.Commit()
		}
	}
	var failure *rentalapi.Error
	if err != nil && !errors.As(err, &failure) {
		return err
	}
	h.Finished, h.Err, h.Duration = true, err, api.now.Sub(begin)
	if err != nil {
		src.due = at.Add(min(h.Interval, retryInterval))
		return nil
	}
	src.snapshot, src.mapped = snapshot, mapped
	h.LastSuccess, h.Invalid, h.ResponseAge = api.now, snapshot.Invalid, snapshot.Age.Age
	return nil
}

// expires returns when the snapshot expires.
func (src *source) expires() time.Time { return src.health.LastSuccess.Add(src.resource.MaxAge) }

// known returns what is known of the scope.
func (sc *scope) known(now time.Time) collector.Known {
	known := collector.Known{Account: sc.account}
	for _, src := range sc.sources {
		if now.Before(src.expires()) {
			known.Add(src.snapshot.Data, src.expires())
		}
	}
	return known
}

// scrape records everything that the exporter exports.
func (r *run) scrape(at time.Time) error {
	metrics := collector.WatchMetrics(r.watches)
	var accounts []collector.Known
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
	return r.recorder.record(at, slices.Concat(metrics, funding, states.Metrics(), r.processMetrics(at.Sub(r.started), requests)), r.requests)
}
