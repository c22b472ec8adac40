package collector

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/simulator"
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

// TestFundedUntil has what the generated fleets of TestFundingOfGeneratedFleets rarely
// reach.
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
		{"31st in February of a leap year", "2028-01-15", 50, []rent{{"2028-01-31", 50}}, "2028-02-29"},
		{"29th of February a year later", "2028-02-01", 600, []rent{{"2028-02-29", 50}}, "2029-02-28"},
		{"28th before the 31st that comes on the 28th", "2026-01-29", 50, []rent{{"2026-02-28", 50}, {"2026-01-31", 50}}, "2026-02-28"},
		{"overdue for two years", "2026-03-15", 5000, []rent{{"2024-01-10", 300}, {"2026-04-01", 50}}, "2027-05-10"},
		{"overdue since the 31st, today is the last of a month", "2026-02-28", 50, []rent{{"2026-01-31", 50}}, "2026-03-31"},
		{"free servers", "2026-03-15", 0, []rent{{"2026-03-20", 0}}, "2036-03-15"},
		{"last before the horizon", "2026-03-15", 50 * 119, []rent{{"2026-03-20", 50}}, "2036-02-20"},
		{"first after the horizon", "2026-03-15", 50 * 120, []rent{{"2026-03-20", 50}}, "2036-03-15"},
		{"on the day of the horizon", "2026-03-15", 50 * 120, []rent{{"2026-03-15", 50}}, "2036-03-15"},
		{"after the horizon", "2026-03-15", 0, []rent{{"2040-01-01", 50}}, "2036-03-15"},
		{"in the last year of dates", "2026-03-15", 0, []rent{{"9999-12-31", 50}}, "2036-03-15"},
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

// rental is a generated server. Its status, price and day are nil where the API does
// not send them, or sends them in a form that is not understood.
type rental struct {
	status any
	cents  any // int
	day    any // time.Time
}

func (r rental) object(id int) simulator.Object {
	o := simulator.Object{"id": fmt.Sprint(id), "status": r.status, "renews_at": "soon", "price": simulator.Object{"monthly": simulator.Object{"usd": "unknown"}}}
	if cents, known := r.cents.(int); known {
		simulator.Put(o, float64(cents)/100, "price", "monthly", "usd")
	}
	if day, known := r.day.(time.Time); known {
		o["renews_at"] = day.Format(time.DateOnly)
	}
	return o
}

// oracle computes funded until and the monthly cost as described in the documentation
// of the metrics, but in cents, day by day over ten years; -1 is absent.
func oracle(fleet []rental, balance int, today time.Time) (fundedUntil, cost float64) {
	fundedUntil, cost = -1, 0
	billed, priced := 0, 0
	var due []rental
	first := today
	for _, r := range fleet {
		switch r.status {
		case "canceled", "Cancelled", "terminated", "DELETED", "expired":
			continue
		}
		billed++
		cents, known := r.cents.(int)
		if !known {
			continue
		}
		priced++
		cost += float64(cents)
		if day, known := r.day.(time.Time); known {
			due = append(due, r)
			if day.Before(first) {
				first = day
			}
		}
	}
	cost /= 100
	if billed > 0 && priced == 0 {
		cost = -1
	}
	if len(due) == 0 {
		return fundedUntil, cost
	}
	horizon := today.AddDate(10, 0, 0)
	for d := first; d.Before(horizon); d = d.AddDate(0, 0, 1) {
		lastOfMonth := time.Date(d.Year(), d.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
		sum := 0
		for _, r := range due {
			day := r.day.(time.Time)
			monthly := d.After(today) && !d.Before(day) && d.Day() == min(day.Day(), lastOfMonth)
			if d.Equal(day) || monthly {
				sum += r.cents.(int)
			}
		}
		if sum > 0 && sum > balance {
			return float64(d.Unix()), cost
		}
		balance -= sum
	}
	return float64(horizon.Unix()), cost
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

// TestFundingOfGeneratedFleets compares cost and funded until with the oracle.
func TestFundingOfGeneratedFleets(t *testing.T) {
	t.Parallel()
	fleets := uint64(600)
	if testing.Short() {
		fleets = 100
	}
	funded := map[string]int{} // outcomes
	for seed := range fleets {
		random := rand.New(rand.NewPCG(seed, 7))
		today := time.Date(2020+random.IntN(12), time.Month(1+random.IntN(12)), 1+random.IntN(31), 0, 0, 0, 0, time.UTC)
		if random.IntN(4) == 0 {
			today = time.Date(2028, 2, 29, 0, 0, 0, 0, time.UTC)
		}
		sameDay := today.AddDate(0, 0, random.IntN(60)-20)
		fleet, monthly := []rental{}, 0
		var objects []simulator.Object
		for id := range random.IntN(14) {
			statuses := []any{"active", "active", "active", "suspended", "reinstalling", nil, 7, "canceled", "Cancelled", "terminated", "DELETED", "expired"}
			r := rental{statuses[random.IntN(len(statuses))], random.IntN(20_000), today.AddDate(0, 0, random.IntN(500)-80)}
			switch random.IntN(8) {
			case 0:
				r.cents = 0
			case 1:
				r.cents = nil
			}
			switch random.IntN(8) {
			case 0:
				r.day = nil
			case 1, 2:
				r.day = sameDay
			case 3, 4: // the last day of a month
				r.day = time.Date(today.Year(), today.Month()+time.Month(random.IntN(8)-2), 0, 0, 0, 0, 0, time.UTC)
			case 5:
				r.day = today
			}
			if cents, known := r.cents.(int); known {
				monthly += cents
			}
			fleet, objects = append(fleet, r), append(objects, r.object(id))
		}
		balance := random.IntN(max(1, monthly*(1+random.IntN(140)))) - random.IntN(1000)
		wantUntil, wantCost := oracle(fleet, balance, today)

		snap, err := fetchBody(t, servers(), simtest.Encode(t, map[string]any{"data": append([]simulator.Object{}, objects...)}))
		if err != nil {
			t.Fatal(err)
		}
		usd := amount(float64(balance) / 100)
		now := today.Add(time.Duration(random.Int64N(int64(24 * time.Hour))))
		scope := Known{Account: "main"}
		account := &Account{}
		account.Balance.USD = &usd
		scope.Add(Data{Account: account}, now.Add(time.Hour))
		scope.Add(snap.Data, now.Add(time.Hour))
		metrics, _ := FundingMetrics([]Known{scope}, now)
		value := func(series map[string]float64, d *metric.Definition) float64 {
			if v, found := series[simtest.Series(d.Name, "account", "main")]; found {
				return v
			}
			return -1
		}
		got := []float64{value(exposed(t, Snapshot{Metrics: metrics}), accountFunded), value(exposed(t, snap), accountCost)}
		simtest.AssertEqual(t, fmt.Sprintf("seed %d, balance %d cents, today %s, fleet %v: funded until and cost", seed, balance, today.Format(time.DateOnly), fleet), got, []float64{wantUntil, wantCost})
		switch {
		case wantUntil < 0:
			funded["absent"]++
		case wantUntil < float64(today.Unix()):
			funded["overdue"]++
		case wantUntil == float64(today.AddDate(10, 0, 0).Unix()):
			funded["horizon"]++
		default:
			funded["later"]++
		}
	}
	if len(funded) != 4 {
		t.Errorf("the fleets have only these outcomes: %v", funded)
	}
}
