package runner

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
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

// TestTurnoversShowWithinSeconds has a provider that makes responses at fixed times.
// After two minutes, each must be exported within five seconds, and half of them within
// three. With Age, all requests come within two seconds. Of the 80 phases, two are tested
// unless CHAOS_LONG=1.
func TestTurnoversShowWithinSeconds(t *testing.T) {
	seeds := 1
	if os.Getenv("CHAOS_LONG") == "1" {
		seeds = 40
	}
	for kind, age := range map[string]bool{"Age": true, "stamps": false} {
		for seed := range seeds {
			subtest(t, fmt.Sprint(kind, " seed=", seed), func(t *testing.T, h *harness) {
				rng := rand.New(rand.NewPCG(uint64(seed), 0))
				offset := time.Duration(rng.Int64N(int64(time.Minute)))
				h.Change(func(w *simulator.World) {
					w.GeneratedAt, w.CacheOffset, w.SendsAge = nil, offset, age
					delete(w.Status, "updated_at")
				})
				var mu sync.Mutex
				h.Net.SetDialDelay(func() time.Duration {
					mu.Lock()
					defer mu.Unlock()
					return time.Duration(rng.Int64N(int64(300 * time.Millisecond)))
				})
				time.Sleep(time.Minute) // no response was made for the change above
				c := configure(time.Minute, 5*time.Minute, "plans", "status")
				c.Collectors["status"] = refresh.Settings{Interval: 30 * time.Second, MaxAge: 5 * time.Minute}
				h.run(c)
				time.Sleep(2 * time.Minute)
				from := time.Now()
				h.assertTurnovers(offset, seeds == 40)
				for path, interval := range map[string]time.Duration{"/plans": time.Minute, "/status": 30 * time.Second} {
					n := 0
					for _, r := range h.RequestsFor(path) {
						if r.Time.Before(from) {
							continue
						}
						n++
						at := r.Time.Add(-offset)
						if lag := at.Sub(at.Truncate(interval)); age && lag > 2*time.Second {
							t.Errorf("%s: a request %v after a turnover", path, lag)
						}
					}
					if want := int(time.Since(from) / interval); n < want-2 || n > want+2 {
						t.Errorf("%s: got %d requests, want %d", path, n, want)
					}
				}
			})
		}
	}
}

// assertTurnovers scrapes for 20 minutes or an hour, three and five seconds after each
// turnover.
func (h *harness) assertTurnovers(offset time.Duration, hour bool) {
	h.t.Helper()
	periods := map[string]time.Duration{"server_rental_catalog_generated_timestamp_seconds": time.Minute, "server_rental_status_updated_timestamp_seconds": 30 * time.Second}
	turnovers := 40
	if hour {
		turnovers = 120
	}
	slow := 0
	turnover := time.Now().Add(-offset).Truncate(30 * time.Second).Add(offset)
	for range turnovers {
		turnover = turnover.Add(30 * time.Second)
		for _, after := range []time.Duration{3 * time.Second, 5 * time.Second} {
			time.Sleep(time.Until(turnover.Add(after)))
			for series, v := range h.exposition(func(name string) bool { return periods[name] > 0 }).Values {
				made := turnover.Add(-offset).Truncate(periods[strings.TrimSuffix(series, "{}")]).Add(offset)
				switch shown := v >= float64(made.Unix()); {
				case !shown && after == 3*time.Second:
					slow++
				case !shown:
					h.t.Errorf("turnover of %v: %s not exported %v later", turnover, series, after)
				}
			}
		}
	}
	if slow > turnovers { // of twice as many
		h.t.Errorf("%d of %d turnovers took more than 3 seconds", slow, 2*turnovers)
	}
}

// TestAccountPhase has accounts with fetches at different times: those of one account
// are fetched within two seconds, so that balance and servers are of one moment, also
// after a failure and a change of the interval.
func TestAccountPhase(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		origins := []time.Duration{0, 17 * time.Second, 45 * time.Second} // public, main, lab
		h.set.origin = func() (origin time.Time) {
			if len(origins) > 0 {
				origin, origins = time.Now().Add(-origins[0]), origins[1:]
			}
			return origin
		}
		c := configure(time.Minute, time.Hour, "account", "servers").withLab()
		h.run(c)
		for _, step := range []struct {
			interval, settle time.Duration
			fault            simtest.Fault
		}{
			{interval: time.Minute, settle: time.Minute},
			{interval: time.Minute, settle: 8 * time.Minute, fault: simtest.Fault{Path: "/servers", Status: 503, Header: http.Header{"Retry-After": {"33"}}, Times: 4}},
			{interval: 30 * time.Second, settle: 2 * time.Minute},
			{interval: 5 * time.Minute, settle: 10 * time.Minute},
		} {
			if step.fault.Path != "" {
				h.Inject(step.fault)
			}
			c.Collectors = map[string]refresh.Settings{}
			for _, name := range []string{"account", "servers"} {
				c.Collectors[name] = refresh.Settings{Interval: step.interval, MaxAge: time.Hour}
			}
			h.run(c)
			time.Sleep(step.settle)
			first := len(h.Requests())
			time.Sleep(10 * step.interval)
			synctest.Wait()
			counts := map[string]int{}
			for _, r := range h.Requests()[first:] {
				origin := map[string]time.Duration{simtest.MainToken: 17 * time.Second, simtest.LabToken: 45 * time.Second}[r.Token]
				if phase := (r.Time.Sub(start) + origin) % step.interval; phase > 2*time.Second {
					t.Errorf("interval %v: %s: %v after the phase", step.interval, r.Path, phase)
				}
				counts[r.Path+" "+r.Token]++
			}
			h.assertEqual("requests", counts, map[string]int{
				"/account " + simtest.MainToken: 10, "/servers " + simtest.MainToken: 10, "/account " + simtest.LabToken: 10, "/servers " + simtest.LabToken: 10,
			})
		}
	})
}

