package collector

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

func day(t testing.TB, s string) time.Time {
	t.Helper()
	d, err := time.Parse(time.DateOnly, s)
	if err != nil {
		t.Fatal(err)
	}
	return d
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

// TestFunding compares both gauges of random fleets with an independent calculation, on days around
// the ends of months and leap days. Some servers are free, overdue for years, or renew after the horizon.
func TestFunding(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 0))
		today := day(t, []string{"2026-01-31", "2026-02-28", "2028-02-29", "2027-02-27", "2026-12-31", "2026-04-30"}[rng.IntN(6)])
		renewals, due := map[time.Time]micros{}, map[time.Time]int{} // due is in cents
		horizon := today.AddDate(HorizonYears, 0, 0)
		for range rng.IntN(6) {
			next, cents := today.AddDate(0, 0, rng.IntN(120)-50), rng.IntN(2)*rng.IntN(20_000)
			if rng.IntN(5) == 0 {
				next = next.AddDate(rng.IntN(16)-4, 0, 0)
			}
			renewals[next] += microsOf(float64(cents) / 100)
			for _, at := range independentDays(next, today, horizon) {
				due[at] += cents
			}
		}
		balance, left := rng.IntN(200_000)*(1+99*rng.IntN(2))-50_000, 0
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
				if due[at] > max(left, 0) {
					until = at
					break
				}
				left -= due[at]
			}
			want[simtest.Series(accountFunded.Name, "account", "main")] = float64(until.Unix())
		}
		data := Data{Account: &Account{Balance: struct{ USD *amount }{ptr(amount(balance) / 100)}}, Servers: &ServerData{renewals: renewals}}
		now := today.Add(time.Duration(rng.IntN(24)) * time.Hour)
		got := exposed(t, AccountData{Name: "main", Data: data}.Derived(now))
		simtest.AssertEqual(t, fmt.Sprint("seed ", seed), got, want)
	}
	unknown := AccountData{Name: "main", Data: Data{Account: &Account{}, Servers: &ServerData{renewals: map[time.Time]micros{today: 1}}}}
	simtest.AssertEqual(t, "series without a balance", len(unknown.Derived(today)), 2)
}
