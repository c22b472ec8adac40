package exporter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-kit/log"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/runner"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// soak is one run of the collectors against a faulty provider.
type soak struct {
	name     string
	length   time.Duration
	accounts int
	limits   rentalapi.Limits
	interval time.Duration // of the account collectors; 0 for the defaults
	history  int           // transactions of each account
	pause    time.Duration // mean time between two events
	reloads  bool          // all events are changes by the operator
	minimum  int           // public requests that must be made
}

// TestRateLimitSoak asserts that in no window of 60 seconds the provider receives 60
// public requests, or 121 with one token, whatever happens. The long runs need
// CHAOS_LONG=1.
func TestRateLimitSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	short := []soak{
		{
			name: "an hour of 3 accounts at the default intervals", length: time.Hour, accounts: 3, history: 400, pause: time.Minute,
			limits: rentalapi.Limits{Public: 30, Account: 60, AccountBulk: 40}, minimum: 40,
		},
		{
			name: "6 minutes of 2 accounts that need more than the limit", length: 6 * time.Minute, accounts: 2, history: 1_000, pause: 15 * time.Second, interval: time.Second,
			limits: rentalapi.Limits{Public: 59, Account: 120, AccountBulk: 60}, minimum: 6,
		},
		{
			name: "2 minutes of reloads that switch collectors", length: 2 * time.Minute, accounts: 2, history: 300, pause: 100 * time.Millisecond, reloads: true,
			limits: rentalapi.Limits{Public: 59, Account: 120, AccountBulk: 60}, minimum: 20,
		},
	}
	long := []soak{
		{
			name: "a day of 20 accounts at the default intervals", length: 24 * time.Hour, accounts: 20, history: 800, pause: 4 * time.Minute,
			limits: rentalapi.Limits{Public: 30, Account: 60, AccountBulk: 40}, minimum: 1440,
		},
		{
			name: "two hours of 3 accounts that need more than the limit", length: 2 * time.Hour, accounts: 3, history: 5_000, pause: time.Minute, interval: time.Second,
			limits: rentalapi.Limits{Public: 59, Account: 120, AccountBulk: 60}, minimum: 120,
		},
		{
			name: "half an hour of reloads that switch collectors", length: 30 * time.Minute, accounts: 2, history: 300, pause: 100 * time.Millisecond, reloads: true,
			limits: rentalapi.Limits{Public: 59, Account: 120, AccountBulk: 60}, minimum: 300,
		},
	}
	runs := short
	if os.Getenv("CHAOS_LONG") != "" {
		runs = append(runs, long...)
	}
	const seed = 20261121
	t.Logf("seed %d", seed)
	for i, s := range runs {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { s.run(t, rand.New(rand.NewPCG(seed, uint64(i)))) })
		})
	}
}

