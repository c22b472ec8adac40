package runner

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// assertBetween asserts that a time is at least and at most so long after start.
func assertBetween(t *testing.T, what string, got time.Time, least, most time.Duration) {
	t.Helper()
	if d := got.Sub(start); d < least || d > most {
		t.Errorf("%s: got %v, want %v to %v", what, d, least, most)
	}
}

// TestRecordFailure has failures in a row.
func TestRecordFailure(t *testing.T) {
	rejected := &rentalapi.Error{Reason: rentalapi.Unauthorized}
	told := func(after time.Duration) error {
		return fmt.Errorf("wrapped: %w", &rentalapi.Error{Reason: rentalapi.RateLimited, Until: start.Add(after)})
	}
	failed := errors.New("failed")
	for _, c := range []struct {
		interval time.Duration
		err      error
		want     []float64 // the longest delays in seconds; each may be a fifth shorter
	}{
		{time.Minute, failed, []float64{7.5, 15, 30, 60, 60}},
		{time.Hour, failed, []float64{8, 16, 32, 64, 128, 256, 300, 300}},
		{2 * time.Second, failed, []float64{0.25, 0.5, 1, 2, 2}},
		{time.Hour, rejected, []float64{8, 16, 32, 60, 60}},
		{time.Hour, told(-time.Second), []float64{8, 16}},
	} {
		var s schedule
		assertNext := func(what string, seconds float64) {
			delay := time.Duration(seconds * float64(time.Second))
			assertBetween(t, fmt.Sprint(c.interval, " ", c.err, " ", what), s.recordFailure(c.err, c.interval, c.interval, start), delay-delay/5, delay)
		}
		for i, seconds := range c.want {
			assertNext(fmt.Sprint(i), seconds)
		}
		s.recordSuccess(c.interval, start, time.Time{})
		assertNext("after a success", c.want[0])
	}
	var s schedule
	assertBetween(t, "while a restock is waited for", s.recordFailure(failed, 2*time.Second, time.Minute, start), 200*time.Millisecond, 250*time.Millisecond)
	assertBetween(t, "when the API says", s.recordFailure(told(time.Hour), time.Minute, time.Minute, start), time.Hour, time.Hour+6*time.Second)
}

// TestRecordSuccess has fetches at start of responses that were made before.
func TestRecordSuccess(t *testing.T) {
	const second, unknown = time.Second, -1
	for _, c := range []struct {
		what                string
		interval, cacheTime time.Duration
		age                 time.Duration // age of the response
		startJitter         time.Duration // of the schedule before, as is aimed
		aimed               bool
		want                time.Duration
		wantAimed           bool // want is a cache expiry
	}{
		{"age not known at first", 300 * second, 60 * second, unknown, 10 * second, false, 310 * second, false},
		{"age not known later", 300 * second, 60 * second, unknown, 0, true, 300 * second, false},
		{"no cache", 300 * second, 0, 20 * second, 0, false, 300 * second, false},
		{"interval shorter than the cache time", 15 * second, 60 * second, 20 * second, 0, false, 15 * second, false},
		{"expiry before the interval", 60 * second, 60 * second, 20 * second, 10 * second, false, 100 * second, true},
		{"expiry after the interval", 60 * second, 60 * second, 40 * second, 10 * second, false, 80 * second, true},
		{"expiry just before the interval", 60 * second, 60 * second, 2 * second, 0, true, 58 * second, true},
		{"new response", 60 * second, 60 * second, 0, 0, true, 60 * second, true},
		{"old response", 60 * second, 60 * second, 60 * second, 0, true, second, false},
		{"old response again", 60 * second, 60 * second, 61 * second, 0, false, 59 * second, true},
		{"much older response", 60 * second, 60 * second, 200 * second, 0, true, 100 * second, true},
		{"first of several expiries", 300 * second, 60 * second, 31 * second, 0, false, 329 * second, true},
	} {
		s, madeAtLatest := schedule{cacheTime: c.cacheTime, startJitter: c.startJitter, aimed: c.aimed, failures: 3}, time.Time{}
		if c.age != unknown {
			madeAtLatest = start.Add(-c.age)
		}
		least, most := c.want, c.want
		if c.wantAimed {
			least, most = least+expiryDelay, most+expiryDelay+expiryJitter
		}
		assertBetween(t, c.what, s.recordSuccess(c.interval, start, madeAtLatest), least, most)
		simtest.AssertEqual(t, c.what+": state", s, schedule{cacheTime: c.cacheTime, aimed: c.wantAimed})
	}
}

