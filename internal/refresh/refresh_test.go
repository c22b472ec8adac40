package refresh

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

var errDown = errors.New("down")

// api is what a source fetches from: it records when it was called and answers with
// f, which gets the number of the call.
type api struct {
	mu    sync.Mutex
	began time.Time
	calls []time.Duration // since it was made
	f     func(call int) (string, error)
}

func newAPI(f func(call int) (string, error)) *api { return &api{began: time.Now(), f: f} }

func (a *api) fetch(context.Context) (string, Phase, error) {
	a.mu.Lock()
	n := len(a.calls)
	a.calls = append(a.calls, time.Since(a.began))
	a.mu.Unlock()
	value, err := a.f(n)
	return value, Phase{}, err
}

func (a *api) at() []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]time.Duration{}, a.calls...)
}

func good(call int) (string, error) { return fmt.Sprintf("value %d", call), nil }

// run starts a source that ends with the test.
func run(t *testing.T, s Settings, a *api) *Source[string] {
	t.Helper()
	src := New(s, a.fetch, func(bool) {})
	start(t, src, 0)
	return src
}

func start(t *testing.T, src *Source[string], delay time.Duration) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		src.Run(ctx, delay)
		close(done)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
}

// assertBetween checks that a duration is between two bounds.
func assertBetween(t *testing.T, what string, got, min, max time.Duration) {
	t.Helper()
	if got < min || got > max {
		t.Errorf("%s: got %v, want %v to %v", what, got, min, max)
	}
}

// TestInterval fetches at once, then up to a tenth of the interval late, then at
// the interval: from start to start, or from the end of a fetch that takes longer.
func TestInterval(t *testing.T) {
	for _, c := range []struct {
		name     string
		interval time.Duration
		takes    time.Duration
		every    time.Duration
	}{
		{"at once", time.Minute, 0, time.Minute},
		{"fetch takes half the interval", time.Minute, 30 * time.Second, time.Minute},
		{"fetch takes longer than the interval", time.Minute, 90 * time.Second, 150 * time.Second},
		{"a day", 24 * time.Hour, time.Second, 24 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			seconds := map[time.Duration]bool{}
			for range 20 {
				synctest.Test(t, func(t *testing.T) {
					a := newAPI(func(n int) (string, error) {
						time.Sleep(c.takes)
						return good(n)
					})
					src := run(t, Settings{c.interval, time.Hour}, a)
					synctest.Wait()
					simtest.AssertEqual(t, "next while the first is under way or done", src.State().Next.IsZero(), c.takes > 0)
					time.Sleep(6 * c.every)
					at := a.at()
					simtest.AssertEqual(t, "first, and how long one takes", []time.Duration{at[0], src.State().Duration}, []time.Duration{0, c.takes})
					assertBetween(t, "second", at[1], c.every, c.every+c.interval/10)
					seconds[at[1]] = true
					for i := 2; i < 5; i++ {
						simtest.AssertEqual(t, fmt.Sprintf("from fetch %d to %d", i-1, i), at[i]-at[i-1], c.every)
					}
				})
			}
			if len(seconds) < 15 {
				t.Errorf("second fetches of 20 sources: only %d different times", len(seconds))
			}
		})
	}
}

// TestRetryNow makes a failing source try at once, or right after the attempt that is under
// way if that fails, and leaves a working one alone.
func TestRetryNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(func(n int) (string, error) {
			if n >= 2 {
				time.Sleep(time.Second)
			}
			if n <= 2 {
				return "", errDown
			}
			return good(n)
		})
		src := New(Settings{time.Hour, 24 * time.Hour}, a.fetch, func(bool) {})
		start(t, src, time.Minute)
		synctest.Wait()
		src.RetryNow() // before anything failed
		time.Sleep(time.Minute)
		synctest.Wait()
		simtest.AssertEqual(t, "calls of a failing source", a.at(), []time.Duration{time.Minute})
		for range 3 { // the second attempt fails, the third is under way
			src.RetryNow()
			synctest.Wait()
		}
		time.Sleep(1500 * time.Millisecond) // the third has failed, the fourth is under way and succeeds
		src.RetryNow()
		time.Sleep(time.Minute)
		src.RetryNow()
		time.Sleep(30 * time.Minute)
		simtest.AssertEqual(t, "calls", a.at(), []time.Duration{time.Minute, time.Minute, time.Minute, time.Minute + time.Second})
		state := src.State()
		simtest.AssertEqual(t, "error and next", []any{state.Err, state.Next.After(time.Now())}, []any{error(nil), true})
		time.Sleep(36*time.Minute + time.Second)
		simtest.AssertEqual(t, "calls after the interval", len(a.at()), 5)
	})
}

// TestApplySettings changes settings while a source waits.
func TestApplySettings(t *testing.T) {
	for _, c := range []struct {
		name string
		set  Settings
		at   []time.Duration // of further fetches, after the first two; a minute apart before
	}{
		{"nothing", Settings{time.Minute, time.Hour}, []time.Duration{30 * time.Second, 90 * time.Second, 150 * time.Second}},
		{"longer interval", Settings{time.Hour, time.Hour}, []time.Duration{30 * time.Second, 30*time.Second + time.Hour}},
		{"shorter interval", Settings{10 * time.Second, time.Hour}, []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second}},
		{"a little shorter, due sooner anyway", Settings{40 * time.Second, time.Hour}, []time.Duration{30 * time.Second, 70 * time.Second, 110 * time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI(good)
				src := run(t, Settings{time.Minute, time.Hour}, a)
				time.Sleep(59 * time.Second)
				for len(a.at()) < 2 {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(a.at()[1] + 30*time.Second - time.Since(a.began))
				src.ApplySettings(c.set)
				set := time.Since(a.began)
				synctest.Wait()
				simtest.AssertEqual(t, "next", src.State().Next.Sub(a.began)-set, c.at[0])
				simtest.AssertEqual(t, "settings", src.State().Settings, c.set)
				value, _, ok := src.Value()
				simtest.AssertEqual(t, "value", []any{value, ok}, []any{"value 1", true})
				time.Sleep(c.at[len(c.at)-1] + time.Second)
				var got []time.Duration
				for _, at := range a.at()[2:] {
					got = append(got, at-set)
				}
				simtest.AssertEqual(t, "fetches", got[:len(c.at)], c.at)
			})
		})
	}
}

