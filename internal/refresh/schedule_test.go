package refresh

import (
	"context"
	"fmt"
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
func (p provider) phaseOf(value int, _ time.Time) Phase {
	return Phase{Next: p.first.Add(time.Duration(value) * p.period), Period: p.period}
}

// runInPhase runs a source until a time and returns when it fetched, and how old the
// value of each turnover was when it was fetched.
func runInPhase(t *testing.T, p provider, interval, until time.Duration) (fetches []time.Time, ages map[int]time.Duration) {
	t.Helper()
	ages = map[int]time.Duration{}
	src := New(Settings{interval, time.Hour}, func(context.Context) (int, error) {
		now := time.Now()
		n := p.turnovers(now)
		fetches = append(fetches, now)
		if _, found := ages[n]; !found {
			ages[n] = now.Sub(p.first.Add(time.Duration(n-1)*p.period + p.late))
		}
		return n, nil
	})
	src.PhaseOf = p.phaseOf
	ctx, stop := context.WithTimeout(t.Context(), until)
	defer stop()
	src.Run(ctx, 0)
	return fetches, ages
}

// TestFetchInPhase asserts that each value is fetched within two seconds after it is
// published, that no two fetches are close together, and that the number of fetches is
// that of the interval.
func TestFetchInPhase(t *testing.T) {
	for _, c := range []struct {
		interval, period, offset time.Duration // offset of the first turnover before the first fetch
	}{
		{time.Minute, time.Minute, time.Second},
		{time.Minute, time.Minute, 31 * time.Second},
		{time.Minute, time.Minute, 59 * time.Second},
		{30 * time.Second, 30 * time.Second, 10 * time.Second},
		{2 * time.Minute, time.Minute, 20 * time.Second},
		{90 * time.Second, time.Minute, 20 * time.Second},
		{time.Minute, 50 * time.Second, 20 * time.Second},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const hours = 4
				p := provider{first: time.Now().Add(-c.offset), period: c.period}
				fetches, ages := runInPhase(t, p, c.interval, hours*time.Hour)
				delete(ages, 1) // it was there before the first fetch
				for n, age := range ages {
					if age > 2*time.Second {
						t.Errorf("value %d: fetched %v after it was published", n, age)
					}
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

// TestLateValues has values that can be fetched a little later than their phase says.
func TestLateValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := provider{first: time.Now().Add(-20 * time.Second), period: time.Minute, late: 2500 * time.Millisecond}
		fetches, ages := runInPhase(t, p, time.Minute, time.Hour)
		late := 0
		for n, age := range ages {
			if n > 1 && age > 2*time.Second {
				late++
			}
		}
		if late > 5 || len(ages) < 58 {
			t.Errorf("fetched %d values, %d of them late; want 58 or more, and 5 or fewer", len(ages), late)
		}
		if len(fetches) > 61 {
			t.Errorf("got %d fetches in an hour, want 61 or fewer", len(fetches))
		}
	})
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
		s := schedule{succeeded: true}
		simtest.AssertEqual(t, name, s.afterSuccess(time.Minute, began, phase).Sub(began), time.Minute)
	}
}
