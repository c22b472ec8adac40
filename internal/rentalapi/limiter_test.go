package rentalapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

// testLimiter is the limiter of a token.
type testLimiter struct {
	*limiter
	all *limiters
}

func newLimiter(limit, bulk int) testLimiter {
	ls := &limiters{limits: Limits{Account: limit, AccountBulk: bulk}, byToken: map[Fingerprint]*limiter{}}
	return testLimiter{ls.get(fingerprint("token"), time.Now()), ls}
}

func (l testLimiter) acquire(ctx context.Context, p Priority) (*slot, error) {
	_, s, err := l.all.acquire(ctx, fingerprint("token"), p, "/servers")
	return s, err
}

// TestLimiterWindow lets many goroutines want all they can get, with requests that
// travel for random times to the provider and back, and counts at the provider.
func TestLimiterWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const seed = 1
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		var mu sync.Mutex
		random := func(longest time.Duration) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(rng.Int64N(int64(longest)))
		}
		const limit, bulkLimit = 59, 20
		l := newLimiter(limit, bulkLimit)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		arrived := map[Priority][]time.Time{}
		var wg sync.WaitGroup
		for i := range 40 {
			c := Priority(i % 2)
			wg.Go(func() {
				for {
					slot, err := l.acquire(ctx, c)
					if err != nil {
						return
					}
					time.Sleep(random(8 * time.Second))
					mu.Lock()
					arrived[c] = append(arrived[c], time.Now())
					mu.Unlock()
					time.Sleep(random(4 * time.Second))
					l.release(slot, answered)
				}
			})
		}
		wg.Wait()
		all := append(slices.Clone(arrived[Regular]), arrived[Bulk]...)
		if got := simtest.Peak(all); got != limit {
			t.Errorf("busiest minute at the provider: got %d requests, want the limit of %d", got, limit)
		}
		if got := simtest.Peak(arrived[Bulk]); got > bulkLimit {
			t.Errorf("busiest minute of bulk requests: got %d, want at most %d", got, bulkLimit)
		}
		// Over an hour of 3,600 s, each slot can be used once in a window and a request.
		if got, want := len(all), limit*3600/(61+12)*9/10; got < want {
			t.Errorf("got %d requests in an hour, want at least %d: slots are lost", got, want)
		}
	})
}

func TestLimiterBulkLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(10, 4)
		for range 4 {
			acquireNow(t, l, Bulk)()
			if wait := l.wait(time.Now(), Bulk); wait < bulkSpacing {
				t.Errorf("next bulk request: got a wait of %v, want at least %v", wait, bulkSpacing)
			}
			time.Sleep(bulkSpacing)
		}
		if wait := l.wait(time.Now(), Bulk); wait != window-4*bulkSpacing {
			t.Errorf("fifth bulk request: got a wait of %v, want %v", wait, window-4*bulkSpacing)
		}
		for range 6 {
			acquireNow(t, l, Regular)()
		}
		if wait := l.wait(time.Now(), Regular); wait != window-4*bulkSpacing {
			t.Errorf("eleventh request: got a wait of %v, want %v", wait, window-4*bulkSpacing)
		}
		time.Sleep(window)
		acquireNow(t, l, Bulk)()
	})
}

func acquireNow(t *testing.T, l testLimiter, c Priority) (release func()) {
	t.Helper()
	start := time.Now()
	slot, err := l.acquire(t.Context(), c)
	if waited := time.Since(start); err != nil || waited > 0 {
		t.Fatalf("acquire: waited %v, error %v; want it at once", waited, err)
	}
	return func() { l.release(slot, answered) }
}

