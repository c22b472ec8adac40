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
	return problem(err == nil, "an integer")
}

var (
	transactionSet metric.Set

	transactionsByType = transactionSet.Gauge("transactions", "All transactions of the account by type; a gauge, because the provider can remove or change one.", "account", "type")
	transactionsCredit = transactionSet.Gauge("transactions_credit_usd", "Sum of all positive transactions of the account by type, in US dollars.", "account", "type")
	transactionsDebit  = transactionSet.Gauge("transactions_debit_usd", "Sum of all negative transactions of the account by type, in US dollars as a positive number.", "account", "type")
)

const (
	maxEntries   = 500_000          // bounds the transactions, or top-ups, of an account
	maxTypes     = 1_000            // bounds the types of transactions, of which the provider documents two
	pageInterval = 10 * time.Second // lengthens the interval for each page: a long ledger changes no more often, but costs more requests
)

func transactions() Resource {
	return Resource{
		Name: "transactions", Help: "money in and out by type", Path: "/transactions", Account: true,
		Timing: Timing{Interval: 5 * time.Minute, MaxAge: 30 * time.Minute}, PageInterval: pageInterval,
		Metrics: transactionSet,
		newGet:  func() getFunc { return (&ledger{}).get },
	}
}

// ledger reads the transactions and adds them up.
type ledger struct {
	walk[transaction]
	TransactionData
}

// TransactionData holds the sums of an account's transactions.
type TransactionData struct {
	all    sums
	months map[time.Time]sums // sums by the first day (UTC) of a month: that of the first page, the one before and the one after
}

// sums holds a sum for each type.
type sums map[string]sum

type sum struct {
	n             float64
	credit, debit micros
}

// add adds an amount; 0 if it is not known.
func (s sums) add(kind string, usd micros) {
	before := s[kind]
	s[kind] = sum{before.n + 1, before.credit + max(usd, 0), before.debit + max(-usd, 0)}
}

// get reads all pages. A fetch that fails goes on with the page that failed.
func (l *ledger) get(ctx context.Context, f *Fetcher, b *metric.Builder) (Snapshot, error) {
	if l.pages == 0 || l.failures >= maxPageFailures {
		*l = ledger{
			walk:            walk[transaction]{id: func(t *transaction) string { return string(t.ID) }},
			TransactionData: TransactionData{all: sums{"topup": {}, "bonus": {}}}, // documented, so always exported
		}
	}
	for !l.done() {
		entries, err := l.next(ctx, f, rentalapi.List{Path: f.Resource.Path, MaxItems: maxEntries})
		if err != nil {
			return Snapshot{}, err
		}
		if l.add(entries); len(l.all) > maxTypes {
			*l = ledger{}
			return Snapshot{}, fmt.Errorf("data: more than %d types: %w", maxTypes, rentalapi.ErrTooLarge)
		}
	}
	read := *l
	*l = ledger{}
	for kind, s := range read.all {
		b.Add(transactionsByType, s.n, kind)
		b.Add(transactionsCredit, s.credit.value(), kind)
		b.Add(transactionsDebit, s.debit.value(), kind)
	}
	s := newSnapshot(read.first.Response)
	s.Invalid, s.MinInterval = read.invalid, time.Duration(read.pages)*pageInterval
	s.Data.Transactions = &TransactionData{read.all, read.months}
	return s, nil
}

// add adds entries to the sums.
func (l *ledger) add(entries []*transaction) {
	if l.months == nil {
		month := firstDay(l.first.Received)
		l.months = map[time.Time]sums{month.AddDate(0, -1, 0): {}, month: {}, month.AddDate(0, 1, 0): {}}
	}
	for _, t := range entries {
		usd := micros(0)
		if t.Amount.USD != nil {
			usd = microsOf(*t.Amount.USD)
		}
		l.all.add(t.Type, usd)
		if t.CreatedAt == nil {
			continue
		}
		if month, wanted := l.months[firstDay(t.CreatedAt.time())]; wanted {
			month.add(t.Type, usd)
		}
	}
}

// firstDay returns the first day of a month (UTC).
func firstDay(at time.Time) time.Time {
	at = at.UTC()
	return time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// addMonths adds the sums of the month of a time, and of the month before.
func (d *TransactionData) addMonths(b *metric.Builder, account string, now time.Time) {
	current := firstDay(now)
	for label, month := range map[string]time.Time{"current": current, "previous": current.AddDate(0, -1, 0)} {
		for kind := range d.all {
			s := d.months[month][kind]
			b.Add(transactionsMonthCredit, s.credit.value(), account, kind, label)
			b.Add(transactionsMonthDebit, s.debit.value(), account, kind, label)
		}
	}
}
