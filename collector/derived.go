package collector

import (
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

var derivedSet metric.Set

var (
	accountFunded = derivedSet.Gauge("account_funded_until_timestamp_seconds",
		"Day of the first renewal that today's balance cannot pay, if each billed server renews monthly at its present price, excluding VAT; ten years ahead if it can pay all. Absent without a billed server whose price and renewal are known.", "account")
	accountDue = derivedSet.Gauge("account_renewals_due_usd",
		"Cost in US dollars, excluding VAT, of the renewals until the end of the day (UTC) that many days ahead; an overdue renewal counts once. 0 without a billed server whose price and renewal are known.", "account", "days")
	transactionsMonthCredit = derivedSet.Gauge("transactions_month_credit_usd",
		"Sum of the positive transactions of the account in the current or previous calendar month (UTC) by type, in US dollars.", "account", "type", "month")
	transactionsMonthDebit = derivedSet.Gauge("transactions_month_debit_usd",
		"Sum of the negative transactions of the account in the current or previous calendar month (UTC) by type, in US dollars as a positive number.", "account", "type", "month")
)

// DerivedDefinitions lists the metrics that follow from the data of an account and the time.
func DerivedDefinitions() []*metric.Definition { return derivedSet }

// DerivedMetrics returns the metrics that follow from the data of each account and the time. They
// change by the passing of time at expires: on the next day (UTC), or if data expires earlier.
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
