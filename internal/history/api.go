package history

import (
	"context"
	"io"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
)

// provider is the simulated provider at one moment after the other.
type provider struct {
	sim     *simulator.Simulator
	past    *simulator.Past
	outages []outage
}

func newProvider(o Options, start time.Time) *provider {
	p := &provider{sim: simulator.New(simulator.Options{Site: o.Site}), past: simulator.NewPast(o.Seed, start, o.End, o.Accounts, o.Servers), outages: o.outages()}
	p.sim.Change(func(w *simulator.World) {
		simulator.Put(w.Status, start.UTC().AddDate(0, 0, -30).Format(time.DateOnly), "since") // until the first incident
	})
	return p
}

// cacheTime is for how long the provider sends the same public data.
const cacheTime = 30 * time.Second

// advance changes the data to that of a time, and returns when the last change was.
func (p *provider) advance(at time.Time) (changed time.Time) {
	p.sim.Change(func(w *simulator.World) {
		changed = p.past.Apply(w, at)
		made := at.Truncate(cacheTime).UTC().Format(time.RFC3339)
		w.GeneratedAt, w.Status["updated_at"] = made, made
	})
	return changed
}

// scope is the collectors of one account, or the public ones if it has no name.
type scope struct {
	account, token string
	sources        []*source
	requests       int         // made
	newest         []time.Time // of these, those of the last minute
	pausedUntil    time.Time   // the end of the last pause that the API asked for
}

// known returns what is known of the scope.
func (sc *scope) known(now time.Time) collector.Scope {
	known := collector.Scope{Account: sc.account}
	for _, src := range sc.sources {
		if now.Before(src.expires()) {
			known.Add(src.snapshot.Facts, src.expires())
		}
	}
	return known
}

// state returns what the API last said to the scope.
func (sc *scope) state(now time.Time) rentalapi.AccountState {
	var s rentalapi.AccountState
	if sc.account != "" {
		limit, remaining, rejected := accountLimit, accountLimit-float64(len(sc.newest)), false
		s = rentalapi.AccountState{Limit: &limit, Remaining: &remaining, Rejected: &rejected}
	}
	if sc.pausedUntil.After(now) {
		s.PausedUntil = sc.pausedUntil
	}
	return s
}

// accountLimit is the provider's rate limit: requests of an account in a minute.
const accountLimit = 120.0

// getter makes the requests of one fetch: it responds with the provider's data, or fails
// while an outage is under way.
type getter struct {
	*run
	*scope
	now time.Time // when the next request begins
}

// Get implements rentalapi.Getter.
func (g *getter) Get(_ context.Context, _ rentalapi.Priority, endpoint string, query url.Values, read func(io.Reader) error) (rentalapi.Response, error) {
	if err := g.request(endpoint); err != nil {
		return rentalapi.Response{}, err
	}
	err := read(strings.NewReader(g.provider.sim.Body(endpoint+"?"+query.Encode(), g.token)))
	return rentalapi.Response{Received: g.now, Date: g.now}, err
}

// request makes and counts a request. It fails if an outage is under way.
func (g *getter) request(endpoint string) error {
	o := g.provider.outage(g.now, endpoint)
	duration := g.latency() + o.delay
	g.now = g.now.Add(duration)
	g.scope.requests++
	g.newest = append(slices.DeleteFunc(g.newest, func(at time.Time) bool { return g.now.Sub(at) >= time.Minute }), g.now)
	g.run.requests.CountRequest(endpoint, o.code, duration)
	if o.reason == "" {
		return nil
	}
	g.run.requests.CountError(endpoint, o.reason)
	if o.pause > 0 {
		g.pausedUntil = g.now.Add(o.pause)
	}
	return &rentalapi.Error{Endpoint: endpoint, Reason: o.reason}
}

// latency returns how long a request takes, which differs for accounts and public data.
func (g *getter) latency() time.Duration {
	typical := 35 * time.Millisecond
	if g.account != "" {
		typical = 70 * time.Millisecond
	}
	return typical + time.Duration(g.rand.ExpFloat64()*float64(typical)/2)
}

// outage is a time in which the provider fails, or is slow.
type outage struct {
	at       time.Time
	length   time.Duration
	endpoint string           // empty for all
	reason   rentalapi.Reason // empty if the provider is only slow
	code     string           // value of the label code
	delay    time.Duration    // of a response
	pause    time.Duration    // that the provider asks for
}

// outages returns those of the whole history: one every few days, and one that the
// dashboard of the last 6 hours shows.
func (o Options) outages() []outage {
	kinds := []outage{
		{length: 14 * time.Minute, reason: rentalapi.Connection, code: "error"},
		{length: 8 * time.Minute, endpoint: "/status", reason: rentalapi.Timeout, code: "error", delay: 10 * time.Second},
		{length: 25 * time.Minute, endpoint: "/servers", reason: rentalapi.Unavailable, code: "503", pause: time.Minute},
		{length: 3 * time.Minute, endpoint: "/plans", reason: rentalapi.RateLimited, code: "429", pause: time.Minute},
		{length: 40 * time.Minute, code: "200", delay: 3 * time.Second},
		{length: 12 * time.Minute, endpoint: "/locations", reason: rentalapi.Decode, code: "200"},
		{length: 5 * time.Minute, reason: rentalapi.Status, code: "500"},
	}
	recent := kinds[2]
	recent.at, recent.length, recent.endpoint = o.End.Add(-4*time.Hour-20*time.Minute), 6*time.Minute, "/topups"
	all := []outage{recent}
	rng := rand.New(rand.NewPCG(o.Seed, 20))
	at := o.End.Add(-24 * time.Hour)
	for i := 0; at.After(o.End.Add(-o.Length)); i++ {
		next := kinds[i%len(kinds)]
		next.at = at
		all = append(all, next)
		at = at.Add(-36*time.Hour - time.Duration(rng.Int64N(int64(72*time.Hour))))
	}
	return all
}

// outage returns the outage of an endpoint at a time; one without effect if there is none.
func (p *provider) outage(now time.Time, endpoint string) outage {
	for _, o := range p.outages {
		if !now.Before(o.at) && now.Before(o.at.Add(o.length)) && (o.endpoint == "" || o.endpoint == endpoint) {
			return o
		}
	}
	return outage{code: "200"}
}
