package collector

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator"
)

// rent is one server's renewal: the first day and the price in dollars.
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

func renewalsOf(t testing.TB, rents []rent) renewals {
	t.Helper()
	all := renewals{}
	for _, r := range rents {
		at := instant(day(t, r.day).Unix())
		all.add(&at, price(r.usd))
	}
	return all
}

func TestFundedUntil(t *testing.T) {
	var thousands []rent
	for i := range 10_000 {
		thousands = append(thousands, rent{fmt.Sprintf("2026-%02d-%02d", 3+i%2, 1+i%28), 50})
	}
	for _, c := range []struct {
		name  string
		now   string
		usd   amount
		rents []rent
		want  string
	}{
		{"no servers", "2026-03-15", 100, nil, "none"},
		{"first renewal", "2026-03-15", 49.99, []rent{{"2026-03-20", 50}}, "2026-03-20"},
		{"second renewal", "2026-03-15", 50, []rent{{"2026-03-20", 50}}, "2026-04-20"},
		{"in cents", "2026-03-15", 0.3, []rent{{"2026-03-20", 0.1}}, "2026-06-20"},
		{"in cents that are no binary fractions", "2026-03-15", 12.09, []rent{{"2026-03-20", 4.03}}, "2026-06-20"},
		{"in cents, a cent too little", "2026-03-15", 0.29, []rent{{"2026-03-20", 0.1}}, "2026-05-20"},
		{"oldest first", "2026-03-15", 60, []rent{{"2026-03-25", 50}, {"2026-03-20", 20}}, "2026-03-25"},
		{"one day has two", "2026-03-15", 60, []rent{{"2026-03-20", 50}, {"2026-03-20", 20}}, "2026-03-20"},
		{"a later one starts in another month", "2026-03-15", 100, []rent{{"2026-03-20", 50}, {"2026-05-01", 10}}, "2026-05-01"},
		{"31st in short months", "2026-01-15", 100, []rent{{"2026-01-31", 50}}, "2026-03-31"},
		{"31st in February", "2026-01-15", 50, []rent{{"2026-01-31", 50}}, "2026-02-28"},
		{"31st in February of a leap year", "2028-01-15", 50, []rent{{"2028-01-31", 50}}, "2028-02-29"},
		{"31st in April", "2026-03-15", 50, []rent{{"2026-03-31", 50}}, "2026-04-30"},
		{"30th in February", "2026-01-15", 50, []rent{{"2026-01-30", 50}}, "2026-02-28"},
		{"29th in February", "2026-01-15", 50, []rent{{"2026-01-29", 50}}, "2026-02-28"},
		{"29th of February a year later", "2028-02-01", 600, []rent{{"2028-02-29", 50}}, "2029-02-28"},
		{"29th and 31st share the 28th", "2026-01-15", 150, []rent{{"2026-01-29", 50}, {"2026-01-31", 50}}, "2026-02-28"},
		{"28th before the 31st that comes on the 28th", "2026-01-29", 50, []rent{{"2026-02-28", 50}, {"2026-01-31", 50}}, "2026-02-28"},
		{"past renewals count", "2026-03-15", 100, []rent{{"2026-01-20", 50}}, "2026-03-20"},
		{"overdue at once", "2026-03-15", 10, []rent{{"2026-03-01", 50}}, "2026-03-01"},
		{"renewal today", "2026-03-15", 10, []rent{{"2026-03-15", 50}}, "2026-03-15"},
		{"free servers", "2026-03-15", 0, []rent{{"2026-03-20", 0}}, "2036-03-15"},
		{"free ones first", "2026-03-15", 0, []rent{{"2026-03-20", 0}, {"2026-03-25", 1}}, "2026-03-25"},
		{"free and in debt", "2026-03-15", -5, []rent{{"2026-03-20", 0}}, "2036-03-15"},
		{"in debt", "2026-03-15", -5, []rent{{"2026-03-20", 0}, {"2026-04-02", 1}}, "2026-04-02"},
		{"nothing left", "2026-03-15", 0, []rent{{"2026-03-20", 1}}, "2026-03-20"},
		{"horizon", "2026-03-15", 1e7, []rent{{"2026-03-20", 50}}, "2036-03-15"},
		{"last before the horizon", "2026-03-15", 50 * 119, []rent{{"2026-03-20", 50}}, "2036-02-20"},
		{"first after the horizon", "2026-03-15", 50 * 120, []rent{{"2026-03-20", 50}}, "2036-03-15"},
		{"on the day of the horizon", "2026-03-15", 50 * 120, []rent{{"2026-03-15", 50}}, "2036-03-15"},
		{"begins after the horizon", "2026-03-15", 0, []rent{{"2040-01-01", 50}}, "2036-03-15"},
		{"begins in the last year", "2026-03-15", 0, []rent{{"9999-12-31", 50}}, "2036-03-15"},
		{"began in 1970", "2026-03-15", 50 * 12, []rent{{"1970-01-01", 50}}, "1971-01-01"},
		{"horizon from a leap day", "2028-02-29", 1e6, []rent{{"2028-03-01", 1}}, "2038-03-01"},
		{"10,000 servers", "2026-03-15", 50 * 5_000 * 3, thousands, "2026-05-01"},
		{"10,000 servers for ten years", "2026-03-15", 1e8, thousands, "2036-03-15"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := "none"
			if until, ok := renewalsOf(t, c.rents).fundedUntil(c.usd, day(t, c.now).Add(13*time.Hour)); ok {
				got = until.Format(time.DateOnly)
				if !until.Equal(until.Truncate(24 * time.Hour)) {
					t.Errorf("%v is no midnight in UTC", until)
				}
			}
			if got != c.want {
				t.Errorf("funded until: got %s, want %s", got, c.want)
			}
		})
	}
}

