package collector

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// withCache runs a test with a provider that caches public answers, a random time after
// it began.
func withCache(t *testing.T, c simulator.Cache, rng *rand.Rand, f func(t *testing.T, h *harness)) {
	t.Helper()
	withHarness(t, func(t *testing.T, h *harness) {
		h.Change(func(w *simulator.World) {
			w.GeneratedAt = nil
			delete(w.Status, "updated_at")
		})
		h.SetCache(c)
		h.Net.SetDialDelay(func() time.Duration { return time.Duration(rand.Int64N(int64(300 * time.Millisecond))) })
		time.Sleep(time.Duration(rng.Int64N(int64(time.Hour))))
		f(t, h)
	})
}

// seeds returns fixed seeds.
func seeds(quick, long uint64) (all []uint64) {
	if os.Getenv("CHAOS_LONG") == "1" {
		quick = long
	}
	for i := range quick {
		all = append(all, i+1)
	}
	return all
}

// requestTimes returns when a path was requested.
func (h *harness) requestTimes(path string) (times []time.Time) {
	for _, r := range h.RequestsFor(path) {
		times = append(times, r.Time)
	}
	return times
}

// maxPerHour returns the largest number of times within less than an hour.
func maxPerHour(times []time.Time) int {
	peak, first := 0, 0
	for last := range times {
		for times[last].Sub(times[first]) >= time.Hour {
			first++
		}
		peak = max(peak, last-first+1)
	}
	return peak
}

// TestRenewalsShowWithinSeconds has a provider that makes answers at fixed times. After
// two minutes, each must be exported within five seconds, and half of them within three,
// without more requests than the interval asks for.
func TestRenewalsShowWithinSeconds(t *testing.T) {
	for kind, cache := range map[string]simulator.Cache{
		"Age":    {Age: true, Stamp: func(made time.Time) any { return made.Format(time.RFC3339Nano) }},
		"stamps": {},
	} {
		for _, seed := range seeds(2, 40) {
			t.Run(fmt.Sprint(kind, " seed=", seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 0))
				cache := cache
				cache.Kind, cache.Offset = simulator.AtFixedTimes, time.Duration(rng.Int64N(int64(time.Minute)))
				withCache(t, cache, rng, func(t *testing.T, h *harness) {
					began := time.Now()
					c := configure(time.Minute, 5*time.Minute, "plans", "status")
					c.Collectors["status"] = refresh.Settings{Interval: 30 * time.Second, MaxAge: 5 * time.Minute}
					h.run(c)
					from := began.Add(2 * time.Minute)
					time.Sleep(2 * time.Minute)
					h.assertRenewals(from, cache.Offset)
					for path, want := range map[string]struct {
						interval      time.Duration
						count, margin int
					}{"/plans": {time.Minute, 60, 1}, "/status": {30 * time.Second, 120, 2}} {
						times := h.requestTimes(path)
						if n := maxPerHour(times); n > want.count+1 {
							t.Errorf("%s: %d requests in an hour", path, n)
						}
						in := slices.DeleteFunc(slices.Clone(times), func(at time.Time) bool { return at.Before(from) || !at.Before(from.Add(time.Hour)) })
						if n := len(in); n < want.count-want.margin || n > want.count+want.margin {
							t.Errorf("%s: got %d requests in an hour, want %d ± %d", path, n, want.count, want.margin)
						}
						lags := lags(in, cache.Offset, want.interval)
						t.Logf("%s: %d requests an hour; after a renewal: median %v, most %v", path, len(in), lags[len(lags)/2], lags[len(lags)-1])
					}
				})
			})
		}
	}
}

// lags returns how long after a renewal each request came, sorted.
func lags(times []time.Time, offset, period time.Duration) (all []time.Duration) {
	for _, at := range times {
		all = append(all, at.Add(-offset).Sub(at.Add(-offset).Truncate(period)))
	}
	slices.Sort(all)
	return all
}

// assertRenewals scrapes for an hour, three seconds after each renewal, and again after
// five where it is not exported yet.
func (h *harness) assertRenewals(from time.Time, offset time.Duration) {
	h.t.Helper()
	periods := map[string]time.Duration{catalogGenerated.Name: time.Minute, statusUpdated.Name: 30 * time.Second}
	total, slow := map[string]int{}, map[string]int{}
	for renewal := from.Add(-offset).Truncate(30 * time.Second).Add(offset + 30*time.Second); renewal.Before(from.Add(time.Hour)); renewal = renewal.Add(30 * time.Second) {
		missing := func(after time.Duration) (missing []string) {
			time.Sleep(time.Until(renewal.Add(after)))
			text := h.exposition(func(name string) bool { return periods[name] > 0 })
			for series, v := range simtest.ParseExposition(h.t, text, "text/plain").Values {
				name := strings.TrimSuffix(series, "{}")
				if renewal.Add(-offset).Truncate(periods[name]).Equal(renewal.Add(-offset)) {
					total[name]++
					if v < float64(renewal.Unix()) {
						missing = append(missing, name)
					}
				}
			}
			return missing
		}
		late := missing(3 * time.Second)
		for _, name := range late {
			slow[name]++
		}
		if len(late) > 0 {
			if late := missing(5 * time.Second); len(late) > 0 {
				h.t.Errorf("renewal of %v: not exported 5 seconds later: %v", renewal, late)
			}
		}
	}
	for name := range periods {
		h.t.Logf("%s: %d of %d renewals took more than 3 seconds", name, slow[name], total[name])
		if total[name] < 59 || 2*slow[name] > total[name] {
			h.t.Errorf("%s: %d of %d renewals took more than 3 seconds", name, slow[name], total[name])
		}
	}
}
