package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// accounts is about money and what it is for: until when it lasts, what is due and missing, and servers.
func accounts() board {
	return board{
		name: "accounts", title: "Server rental: accounts and servers", from: "now-7d", timezone: "utc",
		description: "Until when servers are paid, what is due next, and how much is missing. Times are in UTC, like the provider's.",
		rows: []row{
			{panels: []dashboard.Panel{health("accounts"), sums(), accountTable(), topups()}},
			{id: 500, title: "Payments", panels: payments()},
			// Below the first screen: Grafana does not load what nobody sees, and hundreds of accounts have thousands of servers.
			{id: 600, title: "Servers and SSH keys", panels: []dashboard.Panel{servers(), keys()}},
		},
	}
}

func perAccount(name string, matchers ...string) string {
	return gauge("account", name, append([]string{account}, matchers...)...)
}

func due(days string) string           { return perAccount("account_renewals_due_usd", `days="`+days+`"`) }
func perServer(name string) string     { return gauge("account, server", name, account) }
func current(expr, from string) string { return expr + " and on (account) " + works(from) }

// Properties of each account, if they are not old.
var (
	balance = current(perAccount("account_balance_usd"), "account")
	days    = current("("+perAccount("account_funded_until_timestamp_seconds")+" - time()) / 86400", "account")
	missing = "clamp_min(" + due("30") + " - " + balance + ", 0)"
)

// noAccount is -2 if none is configured.
var noAccount = gauge("", "exporter_build_info") + " - 3 unless on () " + own(interval, `account!=""`)

// Formats of days until which renewals are paid, as in the alerts; of a balance; and of what is missing.
func funds(c column) column { return c.decimals(1).colours(bad, from(2, warn), from(7, good)) }
func debt(c column) column  { return c.colours(bad, from(0, none)) }
func lack(c column) column  { return c.colours(good, from(0.005, bad)) }

// sums says how many of the chosen accounts are not known.
func sums() dashboard.Panel {
	first := "bottomk(1, " + perServer("server_renews_timestamp_seconds") + ")"
	return panel{id: 701, title: "Money, USD", w: 7, h: 8, decimals: new(2.0), lines: true, noValue: "No account is known"}.number(
		"Of all chosen accounts: the days until the first renewal that a balance cannot pay, ten years ahead at most; what is due "+
			"within 30 days, without VAT. Accounts that cannot be fetched are not known, and not in the coloured lines.",
		funds(line("until", "paid for", "min("+days+")").unit("suffix: days")),
		line("next", "next renewal: {{account}}", "1e3 * "+first).unit(date),
		line("amount", "costs", perServer("server_price_usd_per_month")+" and "+first),
		line("month", "due within 30 days", "sum("+due("30")+")"),
		lack(line("missing", "missing for that", "sum("+missing+")")),
		debt(line("balance", "balance", "sum("+balance+")")),
		line("unknown", "not known", "count("+perAccount(success, `collector="account"`)+" == 0)").
			unit("suffix: accounts").decimals(0).colours(unknown),
	)
}

func accountTable() dashboard.Panel {
	works := "2 * min by (account) (" + gauge("account, collector", success, account) + ")"
	states := []mapping{noAccountText, value("-1", "Rejected", bad), value("0", "Failing", unknown), value("2", "OK", good)}
	return panel{id: 107, title: "Accounts, USD", w: 17, h: 8, sort: "API", links: configuring("accounts", "configuration-file")}.table(
		"The chosen accounts: rejected tokens and failing fetches first, then the first to run dry. Days left, Missing and Balance "+
			"are as in Money, and empty while the account cannot be fetched. Excludes VAT. Colours are those of the alerts.",
		accountColumn("accounts").with("custom.minWidth", 110),
		state("token", "API", 85, "-"+perAccount(rejected)+" == -1 or "+works+" or "+noAccount, states),
		funds(number("left", "Days left", 80, days)).ascending(),
		lack(money("missing", "Missing, 30 d", missing).with("custom.minWidth", 114)),
		debt(money("balance", "Balance", balance)),
		money("week", "Due, 7 d", due("7")),
		money("month", "Due, 30 d", due("30")),
		state("factor", "Two-factor", 100, dated(perAccount("account_two_factor_enabled"), "account", "account"), yesNo("On", "Off", warn)),
	)
}

