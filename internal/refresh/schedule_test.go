package refresh

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

// provider publishes a new value at each turnover, a period after the one before.
type provider struct {
	first  time.Time // turnover
	period time.Duration
	late   time.Duration // how much later than its phase says a value can be fetched
}

// turnovers returns how many values were published until a time.
func (p provider) turnovers(at time.Time) int {
	return int(at.Add(-p.late).Sub(p.first)/p.period) + 1
}

// phaseOf is the phase that the value of a turnover has.
func (p provider) phaseOf(value int) Phase {
	return Phase{Next: p.first.Add(time.Duration(value) * p.period), Period: p.period}
}

// runInPhase runs a source until a time and returns when it fetched, and how old the
// value of each turnover was when it was fetched.
func runInPhase(t *testing.T, p provider, interval, until time.Duration) (fetches []time.Time, ages map[int]time.Duration) {
	t.Helper()
	ages = map[int]time.Duration{}
	src := New(Settings{interval, time.Hour}, func(context.Context) (int, Phase, error) {
		now := time.Now()
		n := p.turnovers(now)
		fetches = append(fetches, now)
		if _, found := ages[n]; !found {
			ages[n] = now.Sub(p.first.Add(time.Duration(n-1)*p.period + p.late))
		}
		return n, p.phaseOf(n), nil
	}, func(bool) {})
	ctx, stop := context.WithTimeout(t.Context(), until)
	defer stop()
	src.Run(ctx, 0)
	return fetches, ages
}

// TestFetchInPhase asserts that each value is fetched within two seconds after it is
// published, or most are if they come a little later than their phase says, that no two
// fetches are close together, and that the number of fetches is that of the interval.
func TestFetchInPhase(t *testing.T) {
	for _, c := range []struct {
		interval, period, offset time.Duration // offset of the first turnover before the first fetch
		late                     time.Duration
		lateValues               int
	}{
		{time.Minute, time.Minute, time.Second, 0, 0},
		{time.Minute, time.Minute, 31 * time.Second, 0, 0},
		{time.Minute, time.Minute, 59 * time.Second, 0, 0},
		{30 * time.Second, 30 * time.Second, 10 * time.Second, 0, 0},
		{2 * time.Minute, time.Minute, 20 * time.Second, 0, 0},
		{90 * time.Second, time.Minute, 20 * time.Second, 0, 0},
		{time.Minute, 50 * time.Second, 20 * time.Second, 0, 0},
		{time.Minute, time.Minute, 20 * time.Second, 2500 * time.Millisecond, 20},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const hours = 4
				p := provider{first: time.Now().Add(-c.offset), period: c.period, late: c.late}
				fetches, ages := runInPhase(t, p, c.interval, hours*time.Hour)
				delete(ages, 1) // it was there before the first fetch
				late := 0
				for _, age := range ages {
					if age > 2*time.Second {
						late++
					}
				}
				if late > c.lateValues {
					t.Errorf("%d of %d values fetched more than 2 s after they were published, want at most %d", late, len(ages), c.lateValues)
				}
				for i := 1; i < len(fetches); i++ {
					if gap := fetches[i].Sub(fetches[i-1]); gap < c.period/2 {
						t.Errorf("fetch %d: only %v after the one before", i, gap)
					}
				}
				if got, want := len(fetches), int(hours*time.Hour/c.interval); got < want-2 || got > want+2 {
					t.Errorf("got %d fetches in %d hours, want %d", got, hours, want)
				}
			})
		})
	}
}

// busy is an error that tells when a retry can succeed.
type busy struct{ until time.Time }

func (busy) Error() string        { return "busy" }
func (b busy) RetryAt() time.Time { return b.until }

