// Package chaos holds tests only. They run the whole exporter under faults, load,
// crashes and attacks, and check what it guarantees regardless. docs/limits.md and
// docs/security.md describe the results.
//
// Environment variables:
//
//	CHAOS_LONG=1      long runs: more schedules and load, and checks of processor time and memory
//	CHAOS_RUNS=5000   number of fault schedules; default 10, long 200, with -short 3
//	CHAOS_SEED=17     seed of the first fault schedule; default 1
package chaos_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/expfmt"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/runner"
	"server_rental_exporter/internal/simulator/simtest"
)

// long reports whether the long runs are wanted.
func long() bool { return os.Getenv("CHAOS_LONG") == "1" }

// envNumber returns a number from the environment.
func envNumber(t testing.TB, name string, fallback uint64) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv(name), fmt.Sprint(fallback)), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestFaultSchedules runs the exporter through random schedules of faults, reloads,
// token changes and changing data. All the while, what it exports must be right or
// absent, counters must not fall and rate limits must hold. At the end everything
// must be right again, and no goroutine and no connection may be left.
//
// The seeds are fixed. To repeat a failed schedule, set CHAOS_SEED to its seed and
// CHAOS_RUNS=1; goroutines are not scheduled the same way twice, so it may take a few
// attempts.
func TestFaultSchedules(t *testing.T) {
	t.Parallel()
	runs := uint64(10)
	switch {
	case long():
		runs = 200
	case testing.Short():
		runs = 3
	}
	runs = envNumber(t, "CHAOS_RUNS", runs)
	first := envNumber(t, "CHAOS_SEED", 1)
	t.Logf("seeds %d to %d", first, first+runs-1)
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a third less processor time
	var mu sync.Mutex
	total := map[string]int{}
	seeds := make(chan uint64)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range seeds {
				t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						counts := runSchedule(t, rand.New(rand.NewPCG(seed, 0)))
						mu.Lock()
						defer mu.Unlock()
						for event, n := range counts {
							total[event] += n
						}
					})
				})
			}
		})
	}
	for i := range runs {
		seeds <- first + i
	}
	close(seeds)
	workers.Wait()
	t.Log(total)
	if long() {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if m.HeapAlloc > 64<<20 {
			t.Errorf("heap after all schedules: got %d MiB, want at most 64", m.HeapAlloc>>20)
		}
	}
}

func runSchedule(t *testing.T, rng *rand.Rand) map[string]int {
	// On any day of two months, in half of the schedules shortly before midnight.
	start := time.Duration(rng.IntN(60*24)) * time.Hour
	if rng.IntN(2) == 0 {
		start = start.Truncate(24*time.Hour) + 24*time.Hour - time.Duration(rng.IntN(1200))*time.Second
	}
	time.Sleep(start)
	s := &faultSchedule{harness: newHarness(t, rng), rng: rng, counts: map[string]int{}}
	defer s.close()
	for range 12 + rng.IntN(28) {
		gap := time.Duration(rng.ExpFloat64() * float64(15*time.Second))
		if rng.IntN(12) == 0 {
			gap = time.Duration(rng.Int64N(int64(12 * time.Minute))) // data expires
		}
		time.Sleep(gap)
		synctest.Wait()
		s.check()
		s.counts["check"]++
		s.next()
		if t.Failed() {
			break
		}
	}
	if !t.Failed() {
		s.checkRecovery()
	}
	s.cancel()
	s.Wait()
	time.Sleep(time.Minute) // pending dials time out
	synctest.Wait()
	simtest.AssertEqual(t, "open connections", s.OpenConns(), 0)
	s.AssertRateLimits(s.limits.Public, s.limits.Account)
	s.counts["request"] += len(s.Requests())
	simtest.AssertNoSecrets(t, "log", s.log.String())
	if strings.Contains(s.log.String(), "cannot serve metrics") {
		t.Errorf("log:\n%s", tail(s.log.String()))
	}
	return s.counts
}

// The formats of a scrape.
var (
	textFormat  = string(expfmt.NewFormat(expfmt.TypeTextPlain))
	openMetrics = string(expfmt.NewFormat(expfmt.TypeOpenMetrics))
	protobuf    = string(expfmt.NewFormat(expfmt.TypeProtoDelim))
)

func formats() []string { return []string{textFormat, openMetrics, protobuf} }

func (h *harness) scrape() simtest.Exposition {
	h.t.Helper()
	return simtest.ServeGet(h.handler, "/metrics", "Accept", h.format, "Accept-Encoding", h.coding).Exposition(h.t)
}

// check checks everything that the exporter serves, while nothing runs.
func (h *harness) check() {
	h.t.Helper()
	page := h.scrape()
	h.checkPage(page, byResource(page))
	simtest.AssertNoSecrets(h.t, "/", simtest.ServeGet(h.handler, "/").Body)
}