// TestLimiterStall has a provider that stalls, lets requests wait although their clients
// give up after a second, and then serves all of them at once.
func TestLimiterStall(t *testing.T) {
	for limit, clients := range map[int]int{30: 10, 59: 40, 120: 40} {
		synctest.Test(t, func(t *testing.T) {
			const stall, after = 22 * time.Minute, 10 * time.Minute
			var mu sync.Mutex
			var waiting, served int
			var sent, seen []time.Time
			l := newLimiter(limit, limit)
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), stall+after)
			defer cancel()
			request := func() outcome {
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, time.Now())
				if time.Since(start) < stall {
					waiting++
					return unanswered
				}
				for ; waiting > 0; waiting-- {
					seen = append(seen, start.Add(stall))
				}
				seen = append(seen, time.Now())
				served++
				return answered
			}
			for range clients {
				go func() {
					for {
						slot, err := l.acquire(ctx, Regular)
						if err != nil {
							return
						}
						o := request()
						time.Sleep(time.Second)
						l.release(slot, o)
					}
				}()
			}
			<-ctx.Done()
			synctest.Wait()
			if got := simtest.Peak(seen); got > limit {
				t.Errorf("limit %d: the provider saw %d requests in a minute", limit, got)
			}
			longest := time.Duration(0)
			for i, at := range sent[1:] {
				longest = max(longest, at.Sub(sent[i]))
			}
			if longest > 3*time.Minute {
				t.Errorf("limit %d: no request for %v", limit, longest)
			}
			if served < 5*limit {
				t.Errorf("limit %d: %d requests in %v after the stall", limit, served, after)
			}
		})
	}
}

// TestOutcome has requests that the provider may see after they ended, and others: for how
// long each keeps its slot, and that a response to a later one shortens this to a window.
func TestOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		respond http.HandlerFunc
		want    outcome
	}{
		"response":              {simtest.Reply(500, nil, ""), answered},
		"hanging in the header": {hang(""), unanswered},
		"hanging in the body":   {hang("{"), answered},
		"closed":                {drop(""), unanswered},
		"no HTTP":               {raw("x\r\n"), unanswered},
		"no connection":         {nil, notSent},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, h *harness) {
				remove := h.Override("", c.respond)
				before := *h.client.settings.Load()
				if c.respond == nil {
					refusing := before
					refusing.Transport = roundTripper(func(*http.Request) (*http.Response, error) { return nil, io.EOF })
					h.client.ApplySettings(refusing)
				}
				want := slot{outcome: c.want, sent: time.Now()}
				_ = fetchList(t.Context(), h.main(), "/servers")
				l := h.client.limiters.get(fingerprint(simtest.MainToken), time.Now())
				want.until = time.Now().Add(window)
				if c.want == unanswered {
					want.until = time.Now().Add(maxUnanswered)
				}
				simtest.AssertEqual(t, "slots", l.slots, []*slot{&want})

				remove()
				h.reply(200, `{"data":[]}`)
				h.client.ApplySettings(before)
				time.Sleep(time.Second)
				simtest.AssertEqual(t, "later request", fetchList(t.Context(), h.main(), "/servers"), error(nil))
				later := slot{outcome: answered, sent: time.Now(), until: time.Now().Add(window)}
				if c.want == unanswered {
					want.outcome, want.until = answered, later.until
				}
				simtest.AssertEqual(t, "slots after a response", l.slots, []*slot{&want, &later})
			})
		})
	}
}

// TestLimiterPause has a short pause, for which a request waits, and a long one, which ends the
// wait of a request for a slot.
func TestLimiterPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(1, 1)
		start := time.Now()
		l.pause(start.Add(maxWait), "status 429")
		l.pause(start.Add(time.Second), "a shorter one changes nothing")
		acquired, err := l.acquire(t.Context(), Regular)
		simtest.AssertEqual(t, "error", err, error(nil))
		simtest.AssertEqual(t, "wait for the end of a pause", time.Since(start), maxWait)
		l.release(acquired, answered)
		time.AfterFunc(5*time.Second, func() { l.pause(time.Now().Add(time.Hour), "status 503") })
		_, err = l.acquire(t.Context(), Regular)
		assertPaused(t, err, start.Add(time.Hour+maxWait+5*time.Second), "/servers: no request made: status 503; waiting until 2000-01-01T01:00:15Z")
		simtest.AssertEqual(t, "wait until a pause", time.Since(start), maxWait+5*time.Second)
	})
}