// fundedByDay pays in whole cents, day by day.
func fundedByDay(cents int, due func(time.Time) int, from, now time.Time) time.Time {
	horizon := now.AddDate(10, 0, 0)
	for d := from; d.Before(horizon); d = d.AddDate(0, 0, 1) {
		if sum := due(d); sum > 0 {
			if sum > cents {
				return d
			}
			cents -= sum
		}
	}
	return horizon
}

// TestFundedUntilOfRandomFleets compares with a calendar that is walked through day by day.
func TestFundedUntilOfRandomFleets(t *testing.T) {
	for seed := range uint64(300) {
		dice := rand.New(rand.NewPCG(seed, 7))
		now := time.Date(2020+dice.IntN(12), time.Month(1+dice.IntN(12)), 1+dice.IntN(28), 0, 0, 0, 0, time.UTC)
		type owned struct {
			first time.Time
			cents int
		}
		var fleet []owned
		all, from, monthly := renewals{}, now, 0
		for range 1 + dice.IntN(12) {
			o := owned{now.AddDate(0, 0, dice.IntN(500)-80), dice.IntN(20_000)}
			if dice.IntN(5) == 0 {
				o.cents = 0
			}
			if dice.IntN(3) == 0 { // the end of a month
				o.first = time.Date(o.first.Year(), o.first.Month()+1, 0, 0, 0, 0, 0, time.UTC)
			}
			fleet = append(fleet, o)
			at := instant(o.first.Unix())
			all.add(&at, price(float64(o.cents)/100))
			monthly += o.cents
			if o.first.Before(from) {
				from = o.first
			}
		}
		balance := dice.IntN(max(1, monthly*(1+dice.IntN(140)))) - dice.IntN(1000)
		due := func(d time.Time) (sum int) {
			last := time.Date(d.Year(), d.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
			for _, o := range fleet {
				if !d.Before(o.first) && d.Day() == min(o.first.Day(), last) {
					sum += o.cents
				}
			}
			return sum
		}
		want := fundedByDay(balance, due, from, now)
		got, ok := all.fundedUntil(amount(float64(balance)/100), now.Add(time.Duration(dice.Int64N(int64(24*time.Hour)))))
		if !ok || !got.Equal(want) {
			t.Errorf("seed %d, balance %d cents, now %s, fleet %v:\n got %v %v\nwant %v", seed, balance, now.Format(time.DateOnly), fleet, got, ok, want)
		}
	}
}

// TestFundedUntilIsShown follows balance, servers and days.
func TestFundedUntilIsShown(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		change := func(usd any, rents ...rent) {
			r.sim.Change(func(w *simulator.World) {
				a := w.Accounts[mainToken]
				a.Account["balance"] = simulator.Object{"usd": usd}
				a.Servers = nil
				for i, s := range rents {
					a.Servers = append(a.Servers, rented(fmt.Sprint(i), "active", simulator.Object{
						"renews_at": s.day, "price": simulator.Object{"monthly": simulator.Object{"usd": s.usd}},
					}))
				}
			})
		}
		shown := func(after time.Duration) string {
			time.Sleep(after)
			synctest.Wait()
			lines := r.samples(accountFunded.Name)
			if len(lines) != 1 {
				return fmt.Sprint(len(lines), " samples")
			}
			var account string
			var at float64
			if _, err := fmt.Sscanf(lines[0], "{account=%q} %g", &account, &at); err != nil {
				t.Fatal(err)
			}
			return time.Unix(int64(at), 0).UTC().Format(time.DateOnly)
		}
		change(100.0, rent{"2000-01-20", 50})
		r.run(every(time.Minute, 10*time.Minute, "account", "servers"))
		same(t, "at first", shown(0), "2000-03-20")
		change(150.0, rent{"2000-01-20", 50})
		same(t, "more money", shown(2*time.Minute), "2000-04-20")
		change(150.0, rent{"2000-01-20", 150.01})
		same(t, "higher price", shown(2*time.Minute), "2000-01-20")
		change(1e6, rent{"2000-01-20", 50})
		same(t, "horizon", shown(2*time.Minute), "2010-01-01")
		same(t, "horizon a day later", shown(24*time.Hour), "2010-01-02")
		change(nil, rent{"2000-01-20", 50})
		same(t, "balance unknown", shown(2*time.Minute), "0 samples")
		change(100.0)
		same(t, "no servers", shown(2*time.Minute), "0 samples")
		change(100.0, rent{"2000-01-20", 50})
		same(t, "servers again", shown(2*time.Minute), "2000-03-20")
		r.sim.Inject(simulator.Fault{Path: "/account", Kind: simulator.Respond, Status: 500})
		same(t, "balance of nine minutes ago", shown(9*time.Minute), "2000-03-20")
		same(t, "balance too old", shown(2*time.Minute), "0 samples")
		same(t, "cost", r.samples(accountCost.Name), `[{account="main"} 50]`)
	})
}
