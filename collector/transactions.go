package collector

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// transaction is the provider's Balance transaction, without its description.
type transaction struct {
	ID        entryID
	Type      string
	Amount    struct{ USD *amount }
	CreatedAt *timestamp `json:"created_at"`
}

// entryID is an integer as it is written.
type entryID string

// Decode implements rentalapi.Value.
func (id *entryID) Decode(value any) string {
	n, _ := value.(json.Number)
	_, err := n.Int64()
	*id = entryID(n)
	return rentalapi.Unless(err == nil, "not an integer")
}

var (
	transactionSet metric.Set

	transactionsTotal = transactionSet.Gauge("transactions", "Transactions of the account.", "account")
)

// maxPages bounds the pages with the transactions of two months.
const maxPages = 20

func transactions() Resource {
	return Resource{
		Name: "transactions", Help: "money in and out by month", Path: "/transactions", Account: true,
		Timing:      Timing{Interval: 5 * time.Minute, MaxAge: 30 * time.Minute},
		MaxRequests: maxPages,
		Metrics:     transactionSet,
		get:         getTransactions,
	}
}

// TransactionData holds the sums of an account's transactions by type.
type TransactionData struct {
	month time.Time         // first day (UTC) of the month in which they were fetched
	sums  map[string][2]sum // sums of that month, and of the one before
}

// sum adds up positive and negative amounts, both as positive numbers.
type sum struct{ credit, debit micros }

// getTransactions reads pages from the newest transaction on, until one reaches back to before the
// last month. If the list changes meanwhile, the pages do not fit together, and the fetch fails.
func getTransactions(ctx context.Context, api rentalapi.Getter, path string, b *metric.Builder) (Snapshot, error) {
	list := rentalapi.List{Path: path}
	first, err := rentalapi.GetPage[transaction](ctx, api, list, 1)
	if err != nil {
		return Snapshot{}, err
	}
	b.Add(transactionsTotal, float64(first.Meta.Total))
	s, seen := newSnapshot(first.Response), map[entryID]bool{}
	data := &TransactionData{firstDay(first.Received), map[string][2]sum{"topup": {}, "bonus": {}}} // documented, so always exported
	s.Data.Transactions = data
	for n, page, read := 1, first, 0; ; n++ {
		reachesBack := false
		read += page.Count
		for _, t := range page.Items {
			if seen[t.ID] {
				return s, fmt.Errorf("data: a transaction of an earlier page again: %w", rentalapi.ErrIncomplete)
			}
			seen[t.ID] = true
			reachesBack = data.add(t) // the last one decides
		}
		s.Invalid.Merge(page.Invalid)
		switch {
		case reachesBack || count(read) >= page.Meta.Total:
			return s, nil
		case n == maxPages:
			return s, fmt.Errorf("data: more than %d pages since the start of last month: %w", maxPages, rentalapi.ErrTooLarge)
		}
		if page, err = rentalapi.GetPage[transaction](ctx, api, list, n+1); err != nil {
			return s, err
		}
		switch {
		case page.Token != first.Token:
			return s, ErrTokenChanged
		case page.Meta.Total != first.Meta.Total:
			return s, fmt.Errorf("meta.total: changed between two pages: %w", rentalapi.ErrIncomplete)
		}
	}
}

// add adds a transaction, and returns whether it was before the two months.
func (d *TransactionData) add(t *transaction) (before bool) {
	if t.CreatedAt == nil {
		return false
	}
	sums := d.sums[t.Type]
	for i := range sums {
		if !firstDay(t.CreatedAt.time()).Equal(d.month.AddDate(0, -i, 0)) {
			continue
		}
		if t.Amount.USD != nil {
			usd := microsOf(*t.Amount.USD)
			sums[i].credit, sums[i].debit = sums[i].credit+max(usd, 0), sums[i].debit+max(-usd, 0)
		}
		d.sums[t.Type] = sums
	}
	return t.CreatedAt.time().Before(d.month.AddDate(0, -1, 0))
}

// firstDay returns the first day of a month (UTC).
func firstDay(at time.Time) time.Time {
	at = at.UTC()
	return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// addMonths adds the sums of the month of a time, and of the month before, as far as they are known.
func (d *TransactionData) addMonths(b *metric.Builder, account string, now time.Time) {
	for back, label := range []string{"current", "previous"} {
		for i := range 2 {
			if !firstDay(now).AddDate(0, -back, 0).Equal(d.month.AddDate(0, -i, 0)) {
				continue
			}
			for kind, sums := range d.sums {
				b.Add(transactionsMonthCredit, sums[i].credit.value(), account, kind, label)
				b.Add(transactionsMonthDebit, sums[i].debit.value(), account, kind, label)
			}
		}
	}
}
