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
	ID     entryID
	Type   string
	Amount struct{ USD *amount }
}

// entryID is an integer as it is written.
type entryID string

// Decode implements rentalapi.Value.
func (id *entryID) Decode(value any) string {
	n, _ := value.(json.Number)
	_, err := n.Int64()
	*id = entryID(n)
	return problem(err == nil, "an integer")
}

var (
	transactionsByType = metric.Gauge("transactions", "All transactions of the account by type; a gauge, because the provider can remove or change one.", "account", "type")
	transactionsCredit = metric.Gauge("transactions_credit_usd", "Sum of all positive transactions of the account by type.", "account", "type")
	transactionsDebit  = metric.Gauge("transactions_debit_usd", "Sum of all negative transactions of the account by type, as a positive number.", "account", "type")
)

const (
	// maxEntries bounds how many transactions, or top-ups, an account has.
	maxEntries = 500_000
	// maxTypes bounds the types of transactions. The provider documents two.
	maxTypes = 1_000
	// pageInterval is the interval for each page: a long ledger does not change more
	// often, but costs more requests.
	pageInterval = 10 * time.Second
)

func transactions() Resource {
	return Resource{
		Name: "transactions", Help: "money in and out by type", Path: "/transactions", Account: true,
		Timing: Timing{Interval: 5 * time.Minute, MaxAge: 30 * time.Minute}, PageInterval: pageInterval,
		Metrics: []*metric.Definition{transactionsByType, transactionsCredit, transactionsDebit},
		get:     getTransactions,
	}
}

// ledger holds the sums of the pages that were read so far.
type ledger struct {
	walk[transaction]
	sums map[string]sum // by type
}

type sum struct {
	n             float64
	credit, debit micros
}

// getTransactions reads all pages. A fetch that fails goes on with the page that failed.
func getTransactions(ctx context.Context, f *Fetcher, b *metric.Builder) (Snapshot, error) {
	if f.ledger == nil || f.ledger.failures >= maxPageFailures {
		f.ledger = &ledger{
			walk: walk[transaction]{id: func(t *transaction) string { return string(t.ID) }},
			sums: map[string]sum{"topup": {}, "bonus": {}}, // documented, so always exported
		}
	}
	l := f.ledger
	for more := true; more; more = !l.done() {
		entries, err := l.next(ctx, f, rentalapi.List{Path: f.Resource.Path, MaxItems: maxEntries})
		if err != nil {
			return Snapshot{}, err
		}
		if l.add(entries); len(l.sums) > maxTypes {
			f.ledger = nil
			return Snapshot{}, fmt.Errorf("data: more than %d types: %w", maxTypes, rentalapi.ErrTooLarge)
		}
	}
	f.ledger = nil
	for kind, s := range l.sums {
		b.Add(transactionsByType, s.n, kind)
		b.Add(transactionsCredit, s.credit.value(), kind)
		b.Add(transactionsDebit, s.debit.value(), kind)
	}
	s := newSnapshot(l.first.Response)
	s.Invalid, s.AtLeast = l.invalid, time.Duration(l.pages)*pageInterval
	return s, nil
}

// add adds entries to the sums.
func (l *ledger) add(entries []*transaction) {
	for _, t := range entries {
		s, usd := l.sums[t.Type], micros(0)
		if t.Amount.USD != nil {
			usd = microsOf(*t.Amount.USD)
		}
		l.sums[t.Type] = sum{s.n + 1, s.credit + max(usd, 0), s.debit + max(-usd, 0)}
	}
}