// TestAfterFailure asserts the delays of failures in a row, each of which has 10 percent of
// jitter, or begins when the error says so.
func TestAfterFailure(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	now := time.Unix(1e9, 0)
	retryAt := func(pause time.Duration) error { return fmt.Errorf("fetch: %w", busy{now.Add(pause)}) }
	for _, c := range []struct {
		interval time.Duration
		err      error
		want     []time.Duration
		jitter   []time.Duration // least and most; nil for 10 percent either way
	}{
		{4 * s, errDown, []time.Duration{s / 2, s, 2 * s, 4 * s, 4 * s, 4 * s}, nil},
		{60 * s, errDown, []time.Duration{7500 * ms, 15 * s, 30 * s, 60 * s, 60 * s, 60 * s}, nil},
		{time.Hour, errDown, []time.Duration{8 * s, 16 * s, 32 * s, 64 * s, 128 * s, 256 * s, 300 * s, 300 * s}, nil},
		{time.Minute, retryAt(10 * time.Minute), []time.Duration{600 * s, 600 * s}, []time.Duration{0, 6 * s}},
		{time.Minute, retryAt(s), []time.Duration{s}, []time.Duration{0, 6 * s}},
		{24 * time.Hour, retryAt(time.Minute), []time.Duration{60 * s}, []time.Duration{0, 8 * s}},
		{time.Minute, retryAt(0), []time.Duration{7500 * ms}, nil},
		{time.Minute, retryAt(-s), []time.Duration{7500 * ms}, nil},
	} {
		sched, seen := schedule{}, map[time.Duration]bool{}
		for round := range 20 {
			for i, want := range c.want {
				least, most := want-want/10, want+want/10
				if c.jitter != nil {
					least, most = want+c.jitter[0], want+c.jitter[1]
				}
				got := sched.afterFailure(c.err, c.interval, now).Sub(now)
				assertBetween(t, fmt.Sprintf("interval %v, %v: delay %d of round %d", c.interval, c.err, i, round), got, least, most)
				seen[got] = true
			}
			assertBetween(t, "delay after a success", sched.afterSuccess(c.interval, now, Phase{}).Sub(now), c.interval, c.interval+c.interval/10)
		}
		if len(seen) < 15 {
			t.Errorf("interval %v, %v: only %d different delays", c.interval, c.err, len(seen))
		}
	}
	sched := schedule{failures: 1e9}
	assertBetween(t, "delay after a billion failures", sched.afterFailure(errDown, time.Hour, now).Sub(now), 270*s, 330*s)
}

// TestUnusablePhase asserts that the interval alone decides where the phase makes no sense.
func TestUnusablePhase(t *testing.T) {
	began := time.Now()
	for name, phase := range map[string]Phase{
		"unknown":               {},
		"no period":             {Next: began.Add(time.Second)},
		"further than a period": {Next: began.Add(2 * time.Minute), Period: time.Minute},
		"long ago":              {Next: began.Add(-time.Hour), Period: time.Minute},
	} {
		s := schedule{due: began, turnover: began}
		simtest.AssertEqual(t, name, s.afterSuccess(time.Minute, began, phase).Sub(began), time.Minute)
	}
}

// phaseFunc returns the phase of the value that a fetch gets at a time.
type phaseFunc func(now time.Time, period time.Duration) Phase

// phaseFuncs are what a provider may claim, true or not.
func phaseFuncs(rng *rand.Rand, began time.Time) map[string]phaseFunc {
	offset, factor := rng.Float64(), 0.2+2*rng.Float64()
	fixed := func(now time.Time, period time.Duration) Phase {
		real := time.Duration(float64(period) * factor)
		return Phase{now.Add(period - now.Add(time.Duration(offset*float64(real))).Sub(began)%real), period}
	}
	after := func(least, most float64) phaseFunc { // of the period
		return func(now time.Time, period time.Duration) Phase {
			return Phase{now.Add(time.Duration((least + (most-least)*rng.Float64()) * float64(period))), period}
		}
	}
	sometimes := func(f phaseFunc) phaseFunc {
		return func(now time.Time, period time.Duration) Phase {
			if rng.IntN(2) == 0 {
				return Phase{}
			}
			return f(now, period)
		}
	}
	return map[string]phaseFunc{
		"another period":          fixed,
		"sometimes":               sometimes(fixed),
		"random":                  after(-0.5, 1.5),
		"sometimes random":        sometimes(after(0, 1)),
		"early":                   after(0.5, 0.55),
		"sometimes early":         sometimes(after(0.7, 1)),
		"always due":              after(0, 0),
		"made for the fetch":      after(1, 1.1),
		"sometimes for the fetch": sometimes(after(0.95, 1.05)),
		"jumps": func(now time.Time, period time.Duration) Phase {
			if rng.IntN(20) == 0 {
				offset = rng.Float64()
			}
			return fixed(now, period)
		},
	}
}

