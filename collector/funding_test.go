package collector

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
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

// fund returns the series of funding of an account.
func fund(t *testing.T, balance float64, renewals map[time.Time]micros, now time.Time) map[string]float64 {
	t.Helper()
	usd := amount(balance)
	known := Known{Account: "main", Data: Data{Account: &Account{Balance: struct{ USD *amount }{&usd}}, Servers: &ServerData{renewals: renewals}}}
	metrics, _ := DerivedMetrics([]Known{known}, now)
	return exposed(t, metrics)
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
		{"in cents that are no binary fractions", "2026-03-15", 12.09, []rent{{"2026-03-20", 4.03}}, "2026-06-20"},
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
			today := day(t, c.now)
			if until, found := fund(t, c.usd, renewals, today.Add(13*time.Hour))[simtest.Series(accountFunded.Name, "account", "main")]; found {
				got = time.Unix(int64(until), 0).UTC().Format(time.DateOnly)
			}
			simtest.AssertEqual(t, "funded until", got, c.want)
		})
	}
}

// independentDays returns the days from 1970 to until on which a server renews: it looks at each
// day by itself, and compares calendars only.
func independentDays(next, today, until time.Time) (days []time.Time) {
	if !next.After(today) && !next.After(until) {
		days = append(days, next) // overdue, or of today: once
	}
	for at := today.Add(24 * time.Hour); !at.After(until); at = at.Add(24 * time.Hour) {
		lastOfMonth := at.Add(24*time.Hour).Month() != at.Month()
		if !at.Before(next) && (at.Day() == next.Day() || lastOfMonth && at.Day() < next.Day()) {
			days = append(days, at)
		}
	}
	return days
}

// TestFundingOfFleets compares both gauges of random fleets with an independent calculation, on
// days around the ends of months and leap days.
func TestFundingOfFleets(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 0))
		today := day(t, []string{"2026-01-31", "2026-02-28", "2028-02-29", "2027-02-27", "2026-12-31", "2026-04-30"}[rng.IntN(6)])
		renewals, due := map[time.Time]micros{}, map[time.Time]int{} // due is in cents
		horizon := today.AddDate(HorizonYears, 0, 0)
		for range rng.IntN(6) {
			next, cents := today.AddDate(0, 0, rng.IntN(120)-50), rng.IntN(20_000)
			renewals[next] += microsOf(float64(cents) / 100)
			for _, at := range independentDays(next, today, horizon) {
				due[at] += cents
			}
		}
		balance, left := rng.IntN(200_000)-10_000, 0
		want := map[string]float64{}
		for _, days := range []int{7, 30} {
			sum := 0
			for at, cents := range due {
				if at.Before(today.AddDate(0, 0, days+1)) {
					sum += cents
				}
			}
			want[simtest.Series(accountDue.Name, "account", "main", "days", strconv.Itoa(days))] = float64(sum) / 100
		}
		if len(renewals) > 0 {
			until := horizon
			left = balance
			for _, at := range slices.SortedFunc(maps.Keys(due), time.Time.Compare) {
				if at.Before(horizon) && due[at] > max(left, 0) {
					until = at
					break
				}
				left -= due[at]
			}
			want[simtest.Series(accountFunded.Name, "account", "main")] = float64(until.Unix())
		}
		got := fund(t, float64(balance)/100, renewals, today.Add(time.Duration(rng.IntN(24))*time.Hour))
		simtest.AssertEqual(t, fmt.Sprint("seed ", seed), got, want)
	}
}
