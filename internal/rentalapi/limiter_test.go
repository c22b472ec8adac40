package rentalapi

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestLimiters changes the limit after a burst, and then the token again and again.
func TestLimiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings, present := Settings{BaseURL: &url.URL{}, Timeout: time.Minute, Limits: Limits{Account: 5}}, ""
		api := New("test/1", settings, nil)
		client := api.Client("main", func() (string, error) { return present, nil })
		wait := func(token string) time.Duration {
			start := time.Now()
			present = token
			_, permit, err := client.wait(t.Context(), "/servers")
			simtest.AssertEqual(t, "error", err, error(nil))
			permit.Release(1)
			return time.Since(start)
		}
		for range Burst {
			wait("secret")
		}
		delays := []time.Duration{wait("secret")}
		settings.Limits.Account = 64
		api.ApplySettings(settings)
		delays = append(delays, wait("secret"))
		simtest.AssertEqual(t, "delays at 1 and at 60 requests a minute", delays, []time.Duration{time.Minute, time.Second})
		for n := range 100 {
			time.Sleep(time.Minute)
			wait(fmt.Sprint("secret-", n))
		}
		simtest.AssertEqual(t, "limiters that are kept", len(api.limiters), 1)
	})
}

func TestRetryDelay(t *testing.T) {
	date := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) // 1772366400
	for _, c := range []struct {
		status                  int
		retry, remaining, reset string // headers
		want                    time.Duration
	}{
		{429, " 30 ", "", "", 30 * time.Second},
		{429, "120.0", "", "", 2 * time.Minute},
		{429, "NaN", "", "", time.Minute},
		{429, "1e400", "", "", 24 * time.Hour},
		{403, "120", "", "", 2 * time.Minute},
		{200, "120", "", "", 0},
		{429, "", "", "", time.Minute},
		{429, "Sun, 01 Mar 2026 12:02:00 GMT", "", "", 2 * time.Minute},
		{429, "Sun, 01 Mar 2026 11:00:00 GMT", "", "", time.Second},
		{429, "1772366445", "", "", 45 * time.Second},
		{503, "Sun, 01 Mar 2099 12:00:00 GMT", "", "", 24 * time.Hour},
		{503, "", "", "", 0},
		{200, "", "5", "9", 0},
		{200, "", "0", "9", 9 * time.Second},
		{200, "", "0", "1772366409000", 9 * time.Second},
		{200, "", "0", "1772366409000000000", 9 * time.Second},
		{200, "", "0", "", time.Minute},
		{429, "2", "0", "40", 40 * time.Second},
		{429, "60", "0", "40", time.Minute},
		{429, "2", "0", "", 2 * time.Second},
	} {
		header := http.Header{}
		for name, value := range map[string]string{"Retry-After": c.retry, "RateLimit-Remaining": c.remaining, "RateLimit-Reset": c.reset} {
			if value != "" {
				header.Set(name, value)
			}
		}
		if got := retryDelay(&http.Response{StatusCode: c.status, Header: header}, date); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}
