// Package chaos holds tests only. They run the whole exporter under faults, restarts and
// load, and check what it guarantees regardless.
package chaos_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/runner"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestFaultSchedules runs the exporter through random schedules of faults, reloads,
// token changes and changing data. All the while, what it exports must be right or
// absent, what no fault concerns must be there, and rate limits must hold. At the end
// everything must be right again, and no goroutine may be left.
//
// The seeds are fixed. Goroutines are not scheduled the same way twice, so it may take a few
// attempts to repeat a schedule that failed.
func TestFaultSchedules(t *testing.T) {
	runs := uint64(16)
	if testing.Short() {
		runs = 4
	}
	percent := debug.SetGCPercent(400) // a third less processor time
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	for seed := uint64(1); seed <= runs; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { runSchedule(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func runSchedule(t *testing.T, rng *rand.Rand) {
	// Any time of two months in 2002: until September 2001 Unix seconds have nine digits, and count as a delay.
	time.Sleep(2*366*24*time.Hour + time.Duration(rng.IntN(60*24*60))*time.Minute)
	h := newHarness(t, rng, rentalapi.Limits{Public: 8, Account: 24}) // requests have to wait
	defer h.Close()
	for range 12 + rng.IntN(28) {
		gap := time.Duration(rng.ExpFloat64() * float64(15*time.Second))
		if rng.IntN(12) == 0 {
			gap = time.Duration(rng.Int64N(int64(12 * time.Minute))) // data expires
		}
		time.Sleep(gap)
		synctest.Wait()
		h.check(h.scrape())
		h.next()
		if t.Failed() {
			break
		}
	}
	if !t.Failed() {
		h.checkRecovery()
	}
	h.stop()
	time.Sleep(time.Minute) // pending dials time out
	h.assertRateLimits(h.limits)
	simtest.AssertNoSecrets(t, "log", h.log.String())
	t.Log(len(h.Requests()), "requests")
	if t.Failed() {
		t.Log(h.log.String()[max(0, len(h.log.String())-1500):])
	}
}

func (h *harness) scrape() simtest.Exposition {
	h.t.Helper()
	return simtest.ServeGet(h.handler, "/metrics").Exposition(h.t)
}

// check compares a page with the past states of the provider, while nothing runs.
func (h *harness) check(page simtest.Exposition) {
	h.t.Helper()
	groups := byResource(page)
	h.forEachCollector(func(key, name, account string, settings collector.Timing) {
		h.checkAge(page, name, account, groups[key] != nil, settings.MaxAge)
		if groups[key] != nil {
			h.checkGroup(key, name, groups[key], time.Now().Add(-settings.MaxAge-requestTimeout))
		}
		delete(groups, key)
	})
	if len(groups) > 0 {
		h.t.Errorf("exported and not configured: %v", slices.Sorted(maps.Keys(groups)))
	}
	simtest.AssertNoSecrets(h.t, "/", simtest.ServeGet(h.handler, "/").Body)
}

// forEachCollector calls f for each configured collector; key is that of byResource.
func (h *harness) forEachCollector(f func(key, name, account string, settings collector.Timing)) {
	for _, r := range collector.Resources() {
		settings, enabled := h.config.Collectors[r.Name]
		accounts := []runner.AccountSpec{{}}
		if r.Account {
			accounts = h.config.Accounts
		}
		for _, account := range accounts {
			if enabled {
				f(r.Name+" "+account.Name, r.Name, account.Name, settings)
			}
		}
	}
}

// checkAge compares the age of a collector's data with its maximum age.
func (h *harness) checkAge(page simtest.Exposition, name, account string, exported bool, maxAge time.Duration) {
	h.t.Helper()
	last, known := page.Values[simtest.Series("server_rental_exporter_collector_last_success_timestamp_seconds", "collector", name, "account", account)]
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

// checkGroup looks for the state of the provider that is exported. Between the requests
// for several pages, the data can have changed: then each sample was right at some time.
func (h *harness) checkGroup(key, name string, got samples, then time.Time) {
	h.t.Helper()
	versions := h.versionsSince(key, then)
	if slices.ContainsFunc(versions, func(v version) bool { return maps.Equal(v.samples, got) }) {
		return
	}
	if name == "topups" || name == "transactions" {
		for series, value := range got {
			if !slices.ContainsFunc(versions, func(v version) bool { was, known := v.samples[series]; return known && was == value }) {
				h.t.Errorf("%s: %s was never %v", key, series, value)
			}
		}
		return
	}
	h.t.Errorf("%s: exported at %s and not a state of the provider since %s", key, time.Now().Format(time.TimeOnly), then.Format(time.TimeOnly))
	for _, v := range versions {
		simtest.AssertEqual(h.t, "state from "+v.from.Format(time.TimeOnly), got, v.samples)
	}
}

// checkRecovery ends all faults and checks that each collector is right 15 minutes later: after the
// longest back-off and three intervals.
func (h *harness) checkRecovery() {
	h.t.Helper()
	h.RemoveAll()
	synctest.Wait()
	h.changeWorld(func(w *simulator.World) {
		for account := range h.tokens {
			h.issueToken(w, account)
		}
	})
	h.reload(func(c *runner.Spec) { *c = h.validConfiguration(h.rng) })
	time.Sleep(15 * time.Minute)
	synctest.Wait()
	page := h.scrape()
	groups, success := byResource(page), page.CollectorSuccess()
	h.check(page)
	h.forEachCollector(func(key, _, _ string, _ collector.Timing) {
		simtest.AssertEqual(h.t, key+": data after the faults", groups[key], h.versionsSince(key, time.Now())[0].samples)
		simtest.AssertEqual(h.t, key+": success after the faults", success[strings.TrimSpace(key)], 1.0)
	})
	simtest.AssertEqual(h.t, "/-/ready", simtest.ServeGet(h.handler, "/-/ready").Status, http.StatusOK)
}

// TestKilled: an exporter with the default limits that is killed and started again every 5
// seconds stays within those of the API.
func TestKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, rand.New(rand.NewPCG(1, 0)), rentalapi.Limits{Public: 30, Account: 60})
		defer h.Close()
		for range 40 {
			time.Sleep(5 * time.Second)
			h.stop()
			h.start()
		}
		h.stop()
		h.assertRateLimits(rentalapi.Limits{Public: 60, Account: 120}) // of the API
	})
}
