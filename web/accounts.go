package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"server_rental_exporter/collector"
)

// Bounds of the section's tables.
const (
	maxAccounts = 100
	maxRenewals = 50
	maxTopups   = 50
	maxStatuses = 6 // of each account's servers
)

// renewalsAhead is how far ahead renewals are listed.
const renewalsAhead = 14 * day

// accountRow is a row of the table of accounts.
type accountRow struct {
	Name, Balance, Cost, Funded, FundedClass, Servers string
}

// renewalRow is a renewal of a server.
type renewalRow struct {
	Date, Class, Account, Host, Amount string
	day                                time.Time
}

// topupRow is an open top-up.
type topupRow struct {
	Account, Amount, Coin, Status, Confirmations, Left string
	until                                              time.Time
}

// first is the value of the only sample of an account; nil where it is absent.
func first(s []*collector.Sample) *float64 {
	if len(s) == 0 {
		return nil
	}
	return value(s[0])
}

// accountTable returns the accounts in the order of their names.
func (v *view) accountTable() table[accountRow] {
	var rows []accountRow
	for _, name := range v.accounts {
		own := v.byAccount[name]
		a := accountRow{
			Name: text(name), Balance: money(first(own["account_balance_usd"])), Cost: money(first(own["account_cost_usd_per_month"])),
			Funded: none, Servers: serversByStatus(own["servers"]),
		}
		if funded := first(own["account_funded_until_timestamp_seconds"]); funded != nil {
			until, today := at(*funded), midnight(v.now)
			switch {
			case !until.Before(today.AddDate(10, 0, 0)):
				a.Funded = "10 years or more"
			case until.Sub(today) <= fundingUrgent:
				a.Funded, a.FundedClass = date(until, v.now), "bad"
			case until.Sub(today) <= fundingNotice:
				a.Funded, a.FundedClass = date(until, v.now), "warn"
			default:
				a.Funded = date(until, v.now)
			}
		}
		rows = append(rows, a)
	}
	return cut(rows, maxAccounts)
}

// serversByStatus lists how many servers have each status.
func serversByStatus(found []*collector.Sample) string {
	if len(found) == 0 {
		return none
	}
	var texts []string
	for _, s := range found {
		if s.Value() > 0 {
			texts = append(texts, number(value(s))+" "+text(s.Label("status")))
		}
	}
	if len(texts) == 0 {
		return "0"
	}
	slices.SortFunc(texts, func(a, b string) int {
		_, a, _ = strings.Cut(a, " ")
		_, b, _ = strings.Cut(b, " ")
		return strings.Compare(a, b)
	})
	return join(texts, maxStatuses)
}

// serverName is the host name of a server, or its id.
func (v *view) serverName(account, id string) string {
	if host := label(v.servers[account][id], "hostname"); host != "" {
		return text(host)
	}
	return text(id)
}

// renewals returns the renewals that are overdue or come soon, of servers that are
// billed.
func (v *view) renewals() table[renewalRow] {
	var rows []renewalRow
	today := midnight(v.now)
	for _, account := range v.accounts {
		own := v.byAccount[account]
		status, price := own.by("server_status", "server"), own.by("server_price_usd_per_month", "server")
		for _, s := range own["server_renews_timestamp_seconds"] {
			id := s.Label("server")
			if !collector.Billed(label(status[id], "status")) {
				continue
			}
			for _, on := range collector.RenewalDays(midnight(at(s.Value())), today, today.Add(renewalsAhead)) {
				r := renewalRow{
					Date: date(on, v.now), Account: text(account), Host: v.serverName(account, id), Amount: money(value(price[id])), day: on,
				}
				if on.Before(today) {
					r.Class = "bad"
				}
				rows = append(rows, r)
			}
		}
	}
	slices.SortFunc(rows, func(a, b renewalRow) int {
		return cmp.Or(a.day.Compare(b.day), strings.Compare(a.Account, b.Account), strings.Compare(a.Host, b.Host))
	})
	return cut(rows, maxRenewals)
}

// topups returns the open top-ups, those whose rate lock ends first in front.
func (v *view) topups() table[topupRow] {
	var rows []topupRow
	for _, account := range v.accounts {
		own := v.byAccount[account]
		amount, until := own.by("topup_amount_usd", "topup"), own.by("topup_rate_locked_until_timestamp_seconds", "topup")
		confirmed, needed := own.by("topup_confirmations", "topup"), own.by("topup_confirmations_needed", "topup")
		for _, s := range own["topup_info"] {
			id := s.Label("topup")
			t := topupRow{
				Account: text(account), Amount: money(value(amount[id])), Status: text(s.Label("status")),
				Coin: text(s.Label("coin")), Confirmations: none, Left: none,
			}
			if network := s.Label("network"); network != "" {
				t.Coin += " (" + text(network) + ")"
			}
			if confirmed[id] != nil || needed[id] != nil {
				t.Confirmations = fmt.Sprintf("%s of %s", number(value(confirmed[id])), number(value(needed[id])))
			}
			if lock := value(until[id]); lock != nil {
				t.until = at(*lock)
				t.Left = "rate lock ended"
				if t.until.After(v.now) {
					t.Left = duration(t.until.Sub(v.now)) + " left"
				}
			}
			rows = append(rows, t)
		}
	}
	slices.SortFunc(rows, func(a, b topupRow) int {
		return cmp.Or(boolCompare(a.until.IsZero(), b.until.IsZero()), a.until.Compare(b.until), strings.Compare(a.Account, b.Account), strings.Compare(a.Amount, b.Amount))
	})
	return cut(rows, maxTopups)
}

// boolCompare sorts false before true.
func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
