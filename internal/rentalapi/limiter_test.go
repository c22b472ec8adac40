package rentalapi

import (
	"fmt"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestLimiters changes the limit after a burst, and then the token again and again.
func TestLimiters(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.reply(200, emptyList)
		settings := *h.client.settings.Load()
		limitTo := func(n int) {
			settings.Limits.Account = n
			h.client.ApplySettings(settings)
		}
		limitTo(5)
		token := "secret"
		client := h.newClient("main", func() (string, error) { return token, nil })
		delay := func() time.Duration {
			start := time.Now()
			simtest.AssertEqual(t, "error", fetchList(t.Context(), client, "/servers"), error(nil))
			return time.Since(start)
		}
		got := []time.Duration{delay(), delay(), delay(), delay(), delay()}
		limitTo(64)
		simtest.AssertEqual(t, "delays at 1 and at 60 requests a minute", append(got, delay()), []time.Duration{0, 0, 0, 0, time.Minute, time.Second})
		for n := range 100 {
			time.Sleep(time.Minute)
			token = fmt.Sprint("secret-", n)
			delay()
		}
		simtest.AssertEqual(t, "limiters that are kept", len(h.client.limiters), 1)
	})
}

// TestBackoffs has how long a response asks to wait, and what is said to be the reason.
func TestBackoffs(t *testing.T) {
	for _, c := range []struct {
		status                  int
		retry, remaining, reset string // headers
		want                    time.Duration
		cause                   string
	}{
		{429, " 30 ", "", "", 30 * time.Second, "rate_limited: status 429"},
		{429, "120.0", "", "", 2 * time.Minute, "rate_limited: status 429"},
		{429, "NaN", "", "", time.Minute, "rate_limited: status 429"},
		{429, "1e400", "", "", 24 * time.Hour, "rate_limited: status 429"},
		{403, "120", "", "", 2 * time.Minute, "status: status 403"},
		{200, "120", "", "", 0, ""},
		{429, "", "", "", time.Minute, "rate_limited: status 429"},
		{429, "Sun, 01 Mar 2026 12:02:00 GMT", "", "", 2 * time.Minute, "rate_limited: status 429"},
		{429, "Sun, 01 Mar 2026 11:00:00 GMT", "", "", time.Second, "rate_limited: status 429"},
		{429, "1772366445", "", "", 45 * time.Second, "rate_limited: status 429"},
		{503, "Sun, 01 Mar 2099 12:00:00 GMT", "", "", 24 * time.Hour, "unavailable: status 503"},
		{503, "", "", "", 0, ""},
		{200, "", "5", "9", 0, ""},
		{200, "", "0", "9", 9 * time.Second, "rate_limited: RateLimit-Remaining: 0"},
		{200, "", "0", "1772366409000", 9 * time.Second, "rate_limited: RateLimit-Remaining: 0"},
		{200, "", "0", "1772366409000000000", 9 * time.Second, "rate_limited: RateLimit-Remaining: 0"},
		{200, "", "0", "", time.Minute, "rate_limited: RateLimit-Remaining: 0"},
		{404, "", "0", "60", time.Minute, "rate_limited: RateLimit-Remaining: 0"},
		{429, "2", "0", "40", 40 * time.Second, "rate_limited: status 429"},
		{429, "60", "0", "40", time.Minute, "rate_limited: status 429"},
		{429, "2", "0", "", 2 * time.Second, "rate_limited: status 429"},
	} {
		withHarness(t, func(t *testing.T, h *harness) {
			h.reply(c.status, emptyList, "Date", "Sun, 01 Mar 2026 12:00:00 GMT", "Retry-After", c.retry, "RateLimit-Remaining", c.remaining, "RateLimit-Reset", c.reset)
			began := time.Now()
			_ = fetchList(t.Context(), h.main(), "/servers")
			backoff, delay, cause := h.client.limiter(fingerprint(simtest.MainToken)).backoff, time.Duration(0), ""
			if backoff.Err != nil {
				delay, cause = backoff.Until.Sub(began), string(backoff.Reason)+": "+backoff.Error()
			}
			simtest.AssertEqual(t, fmt.Sprintf("%+v", c), fmt.Sprint(delay, " ", cause), fmt.Sprint(c.want, " ", c.cause))
		})
	}
}