// byResource groups a page by collector and account, with the collector's number of
// invalid items if it has data.
func byResource(page simtest.Exposition) map[string]samples {
	groups := map[string]samples{}
	for series, v := range page.Values {
		owner := resourceOf[familyOf(series)]
		if owner == "" {
			continue
		}
		account := simtest.Label(series, "account")
		key := owner + " " + account
		if groups[key] == nil {
			invalid := invalidItems(owner, account)
			groups[key] = samples{invalid: comparedInvalid(owner, page.Values[invalid])}
		}
		groups[key][series] = v
	}
	return groups
}

// checkPage compares a page with the past states of the provider.
func (h *harness) checkPage(page simtest.Exposition, groups map[string]samples) {
	h.t.Helper()
	h.configMu.Lock()
	defer h.configMu.Unlock()
	now, configured := time.Now(), map[string]bool{}
	h.forEachCollector(func(key, name, account string, settings runner.Timing) {
		got := groups[key]
		configured[key] = true
		h.checkAge(page, name, account, got != nil, settings.MaxAge)
		if got != nil {
			h.checkGroup(name, account, got, now.Add(-settings.MaxAge-requestTimeout))
		}
	})
	for key := range groups {
		if !configured[key] {
			h.t.Errorf("%s is exported and not configured", key)
		}
	}
	h.worldMu.Lock()
	defer h.worldMu.Unlock()
	for name, most := range map[string]map[string]float64{"restocks": h.restocks, "sellouts": h.sellouts} {
		for series, n := range page.WithPrefix("server_rental_plan_" + name + "_total{") {
			if n > most[simtest.Label(series, "plan")] {
				h.t.Errorf("%s: got %v, more than %v", series, n, most[simtest.Label(series, "plan")])
			}
		}
	}
	for series, n := range page.WithPrefix("server_rental_plan_last_in_stock_timestamp_seconds{") {
		if n <= 0 || n > float64(now.Unix()) {
			h.t.Errorf("%s: got %v, now is %d", series, n, now.Unix())
		}
	}
}

// forEachCollector calls f for each configured collector; key is that of byResource.
func (h *harness) forEachCollector(f func(key, name, account string, settings runner.Timing)) {
	for _, r := range collector.Resources() {
		settings, enabled := h.config.collectors[r.Name]
		accounts := []string{""}
		if r.Account {
			accounts = h.config.accounts
		}
		for _, account := range accounts {
			if enabled {
				f(r.Name+" "+account, r.Name, account, settings)
			}
		}
	}
}

// checkAge compares the age of a collector's data with its maximum age.
func (h *harness) checkAge(page simtest.Exposition, name, account string, exported bool, maxAge time.Duration) {
	h.t.Helper()
	last, known := page.Values[lastSuccess(name, account)]
	age := time.Duration((float64(time.Now().UnixMilli())/1000 - last) * float64(time.Second))
	const precision, publication = 10 * time.Millisecond, 100 * time.Millisecond
	switch {
	case exported && !known:
		h.t.Errorf("%s %s: data without a success", name, account)
	case exported && age > maxAge+precision+publication:
		h.t.Errorf("%s %s: data of age %v, more than %v", name, account, age, maxAge)
	case !exported && known && age < maxAge-precision && age < time.Since(h.reloaded): // a reload may not bring back what expired
		h.t.Errorf("%s %s: no data at age %v, less than %v", name, account, age, maxAge)
	}
}

func lastSuccess(name, account string) string {
	return simtest.Series("server_rental_exporter_collector_last_success_timestamp_seconds", "collector", name, "account", account)
}

// checkGroup looks for the state of the provider that is exported.
func (h *harness) checkGroup(name, account string, got samples, then time.Time) {
	h.t.Helper()
	versions := h.versionsSince(name, account, then)
	for _, v := range slices.Backward(versions) {
		if maps.Equal(v.samples, got) {
			return
		}
	}
	if name == "topups" && eachInAny(versions, got) {
		return // several requests, between which the data changed
	}
	h.t.Errorf("%s %s: exported at %s and not a state of the provider since %s", name, account, time.Now().Format(time.TimeOnly), then.Format(time.TimeOnly))
	for _, v := range versions {
		simtest.AssertEqual(h.t, "state from "+v.from.Format(time.TimeOnly), got, v.samples)
	}
}

// eachInAny reports whether each sample by itself was right at some time.
func eachInAny(versions []version, got samples) bool {
	for series, value := range got {
		if !slices.ContainsFunc(versions, func(v version) bool {
			was, known := v.samples[series]
			return known && was == value
		}) {
			return false
		}
	}
	return true
}

func tail(log string) string { return log[max(0, len(log)-1500):] }
