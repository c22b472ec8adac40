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

var transactions = Resource{
	Name: "transactions", Help: "money in and out by month", Path: "/transactions", Account: true,
	Timing:      Timing{Interval: 5 * time.Minute, MaxAge: 30 * time.Minute},
	MaxRequests: maxPages,
	Metrics:     transactionSet,
	get:         getTransactions,
}

// TransactionData holds the sums of an account's transactions by type, of the month in which they were
// fetched, of the one before and of the one after. Its keys are the first days (UTC) of these.
type TransactionData map[time.Time]map[string]sum

// sum adds up positive and negative amounts, both as positive numbers.
type sum struct{ credit, debit micros }

// getTransactions reads pages from the newest transaction on, until one reaches back to before the
// last month. If the list changes meanwhile, the pages do not fit together, and the fetch fails.
func getTransactions(ctx context.Context, api rentalapi.Getter, path string, b *metric.Builder) (Snapshot, error) {
	s, seen, read, total := Snapshot{}, map[entryID]bool{}, 0, count(0)
	data, previous := TransactionData{}, time.Time{}
	for n := 1; n <= maxPages; n++ {
		page, err := rentalapi.GetPage[transaction](ctx, api, path, nil, n, rentalapi.MaxPageItems)
		if err != nil {
			return s, err
		}
		if n == 1 {
			total = *page.Meta.Total
			b.Add(transactionsTotal, float64(total))
			s, previous = newSnapshot(page.Response), firstDay(page.Received).AddDate(0, -1, 0)
			s.Data.Transactions = &data
			for month := range 3 { // the next one is current after its turn, until the next fetch
				data[previous.AddDate(0, month, 0)] = map[string]sum{"topup": {}, "bonus": {}} // documented, so always exported
			}
		}
		if *page.Meta.Total != total {
			return s, fmt.Errorf("meta.total: changed between two pages: %w", rentalapi.ErrIncomplete)
		}
		reachesBack := false
		for _, t := range page.Items {
			if seen[t.ID] {
				return s, fmt.Errorf("data: a transaction of an earlier page again: %w", rentalapi.ErrIncomplete)
			}
			seen[t.ID] = true
			data.add(t)
			reachesBack = t.CreatedAt != nil && t.CreatedAt.time().Before(previous) // the last one decides
		}
		s.Invalid.Merge(page.Invalid)
		if read += page.Count; reachesBack || count(read) >= total {
			return s, nil
		}
	}
	return s, fmt.Errorf("data: more than %d pages since the start of last month: %w", maxPages, rentalapi.ErrTooLarge)
}

func (d TransactionData) add(t *transaction) {
	if t.CreatedAt == nil || t.Amount.USD == nil {
		return
	}
	if sums := d[firstDay(t.CreatedAt.time())]; sums != nil {
		s, usd := sums[t.Type], microsOf(*t.Amount.USD)
		sums[t.Type] = sum{s.credit + max(usd, 0), s.debit + max(-usd, 0)}
	}
}

func firstDay(at time.Time) time.Time {
	at = at.UTC()
	return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// addMonths adds the sums of the month of a day, and of the month before, as far as they are present.
func (d TransactionData) addMonths(b *metric.Builder, today time.Time) {
	if d[firstDay(today)] == nil { // nor is all of the month before
		return
	}
	for back, label := range []string{"current", "previous"} {
		for kind, s := range d[firstDay(today).AddDate(0, -back, 0)] {
			b.Add(transactionsMonthCredit, s.credit.value(), kind, label)
			b.Add(transactionsMonthDebit, s.debit.value(), kind, label)
		}
	}
}
