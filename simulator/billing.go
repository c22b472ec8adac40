package simulator

import (
	"fmt"
	"slices"
	"time"
)

// addTransaction adds a transaction to the account and changes its balance. The
// amount is in cents; topup is the id of its top-up, or nil.
func (a *Account) addTransaction(kind string, amount int, description string, topup any, now time.Time) {
	balance := a.balance() + amount
	Put(a.Account, money(balance), "balance", "usd")
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

// coin is a currency of top-ups. Both documented ones are here.
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

// rateLock is the time after which an unpaid top-up expires.
const rateLock = 20 * time.Minute

// newTopup returns a pending top-up. The functions below change its state.
func newTopup(id string, amount int, c coin, now time.Time) Object {
	address := c.prefix + fmt.Sprintf("%.15x", digest("address", id))
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

// closeTopup closes a top-up without a credit: expired, canceled or failed.
func closeTopup(t Object, status string) {
	t["status"], t["payment"] = status, nil
}

// confirmTopup sets the number of confirmations of a payment.
func confirmTopup(t Object, confirmations int) {
	t["status"], t["payment"], t["confirmations"] = "confirming", nil, confirmations
	t["tx_hash"] = fmt.Sprintf("%x", digest("transaction", Text(t, "id")))
}

// payTopup marks a top-up as paid and returns its credit and bonus in cents.
func payTopup(t Object, now time.Time) (credit, bonus int) {
	confirmTopup(t, int(number(t, "confirmations_needed")))
	credit = cents(t, "amount", "usd")
	bonus = credit * int(number(t, "bonus_percent")) / 100
	t["status"], t["paid_at"] = "paid", stamp(now)
	t["credited"] = Object{"usd": money(credit), "bonus_usd": money(bonus)}
	return credit, bonus
}

// credit marks a top-up as paid and adds its transactions.
func (a *Account) credit(t Object, now time.Time) {
	credit, bonus := payTopup(t, now)
	a.addTransaction("topup", credit, "Top-up with "+Text(t, "ticker"), t["id"], now)
	if bonus > 0 {
		a.addTransaction("bonus", bonus, fmt.Sprintf("Bonus of %v %%", t["bonus_percent"]), t["id"], now)
	}
}

// renew charges for the servers that are due and extends them by a month. Servers
// that the balance does not cover are suspended until it does.
func (a *Account) renew(now time.Time) {
	for _, s := range a.Servers {
		due, err := time.Parse(time.DateOnly, Text(s, "renews_at"))
		if err != nil || due.After(now) {
			continue
		}
		price := cents(s, "price", "monthly", "usd")
		if price > a.balance() {
			s["status"] = "suspended"
			continue
		}
		a.addTransaction("renewal", -price, "Renewal of "+Text(s, "hostname"), nil, now)
		s["status"], s["renews_at"] = "active", date(due.AddDate(0, 1, 0))
	}
}