// TestAnyPhase asserts that whatever a phase claims, a schedule never fetches twice
// within a short time, rests for at most an interval and a period, and fetches at most
// once more in an hour than at the interval alone.
func TestAnyPhase(t *testing.T) {
	const seeds = 100
	t.Logf("seeds 0 to %d", seeds-1)
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 0))
		period := time.Duration(1+rng.IntN(2)) * 30 * time.Second
		interval := period
		if rng.IntN(2) == 0 {
			interval += time.Duration(rng.Int64N(3 * int64(period)))
		}
		began := time.Unix(1e9, 0)
		for name, phase := range phaseFuncs(rng, began) {
			var (
				s     schedule
				times []time.Time // within the last hour
				most  int
			)
			for now := began; now.Sub(began) < 12*time.Hour; {
				times = append(times, now)
				for now.Sub(times[0]) >= time.Hour {
					times = times[1:]
				}
				most = max(most, len(times))
				next := s.afterSuccess(interval, now, phase(now, period))
				assertBetween(t, fmt.Sprintf("seed %d: %s: interval %v: gap", seed, name, interval), next.Sub(now), period/4, interval+period+maxLate+2*turnoverDelay)
				now = next
			}
			if limit := int((time.Hour+interval-1)/interval) + 1; most > limit {
				t.Errorf("seed %d: %s: interval %v: got %d fetches in an hour, want at most %d", seed, name, interval, most, limit)
			}
		}
	}
}

// fetcher fetches whenever its schedule says.
type fetcher struct {
	schedule
	now time.Time
}

// fetch fetches a value that is renewed after some time, and returns how long after it
// the next fetch comes.
func (f *fetcher) fetch(wait time.Duration) time.Duration {
	began := f.now
	f.now = f.afterSuccess(time.Minute, began, Phase{began.Add(wait), time.Minute})
	return f.now.Sub(began)
}

// TestMadeForTheFetch asserts that a value that may have been made for its fetch tells
// no turnover: the interval decides, or else the turnovers that are known.
func TestMadeForTheFetch(t *testing.T) {
	f := fetcher{schedule{due: time.Unix(1e9, 0)}, time.Unix(1e9, 0)}
	for range 100 {
		simtest.AssertEqual(t, "gap without a turnover", f.fetch(time.Minute), time.Minute)
	}
	known := f.now.Add(40 * time.Second)
	f.fetch(40 * time.Second)
	for i := range 100 {
		assertBetween(t, fmt.Sprint("delay after turnover ", i), f.now.Sub(known)-time.Duration(i)*time.Minute, turnoverDelay/2, turnoverDelay*3/2)
		f.fetch(time.Minute + 200*time.Millisecond)
	}
}

// TestLateIsBounded has values that are always late, and then never again.
func TestLateIsBounded(t *testing.T) {
	f := fetcher{schedule{}, time.Unix(1e9, 0)}
	for i := range 20 {
		least := 59*time.Second + min(time.Duration(i+1)*lateStep, maxLate) + turnoverDelay/2
		assertBetween(t, fmt.Sprint("gap after late value ", i), f.fetch(-time.Second), least-3*maxLate/256, least+turnoverDelay)
	}
	for range 24 * 60 {
		f.fetch(58 * time.Second)
	}
	assertBetween(t, "gap a day later", f.fetch(58*time.Second), 58*time.Second+turnoverDelay/2, 58100*time.Millisecond+turnoverDelay*3/2)
}

// TestFailureGetsIntoPhase has a fetch fail, and its retry succeed at another time of
// the phase: the next fetch is in phase again, even if that is early.
func TestFailureGetsIntoPhase(t *testing.T) {
	for _, retry := range []time.Duration{time.Second, 8 * time.Second, 29 * time.Second} {
		f := fetcher{schedule{}, time.Unix(1e9, 0)}
		turnover := f.now.Add(40 * time.Second)
		f.fetch(40 * time.Second)
		f.afterFailure(errDown, time.Minute, f.now)
		f.now = turnover.Add(retry)
		f.fetch(time.Minute - retry)
		assertBetween(t, fmt.Sprint("after the turnover, retried after ", retry), f.now.Sub(turnover)-time.Minute, turnoverDelay/2, turnoverDelay*3/2)
	}
}
