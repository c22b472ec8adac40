package rentalapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The provider does not document the units of Retry-After and RateLimit-Reset, so every usual
// one is understood. HTTP defines those of Retry-After, so the other is trusted for less long.
const (
	minBackoff     = time.Second
	maxBackoff     = 24 * time.Hour // a maintenance page may say 2099
	maxReset       = time.Hour
	unknownBackoff = time.Minute // if the header is missing or cannot be read

	firstEpoch = 1e9 // seconds: larger numbers are a point in time (2001 or later)
)

// parseDelay reads a delay from a header value: seconds, an HTTP date or Unix seconds.
// Points in time are compared with date, the provider's own clock, so that a wrong local
// clock does not matter.
func parseDelay(value string, date time.Time) time.Duration {
	value = strings.TrimSpace(value)
	seconds, err := strconv.ParseUint(value, 10, 32)
	delay := time.Duration(seconds) * time.Second
	at, dateErr := http.ParseTime(value)
	switch {
	case dateErr == nil:
		delay = at.Sub(date)
	case err != nil:
		return unknownBackoff
	case seconds >= firstEpoch:
		delay = time.Unix(int64(seconds), 0).Sub(date)
	}
	return min(max(delay, minBackoff), maxBackoff)
}

// retryDelay returns how long a response asks to wait before the next request, and
// why; 0 if it does not. Of a status and RateLimit-Remaining, the longer delay counts.
func retryDelay(resp *http.Response, date time.Time) (delay time.Duration, cause string) {
	retry, reset := resp.Header.Get("Retry-After"), resp.Header.Get("RateLimit-Reset")
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		delay, cause = parseDelay(retry, date), "status 429"
	case resp.StatusCode == http.StatusServiceUnavailable && retry != "":
		delay, cause = parseDelay(retry, date), "status 503"
	}
	exhausted := strings.TrimSpace(resp.Header.Get("RateLimit-Remaining")) == "0"
	decides := exhausted && (delay == 0 || reset != "") // without a reset, the status decides
	if d := min(parseDelay(reset, date), maxReset); decides && d > delay {
		delay, cause = d, "RateLimit-Remaining is 0"
	}
	return delay, cause
}
