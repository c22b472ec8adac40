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

// Derived returns the metrics that follow from the data of an account and the day (UTC).
func (a AccountData) Derived(now time.Time) []*metric.Sample {
	b, today := newBuilder(a.Name), now.UTC().Truncate(24*time.Hour)
	if a.Servers != nil {
		a.addFunding(b, today)
	}
	if a.Transactions != nil {
		a.Transactions.addMonths(b, today)
	}
	return b.Metrics()
}

func (a AccountData) addFunding(b *metric.Builder, today time.Time) {
	due := renewalsDue(a.Servers.renewals, today)
	for _, days := range []int{7, 30} {
		var sum micros
		for day, usd := range due {
			if !day.After(today.AddDate(0, 0, days)) {
				sum += usd
			}
		}
		b.Add(accountDue, sum.value(), strconv.Itoa(days))
	}
	if a.Account != nil && a.Account.Balance.USD != nil && len(a.Servers.renewals) > 0 {
		b.Add(accountFunded, float64(fundedUntil(microsOf(*a.Account.Balance.USD), due, today).Unix()))
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

// fundedUntil returns the day of the first renewal that the balance cannot pay, or
// the horizon if it can pay all before it.
func fundedUntil(balance micros, due map[time.Time]micros, today time.Time) time.Time {
	for _, day := range slices.SortedFunc(maps.Keys(due), time.Time.Compare) {
		if due[day] > max(balance, 0) {
			return day
		}
		balance -= due[day]
	}
	return today.AddDate(HorizonYears, 0, 0)
}

// RenewalDays returns the days on which a server renews, up to and including until: the day of its
// next renewal, which may be overdue, and then one after today in each month. Times are midnight UTC.
func RenewalDays(day, today, until time.Time) (days []time.Time) {
	overdue := 12*(today.Year()-day.Year()) + int(today.Month()-day.Month()) // months that need no look
	for at, months := day, max(1, overdue); !at.After(until); months++ {
		if at.Equal(day) || at.After(today) { // an overdue renewal is due once
			days = append(days, at)
		}
		at = day.AddDate(0, months, 0)
		if at.Day() != day.Day() { // a shorter month: its last day
			at = at.AddDate(0, 0, -at.Day())
		}
	}
	return days
}
