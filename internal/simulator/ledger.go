package simulator

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// book adds a transaction of so many cents to the account and to its balance.
// topup is the id of the top-up it belongs to, or nil.
func (a *Account) book(kind string, amount int, description string, topup any, now time.Time) {
	balance := a.balance() + amount
	put(a.Account, money(balance), "balance", "usd")
	id := 1
	if len(a.Transactions) > 0 {
		id = int(number(a.Transactions[0], "id")) + 1
	}
	a.Transactions = slices.Insert(a.Transactions, 0, transaction(id, kind, amount, balance, description, topup, now))
}

func (a *Account) balance() int { return cents(a.Account, "balance", "usd") }

func transaction(id int, kind string, amount, balance int, description string, topup any, at time.Time) Object {
	return Object{
		"id": id, "type": kind, "amount": Object{"usd": money(amount)}, "balance_after": Object{"usd": money(balance)},
		"description": description, "topup": topup, "created_at": stamp(at),
	}
}

// coin is a way to pay. Those here are the two that the document names.
type coin struct {
	id, ticker, network, scheme, prefix string
	confirmations                       int
	usd                                 float64
}

func coins() []coin {
	return []coin{
		{"btc", "BTC", "Bitcoin", "bitcoin", "bc1q", 3, 98000},
		{"usdt-trc20", "USDT", "Tron (TRC-20)", "tron", "T", 20, 1},
	}
}

// rateLock is how long a top-up waits for its payment.
const rateLock = 20 * time.Minute

// newTopup is a top-up that awaits its payment. All others are made of one by
// the steps below.
func newTopup(id string, amount int, c coin, now time.Time) Object {
	address := c.prefix + letters("23456789acdefghjkmnpqrstuvwxyz", 30, id)
	due := fmt.Sprintf("%.8f", money(amount)/c.usd)
	bonus := 0
	if amount >= 100_00 {
		bonus = 5
	}
	return Object{
		"id": id, "status": "pending", "amount": Object{"usd": money(amount)}, "bonus_percent": bonus,
		"coin": c.id, "ticker": c.ticker, "network": c.network,
		"payment": Object{
			"address": address, "amount": due, "memo": nil, "uri": c.scheme + ":" + address + "?amount=" + due,
			"rate_locked_until": stamp(now.Add(rateLock)),
		},
		"confirmations": nil, "confirmations_needed": c.confirmations, "tx_hash": nil, "credited": nil,
		"created_at": stamp(now), "paid_at": nil, "links": Object{"page": site + "/account/topups/" + id},
	}
}

// closeTopup ends a top-up without a credit: expired, canceled or failed.
func closeTopup(t Object, status string) {
	t["status"], t["payment"] = status, nil
}

// confirmTopup has the payment seen on the chain, or confirmed further.
func confirmTopup(t Object, confirmations int) {
	t["status"], t["payment"], t["confirmations"] = "confirming", nil, confirmations
	t["tx_hash"] = fmt.Sprintf("%x", digest("transaction", text(t, "id")))
}

// payTopup credits a top-up and says how many cents that are.
func payTopup(t Object, now time.Time) (credit, bonus int) {
	confirmTopup(t, int(number(t, "confirmations_needed")))
	credit = cents(t, "amount", "usd")
	bonus = credit * int(number(t, "bonus_percent")) / 100
	t["status"], t["paid_at"] = "paid", stamp(now)
	t["credited"] = Object{"usd": money(credit), "bonus_usd": money(bonus)}
	return credit, bonus
}

// credit pays a top-up into the account.
func (a *Account) credit(t Object, now time.Time) {
	credit, bonus := payTopup(t, now)
	a.book("topup", credit, "Top-up with "+text(t, "ticker"), t["id"], now)
	if bonus > 0 {
		a.book("bonus", bonus, fmt.Sprintf("Bonus of %v %%", t["bonus_percent"]), t["id"], now)
	}
}

// renew pays for the servers that are due and moves them on by a month. What
// the balance cannot pay is suspended until it can.
func (a *Account) renew(now time.Time) {
	for _, s := range a.Servers {
		due, err := time.Parse(time.DateOnly, text(s, "renews_at"))
		if err != nil || due.After(now) {
			continue
		}
		price := cents(s, "price", "monthly", "usd")
		if price > a.balance() {
			s["status"] = "suspended"
			continue
		}
		a.book("renewal", -price, "Renewal of "+text(s, "hostname"), nil, now)
		s["status"], s["renews_at"] = "active", date(due.AddDate(0, 1, 0))
	}
}

// newestFirst sorts by the time of creation.
func newestFirst(list []Object) {
	slices.SortStableFunc(list, func(a, b Object) int {
		return cmp.Compare(text(b, "created_at"), text(a, "created_at"))
	})
}
