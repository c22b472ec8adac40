package collector

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

var (
	derivedSet metric.Set

	accountFunded = derivedSet.Gauge("account_funded_until_timestamp_seconds",
		"Day of the first renewal that today's balance cannot pay, if each billed server renews monthly at its present price, excluding VAT; ten years ahead if it can pay all. Absent without a billed server whose price and renewal are known.", "account")
	accountDue = derivedSet.Gauge("account_renewals_due_usd",
		"Cost in US dollars, excluding VAT, of the renewals until the end of the day (UTC) that many days ahead; an overdue renewal counts once.", "account", "days")
	transactionsMonthCredit = derivedSet.Gauge("transactions_month_credit_usd",
		"Sum of the positive transactions of the account in the current or previous calendar month (UTC) by type, in US dollars.", "account", "type", "month")
	transactionsMonthDebit = derivedSet.Gauge("transactions_month_debit_usd",
		"Sum of the negative transactions of the account in the current or previous calendar month (UTC) by type, in US dollars as a positive number.", "account", "type", "month")
)

// DerivedDefinitions lists the metrics that follow from the data of an account and the time.
func DerivedDefinitions() []*metric.Definition { return derivedSet }

// DerivedMetrics returns the metrics that follow from the data of each account and the time. They
// change by themselves at expires: on the next day (UTC), or if data expires earlier.
func DerivedMetrics(accounts []Known, now time.Time) (metrics []*metric.Sample, expires time.Time) {
	b, today := &metric.Builder{}, now.UTC().Truncate(24*time.Hour)
	expires = today.AddDate(0, 0, 1)
	for _, k := range accounts {
		expires = metric.Earlier(expires, k.Until)
		addFunding(b, k, today)
		if k.Data.Transactions != nil {
			k.Data.Transactions.addMonths(b, k.Account, now)
		}
	}
	return b.Metrics(), expires
}

// addFunding adds the day until which the balance of an account pays its servers, and the sums that
// are due soon.
func addFunding(b *metric.Builder, k Known, today time.Time) {
	account, servers := k.Data.Account, k.Data.Servers
	if servers == nil {
		return
	}
	due := renewalsDue(servers.renewals, today)
	for _, days := range []int{7, 30} {
		b.Add(accountDue, dueUntil(due, today.AddDate(0, 0, days)).value(), k.Account, strconv.Itoa(days))
	}
	if account != nil && account.Balance.USD != nil && len(servers.renewals) > 0 {
		b.Add(accountFunded, float64(fundedUntil(microsOf(*account.Balance.USD), due, today).Unix()), k.Account)
	}
}

// HorizonYears is the number of years for which renewals are computed.
const HorizonYears = 10

// renewalsDue returns the sum that is due on each day from the first overdue one to the horizon,
// given the sums of the next renewals by day.
func renewalsDue(renewals map[time.Time]micros, today time.Time) map[time.Time]micros {
	due, from := map[time.Time]micros{}, map[time.Time]micros{}
	for day, price := range renewals {
		// What is overdue for longer renews on the same days as what is since January, which has 31.
		january := time.Date(today.Year()-1, time.January, day.Day(), 0, 0, 0, 0, time.UTC)
		if day.Before(january) {
			due[day] += price
			due[january] -= price // added below
			day = january
		}
		from[day] += price
	}
	for day, price := range from {
		for _, at := range RenewalDays(day, today, today.AddDate(HorizonYears, 0, 0)) {
			due[at] += price
		}
	}
	return due
}

// dueUntil returns the sum that is due up to and including a day.
func dueUntil(due map[time.Time]micros, until time.Time) (sum micros) {
	for day, usd := range due {
		if !day.After(until) {
			sum += usd
		}
	}
	return sum
}

// fundedUntil returns the day of the first renewal that the balance cannot pay, or
// the horizon if it can pay all before it.
func fundedUntil(balance micros, due map[time.Time]micros, today time.Time) time.Time {
	horizon := today.AddDate(HorizonYears, 0, 0)
	for _, day := range slices.SortedFunc(maps.Keys(due), time.Time.Compare) {
		if due[day] > max(balance, 0) {
			return day
		}
		balance -= due[day]
	}
	return horizon
}

// RenewalDays returns the days on which a server renews, up to and including until: the day of its
// next renewal, which may be overdue, and then one after today in each month. Times are midnight UTC.
func RenewalDays(day, today, until time.Time) []time.Time {
	var days []time.Time
	overdue := 12*(today.Year()-day.Year()) + int(today.Month()-day.Month()) // months that need no look
	for at, months := day, max(1, overdue); !at.After(until); at, months = monthsAfter(day, months), months+1 {
		if at.Equal(day) || at.After(today) { // an overdue renewal is due once
			days = append(days, at)
		}
	}
	return days
}

// monthsAfter returns the same day some months later, or the last day of a shorter month.
func monthsAfter(day time.Time, months int) time.Time {
	at := day.AddDate(0, months, 0)
	if at.Day() != day.Day() { // a day of the month after
		return at.AddDate(0, 0, -at.Day())
	}
	return at
}
