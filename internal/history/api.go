package history

import (
	"context"
	"io"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"server_rental_exporter/internal/rentalapi"
)

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
	err := read(strings.NewReader(g.sim.Body(endpoint+"?"+query.Encode(), g.token)))
	return rentalapi.Response{Received: g.now, Date: g.now}, err
}

// request makes and counts a request. It fails if an outage is under way. The duration
// differs for accounts and public data.
func (g *getter) request(endpoint string) error {
	o := outage{code: "200"}
	for _, other := range g.outages {
		if !g.now.Before(other.at) && g.now.Before(other.at.Add(other.length)) && (other.endpoint == "" || other.endpoint == endpoint) {
			o = other
		}
	}
	typical := 35 * time.Millisecond
	if g.account != "" {
		typical = 70 * time.Millisecond
	}
	duration := o.delay + typical + time.Duration(g.rand.ExpFloat64()*float64(typical)/2)
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
