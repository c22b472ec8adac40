package runner

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/collector"

	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// withCache runs a test with a provider that caches public answers, a random time after
// it began.
func withCache(t *testing.T, c simtest.Cache, rng *rand.Rand, f func(t *testing.T, h *harness)) {
	t.Helper()
	if testing.Short() {
		t.Skip("simulates hours")
	}
	withHarness(t, func(t *testing.T, h *harness) {
		h.Change(func(w *simulator.World) {
			w.GeneratedAt = nil
			delete(w.Status, "updated_at")
		})
		h.SetCache(c)
		delays, mu := rand.New(rand.NewPCG(rng.Uint64(), 0)), &sync.Mutex{}
		h.Net.SetDialDelay(func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(delays.Int64N(int64(300 * time.Millisecond)))
		})
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
// without more requests than the interval asks for. With Age, all requests come within
// two seconds.
func TestRenewalsShowWithinSeconds(t *testing.T) {
	for kind, cache := range map[string]simtest.Cache{
		"Age":    {Age: true, Stamp: func(made time.Time) any { return made.Format(time.RFC3339Nano) }},
		"stamps": {},
	} {
		for _, seed := range seeds(2, 40) {
			t.Run(fmt.Sprint(kind, " seed=", seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 0))
				cache := cache
				cache.Kind, cache.Offset = simtest.AtFixedTimes, time.Duration(rng.Int64N(int64(time.Minute)))
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
						if most := lags[len(lags)-1]; kind == "Age" && most > 2*time.Second {
							t.Errorf("%s: a request %v after a renewal", path, most)
						}
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

// assertSpacing asserts that a path is requested once an interval on average, at most
// once more in any hour, and never twice within a quarter of an interval.
func (h *harness) assertSpacing(path string, interval time.Duration, least int) {
	h.t.Helper()
	times := h.requestTimes(path)
	many := int((time.Hour + interval - 1) / interval)
	if n := maxPerHour(times); n < least || n > many+1 {
		h.t.Errorf("%s: got %d requests in an hour, want %d to %d", path, n, least, many+1)
	}
	for i := range len(times) - 1 {
		if gap := times[i+1].Sub(times[i]); gap < interval/4 {
			h.t.Errorf("%s: a request %v after the one before", path, gap)
		}
	}
}

// TestOddCaches has caches that are not as documented, and time stamps that are wrong.
// None may cause more requests than the interval asks for. Where the answers say when
// they were made, renewals are seen within seconds; where not, the interval decides.
func TestOddCaches(t *testing.T) {
	const offset = 12300 * time.Millisecond
	fixed := func(stamp func(made time.Time) any) simtest.Cache {
		return simtest.Cache{Kind: simtest.AtFixedTimes, Offset: offset, Stamp: stamp}
	}
	stamped := func(shift time.Duration, layout string) simtest.Cache {
		return fixed(func(made time.Time) any { return made.Add(shift).Format(layout) })
	}
	for _, c := range []struct {
		name  string
		cache simtest.Cache
		least int           // requests for the plans in an hour
		lag   time.Duration // after a renewal, nine of ten times; 0 where only the interval decides
	}{
		{"provider's clock is fast", simtest.Cache{Kind: simtest.AtFixedTimes, Offset: offset, Clock: 7*time.Hour + 300*time.Millisecond}, 60, 5 * time.Second},
		{"provider's clock is slow", simtest.Cache{Kind: simtest.AtFixedTimes, Offset: offset, Clock: -26 * time.Hour}, 60, 5 * time.Second},
		{"milliseconds", stamped(0, "2006-01-02T15:04:05.000Z07:00"), 60, 5 * time.Second},
		{"a second ahead", stamped(time.Second, time.RFC3339), 60, 5 * time.Second},
		{"two seconds behind", stamped(-2*time.Second, time.RFC3339), 60, 5 * time.Second},
		{"sent 2.5 s after it was made", simtest.Cache{Kind: simtest.AtFixedTimes, Offset: offset, Hidden: 2500 * time.Millisecond}, 59, 6 * time.Second},
		{"seldom late", simtest.Cache{Kind: simtest.AtFixedTimes, Offset: offset, Age: true, Late: func(due time.Time) time.Duration {
			return map[bool]time.Duration{true: 3 * time.Second}[due.Unix()/30%19 == 0]
		}}, 59, 6 * time.Second},
		{"missing", fixed(func(time.Time) any { return nil }), 60, 0},
		{"not a time", fixed(func(time.Time) any { return "just now" }), 60, 0},
		{"stands still", fixed(func(time.Time) any { return start.Format(time.RFC3339) }), 60, 0},
		{"in the future", stamped(time.Hour, time.RFC3339), 60, 0},
		{"long ago", stamped(-time.Hour, time.RFC3339), 60, 0},
		{"a date", stamped(0, time.DateOnly), 60, 0},
		{"made for each request", simtest.Cache{Kind: simtest.PerRequest}, 60, 0},
		{"made for each request, with Age", simtest.Cache{Kind: simtest.PerRequest, Age: true}, 60, 0},
		{"made on demand", simtest.Cache{Kind: simtest.OnDemand, Age: true}, 58, 2 * time.Minute},
		{"made on demand, stamps", simtest.Cache{Kind: simtest.OnDemand}, 58, 2 * time.Minute},
		{"made after an old answer", simtest.Cache{Kind: simtest.Revalidate, Age: true}, 56, 2 * time.Minute},
		{"jumps", fixed(func(made time.Time) any {
			return made.Add(-time.Duration(made.Unix()*7919%90) * time.Second).Format(time.RFC3339)
		}), 45, 2 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			withCache(t, c.cache, rand.New(rand.NewPCG(1, 0)), func(t *testing.T, h *harness) {
				h.run(configure(time.Minute, 5*time.Minute, "plans"))
				time.Sleep(100 * time.Minute)
				h.assertSpacing("/plans", time.Minute, c.least)
				times := h.requestTimes("/plans")[3:]
				all := lags(times, offset, time.Minute)
				t.Logf("%d requests an hour, lag %v, %v, %v", maxPerHour(times), all[0], all[len(all)/2], all[len(all)*9/10])
				if got := all[len(all)*9/10]; c.lag > 0 && got > c.lag {
					t.Errorf("nine of ten requests came at most %v after a renewal, want %v", got, c.lag)
				}
				for i := range len(times) - 1 {
					if gap := times[i+1].Sub(times[i]); c.lag == 0 && (gap < 59*time.Second || gap > 61*time.Second) {
						t.Errorf("a request %v after the one before, want the interval", gap)
					}
				}
			})
		})
	}
}

// TestOtherIntervals has intervals that are no multiple of the cache time.
func TestOtherIntervals(t *testing.T) {
	for i, interval := range []time.Duration{70 * time.Second, 90 * time.Second, 100 * time.Second, 2 * time.Minute, 200 * time.Second, 10 * time.Minute} {
		t.Run(interval.String(), func(t *testing.T) {
			cache := simtest.Cache{Kind: simtest.AtFixedTimes, Offset: 40 * time.Second, Age: i%2 > 0}
			withCache(t, cache, rand.New(rand.NewPCG(2, 0)), func(t *testing.T, h *harness) {
				h.run(configure(interval, time.Hour, "plans", "locations"))
				const hours = 4
				time.Sleep(hours * time.Hour)
				h.assertSpacing("/plans", interval, int(time.Hour/interval))
				times := h.requestTimes("/plans")
				if n, want := len(times), int(hours*time.Hour/interval); n < want-1 || n > want+2 {
					t.Errorf("got %d requests in %d hours, want %d", n, hours, want)
				}
				for path, inPhase := range map[string]bool{"/plans": true, "/locations": cache.Age} {
					all := lags(h.requestTimes(path)[2:], cache.Offset, time.Minute)
					if most := all[len(all)-1]; inPhase != (most < 5*time.Second) {
						t.Errorf("%s: request %v after a renewal", path, most)
					}
				}
			})
		})
	}
}

// TestAccountTogether has account and servers fetched within a second of each other:
// from the second fetch on, after one of them failed, and after its interval changed.
func TestAccountTogether(t *testing.T) {
	for _, seed := range seeds(4, 40) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			withCache(t, simtest.Cache{}, rand.New(rand.NewPCG(seed, 0)), func(t *testing.T, h *harness) {
				c := configure(time.Minute, 5*time.Minute, "account", "servers")
				h.run(c)
				time.Sleep(2 * time.Minute)
				h.assertTogether("start", time.Minute)
				for _, header := range []http.Header{nil, {"Retry-After": {"33"}}} {
					remove := h.Inject(simtest.Fault{Path: "/servers", Status: http.StatusServiceUnavailable, Header: header, Times: 4})
					time.Sleep(10 * time.Minute)
					remove()
					h.assertTogether(fmt.Sprint("failure ", header), time.Minute)
				}
				c.Collectors["servers"] = refresh.Settings{Interval: 30 * time.Second, MaxAge: time.Hour}
				h.run(c)
				time.Sleep(2 * time.Minute)
				h.assertTogether("shorter interval of one", time.Minute)
				for name := range c.Collectors {
					c.Collectors[name] = refresh.Settings{Interval: 5 * time.Minute, MaxAge: time.Hour}
				}
				h.run(c)
				time.Sleep(10 * time.Minute)
				h.assertTogether("longer interval", 5*time.Minute)
				for name := range c.Collectors {
					c.Collectors[name] = refresh.Settings{Interval: 20 * time.Second, MaxAge: time.Hour}
				}
				h.run(c)
				time.Sleep(time.Minute)
				h.assertTogether("shorter interval", 20*time.Second)
			})
		})
	}
}

// assertTogether asserts that in each of the next ten intervals servers are requested
// within a second of the account.
func (h *harness) assertTogether(when string, interval time.Duration) {
	h.t.Helper()
	from := time.Now()
	time.Sleep(10*interval + interval/2)
	servers := h.requestTimes("/servers")
	n := 0
	for _, at := range h.requestTimes("/account") {
		if at.Before(from) || time.Since(at) < 2*time.Second {
			continue
		}
		n++
		apart := time.Hour
		for _, other := range servers {
			apart = min(apart, other.Sub(at).Abs())
		}
		if apart > time.Second+300*time.Millisecond { // the delay of connections
			h.t.Errorf("%s: account and servers requested %v apart", when, apart)
		}
	}
	if n < 9 {
		h.t.Errorf("%s: got %d requests in ten intervals", when, n)
	}
}

// TestResponseAgeMetric has an age where the answer says one.
func TestResponseAgeMetric(t *testing.T) {
	for _, age := range []bool{false, true} {
		cache := simtest.Cache{Kind: simtest.AtFixedTimes, Offset: 20 * time.Second, Age: age}
		subtest(t, fmt.Sprint("Age=", age), func(t *testing.T, h *harness) {
			h.Change(func(w *simulator.World) {
				w.GeneratedAt = nil
				delete(w.Status, "updated_at")
			})
			h.SetCache(cache)
			h.run(configure(time.Minute, time.Hour))
			h.settle()
			want := map[string]float64{"plans ": 40, "status ": 10}
			if age {
				want["locations "], want["os "] = 40, 40
			}
			h.assertEqual("answer_age_seconds", h.values(collectorAge), want)
		})
	}
}

// assertRenewals scrapes for an hour, three seconds after each renewal, and again after
// five where it is not exported yet.
func (h *harness) assertRenewals(from time.Time, offset time.Duration) {
	h.t.Helper()
	periods := map[string]time.Duration{"server_rental_catalog_generated_timestamp_seconds": time.Minute, def("status_updated_timestamp_seconds").Name: 30 * time.Second}
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

// TestResponseAgeOfAll has a header Age in every answer, and histories of several pages.
func TestResponseAgeOfAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		withAge := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Age", "17")
				next.ServeHTTP(w, r)
			})
		}
		for _, entries := range []int{10, 250} {
			h := &harness{API: simtest.StartInMemory(t, simulator.Options{Middleware: withAge}), t: t}
			h.reset()
			h.Change(func(w *simulator.World) {
				a := w.Accounts[simtest.MainToken]
				a.Topups, a.Transactions = simulator.Topups(entries, time.Now()), simulator.Transactions(entries, time.Now())
			})
			h.once(configure(time.Minute, time.Hour))
			want := map[string]float64{}
			for _, r := range collector.Resources() {
				want[r.Name+" "+accountOf(r)] = 17
			}
			h.assertEqual(fmt.Sprintf("answer_age_seconds with %d entries", entries), h.values(collectorAge), want)
		}
	})
}