// assertPaused asserts that an error is that of a request which was not made.
func assertPaused(t *testing.T, err error, until time.Time, text string) {
	t.Helper()
	var failure *Error
	if !errors.As(err, &failure) || failure.Reason != Paused || !failure.RetryAt().Equal(until) || err.Error() != text {
		t.Errorf("got %v, want a pause until %v: %s", err, until, text)
	}
}

func TestLimiterApplyLimitsAndCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(1, 1)
		hold := acquireNow(t, l, Regular)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := l.acquire(ctx, Regular); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("acquire with a context that ends: got %v", err)
		}
		start := time.Now()
		time.AfterFunc(2*time.Second, func() { l.all.apply(Limits{Account: 2, AccountBulk: 2}, false) })
		slot, err := l.acquire(t.Context(), Regular)
		if err != nil || time.Since(start) != 2*time.Second {
			t.Fatalf("after apply: got %v after %v, want no error after 2s", err, time.Since(start))
		}
		l.release(slot, answered)
		hold()
	})
}

// TestRotatedTokens asserts that there is one limiter for each token and one for the public
// scope, and that it stays while it has something to remember, and no longer.
func TestRotatedTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := &limiters{limits: Limits{Public: 1, Account: 2, AccountBulk: 1}, byToken: map[Fingerprint]*limiter{}}
		names := map[Fingerprint]string{}
		acquire := func(token string) func(outcome) {
			names[fingerprint(token)] = token
			l, slot, err := ls.acquire(t.Context(), fingerprint(token), Regular, "/servers")
			simtest.AssertEqual(t, "error", err, error(nil))
			return func(o outcome) { l.release(slot, o) }
		}
		acquire("")(answered)
		acquire("answered")(answered)
		acquire("answered")(answered)
		acquire("unanswered")(unanswered)
		acquire("paused")(notSent)
		acquire("under way")
		ls.byToken[fingerprint("paused")].pause(time.Now().Add(2*window), "status 429")
		ls.apply(Limits{Public: 3, Account: 5, AccountBulk: 4}, false)
		for _, step := range []struct {
			after     time.Duration
			new, want string
		}{
			{0, "a", "map[:3/1 a:5/4 answered:5/4 paused:5/4 unanswered:5/4 under way:5/4]"},
			{window, "b", "map[b:5/4 paused:5/4 unanswered:5/4 under way:5/4]"},
			{window, "c", "map[c:5/4 unanswered:5/4 under way:5/4]"},
			{maxUnanswered, "d", "map[d:5/4 under way:5/4]"},
		} {
			time.Sleep(step.after)
			acquire(step.new)(answered)
			got := map[string]string{}
			for token, l := range ls.byToken {
				got[names[token]] = fmt.Sprintf("%d/%d", l.limit, l.bulk)
			}
			simtest.AssertEqual(t, step.new, fmt.Sprint(got), step.want)
		}
	})
}

// TestReplacedLimiter has a limiter that is replaced while a request waits for it.
func TestReplacedLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(1, 1)
		start := time.Now()
		acquireNow(t, l, Regular)()
		time.AfterFunc(time.Second, func() {
			l.mu.Lock()
			clear(l.all.byToken)
			l.mu.Unlock()
			replacement, slot, _ := l.all.acquire(t.Context(), fingerprint("token"), Regular, "/servers")
			replacement.release(slot, answered)
		})
		_, err := l.acquire(t.Context(), Regular)
		simtest.AssertEqual(t, "error", err, error(nil))
		simtest.AssertEqual(t, "wait", time.Since(start), window+time.Second)
	})
}
