package collector

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

// addFunding adds until when the balance of an account pays its servers, and what is due soon.
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

// HorizonYears is how far ahead renewals are computed.
const HorizonYears = 10

// renewalsDue returns what is due on each day from the first overdue one to the horizon. Its
// argument is what is due on the days of the next renewals.
//
// A renewal of today or earlier is due once, on its own day. Then each renews
// monthly on the same day of the month, or the last day of a shorter month, on days
// after today.
func renewalsDue(renewals map[time.Time]micros, today time.Time) map[time.Time]micros {
	due := map[time.Time]micros{}
	for day, price := range renewals {
		for _, at := range RenewalDays(day, today, today.AddDate(HorizonYears, 0, 0)) {
			due[at] += price
		}
	}
	return due
}

// dueUntil returns what is due up to and including a day.
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
		if day.Before(horizon) && due[day] > max(balance, 0) {
			return day
		}
		balance -= due[day]
	}
	return horizon
}

// RenewalDays returns the days on which a server renews, up to and including until: the day of
// its next renewal, which may be overdue, and then one after today in each month. All are
// midnight UTC.
func RenewalDays(day, today, until time.Time) []time.Time {
	var days []time.Time
	for at, months := day, 1; !at.After(until); at, months = monthsAfter(day, months), months+1 {
		if at.Equal(day) || at.After(today) { // an overdue renewal is due once
			days = append(days, at)
		}
	}
	return days
}

// monthsAfter returns the same day some months later, or the last one of a shorter month.
func monthsAfter(day time.Time, months int) time.Time {
	at := day.AddDate(0, months, 0)
	if at.Day() != day.Day() { // a day of the month after
		return at.AddDate(0, 0, -at.Day())
	}
	return at
}