// TestResponseAgeOfUnchangedStatus has a status that did not change for some time. Its
// updated_at says nothing of the age of the answer then, unlike the header Age.
func TestResponseAgeOfUnchangedStatus(t *testing.T) {
	const components = `"locations":{"fra":{"components":{"network":"operational"}}}`
	for _, c := range []struct {
		unchanged, age time.Duration // age 0: no header
		want           map[string]float64
	}{
		{unchanged: 20 * time.Second, want: map[string]float64{"status ": 20}},
		{unchanged: 2 * time.Minute, want: map[string]float64{"status ": 120}},
		{unchanged: 2*time.Minute + time.Second, want: map[string]float64{}},
		{unchanged: 72 * time.Hour, want: map[string]float64{}},
		{unchanged: 72 * time.Hour, age: 5 * time.Minute, want: map[string]float64{"status ": 300}},
	} {
		subtest(t, fmt.Sprint(c.unchanged, c.age), func(t *testing.T, h *harness) {
			header := http.Header{"Date": {start.Format(http.TimeFormat)}}
			if c.age > 0 {
				header.Set("Age", fmt.Sprint(c.age.Seconds()))
			}
			body := fmt.Sprintf(`{"data":{%s,"updated_at":%q}}`, components, start.Add(-c.unchanged).Format(time.RFC3339))
			h.Override("/status", simtest.Reply(http.StatusOK, header, body))
			h.run(configure(time.Minute, time.Hour, "status"))
			h.settle()
			h.assertEqual("answer_age_seconds", h.values(collectorAge), c.want)
		})
	}
}
