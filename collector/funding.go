package collector

import (
	"slices"
	"time"

	"server_rental_exporter/internal/metric"
)

var accountFunded = metric.Gauge("account_funded_until_timestamp_seconds",
	"The first renewal that today's balance cannot pay, if each billed server renews monthly at its present price, excluding VAT. In the past if an overdue renewal cannot be paid; ten years ahead if all can; absent without such servers.",
	"Account balance.usd, Server status, renews_at and price.monthly.usd", "account")

// FundingDefinitions lists the metrics of funding.
func FundingDefinitions() []*metric.Definition { return []*metric.Definition{accountFunded} }

// AddFunding adds until when an account's balance pays its servers, and returns when that
// changes by the passing of time: on the next day (UTC), or if the data expires earlier;
// zero if it is not known.
func AddFunding(b *metric.Builder, in Inputs, now time.Time) (expires time.Time) {
	if in.Account == nil || in.Servers == nil {
		return time.Time{}
	}
	if balance := in.Account.balance; balance != nil {
		if until, ok := fundedUntil(microsOf(*balance), in.Servers.renewals, now); ok {
			b.Add(accountFunded, float64(until.Unix()))
		}
	}
	tomorrow := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	return earlier(tomorrow, earlier(in.accountUntil, in.serversUntil))
}

// horizonYears is how far ahead renewals are computed.
const horizonYears = 10

// renewal is what one server costs, and the day on which it renews next, or should
// have renewed.
type renewal struct {
	day   time.Time // midnight UTC
	price micros
}

// day returns midnight UTC of a timestamp's day.
func (t timestamp) day() time.Time {
	return time.Unix(int64(t), 0).UTC().Truncate(24 * time.Hour)
}

// fundedUntil returns the day of the first renewal that the balance cannot pay, or
// the horizon if it can pay all before it; false if there is no renewal.
//
// A renewal of today or earlier is due once, on its own day. Then each renews
// monthly on the same day of the month, or the last day of a shorter month, on days
// after today.
func fundedUntil(balance micros, renewals []renewal, now time.Time) (time.Time, bool) {
	if len(renewals) == 0 {
		return time.Time{}, false
	}
	today := now.UTC().Truncate(24 * time.Hour)
	horizon := today.AddDate(horizonYears, 0, 0)
	overdue, schedule := split(renewals, today)
	for _, r := range overdue {
		if r.price > max(balance, 0) {
			return r.day, true
		}
		balance -= r.price
	}
	for month := startOfMonth(today); !month.After(horizon); month = month.AddDate(0, 1, 0) {
		for day, due := range schedule.dueIn(month) {
			at := month.AddDate(0, 0, day-1)
			if !at.Before(horizon) {
				return horizon, true
			}
			if due > max(balance, 0) {
				return at, true
			}
			balance -= due
		}
	}
	return horizon, true
}

// schedule is what renews monthly, summed by first month and day of the month.
type schedule map[monthDay]micros

type monthDay struct {
	month time.Time // first day of the first month
	day   int       // 1 to 31, also if the month is shorter
}

// split returns what is due today or earlier, oldest first and summed by day, and
// what renews monthly after today.
func split(renewals []renewal, today time.Time) ([]renewal, schedule) {
	past := map[time.Time]micros{}
	monthly := schedule{}
	for _, r := range renewals {
		first := startOfMonth(r.day)
		if !r.day.After(today) {
			past[r.day] += r.price
			first = startOfMonth(nextMonthly(r.day, today))
		}
		monthly[monthDay{first, r.day.Day()}] += r.price
	}
	var overdue []renewal
	for day, price := range past {
		overdue = append(overdue, renewal{day, price})
	}
	slices.SortFunc(overdue, func(a, b renewal) int { return a.day.Compare(b.day) })
	return overdue, monthly
}

// nextMonthly returns the first day after another one on which a server renews that
// renews on the day of the month of day.
func nextMonthly(day, after time.Time) time.Time {
	month := startOfMonth(after)
	at := month.AddDate(0, 0, min(day.Day(), daysIn(month))-1)
	if !at.After(after) {
		month = month.AddDate(0, 1, 0)
		at = month.AddDate(0, 0, min(day.Day(), daysIn(month))-1)
	}
	return at
}

// RenewalDays returns the days up to and including until on which a server renews
// whose next renewal is that of the day given: its overdue day, if any, and then one
// in each month. All are midnight UTC.
func RenewalDays(day, today, until time.Time) []time.Time {
	var days []time.Time
	for at := day; !at.After(until); at = nextMonthly(day, at) {
		days = append(days, at)
		if at.Before(today) {
			at = today // an overdue renewal is due once
		}
	}
	return days
}

// dueIn returns how much renews in a month, by day of the month from 1 on.
func (s schedule) dueIn(month time.Time) (due [32]micros) {
	last := daysIn(month)
	for k, price := range s {
		if !k.month.After(month) {
			due[min(k.day, last)] += price
		}
	}
	return due
}

func startOfMonth(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

func daysIn(month time.Time) int { return month.AddDate(0, 1, -1).Day() }
