package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// accounts is about money and what it is for: how long the balance lasts, renewals, top-ups, servers.
func accounts() file {
	return board{
		name: "accounts", title: "Server rental: accounts and servers", from: "now-7d", refresh: "1m", timezone: "utc",
		description: "How long the balance lasts, renewals, open top-ups, money in and out, and servers. Times are in UTC, like the provider's dates.",
		rows: []row{
			{id: 100, title: "Money", panels: append(sums(), accountTable())},
			{id: 200, title: "Renewals", panels: []dashboard.Panel{renewals()}},
			{id: 500, title: "History", panels: flows()},
			{id: 400, title: "Top-ups", panels: topups()},
			{id: 300, title: "Servers", panels: servers()},
			{id: 600, title: "Security", panels: security(), collapsed: true},
		},
	}.build(newsOf(account))
}

func perAccount(name string, matchers ...string) string {
	return gauge("account", name, append([]string{account}, matchers...)...)
}

func due(days string) string {
	return perAccount("account_renewals_due_usd", `days="`+days+`"`)
}

// howMany says how many of the chosen accounts are known, beside a sum over those of a metric.
func howMany(name string) []query {
	of := "count(count by (account) (" + own("exporter_collector_interval_seconds", account) + "))"
	return []query{now("known", "accounts known", "count("+perAccount(name)+") or 0 * "+of), now("of", "of", of)}
}

// plainCounts are the overrides for what howMany says.
func plainCounts(more ...override) []override {
	return append(more, forQuery("known", set("unit", "none"), set("decimals", 0), setSteps(rising(muted))), forQuery("of", set("unit", "none"), set("decimals", 0), setSteps(rising(muted))))
}

func sums() []dashboard.Panel {
	tile := panel{w: 8, h: 5, unit: usd, decimals: new(2.0), names: true, lines: true, overrides: plainCounts()}
	balance, cost, renewals := tile, tile, tile
	balance.id, balance.title, balance.steps, balance.alerts = 701, "Balance", balanceSteps, []string{"BalanceNegative", "BalanceLow"}
	balance.description = "The sum of the known balances of the chosen accounts, red if negative."
	cost.id, cost.title = 702, "Cost per month"
	cost.description = help("account_cost_usd_per_month")
	renewals.id, renewals.title, renewals.alerts = 703, "Due", []string{"ServersAtRisk", "RenewalsUnfunded"}
	renewals.description = help("account_renewals_due_usd")
	return []dashboard.Panel{
		balance.number(append([]query{now("A", "balance", "sum("+perAccount("account_balance_usd")+")")}, howMany("account_balance_usd")...)...),
		cost.number(append([]query{now("A", "cost", "sum("+perAccount("account_cost_usd_per_month")+")")}, howMany("account_cost_usd_per_month")...)...),
		renewals.number(append([]query{now("week", "7 days", "sum("+due("7")+")"), now("month", "30 days", "sum("+due("30")+")")}, howMany("account_renewals_due_usd")...)...),
	}
}

func accountTable() dashboard.Panel {
	balance, cost, until := perAccount("account_balance_usd"), perAccount("account_cost_usd_per_month"), perAccount("account_funded_until_timestamp_seconds")
	return panel{
		id: 107, title: "Accounts", w: 24, h: 8, noValue: "No account is known", alerts: []string{"ServersAtRisk", "RenewalsUnfunded", "BalanceNegative", "BalanceLow", "TokenRejected"},
		description: "The chosen accounts, the first to run dry first: days until the first renewal that the balance cannot pay, and its date, ten years ahead at most; the balance; until when to top up with the slowest of the coins that were used, by the last 20 settlements of each; the months that it pays; the monthly cost; what is due; " +
			"and whether the token is accepted. Everything excludes VAT. Colours are those of the alerts.",
	}.table(
		accountColumn("accounts"),
		number("left", "Days left", 80, "("+until+" - time()) / 86400").decimals(1).colours(daySteps).ascending(),
		when("until", "Funded until", 110, until, date),
		money("balance", "Balance", balance).colours(balanceSteps),
		when("payby", "Pay by", 140, "("+until+" - "+gauge("account", "topup_settlement_seconds", account)+")", minute),
		number("months", "Months", 70, balance+" / ("+cost+" > 0)").decimals(1).colours(monthSteps),
		money("cost", "Per month", cost),
		money("week", "Due, 7 d", due("7")),
		money("month", "Due, 30 d", due("30")),
		state("token", "Token", 85, perAccount("exporter_api_token_rejected"), yesNo("Rejected", bad, "Accepted", good)),
	)
}