// TestCacheExpiryShows has a provider that makes responses at fixed times, which its header
// Age or its stamps tell: each is shown within three seconds, with a request for each.
func TestCacheExpiryShows(t *testing.T) {
	for kind, age := range map[string]bool{"Age": true, "stamps": false} {
		subtest(t, kind, func(t *testing.T, h *harness) {
			const cacheTime, fetches = 30 * time.Second, 60 // cache time of the status
			const offset, delay = 17 * time.Second, 150 * time.Millisecond
			h.Change(func(w *simulator.World) { w.GeneratedAt, w.CacheOffset, w.SendsAge = nil, offset, age })
			h.OnRequest(func(string, url.Values) { time.Sleep(delay) })
			c := configure(cacheTime, 5*time.Minute, "status")
			time.Sleep(time.Minute) // no response was made for the change above
			h.run(c)
			time.Sleep(5 * time.Second)
			if age { // of 13 seconds
				h.assertEqual("made at", int64(h.values("exporter_collector_data_timestamp_seconds")["status "]), start.Unix()+47)
			}
			time.Sleep(55 * time.Second)
			expiry, requests, ongoing := time.Now().Add(-offset).Truncate(cacheTime).Add(offset), len(h.Requests()), 0
			for range fetches {
				ongoing++
				h.Change(func(w *simulator.World) { w.Status["ongoing"] = ongoing })
				expiry = expiry.Add(cacheTime)
				time.Sleep(time.Until(expiry.Add(3 * time.Second)))
				h.assertEqual("ongoing", h.values("incidents_ongoing")[""], float64(ongoing))
			}
			if n := len(h.Requests()) - requests; n < fetches || n > fetches+1 {
				t.Errorf("got %d requests in %d cache times", n, fetches)
			}
		})
	}
}

// TestSlowRateLimit has a rate limit that more accounts with one token use than it is for: a fetch that
// would take longer than its interval fails at its end.
func TestSlowRateLimit(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.limits = rentalapi.Limits{Public: 30, Account: 5}
		h.reset()
		c := configure(30*time.Second, 10*time.Minute, "servers")
		for i := range rentalapi.Burst {
			c.Accounts = append(c.Accounts, testAccount(fmt.Sprint(i), simtest.MainToken))
		}
		h.run(c)
		time.Sleep(35 * time.Second)
		h.log.Assert(t, `level=error collector=servers account=* msg="collector failed" err="timed out before all requests were made" hint="the rate limit, or the API, is too slow for the interval"`)
		h.assertEqual("errors", h.values("exporter_api_errors_total")["/servers timeout"], 1.0)
	})
}

// TestAccountsInStep has accounts that start one after the other: the collectors of one are
// fetched together, those of different accounts are not for long.
func TestAccountsInStep(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		c := configure(time.Hour, 2*time.Hour, "account", "servers", "plans").withLab()
		h.run(c)
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		at := map[string][]time.Duration{}
		for _, r := range h.Requests() {
			at[r.Token+r.Path] = append(at[r.Token+r.Path], r.Time.Sub(start))
		}
		all := map[time.Duration]bool{}
		for i, token := range []string{"", simtest.MainToken, simtest.LabToken} {
			times := at[token+"/account"]
			if token == "" {
				times = at["/plans"]
			} else {
				h.assertEqual("servers", at[token+"/servers"], times)
			}
			first := time.Duration(i) * accountStagger
			jitter := times[1] - first - time.Hour
			h.assertEqual("fetches", times, []time.Duration{first, first + time.Hour + jitter, first + 2*time.Hour + jitter, first + 3*time.Hour + jitter})
			if jitter < 0 || jitter > 6*time.Minute {
				t.Errorf("%q: the second fetch has a jitter of %v, want up to 6 minutes", token, jitter)
			}
			all[jitter] = true
		}
		h.assertEqual("different delays", len(all), 3)
	})
}

// TestNeighboursThatHang has accounts whose endpoints, or one of them, accept requests and never respond:
// how often public data is asked for, and whose balances are there.
func TestNeighboursThatHang(t *testing.T) {
	for name, c := range map[string]struct {
		accounts, hanging int // the first of the accounts hang
		path              string
	}{"sixteen accounts": {20, 16, ""}, "an endpoint of 150 accounts": {150, 150, "/topups"}, "half of 60 accounts": {60, 30, ""}} {
		t.Run(name, func(t *testing.T) {
			accounts := map[string]string{}
			for i := range c.accounts {
				accounts[fmt.Sprint("secret-", i)] = fmt.Sprint("account-", i)
			}
			withProvider(t, simulator.Options{Accounts: accounts}, func(_ *testing.T, h *harness) {
				h.limits = rentalapi.Limits{Public: 30, Account: 60}
				h.reset()
				spec := Spec{API: "test", Collectors: map[string]collector.Timing{}}
				for _, r := range collector.Resources() {
					spec.Collectors[r.Name] = r.Timing
				}
				for i := range c.accounts {
					token := fmt.Sprint("secret-", i)
					spec.Accounts = append(spec.Accounts, testAccount(accounts[token], token))
					if i < c.hanging {
						h.Inject(simtest.Fault{Path: c.path, Token: token, Kind: simtest.Hang})
					}
				}
				began := time.Now()
				h.run(spec)
				time.Sleep(5 * time.Minute)
				for path, most := range map[string]time.Duration{"/plans": 75 * time.Second, "/locations": 75 * time.Second, "/status": 45 * time.Second} {
					before := began
					for _, r := range h.requestsFor(path) {
						if gap := r.Time.Sub(before); gap > most {
							t.Errorf("%s: not asked for %v, want at most %v", path, gap, most)
						}
						before = r.Time
					}
				}
				want := c.accounts - c.hanging
				if c.path != "" {
					want = c.accounts
				}
				success := h.scrape().CollectorSuccess()
				maps.DeleteFunc(success, func(of string, value float64) bool { return !strings.HasPrefix(of, "account ") || value != 1 })
				h.assertEqual("accounts whose last fetch succeeded", len(success), want)
				h.assertEqual("balances", len(h.values("account_balance_usd")), want)
			})
		})
	}
}
