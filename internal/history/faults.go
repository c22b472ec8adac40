package history

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

// outage is a time in which the provider answers wrongly.
type outage struct {
	at     time.Time
	length time.Duration
	fault  simtest.Fault
}

// outages returns those of the whole history: one every few days, and one that the
// dashboard of the last 6 hours shows.
func (o Options) outages() []outage {
	unavailable := simtest.Fault{Kind: simtest.Respond, Status: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"60"}}}
	on := func(f simtest.Fault, path string) simtest.Fault {
		f.Path = path
		return f
	}
	kinds := []outage{
		{length: 14 * time.Minute, fault: simtest.Fault{Kind: simtest.Drop}},
		{length: 8 * time.Minute, fault: simtest.Fault{Kind: simtest.Hang, Path: "/status"}},
		{length: 25 * time.Minute, fault: on(unavailable, "/servers")},
		{length: 3 * time.Minute, fault: simtest.Fault{Kind: simtest.Respond, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"60"}}, Path: "/plans"}},
		{length: 40 * time.Minute, fault: simtest.Fault{Kind: simtest.Delay, Delay: 3 * time.Second}},
		{length: 12 * time.Minute, fault: simtest.Fault{Kind: simtest.Garbage, Path: "/locations"}},
		{length: 5 * time.Minute, fault: simtest.Fault{Kind: simtest.Respond, Status: http.StatusInternalServerError}},
	}
	recent := outage{o.End.Add(-4*time.Hour - 20*time.Minute), 6 * time.Minute, on(unavailable, "/topups")}
	all := []outage{recent}
	rng := rand.New(rand.NewPCG(o.Seed, 20))
	at := o.End.Add(-24 * time.Hour)
	for i := 0; at.After(o.End.Add(-o.Length)); i++ {
		next := kinds[i%len(kinds)]
		next.at = at
		all = append(all, next)
		at = at.Add(-36*time.Hour - time.Duration(rng.Int64N(int64(72*time.Hour))))
	}
	slices.SortFunc(all, func(a, b outage) int { return a.at.Compare(b.at) })
	return all
}

// injectFaults lets the outages that begin in this run happen, one after the other.
func (r *run) injectFaults(ctx context.Context, faults *simtest.Faults) {
	wait := func(until time.Time) bool {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for _, o := range r.outages() {
		if o.at.Before(r.start) {
			continue
		}
		if !wait(o.at) {
			return
		}
		remove := faults.Inject(o.fault)
		if !wait(o.at.Add(o.length)) {
			return
		}
		remove()
	}
}

func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // never fails
	return h.Sum64()
}
