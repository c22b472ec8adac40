package collector

import (
	"maps"
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
	return metric.Earlier(tomorrow, metric.Earlier(in.accountUntil, in.serversUntil))
}

// HorizonYears is how far ahead renewals are computed.
const HorizonYears = 10

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
	horizon := today.AddDate(HorizonYears, 0, 0)
	prices := map[time.Time]micros{} // by day of the next renewal
	for _, r := range renewals {
		prices[r.day] += r.price
	}
	due := map[time.Time]micros{}
	for day, price := range prices {
		for _, at := range RenewalDays(day, today, horizon) {
			due[at] += price
		}
	}
	for _, day := range slices.SortedFunc(maps.Keys(due), time.Time.Compare) {
		if !day.Before(horizon) {
			break
		}
		if due[day] > max(balance, 0) {
			return day, true
		}
		balance -= due[day]
	}
	return horizon, true
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

func startOfMonth(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

func daysIn(month time.Time) int { return month.AddDate(0, 1, -1).Day() }
