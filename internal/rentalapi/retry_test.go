package rentalapi

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

func TestGoldenDelays(t *testing.T) {
	date := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	goldenCases(t, "testdata/delays.txt", func(t *testing.T, input string) string {
		parts := strings.Split(input, "; ")
		status, err := strconv.Atoi(parts[0])
		simtest.AssertEqual(t, "status", err, error(nil))
		header := http.Header{}
		for _, line := range parts[1:] {
			name, value, _ := strings.Cut(line, ": ")
			header.Set(name, value)
		}
		delay, cause := retryDelay(&http.Response{StatusCode: status, Header: header}, date)
		return strings.TrimSpace(delay.String() + " " + cause)
	})
}

func FuzzParseDelay(f *testing.F) {
	for _, s := range []string{"5", "1772366445", "Sun, 01 Mar 2026 12:02:00 GMT", "-1", "1e308", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := parseDelay(s, time.Now()); got < minBackoff || got > maxBackoff {
			t.Errorf("parseDelay(%q): %v is out of bounds", s, got)
		}
	})
}
