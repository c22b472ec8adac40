package collector

import (
	"fmt"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

// rent is the next renewal of a server and its price in dollars.
type rent struct {
	day string
	usd float64
}

func day(t testing.TB, s string) time.Time {
	t.Helper()
	d, err := time.Parse(time.DateOnly, s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestFundedUntil has the bounds of months, balances and the horizon.
func TestFundedUntil(t *testing.T) {
	for _, c := range []struct {
		name  string
		now   string
		usd   float64
		rents []rent
		want  string
	}{
		{"no servers", "2026-03-15", 100, nil, "none"},
		{"in cents", "2026-03-15", 0.3, []rent{{"2026-03-20", 0.1}}, "2026-06-20"},
		{"in cents that are no binary fractions", "2026-03-15", 12.09, []rent{{"2026-03-20", 4.03}}, "2026-06-20"},
		{"in cents, a cent too little", "2026-03-15", 0.29, []rent{{"2026-03-20", 0.1}}, "2026-05-20"},
		{"overdue for two years", "2026-03-15", 5000, []rent{{"2024-01-10", 300}, {"2026-04-01", 50}}, "2027-05-10"},
		{"overdue since the 31st, today is the last of a month", "2026-02-28", 50, []rent{{"2026-01-31", 50}}, "2026-03-31"},
		{"free servers", "2026-03-15", 0, []rent{{"2026-03-20", 0}}, "2036-03-15"},
		{"last before the horizon", "2026-03-15", 50 * 119, []rent{{"2026-03-20", 50}}, "2036-02-20"},
		{"first after the horizon", "2026-03-15", 50 * 120, []rent{{"2026-03-20", 50}}, "2036-03-15"},
		{"after the horizon", "2026-03-15", 0, []rent{{"2040-01-01", 50}}, "2036-03-15"},
		{"overdue since 1970", "2026-03-15", 50 * 12, []rent{{"1970-01-01", 50}}, "2027-03-01"},
		{"horizon from a leap day", "2028-02-29", 1e6, []rent{{"2028-03-01", 1}}, "2038-03-01"},
	} {
		t.Run(c.name, func(t *testing.T) {
			renewals := map[time.Time]micros{}
			for _, r := range c.rents {
				renewals[day(t, r.day)] += microsOf(r.usd)
			}
			got := "none"
			if until, ok := fundedUntil(microsOf(c.usd), renewals, day(t, c.now).Add(13*time.Hour)); ok {
				got = until.Format(time.RFC3339)
				c.want += "T00:00:00Z"
			}
			simtest.AssertEqual(t, "funded until", got, c.want)
		})
	}
}

func TestRenewalDays(t *testing.T) {
	for _, c := range []struct {
		day, today, until string
		want              []string
	}{
		{"2026-03-29", "2026-03-15", "2026-03-29", []string{"2026-03-29"}},
		{"2026-03-30", "2026-03-15", "2026-03-29", nil},
		{"2026-03-15", "2026-03-15", "2026-03-29", []string{"2026-03-15"}},
		{"2026-02-20", "2026-03-15", "2026-03-29", []string{"2026-02-20", "2026-03-20"}},
		{"2025-01-20", "2026-03-15", "2026-03-29", []string{"2025-01-20", "2026-03-20"}},
		{"2026-01-31", "2026-02-28", "2026-03-14", []string{"2026-01-31"}},
		{"2026-01-31", "2026-01-15", "2026-04-30", []string{"2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"}},
		{"2025-12-31", "2026-02-28", "2026-04-29", []string{"2025-12-31", "2026-03-31"}},
	} {
		var got []string
		for _, at := range RenewalDays(day(t, c.day), day(t, c.today), day(t, c.until)) {
			got = append(got, at.Format(time.DateOnly))
		}
		simtest.AssertEqual(t, fmt.Sprint(c.day, " seen on ", c.today), got, c.want)
	}
}