func servers() dashboard.Panel {
	states := []mapping{words("/^active$/i", "", good), words("/^suspended$/i", "", bad), words(".+", "", warn)}
	return panel{id: 304, title: "Servers and renewals, USD", w: 24, h: 9, sort: "-Status,Renews"}.table(
		"The servers of the chosen accounts, suspended ones first, then the first to renew. Prices exclude VAT. The status is empty "+
			"while servers cannot be fetched.",
		fixed("status", "Status", 95).
			from(current(once("account, server", "status", "server_status", account), "servers")).mapped(states...),
		flexible("hostname", "Host name", 170).from(once("account, server", "hostname, plan, location, os", "server_info", account)),
		number("renews", "Renews", 105, "1e3 * "+perServer("server_renews_timestamp_seconds")).unit(date),
		money("price", "Per month", perServer("server_price_usd_per_month")),
		accountColumn("accounts"), planColumn("accounts"), locationColumn("accounts", "status"),
		flexible("os", "System", 145), flexible("server", "Id", 170),
	)
}

func payments() []dashboard.Panel {
	month := func(ref, title, name, month string) column {
		expr := gauge("account, type", "transactions_month_"+name+"_usd", account, `month="`+month+`"`)
		return money(ref, title, "sum by (type) ("+expr+") > 0").with("custom.minWidth", 125)
	}
	history := panel{
		id: 106, title: "Balance, USD", w: 10, h: 9, decimals: new(2.0), noValue: "Nothing in this time range",
		description: "The balances of the chosen accounts. Of more than ten, only the ten lowest at each time.",
	}
	return []dashboard.Panel{
		history.build("timeseries", timeseries.Options{Legend: legend, Tooltip: common.VizTooltipOptions{Mode: "multi", Sort: "desc"}},
			common.GraphFieldConfig{LineInterpolation: new(common.LineInterpolationStepAfter), ShowPoints: new(common.VisibilityModeNever)},
			"palette-classic", []query{course("A", "{{account}}", "bottomk(10, "+perAccount("account_balance_usd")+")")}),
		panel{id: 502, title: "Money by month, USD", w: 14, h: 9, total: true, sort: "Type"}.table(
			"Credits and debits by type of transaction in this calendar month and in the one before (UTC), of the chosen accounts.",
			fixed("type", "Type", 90),
			month("out", "Out, this month", "debit", "current"), month("lastout", "Out, last month", "debit", "previous"),
			month("in", "In, this month", "credit", "current"), month("lastin", "In, last month", "credit", "previous")),
	}
}

func topups() dashboard.Panel {
	of := func(name string) string { return gauge("account, topup", "topup_"+name) }
	newest := "topk(50, " + gauge("account, topup", "topup_created_timestamp_seconds", account) + ")"
	one := func(labels, name string) string {
		return once("account, topup", labels, name) + " and on (account, topup) " + newest
	}
	return panel{id: 402, title: "Open top-ups, USD", w: 24, h: 5, sort: "-Status", hidden: []string{"topup"}}.table(
		"Top-ups that wait for a payment or its confirmations, the 50 newest at most, with their page, those to pay first. "+
			"A pending top-up has to be paid while its rate is locked.",
		number("left", "Time left", 115, of("rate_locked_until_timestamp_seconds")+" - time() and "+newest).unit(duration).decimals(0).
			colours(bad, from(0, warn), from(600, none)).mapped(between(-endless, 0, "Expired", bad)),
		fixed("status", "Status", 95).from(one("status, coin, network", "topup_info")),
		money("amount", "Amount", of("amount_usd")+" and "+newest),
		address("page", "Open", one("page", "topup_links_info")),
		flexible("coin", "Coin", 80), flexible("network", "Network", 90),
		accountColumn("accounts"),
	)
}

func keys() dashboard.Panel {
	return panel{id: 602, title: "SSH keys", w: 24, h: 8, sort: "-Added", hidden: []string{"ssh_key"}}.table(
		"The SSH keys of the chosen accounts, the newest first. Treat a key that nobody of you added as an emergency.",
		number("created", "Added", 105, "1e3 * "+gauge("ssh_key", "ssh_key_created_timestamp_seconds", account)).unit(date),
		fixed("name", "Key", 140),
		accountColumn("accounts").with("custom.width", 140),
		flexible("fingerprint", "Fingerprint", 420).from(once("account, ssh_key", "name, fingerprint", "ssh_key_info", account)),
	)
}
