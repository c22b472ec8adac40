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
