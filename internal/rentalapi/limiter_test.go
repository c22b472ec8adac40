package rentalapi

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

// sends are the times at which requests were sent, and the limits in force.
type sends struct {
	mu     sync.Mutex
	at     []time.Time
	limits []limitAt
}

type limitAt struct {
	from  time.Time
	limit int
}

// newAPI returns an API whose requests take up to 3 seconds and sometimes fail, and a function
// that changes the limit of accounts.
func (s *sends) newAPI(rng *rand.Rand, limit int) (api *API, setLimit func(int)) {
	settings := Settings{BaseURL: &url.URL{Scheme: "https", Host: "rental.example"}, Timeout: 2500 * time.Millisecond}
	settings.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		s.mu.Lock()
		s.at = append(s.at, time.Now())
		took, outcome, delay := time.Duration(rng.Int64N(int64(3*time.Second))), rng.IntN(20), rng.IntN(20)
		s.mu.Unlock()
		time.Sleep(took)
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"data":[]}`))}
		switch {
		case outcome < 3:
			return nil, io.EOF
		case outcome < 4:
			resp.StatusCode = http.StatusTooManyRequests
			resp.Header.Set("Retry-After", strconv.Itoa(delay))
		}
		return resp, r.Context().Err()
	})
	setLimit = func(limit int) {
		s.limits = append(s.limits, limitAt{time.Now(), limit})
		settings.Limits.Account = limit
		if api == nil {
			api = New("test/1", settings)
		}
		api.ApplySettings(settings)
	}
	setLimit(limit)
	return api, setLimit
}

// maxLimit returns the highest limit in force at some moment of an interval.
func (s *sends) maxLimit(from, to time.Time) int {
	highest := 0
	for i, l := range s.limits {
		ended := i+1 < len(s.limits) && s.limits[i+1].from.Before(from)
		if !ended && !l.from.After(to) {
			highest = max(highest, l.limit)
		}
	}
	return highest
}

// TestLimiterWindow makes as many requests as possible with one token, for two accounts,
// while some fail, the API asks for backoffs, and limits change: no 60 seconds have more
// requests than the limit.
func TestLimiterWindow(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			var s sends
			randomLimit := func() int { return Burst + 1 + rng.IntN([]int{3, 10, 120}[rng.IntN(3)]) }
			api, setLimit := s.newAPI(rand.New(rand.NewPCG(seed, 1)), randomLimit())
			end := time.Now().Add(30 * time.Minute)
			var requesting sync.WaitGroup
			for i := range uint64(8) {
				c := api.Client(fmt.Sprint("account ", i%2), func() (string, error) { return "secret", nil })
				idle := rand.New(rand.NewPCG(seed, 2+i))
				requesting.Go(func() {
					for time.Now().Before(end) {
						if fetchList(t.Context(), c, "/servers") != nil || idle.IntN(50) == 0 {
							time.Sleep(time.Duration(1 + idle.Int64N(int64(20*time.Second))))
						}
					}
				})
			}
			for time.Now().Before(end) {
				time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Minute))))
				setLimit(randomLimit())
			}
			requesting.Wait()
			first := 0
			for i, at := range s.at {
				for at.Sub(s.at[first]) > time.Minute {
					first++
				}
				if n, limit := i-first+1, s.maxLimit(s.at[first], at); n > limit {
					t.Fatalf("seed %d: %d requests within %v, but the limit is %d", seed, n, at.Sub(s.at[first]), limit)
				}
			}
			if len(s.at) < 30 { // a limit of 1 all the time
				t.Errorf("seed %d: only %d requests", seed, len(s.at))
			}
		})
	}
}

// TestLimiterRate has more to request than the limit allows: how much goes out at once, in a
// minute, and in an hour.
func TestLimiterRate(t *testing.T) {
	for limit, want := range map[int][3]int{
		5: {4, 5, 64}, 60: {4, 60, 3364}, 120: {4, 120, 6964},
	} {
		synctest.Test(t, func(t *testing.T) {
			ls := limiters{limits: Limits{Account: limit}, byToken: map[Fingerprint]*limiter{}}
			var got [3]int
			start := time.Now()
			for {
				if err := ls.wait(t.Context(), fingerprint("secret"), "/servers"); err != nil {
					t.Fatal(err)
				}
				for i, within := range []time.Duration{0, time.Minute + time.Second/2, time.Hour + time.Second/4} {
					if time.Since(start) <= within {
						got[i]++
					}
				}
				if time.Since(start) > 61*time.Minute {
					break
				}
			}
			simtest.AssertEqual(t, fmt.Sprint("limit ", limit), got, want)
		})
	}
}