// TestValueExpires asserts that a value is valid strictly before its last success plus
// the maximum age, which may change, and that readers change nothing.
func TestValueExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(func(n int) (string, error) {
			if n > 0 {
				return "", errDown
			}
			return good(n)
		})
		src := New(Settings{time.Minute, 10 * time.Minute}, a.fetch, func(bool) {})
		began := time.Now()
		assertValue := func(what, want string, wantExpiry time.Duration) {
			t.Helper()
			value, expires, ok := src.Value()
			wantTime := time.Time{}
			if want != "" {
				wantTime = began.Add(wantExpiry)
			}
			simtest.AssertEqual(t, what, []any{value, expires.Equal(wantTime), ok}, []any{want, true, want != ""})
		}
		assertValue("before the first", "", 0)
		start(t, src, 0)
		time.Sleep(10*time.Minute - 1)
		assertValue("just before its expiry", "value 0", 10*time.Minute)
		time.Sleep(time.Nanosecond)
		assertValue("at its expiry", "", 0)
		src.ApplySettings(Settings{time.Minute, 20 * time.Minute})
		assertValue("with a longer maximum age", "value 0", 20*time.Minute)
		src.ApplySettings(Settings{time.Minute, 10 * time.Minute})
		assertValue("with a shorter maximum age", "", 0)
		simtest.AssertEqual(t, "last success", src.State().LastSuccess.Equal(began), true)
	})
}

// TestUnchanged has fetches that succeed and replace nothing.
func TestUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(func(call int) (string, error) {
			if call > 0 {
				return "", fmt.Errorf("older: %w", ErrUnchanged)
			}
			return good(call)
		})
		began := time.Now()
		src := run(t, Settings{Interval: time.Minute, MaxAge: 150 * time.Second}, a)
		time.Sleep(149 * time.Second)
		value, expires, ok := src.Value()
		state := src.State()
		simtest.AssertEqual(t, "value, expiry and state", []any{value, ok, expires.Sub(began), state.Err, state.LastSuccess.After(began.Add(time.Minute))}, []any{"value 0", true, 150 * time.Second, nil, true})
		time.Sleep(time.Second)
		if value, _, ok := src.Value(); ok {
			t.Errorf("after max age: got %q", value)
		}
		if err := src.Once(t.Context()); err != nil {
			t.Errorf("Once: got %v", err)
		}
	})
}

// TestHooks asserts the order and number of calls, and what is visible in them.
func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(func(n int) (string, error) {
			value, _ := good(n)
			return value, []error{nil, errDown, nil, ErrUnchanged}[n]
		})
		var (
			mu  sync.Mutex
			got []string
		)
		var src *Source[string]
		hook := func(updated bool) {
			value, _, _ := src.Value()
			mu.Lock()
			defer mu.Unlock()
			got = append(got, strings.TrimSpace(fmt.Sprintln(updated, src.State().Finished, src.State().Err, value)))
		}
		src = New(Settings{time.Minute, time.Hour}, a.fetch, hook)
		assertCalls := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			simtest.AssertEqual(t, what, got, want)
			got = nil
		}
		start(t, src, time.Second)
		assertCalls("before the first attempt")
		time.Sleep(time.Second)
		assertCalls("first attempt", "true true <nil> value 0")
		time.Sleep(66 * time.Second)
		assertCalls("failure", "false true down value 0")
		src.ApplySettings(src.State().Settings)
		assertCalls("same settings")
		src.ApplySettings(Settings{time.Minute, 2 * time.Hour})
		assertCalls("other settings")
		src.RetryNow()
		assertCalls("retry", "true true <nil> value 2")
		time.Sleep(66 * time.Second)
		assertCalls("unchanged", "false true <nil> value 2")
	})
}

// TestEnd asserts that Run returns at once, waiting or fetching, and that what is cut off is
// no failure.
func TestEnd(t *testing.T) {
	for _, c := range []struct {
		name     string
		after    time.Duration
		finished bool
	}{
		{"before the first fetch", 0, false},
		{"during the first fetch", time.Second, false},
		{"while waiting", 10 * time.Second, true},
		{"during a later fetch", 70 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				updates := 0
				src := New(Settings{time.Minute, time.Hour}, func(ctx context.Context) (string, Phase, error) {
					select {
					case <-ctx.Done():
						return "", Phase{}, ctx.Err()
					case <-time.After(8 * time.Second):
						return "value", Phase{}, nil
					}
				}, func(bool) { updates++ })
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					src.Run(ctx, time.Millisecond)
					close(done)
				}()
				time.Sleep(c.after)
				ended := time.Now()
				_, _, before := src.Value() // no reader waits for a fetch
				src.RetryNow()
				src.ApplySettings(Settings{time.Minute, time.Hour})
				stop()
				<-done
				simtest.AssertEqual(t, "waited", time.Since(ended), time.Duration(0))
				state := src.State()
				simtest.AssertEqual(t, "state", []any{state.Finished, state.Err}, []any{c.finished, error(nil)})
				_, _, after := src.Value()
				simtest.AssertEqual(t, "value stays", after, before)
				simtest.AssertEqual(t, "updates", updates > 0, before)
			})
		})
	}
}
