package rentalapi

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestLimiterRate has more to request than the limit allows: how much goes out at once, in a
// minute, and in an hour.
func TestLimiterRate(t *testing.T) {
	for limit, want := range map[int][3]int{
		5: {4, 5, 64}, 60: {4, 60, 3364}, 120: {4, 120, 6964},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := New("test/1", Settings{Limits: Limits{Account: limit}}, nil)
			var got [3]int
			start := time.Now()
			for {
				if err := api.wait(t.Context(), fingerprint("secret")); err != nil {
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
