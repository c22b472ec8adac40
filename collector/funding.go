package collector

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
)

var accountFunded = metric.Gauge("account_funded_until_timestamp_seconds",
	"The first renewal that today's balance cannot pay, if each billed server renews monthly at its present price, excluding VAT. In the past if an overdue renewal cannot be paid; ten years ahead if all can; absent without such servers.",
	"Account balance.usd, Server status, renews_at and price.monthly.usd", "account")

// FundingDefinitions lists the metrics of funding.
func FundingDefinitions() []*metric.Definition { return []*metric.Definition{accountFunded} }

// FundingMetrics returns until when the balance of each account pays its servers, and when
// that changes by the passing of time: on the next day (UTC), or if data expires earlier.
func FundingMetrics(accounts []Known, now time.Time) (metrics []prometheus.Metric, expires time.Time) {
	b := &metric.Builder{}
	expires = now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	for _, s := range accounts {
		account, servers := s.Data.Account, s.Data.Servers
		if account == nil || account.Balance.USD == nil || servers == nil {
			continue
		}
		expires = metric.Earlier(expires, s.Until)
		if until, ok := fundedUntil(microsOf(*account.Balance.USD), servers.renewals, now); ok {
			b.Add(accountFunded, float64(until.Unix()), s.Account)
		}
	}
	return b.Metrics(), expires
}

// HorizonYears is how far ahead renewals are computed.
const HorizonYears = 10

// fundedUntil returns the day of the first renewal that the balance cannot pay, or
// the horizon if it can pay all before it; false if there is no renewal.
//
// A renewal of today or earlier is due once, on its own day. Then each renews
// monthly on the same day of the month, or the last day of a shorter month, on days
// after today.
func fundedUntil(balance micros, renewals map[time.Time]micros, now time.Time) (time.Time, bool) {
	if len(renewals) == 0 {
		return time.Time{}, false
	}
	today := now.UTC().Truncate(24 * time.Hour)
	horizon := today.AddDate(HorizonYears, 0, 0)
	due := map[time.Time]micros{}
	for day, price := range renewals {
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

// RenewalDays returns the days up to and including until on which a server renews
// whose next renewal is that of the day given: its overdue day, if any, and then one
// in each month. All are midnight UTC.
func RenewalDays(day, today, until time.Time) []time.Time {
	var days []time.Time
	elapsed := 12*(today.Year()-day.Year()) + int(today.Month()-day.Month())
	for at, months := day, 0; !at.After(until); at = monthsAfter(day, months) {
		if months == 0 || at.After(today) { // an overdue renewal is due once
			days = append(days, at)
		}
		months = max(months+1, elapsed)
	}
	return days
}

// monthsAfter returns the same day some months later, or the last one of a shorter month.
func monthsAfter(day time.Time, months int) time.Time {
	at := day.AddDate(0, months, 0)
	if at.Day() != day.Day() { // of the month after
		return at.AddDate(0, 0, -at.Day())
	}
	return at
}
