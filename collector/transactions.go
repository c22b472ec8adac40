package collector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
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
	transactionsByType = metric.Gauge("transactions", "All transactions of the account by type; a gauge, because the provider can remove or change one.", "Balance transaction", "account", "type")
	transactionsCredit = metric.Gauge("transactions_credit_usd", "Sum of all positive transactions of the account by type; a gauge, because the provider can remove or change one.", "Balance transaction amount.usd", "account", "type")
	transactionsDebit  = metric.Gauge("transactions_debit_usd", "Sum of all negative transactions of the account by type, as a positive number; a gauge, because the provider can remove or change one.", "Balance transaction amount.usd", "account", "type")
)

const (
	// maxEntries bounds how many transactions, or top-ups, an account has.
	maxEntries = 500_000
	// pageInterval is the interval for each page: a long history does not change more
	// often, but costs more requests.
	pageInterval = 10 * time.Second
)

func transactions() Resource {
	return Resource{
		Name: "transactions", Help: "money in and out by type", Path: "/transactions", Account: true,
		Interval: 5 * time.Minute, MaxAge: 30 * time.Minute, PageInterval: pageInterval,
		Metrics: []*metric.Definition{transactionsByType, transactionsCredit, transactionsDebit},
		get:     fetchTransactions,
	}
}

// fetchTransactions reads all pages, from the newest one on. New entries push older ones to
// later pages meanwhile: those are read again, and the new ones with the next fetch. So what
// is exported was there at one moment. If entries were removed meanwhile, others have moved
// to pages that were read before: the fetch fails.
func fetchTransactions(ctx context.Context, api rentalapi.Getter, b *metric.Builder) (s Snapshot, err error) {
	ledger := map[entryID]*transaction{}
	var items count // of all pages, understood or not
	var last rentalapi.Page[transaction, rentalapi.PageMeta]
	for number := 1; ; number++ {
		page, err := rentalapi.GetPage(ctx, api, rentalapi.List[transaction]{
			Path: "/transactions", MaxItems: maxEntries, ID: func(t *transaction) string { return string(t.ID) },
		}, number)
		switch {
		case err != nil:
			return s, err
		case number > 1 && page.Token != last.Token:
			return s, errors.New("transactions: the token changed between two requests")
		case page.Meta.Total < last.Meta.Total:
			return s, fmt.Errorf("data: entries were removed between two requests: %w", rentalapi.ErrIncomplete)
		}
		for _, t := range page.Items {
			ledger[t.ID] = t
		}
		items += count(page.Count)
		s.Invalid.Merge(page.Invalid)
		last = page
		if count(number) >= page.Meta.Pages || page.Count == 0 {
			s.AtLeast = time.Duration(number) * pageInterval
			break
		}
	}
	if total := last.Meta.Total; items < total {
		return s, fmt.Errorf("data: the pages hold %v entries, but meta.total is %v: %w", items, total, rentalapi.ErrIncomplete)
	}
	addLedger(b, ledger)
	s.Age = newAge(last.Response, nil)
	return s, nil
}

// addLedger adds the sums of all entries.
func addLedger(b *metric.Builder, ledger map[entryID]*transaction) {
	type sum struct {
		n             float64
		credit, debit micros
	}
	sums := map[string]sum{"topup": {}, "bonus": {}} // documented, so always exported
	for _, t := range ledger {
		usd := micros(0)
		if t.Amount.USD != nil {
			usd = microsOf(*t.Amount.USD)
		}
		s := sums[t.Type]
		sums[t.Type] = sum{s.n + 1, s.credit + max(usd, 0), s.debit + max(-usd, 0)}
	}
	for kind, s := range sums {
		b.Add(transactionsByType, s.n, kind)
		b.Add(transactionsCredit, s.credit.value(), kind)
		b.Add(transactionsDebit, s.debit.value(), kind)
	}
}
