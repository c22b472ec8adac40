package history

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/runner"
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
	accounts []*account // the public one first
	watches  []collector.Watched
	out      *bufio.Writer
}

// account is the collectors of one account, or the public ones if it has no name.
type account struct {
	name, token string
	lead        time.Duration // from its fetches to the end of a tick
	jobs        []*job
	requests    int         // made
	newest      []time.Time // of these, those of the last minute
	pausedUntil time.Time   // the end of the last pause that the API asked for
}

// job is one collector of an account, or a public one.
type job struct {
	*account
	resource collector.Resource
	due      time.Time // of the next fetch

	health   runner.Health
	snapshot collector.Snapshot // the last good one
	history  collector.History  // up to that
	mapped   time.Time          // the time of the data in it
}

func newRun(o Options, w io.Writer, started time.Time) *run {
	r := &run{
		Options: o, started: started, out: bufio.NewWriterSize(w, 1<<20),
		rand:     rand.New(rand.NewPCG(1, 0)),
		sim:      simulator.New(simulator.Options{Site: o.Site}),
		past:     simulator.NewPast(started, o.End, o.Accounts),
		outages:  o.outages(),
		requests: rentalapi.New("", rentalapi.Settings{}),
	}
	r.sim.Change(func(w *simulator.World) {
		simulator.Put(w.Status, started.UTC().AddDate(0, 0, -30).Format(time.DateOnly), "since") // until the first incident
	})
	for _, token := range append([]string{""}, slices.Sorted(maps.Keys(o.Accounts))...) {
		a := &account{name: o.Accounts[token], token: token, lead: time.Duration(r.rand.Int64N(int64(tick - time.Second)))}
		for _, res := range collector.Resources() {
			if res.Account == (token != "") {
				j := &job{account: a, resource: res}
				j.health.Collector, j.health.Account, j.health.Interval = res.Name, a.name, res.Interval
				r.requests.InitErrorCounters(res.Path)
				a.jobs = append(a.jobs, j)
			}
		}
		r.accounts = append(r.accounts, a)
	}
	for _, w := range o.Watches {
		r.watches = append(r.watches, collector.NewWatched(w))
	}
	return r
}

// run fetches, and writes the scrapes from the first whole tick until end.
func (r *run) run(end time.Time) error {
	for at := r.started.Add(2*tick - 1).Truncate(tick); !at.After(end); at = at.Add(tick) {
		changed, every := r.advance(at.Add(-tick)), resolution(r.End.Sub(at))
		scrape := at.Add(every - 1).Truncate(every)
		for _, a := range r.accounts {
			for _, j := range a.jobs {
				if at.Before(j.due) || at.Before(a.pausedUntil) {
					continue
				}
				if err := r.get(j, at, changed, scrape); err != nil {
					return fmt.Errorf("%s: %w", j.resource.Name, err)
				}
			}
		}
		if at.Equal(scrape) || at.Second() == 0 { // plans are fetched each minute
			public := r.accounts[0].known(at)
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
	r.out.WriteString("# EOF\n") //nolint:errcheck // Flush returns the error
	return r.out.Flush()
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

// get fetches the resource of a job in the tick before a time. Its error is one that no
// outage explains.
func (r *run) get(j *job, at, changed, scrape time.Time) (err error) {
	h, begin := &j.health, at.Add(-j.lead-time.Second)
	j.due = at.Truncate(h.Interval).Add(h.Interval)
	api := &getter{run: r, account: j.account, now: begin}
	snapshot, mapped := j.snapshot, j.mapped
	if !changed.After(mapped) && !j.due.After(scrape) {
		// The response is the same as the last one, and a later one is mapped before the
		// scrape: no need to map this one, which takes most of the time.
		err = api.request(j.resource.Path)
	} else {
		mapped = at.Add(-tick)
		f := collector.Fetcher{Resource: &j.resource, Account: j.name, API: api}
		snapshot, err = f.Fetch(context.Background())
		if err == nil {
			j.history = j.history.Step(&j.resource, j.name, snapshot, api.now)
		}
	}
	var failure *rentalapi.Error
	if err != nil && !errors.As(err, &failure) {
		return err
	}
	h.Finished, h.Err, h.Duration = true, err, api.now.Sub(begin)
	if err != nil {
		j.due = at.Add(min(h.Interval, time.Minute))
		return nil
	}
	j.snapshot, j.mapped = snapshot, mapped
	h.LastSuccess, h.Invalid, h.Made = api.now, snapshot.Invalid, snapshot.Made
	return nil
}

// expires returns when the snapshot expires.
func (j *job) expires() time.Time { return j.health.LastSuccess.Add(j.resource.MaxAge) }

// known returns what is known of the account.
func (a *account) known(now time.Time) collector.Known {
	known := collector.Known{Account: a.name}
	for _, j := range a.jobs {
		if now.Before(j.expires()) {
			known.Add(j.snapshot.Data, j.expires())
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
	for _, a := range r.accounts {
		for _, j := range a.jobs {
			if at.Before(j.expires()) {
				metrics = slices.Concat(metrics, j.snapshot.Metrics, j.history.Metrics)
			}
			j.health.AddMetrics(states)
		}
		rentalapi.AddAccountMetrics(states, a.name, a.state(at))
		if a.name != "" {
			accounts = append(accounts, a.known(at))
		}
		requests += a.requests
	}
	funding, _ := collector.FundingMetrics(accounts, at)
	return record(r.out, at, slices.Concat(metrics, funding, states.Metrics(), r.processMetrics(at.Sub(r.started), requests)), r.requests)
}
