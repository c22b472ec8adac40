package rentalapi

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator"
)

// TestBudgetWindow lets many goroutines want all they can get, with requests that
// travel for random times to the provider and back, and counts at the provider.
func TestBudgetWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		var mu sync.Mutex
		random := func(most time.Duration) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(rng.Int64N(int64(most)))
		}
		const limit, bulkLimit = 59, 20
		b := newBudget(limit, bulkLimit)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		arrived := map[class][]time.Time{}
		var wg sync.WaitGroup
		for i := range 40 {
			c := class(i % 2)
			wg.Go(func() {
				for {
					release, err := b.acquire(ctx, c)
					if err != nil {
						return
					}
					time.Sleep(random(8 * time.Second))
					mu.Lock()
					arrived[c] = append(arrived[c], time.Now())
					mu.Unlock()
					time.Sleep(random(4 * time.Second))
					release()
				}
			})
		}
		wg.Wait()
		all := append(slices.Clone(arrived[regular]), arrived[bulk]...)
		if got := simulator.Peak(all); got != limit {
			t.Errorf("busiest minute at the provider: got %d requests, want the limit of %d", got, limit)
		}
		if got := simulator.Peak(arrived[bulk]); got > bulkLimit {
			t.Errorf("busiest minute of bulk requests: got %d, want at most %d", got, bulkLimit)
		}
		// Over an hour of 3,600 s, each place can be used once in a window and a request.
		if got, least := len(all), limit*3600/(61+12)*9/10; got < least {
			t.Errorf("got %d requests in an hour, want at least %d: places are lost", got, least)
		}
	})
}

func TestBudgetBulkLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10, 4)
		for range 4 {
			acquireNow(t, b, bulk)()
		}
		if wait := b.wait(time.Now(), bulk); wait != window {
			t.Errorf("fifth bulk request: got a wait of %v, want %v", wait, window)
		}
		for range 6 {
			acquireNow(t, b, regular)()
		}
		if wait := b.wait(time.Now(), regular); wait != window {
			t.Errorf("eleventh request: got a wait of %v, want %v", wait, window)
		}
		time.Sleep(window)
		acquireNow(t, b, bulk)()
	})
}

func acquireNow(t *testing.T, b *budget, c class) (release func()) {
	t.Helper()
	start := time.Now()
	release, err := b.acquire(t.Context(), c)
	if waited := time.Since(start); err != nil || waited > 0 {
		t.Fatalf("acquire: waited %v, error %v; want it at once", waited, err)
	}
	return release
}

func TestBudgetPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10, 4)
		start := time.Now()
		b.pause(start.Add(patience), "status 429")
		b.pause(start.Add(time.Second), "a shorter one changes nothing")
		release, err := b.acquire(t.Context(), regular)
		if err != nil || time.Since(start) != patience {
			t.Fatalf("short pause: got %v after %v, want no error after %v", err, time.Since(start), patience)
		}
		release()

		until := time.Now().Add(patience + time.Second)
		b.pause(until, "status 503")
		start = time.Now()
		_, err = b.acquire(t.Context(), regular)
		var paused *PausedError
		if !errors.As(err, &paused) || *paused != (PausedError{Until: until, Cause: "status 503"}) || time.Since(start) != 0 {
			t.Fatalf("long pause: got %v after %v, want a PausedError at once", err, time.Since(start))
		}
		if got, ok := b.pausedUntil(time.Now()); !ok || !got.Equal(until) {
			t.Errorf("pausedUntil: got %v %v, want %v true", got, ok, until)
		}
		time.Sleep(patience + time.Second)
		if _, ok := b.pausedUntil(time.Now()); ok {
			t.Error("pausedUntil: still true after the pause")
		}
	})
}

// A pause that begins while a request waits for its place ends the wait.
func TestBudgetPauseWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(1, 1)
		acquireNow(t, b, regular)()
		start := time.Now()
		time.AfterFunc(5*time.Second, func() { b.pause(time.Now().Add(time.Hour), "status 429") })
		_, err := b.acquire(t.Context(), regular)
		var paused *PausedError
		if !errors.As(err, &paused) || time.Since(start) != 5*time.Second {
			t.Errorf("got %v after %v, want a PausedError after 5s", err, time.Since(start))
		}
	})
}

func TestBudgetResizeAndCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(1, 1)
		hold := acquireNow(t, b, regular)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := b.acquire(ctx, regular); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("acquire with a context that ends: got %v", err)
		}
		start := time.Now()
		time.AfterFunc(2*time.Second, func() { b.resize(2, 2) })
		release, err := b.acquire(t.Context(), regular)
		if err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("after resize: got %v after %v, want no error after 2s", err, time.Since(start))
		}
		release()
		hold()
	})
}

func TestBudgetsByToken(t *testing.T) {
	bs := budgets{limits: Limits{Public: 1, Account: 2, AccountBulk: 1}, byKey: map[digest]*budget{}}
	a, b, public := bs.of(digestOf("a")), bs.of(digestOf("b")), bs.of(digestOf(""))
	if a == b || a == public || a != bs.of(digestOf("a")) {
		t.Error("budgets: want one for each token and one for the public scope")
	}
	bs.resize(Limits{Public: 3, Account: 5, AccountBulk: 4})
	if got := [4]int{public.limit, a.limit, a.bulk, bs.of(digestOf("c")).limit}; got != [4]int{3, 5, 4, 5} {
		t.Errorf("limits after resize: got %v, want [3 5 4 5]", got)
	}
}

func BenchmarkBudget(b *testing.B) {
	budget := newBudget(120, 60)
	for range 119 {
		budget.release(regular)
	}
	budget.flying[regular] = 0
	b.ReportAllocs()
	for b.Loop() {
		budget.mu.Lock()
		budget.wait(time.Now(), bulk)
		budget.mu.Unlock()
	}
}
