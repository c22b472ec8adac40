package web

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"server_rental_exporter/collector"
)

// maxStatuses is the maximum number of statuses of each account's servers.
const maxStatuses = 6

// renewalsAhead is the time from today within which renewals are listed.
const renewalsAhead = 14 * day

// accountRow is a row of the table of accounts.
type accountRow struct {
	Name, Balance, Cost, Funded, FundedClass, Servers string
	Data, DataClass                                   string // how old the data is, and what is not known
}

// renewalRow is a renewal of a server.
type renewalRow struct {
	Date, Class, Account, Host, Amount string
	day                                time.Time
}

// topupRow is an open top-up.
type topupRow struct {
	Account, Amount, Coin, Status, Confirmations, Left string
	until                                              float64 // Unix seconds
}

// configurationRow is a saved configuration.
type configurationRow struct {
	Name, Account, Plan, Location, USD string
	Order                              string // address of the order form; empty if it is not known
	Stock                              stock
}

// Accounts returns the accounts in the order of their names.
func (v *view) Accounts() table[accountRow] {
	servers := v.group("servers")
	rows := make([]accountRow, 0, len(v.accounts))
	for _, name := range v.accounts {
		a := accountRow{
			Name: text(name), Balance: money(v.value("account_balance_usd", name)), Cost: money(v.value("account_cost_usd_per_month", name)),
			Servers: serversByStatus(servers[name]),
		}
		if v.unpriced[name] > 0 && a.Cost != none {
			a.Cost = "at least " + a.Cost
		}
		a.Funded, a.FundedClass = v.funded(name)
		a.Data, a.DataClass = v.accountData(name)
		rows = append(rows, a)
	}
	return cut(rows, maxLongRows)
}

// funded returns until when an account's balance pays its servers, in words.
func (v *view) funded(account string) (words, class string) {
	until, class := v.fundedUntil(account)
	ahead := !until.Before(midnight(v.now).AddDate(10, 0, 0))
	incomplete := v.unpriced[account]+v.undated[account] > 0
	switch {
	case until.IsZero() || ahead && incomplete:
		return none, ""
	case ahead:
		return "10 years or more", class
	case incomplete:
		return "at most " + date(until, v.now), class
	}
	return date(until, v.now), class
}

// accountData says how old the data is that the section shows of an account.
func (v *view) accountData(account string) (words, class string) {
	class = "good"
	var ages []string
	for _, name := range []string{"account", "servers", "topups", "configurations"} {
		age, c, _ := v.age(name, account)
		ages = append(ages, name+": "+age)
		if compareClasses(c, class) < 0 {
			class = c
		}
	}
	return strings.Join(ages, "; "), class
}

// fundedUntil returns the day of the first renewals that an account's balance cannot
// pay, zero if it is not known, and bad or warn if it needs attention.
func (v *view) fundedUntil(account string) (until time.Time, class string) {
	funded := v.value("account_funded_until_timestamp_seconds", account)
	if funded == nil {
		return time.Time{}, ""
	}
	until = at(*funded)
	switch left := until.Sub(midnight(v.now)); {
	case left <= fundingUrgent:
		return until, "bad"
	case left <= fundingNotice:
		return until, "warn"
	}
	return until, ""
}

// serversByStatus returns the number of servers of each status.
func serversByStatus(found []*sample) string {
	if len(found) == 0 {
		return none
	}
	slices.SortFunc(found, func(a, b *sample) int { return strings.Compare(a.Label("status"), b.Label("status")) })
	var texts []string
	for _, s := range found {
		if s.Value() > 0 {
			texts = append(texts, grouped(int(s.Value()))+" "+text(s.Label("status")))
		}
	}
	if len(texts) == 0 {
		return "0"
	}
	return join(texts, maxStatuses)
}

// Renewals returns the renewals of billed servers that are overdue or come soon, by day.
func (v *view) Renewals() table[renewalRow] {
	var rows []renewalRow
	today := midnight(v.now)
	for _, s := range v.samples["server_renews_timestamp_seconds"] {
		account, id := s.Label("account"), s.Label("server")
		if !collector.Billed(v.label("status", "server_status", account, id)) {
			continue
		}
		for _, on := range collector.RenewalDays(midnight(at(s.Value())), today, today.Add(renewalsAhead)) {
			r := renewalRow{
				Date: date(on, v.now), Account: text(account), Host: v.serverName(account, id), day: on,
				Amount: money(v.value("server_price_usd_per_month", account, id)),
			}
			if on.Before(today) {
				r.Class = "bad"
			}
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b renewalRow) int {
		return cmp.Or(a.day.Compare(b.day), strings.Compare(a.Account, b.Account), strings.Compare(a.Host, b.Host))
	})
	return cut(rows, maxRows)
}

// Topups returns the open top-ups in the order in which their rate locks end.
func (v *view) Topups() table[topupRow] {
	var rows []topupRow
	for _, s := range v.samples["topup_info"] {
		account, id := s.Label("account"), s.Label("topup")
		t := topupRow{
			Account: text(account), Amount: money(v.value("topup_amount_usd", account, id)), Status: text(s.Label("status")),
			Coin: text(s.Label("coin")), Confirmations: none, Left: none, until: math.Inf(1),
		}
		if network := s.Label("network"); network != "" {
			t.Coin += " (" + text(network) + ")"
		}
		confirmed, needed := v.value("topup_confirmations", account, id), v.value("topup_confirmations_needed", account, id)
		if confirmed != nil || needed != nil {
			t.Confirmations = number(confirmed) + " of " + number(needed)
		}
		if lock := v.value("topup_rate_locked_until_timestamp_seconds", account, id); lock != nil {
			t.until, t.Left = *lock, "rate lock ended"
			if until := at(*lock); until.After(v.now) {
				t.Left = duration(until.Sub(v.now)) + " left"
			}
		}
		rows = append(rows, t)
	}
	slices.SortFunc(rows, func(a, b topupRow) int {
		return cmp.Or(cmp.Compare(a.until, b.until), strings.Compare(a.Account, b.Account), strings.Compare(a.Amount, b.Amount))
	})
	return cut(rows, maxRows)
}

// Configurations returns the saved configurations, those in stock first.
func (v *view) Configurations() table[configurationRow] {
	var rows []configurationRow
	for _, s := range v.samples["configuration_info"] {
		account, id := s.Label("account"), s.Label("configuration")
		rows = append(rows, configurationRow{
			Name: v.nameOf("hostname", "configuration_info", account, id), Account: text(account), Plan: v.planName(s.Label("plan")),
			Location: text(s.Label("location")), USD: money(v.value("configuration_price_usd_per_month", account, id)),
			Order: v.label("order", "configuration_links_info", account, id), Stock: stockOf(v.value("configuration_in_stock", account, id)),
		})
	}
	slices.SortFunc(rows, func(a, b configurationRow) int {
		return cmp.Or(cmp.Compare(a.Stock, b.Stock), strings.Compare(a.Account, b.Account), strings.Compare(a.Name, b.Name), strings.Compare(a.Order, b.Order))
	})
	return cut(rows, maxRows)
}