func money(ref, name, expr string) column {
	return number(ref, name, 115, expr).unit(usd).decimals(2)
}

func perServer(name, labels string) string { return gauge("account, server"+labels, name, account) }

func serverStatus() column {
	return fixed("status", "Status", 95).from(perServer("server_status", ", status") + " == 1").mapped(serverStates...)
}

func renewals() dashboard.Panel {
	return panel{
		id: 202, title: "Renewals", w: 24, h: 9, hidden: []string{"server"}, noValue: "No renewal is known", alerts: []string{"ServersAtRisk", "RenewalsUnfunded"},
		description: "The next renewal of each server of the chosen accounts, by date, with its price, excluding VAT.",
	}.table(
		when("renews", "Renews", 105, perServer("server_renews_timestamp_seconds", ""), date).ascending(),
		money("price", "Per month", perServer("server_price_usd_per_month", "")),
		flexible("hostname", "Host name", 150).from(perServer("server_info", ", hostname, plan, location")),
		planColumn("accounts"), locationColumn("accounts", "status"), serverStatus(), accountColumn("accounts"),
	)
}

// added is the amounts by type that were added in the interval after each step, by the last that was
// known in it and in the one before.
func added(name string) string {
	last := func(offset string) string {
		return maxBy("account, type", "last_over_time("+own(name, account)+"[$__interval]"+offset+")")
	}
	return "sum by (type) (" + last(" offset -$__interval") + " - " + last("") + ") > 0"
}

func flows() []dashboard.Panel {
	ofMonth := func(month string) string {
		return "sum by (type) (" + gauge("account, type", "transactions_month_debit_usd", account, `month="`+month+`"`) + ") > 0"
	}
	return []dashboard.Panel{
		panel{
			id: 106, title: "Balance", w: 8, h: 10, unit: usd, decimals: new(2.0), stepped: true, alerts: []string{"BalanceNegative", "BalanceLow"},
			description: "The balances of the chosen accounts. Of more than ten, only the ten lowest at each time.",
		}.chart(course("A", "{{account}}", "bottomk(10, "+perAccount("account_balance_usd")+")")),
		panel{
			id: 501, title: "Money in and out", w: 9, h: 10, unit: usd, decimals: new(2.0), bars: true, interval: "2m", points: 30, calcs: []string{"sum"}, noValue: "No money in or out is known",
			description: "Credits, and debits below zero, of the chosen accounts by type of transaction, in the interval that begins at the left edge of each bar.",
		}.chart(course("in", "in: {{type}}", added("transactions_credit_usd")), course("out", "out: {{type}}", "-("+added("transactions_debit_usd")+")")),
		panel{
			id: 502, title: "Money out by month", w: 7, h: 10, sort: "This month", descending: true, noValue: "No money out is known",
			description: "Debits of the chosen accounts by type of transaction in this calendar month and in the one before (UTC), of accounts whose whole history is known.",
		}.table(
			flexible("type", "Type", 80),
			money("current", "This month", ofMonth("current")), money("previous", "Last month", ofMonth("previous")),
		),
	}
}

func topups() []dashboard.Panel {
	of := func(name, labels string) string { return gauge("account, topup"+labels, name, account) }
	return []dashboard.Panel{
		panel{
			id: 402, title: "Open top-ups", w: 24, h: 6, sort: "Status", descending: true, hidden: []string{"topup"}, noValue: "No open top-up is known", alerts: []string{"TopupExpiring", "TopupStuck"},
			description: "Top-ups that wait for a payment or its confirmations, with their page, those to pay first. A pending top-up has to be paid while its rate is locked.",
		}.table(
			number("left", "Time left", 115, of("topup_rate_locked_until_timestamp_seconds", "")+" - time()").unit(duration).decimals(0).colours(rising(bad, from(0, warn), from(600, plain))),
			fixed("status", "Status", 95).from(of("topup_info", ", status, coin, network")),
			money("amount", "Amount", of("topup_amount_usd", "")),
			address("page", "Open", of("topup_links_info", ", page")),
			flexible("coin", "Coin", 80), flexible("network", "Network", 90),
			number("have", "Have", 57, of("topup_confirmations", "")),
			number("need", "Need", 57, of("topup_confirmations_needed", "")),
			agoColumn("created", "Created", of("topup_created_timestamp_seconds", "")),
			accountColumn("accounts"),
		),
		panel{
			id: 401, title: "Top-ups by status", w: 24, h: 4, names: true, steps: rising(muted), alerts: []string{"TopupFailed"},
			description: help("topups"),
			overrides:   plainCounts(forName("failed", setSteps(rising(muted, from(1, bad))))),
		}.number(append([]query{now("A", "{{status}}", "sum by (status) ("+gauge("account, status", "topups", account)+")")}, howMany("topups")...)...),
	}
}