func (s soak) run(t *testing.T, rng *rand.Rand) {
	// The provider has no limits, so that more requests than allowed are seen.
	a := simtest.StartInMemory(t, simulator.Options{PublicLimit: -1, AccountLimit: -1})
	a.Change(func(w *simulator.World) {
		for i := range s.accounts {
			account := simulator.ExampleAccount(fmt.Sprint(i), time.Now())
			account.Transactions = simulator.Transactions(s.history, time.Now())
			account.Topups = append(account.Topups, simulator.Topups(s.history/4, time.Now())...)
			for _, suffix := range []string{"", "-new"} { // both tokens of a rotation
				w.Accounts[fmt.Sprintf("token-%d%s", i, suffix)] = account
			}
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	p := runner.New(runner.Options{Logger: log.NewNopLogger(), UserAgent: "test", API: inMemory(t, a, s.limits)})
	p.Publish(ctx)
	faults := &faultSchedule{soak: s, rng: rng, api: a, rotated: map[int]bool{}, off: map[string]bool{}}
	p.ApplyConfig(ctx, faults.config())
	for end := time.Now().Add(s.length); time.Now().Before(end); {
		time.Sleep(time.Duration(rng.ExpFloat64() * float64(s.pause)))
		if faults.next() {
			p.Client.ApplySettings(inMemory(t, a, s.limits))
			p.ApplyConfig(ctx, faults.config())
		}
	}
	stop()
	p.Wait()
	faults.removeAll()
	time.Sleep(time.Minute) // for connections that are being established
	a.Close()

	a.AssertRateLimits(59, 120)
	public := a.CountByToken()[""]
	t.Logf("%d requests, %d of them public; %d faults, %d reloads", len(a.Requests()), public, faults.faults, faults.reloads)
	if public < s.minimum {
		t.Errorf("%d public requests in %v, want at least %d", public, s.length, s.minimum)
	}
}

// faultSchedule changes the provider, the network and the configuration at random.
type faultSchedule struct {
	soak
	rng     *rand.Rand
	api     *simtest.API
	removes []func()
	off     map[string]bool
	mu      sync.Mutex // for rotated
	rotated map[int]bool
	fewer   int // accounts that are not configured
	faults  int
	reloads int
}

// next does one random thing, and reports whether the configuration changed.
func (f *faultSchedule) next() bool {
	n := f.rng.IntN(12)
	if f.soak.reloads {
		n = 7 + f.rng.IntN(5)
	}
	switch {
	case n < 6:
		f.inject()
	case n == 6:
		f.removeAll()
	case n == 7: // the network becomes slow, or fast again
		limit := f.rng.Int64N(2) * int64(4*time.Second)
		delays := rand.New(rand.NewPCG(f.rng.Uint64(), 0))
		f.api.Net.SetDialDelay(func() time.Duration { return time.Duration(delays.Int64N(limit + 1)) }) // called with a lock held
	case n == 8: // a token is replaced, or the old one put back
		f.mu.Lock()
		defer f.mu.Unlock()
		i := f.rng.IntN(f.accounts)
		f.rotated[i] = !f.rotated[i]
	case n == 9: // the history grows
		f.api.Change(func(w *simulator.World) {
			a := w.Accounts[fmt.Sprintf("token-%d", f.rng.IntN(f.accounts))]
			id := 10_000_000 + f.faults + len(a.Transactions)
			a.Transactions = append([]simulator.Object{{
				"id": id, "type": "usage", "amount": simulator.Object{"usd": -1.25}, "created_at": "2000-01-01T00:00:00Z",
			}}, a.Transactions...)
		})
	case n == 10: // a reload that removes accounts, or adds them again
		f.fewer = f.rng.IntN(3)
		f.reloads++
		return true
	default: // a reload that switches a collector
		all := collector.Resources()
		name := all[f.rng.IntN(len(all))].Name
		f.off[name] = !f.off[name]
		f.reloads++
		return true
	}
	return false
}

// inject adds a random fault, and removes the oldest of many.
func (f *faultSchedule) inject() {
	paths := []string{""}
	for _, r := range collector.Resources() {
		paths = append(paths, r.Endpoint)
	}
	statuses := []int{401, 404, 429, 500, 502, 503}
	waits := []string{"", "1", "7", "90", "soon", "0", "-3", "99999999999", time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat)}
	fault := simtest.Fault{
		Kind:  simtest.Kind(f.rng.IntN(int(simtest.Redirect) + 1)),
		Path:  paths[f.rng.IntN(len(paths))],
		Times: f.rng.IntN(30),
		Delay: time.Duration(f.rng.Int64N(int64(15 * time.Second))),
	}
	switch fault.Kind {
	case simtest.Respond:
		fault.Status = statuses[f.rng.IntN(len(statuses))]
		fault.Header = http.Header{"Retry-After": {waits[f.rng.IntN(len(waits))]}}
		if f.rng.IntN(3) == 0 {
			fault.Status = 0
			fault.Header = http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {waits[f.rng.IntN(len(waits))]}}
		}
	case simtest.Redirect:
		fault.Header = http.Header{"Location": {"https://elsewhere.example/"}}
	case simtest.Endless:
		fault.Times = 1 + f.rng.IntN(3) // each takes real time
	}
	f.faults++
	f.removes = append(f.removes, f.api.Inject(fault))
	if len(f.removes) > 4 {
		f.removes[0]()
		f.removes = f.removes[1:]
	}
}

func (f *faultSchedule) removeAll() {
	for _, remove := range f.removes {
		remove()
	}
	f.removes = nil
}

// config is the present configuration.
func (f *faultSchedule) config() runner.Config {
	c := runner.Config{API: "simulated", Collectors: map[string]refresh.Settings{}}
	for _, r := range collector.Resources() {
		if f.off[r.Name] {
			continue
		}
		s := refresh.Settings{Interval: r.Interval, MaxAge: r.MaxAge}
		if r.Account && f.interval > 0 {
			s.Interval = f.interval
		}
		c.Collectors[r.Name] = s
	}
	for i := range f.accounts - f.fewer {
		c.Accounts = append(c.Accounts, runner.Account{
			Name: fmt.Sprint(i), Identity: fmt.Sprint(i),
			Token: func() (string, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				if f.rotated[i] {
					return fmt.Sprintf("token-%d-new", i), nil
				}
				return fmt.Sprintf("token-%d", i), nil
			},
		})
	}
	return c
}