// TestAccountStagger asserts that accounts start one after the other.
func TestAccountStagger(t *testing.T) {
	withHarness(t, func(_ *testing.T, h *harness) {
		c := configure(time.Minute, time.Hour, "servers", "plans")
		for i := range 3 {
			c.Accounts = append(c.Accounts, testAccount(fmt.Sprintf("other-%d", i), simtest.MainToken))
		}
		h.run(c)
		h.runFor(time.Second)
		var at []time.Duration
		for _, r := range h.Requests() {
			at = append(at, r.Time.Sub(start))
		}
		h.assertEqual("first requests", at, []time.Duration{0, accountStagger, 2 * accountStagger, 3 * accountStagger, 4 * accountStagger})
	})
}

// TestResponseAge has a header Age in every response, and histories of several pages.
func TestResponseAge(t *testing.T) {
	withHarness(t, func(_ *testing.T, h *harness) {
		h.Inject(simtest.Fault{Header: http.Header{"Age": {"17"}}})
		h.Change(func(w *simulator.World) {
			a := w.Accounts[simtest.MainToken]
			a.Topups, a.Transactions = simulator.Topups(250, time.Now()), simulator.Transactions(250, time.Now())
		})
		h.once(configure(time.Minute, time.Hour))
		want := map[string]float64{}
		for _, r := range collector.Resources() {
			want[r.Name+" "+accountOf(r)] = 17
		}
		h.assertEqual("age", h.values("exporter_collector_response_age_seconds"), want)
	})
}

// TestRestartLoop kills the process again and again. A process knows nothing of the
// requests of its predecessor, so all of them together must stay within the provider's
// limits at the default rate limits, with any length of history.
func TestRestartLoop(t *testing.T) {
	// Each process requests all resources of the account at once, and then a page of a
	// history every 1.5 seconds, which makes 40 in a minute. The starts of a minute have
	// the other 80, if each resource has 0.75 seconds of the pace.
	shortest := time.Duration(len(accountResources())) * 750 * time.Millisecond
	paces := []time.Duration{shortest.Truncate(time.Second) + time.Second, 11 * time.Second}
	if os.Getenv("CHAOS_LONG") == "1" {
		paces = append(paces, 7*time.Second, 20*time.Second, 45*time.Second)
	}
	for _, pace := range paces {
		t.Run(fmt.Sprint(pace), func(t *testing.T) {
			withProvider(t, unlimited(), func(_ *testing.T, h *harness) {
				h.limits.AccountBulk = 50 // as the program computes it by default
				h.Change(func(w *simulator.World) {
					account := w.Accounts[simtest.MainToken]
					account.Transactions = simulator.Transactions(5000, time.Now())
					account.Topups = append(account.Topups, simulator.Topups(500, time.Now())...)
				})
				for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
					h.reset()
					h.run(defaults())
					time.Sleep(pace)
					h.stop()
				}
				h.AssertRateLimits(59, 120)
			})
		})
	}
}

// TestMoreThanTheLimit has accounts whose intervals need more requests than the limit:
// all that it allows are made, and no more, while the histories are read.
func TestMoreThanTheLimit(t *testing.T) {
	withProvider(t, unlimited(), func(t *testing.T, h *harness) {
		h.limits.Public, h.limits.Account, h.limits.AccountBulk = 59, 120, 60
		h.reset()
		h.Change(func(w *simulator.World) {
			w.Accounts[simtest.MainToken].Transactions = simulator.Transactions(5000, time.Now())
		})
		h.run(configure(time.Second, time.Hour).withLab())
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		h.AssertRateLimits(59, 120)
		for token, n := range h.CountByToken() {
			want := 2 * 115
			if token == "" {
				want = 2 * 57
			}
			if n < want {
				t.Errorf("%q: got %d requests in two minutes, want %d or more", token, n, want)
			}
		}
		for _, health := range h.set.Health() {
			if health.Collector != "transactions" && time.Since(health.LastSuccess) > time.Minute {
				t.Errorf("%s %s: last success %v ago", health.Collector, health.Account, time.Since(health.LastSuccess))
			}
		}
	})
}