func servers() []dashboard.Panel {
	return []dashboard.Panel{
		panel{
			id: 301, title: "Servers by status", w: 24, h: 4, names: true, steps: rising(muted, from(1, warn)), alerts: []string{"ServerSuspended", "ServerAdded", "ServerRemoved"},
			description: help("servers"),
			overrides:   plainCounts(forName("active", setSteps(rising(muted, from(1, good)))), forName("suspended", setSteps(noneIsGood))),
		}.number(append([]query{now("A", "{{status}}", "sum by (status) ("+gauge("account, status", "servers", account)+")")}, howMany("servers")...)...),
		panel{
			id: 304, title: "Servers", w: 24, h: 11, sort: "Host name", noValue: "No server is known", alerts: []string{"ServerSuspended", "ServerPriceChanged"},
			description: "Every server of the chosen accounts. Prices exclude VAT; before is the price until it changed, within 7 days of data of the exporter. The metrics contain no addresses.",
		}.table(
			serverStatus(),
			flexible("hostname", "Host name", 130).from(perServer("server_info", ", hostname, plan, location, os")),
			planColumn("accounts"),
			money("price", "Per month", perServer("server_price_usd_per_month", "")),
			money("before", "Before", perServer("server_previous_price_usd_per_month", "")),
			agoColumn("changed", "Changed", perServer("server_last_price_change_timestamp_seconds", "")),
			locationColumn("accounts", "status"),
			accountColumn("accounts"),
			flexible("os", "System", 90),
			flexible("server", "Id", 90),
		),
	}
}

func security() []dashboard.Panel {
	return []dashboard.Panel{
		panel{
			id: 601, title: "Security of accounts", w: 24, h: 7, sort: "Account", noValue: "No account is known", alerts: []string{"TwoFactorDisabled", "SSHKeysChanged"},
			description: "The chosen accounts: two-factor authentication, the number of SSH keys and of saved configurations, when a key last came or went while the exporter ran, and the last paid top-up.",
		}.table(
			accountColumn("accounts"),
			flexible("name", "Name", 130).from(gauge("account, name", "account_info", account)),
			state("factor", "Two-factor", 100, perAccount("account_two_factor_enabled"), yesNo("On", good, "Off", warn)),
			number("keys", "SSH keys", 85, perAccount("ssh_keys")),
			number("saved", "Configurations", 125, perAccount("configurations")),
			number("limit", "of at most", 90, perAccount("configurations_limit")),
			agoColumn("changed", "Keys changed", latest("account", "ssh_keys_changed_timestamp_seconds", "ssh_keys", account)),
			agoColumn("paid", "Last top-up", perAccount("topup_last_paid_timestamp_seconds")),
		),
		panel{
			id: 602, title: "SSH keys", w: 24, h: 8, sort: "Added", descending: true, hidden: []string{"ssh_key"}, noValue: "No SSH key is known", alerts: []string{"SSHKeysChanged"},
			description: "The SSH keys of the chosen accounts, the newest first. Treat a key that nobody of you added as an emergency.",
		}.table(
			when("created", "Added", 105, gauge("account, ssh_key", "ssh_key_created_timestamp_seconds", account), date),
			flexible("name", "Key", 140),
			fixed("type", "Type", 110).mapped(words(".+", "", muted)),
			accountColumn("accounts"),
			flexible("fingerprint", "Fingerprint", 300).from(gauge("account, ssh_key, name, type, fingerprint", "ssh_key_info", account)),
		),
	}
}
