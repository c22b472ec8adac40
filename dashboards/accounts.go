package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// accounts is about money and what it is for: how long the balance lasts, renewals, top-ups, servers.
func accounts() board {
	return board{
		name: "accounts", title: "Server rental: accounts and servers", from: "now-7d", timezone: "utc",
		description: "How long the balance lasts, renewals, open top-ups, money in and out, and servers. Times are in UTC, like the provider's dates.",
		annotations: []annotation{news(account)},
		rows: []row{
			{id: 100, title: "Money", panels: append(sums(), accountTable())},
			{id: 200, title: "Renewals", panels: []dashboard.Panel{renewals()}},
			{id: 500, title: "History", panels: flows()},
			{id: 400, title: "Top-ups", panels: topups()},
			{id: 300, title: "Servers", panels: servers()},
			{id: 600, title: "Security", panels: security(), collapsed: true},
		},
	}
}

func perAccount(name string, matchers ...string) string {
	return gauge("account", name, append([]string{account}, matchers...)...)
}
func due(days string) string { return perAccount("account_renewals_due_usd", `days="`+days+`"`) }

// ofAccounts adds to sums over a metric how many of the chosen accounts are known.
func ofAccounts(name string, sums ...query) []query {
	all := "count(count by (account) (" + own("exporter_collector_interval_seconds", account) + "))"
	return append(sums, now("known", "accounts", "count("+perAccount(name)+") or 0 * "+all), now("of", "of", all))
}

// counted are overrides, with those of the numbers of accounts.
func counted(more ...override) []override {
	for _, ref := range []string{"known", "of"} {
		more = append(more, ofQuery(ref, set("unit", "none"), set("decimals", 0), setSteps(rising(muted))))
	}
	return more
}

func sums() []dashboard.Panel {
	return []dashboard.Panel{
		panel{id: 701, title: "Balance", w: 8, h: 5, unit: usd, decimals: new(2.0), lines: true, steps: balanceSteps, overrides: counted(), alerts: "BalanceNegative BalanceLow"}.number(
			"The sum of the known balances of the chosen accounts, red if negative.",
			ofAccounts("account_balance_usd", now("A", "balance", "sum("+perAccount("account_balance_usd")+")"))...),
		panel{id: 702, title: "Cost per month", w: 8, h: 5, unit: usd, decimals: new(2.0), lines: true, overrides: counted()}.number(
			help("account_cost_usd_per_month"),
			ofAccounts("account_cost_usd_per_month", now("A", "cost", "sum("+perAccount("account_cost_usd_per_month")+")"))...),
		panel{id: 703, title: "Due", w: 8, h: 5, unit: usd, decimals: new(2.0), lines: true, overrides: counted(), alerts: "ServersAtRisk RenewalsUnfunded"}.number(
			help("account_renewals_due_usd"),
			ofAccounts("account_renewals_due_usd", now("week", "7 days", "sum("+due("7")+")"), now("month", "30 days", "sum("+due("30")+")"))...),
	}
}

func accountTable() dashboard.Panel {
	balance, cost, until := perAccount("account_balance_usd"), perAccount("account_cost_usd_per_month"), perAccount("account_funded_until_timestamp_seconds")
	return panel{id: 107, title: "Accounts", w: 24, h: 8, noValue: "No account is known", alerts: "ServersAtRisk RenewalsUnfunded BalanceNegative BalanceLow TokenRejected"}.table(
		"The chosen accounts, the first to run dry first: days until the first renewal that the balance cannot pay, and its date, ten years ahead at most; the balance; until when to top up with the slowest of the coins that were used, by the last 20 settlements of each; the months that the balance pays; the monthly cost; what is due; and whether the token is accepted. Everything excludes VAT. Colours are those of the alerts.",
		accountColumn("accounts").with("custom.width", 140),
		number("left", "Days left", 80, "("+until+" - time()) / 86400").decimals(1).colours(daySteps).ascending(),
		when("until", "Funded until", 110, until, date),
		money("balance", "Balance", balance).colours(balanceSteps),
		when("payby", "Pay by", 135, "("+until+" - "+perAccount("topup_settlement_seconds")+")", minute),
		number("months", "Months", 70, balance+" / ("+cost+" > 0)").decimals(1).colours(monthSteps),
		money("cost", "Per month", cost),
		money("week", "Due, 7 d", due("7")),
		money("month", "Due, 30 d", due("30")),
		state("token", "Token", 80, perAccount("exporter_api_token_rejected"), yesNo("Rejected", bad, "Accepted", good)),
	)
}

func perServer(name, labels string) string { return gauge("account, server"+labels, name, account) }
func serverStatus() column {
	return fixed("status", "Status", 95).from(perServer("server_status", ", status") + " == 1").mapped(serverStates...)
}

func renewals() dashboard.Panel {
	return panel{id: 202, title: "Renewals", w: 24, h: 9, hidden: []string{"server"}, noValue: "No renewal is known", alerts: "ServersAtRisk RenewalsUnfunded"}.table(
		"The next renewal of each server of the chosen accounts, by date, with its price, excluding VAT.",
		when("renews", "Renews", 105, perServer("server_renews_timestamp_seconds", ""), date).ascending(),
		money("price", "Per month", perServer("server_price_usd_per_month", "")),
		flexible("hostname", "Host name", 190).from(perServer("server_info", ", hostname, plan, location")),
		planColumn("accounts"), locationColumn("accounts", "status"), serverStatus(), accountColumn("accounts"),
	)
}

// added is the amounts by type that were added in the interval after each step, by the last that was
// known in it and in the one before.
func added(name string) string {
	last := func(offset string) string {
		return by("account, type", "last_over_time("+own(name, account)+"[$__interval]"+offset+")")
	}
	return "sum by (type) (" + last(" offset -$__interval") + " - " + last("") + ") > 0"
}

func flows() []dashboard.Panel {
	out := func(month string) string {
		return "sum by (type) (" + gauge("account, type", "transactions_month_debit_usd", account, `month="`+month+`"`) + ") > 0"
	}
	return []dashboard.Panel{
		panel{id: 106, title: "Balance", w: 8, h: 10, unit: usd, decimals: new(2.0), points: 1000, alerts: "BalanceNegative BalanceLow"}.chart(
			"The balances of the chosen accounts. Of more than ten, only the ten lowest at each time.",
			course("A", "{{account}}", "bottomk(10, "+perAccount("account_balance_usd")+")")),
		panel{id: 501, title: "Money in and out", w: 8, h: 10, unit: usd, decimals: new(2.0), bars: true, interval: "2m", points: 30, noValue: "No money in or out is known"}.chart(
			"Credits, and debits below zero, of the chosen accounts by type of transaction, in the interval that begins at the left edge of each bar.",
			course("in", "in: {{type}}", added("transactions_credit_usd")), course("out", "out: {{type}}", "-("+added("transactions_debit_usd")+")")),
		panel{id: 502, title: "Money out by month", w: 8, h: 10, sort: "This month", descending: true, noValue: "No money out is known"}.table(
			"Debits by type of transaction in this calendar month and in the one before (UTC), of the chosen accounts whose whole history is known.",
			fixed("type", "Type", 80), money("current", "This month", out("current")), money("previous", "Last month", out("previous"))),
	}
}

func topups() []dashboard.Panel {
	of := func(name, labels string) string { return gauge("account, topup"+labels, "topup_"+name, account) }
	return []dashboard.Panel{
		panel{id: 402, title: "Open top-ups", w: 24, h: 6, sort: "Status", descending: true, hidden: []string{"topup"}, noValue: "No open top-up is known", alerts: "TopupExpiring TopupStuck"}.table(
			"Top-ups that wait for a payment or its confirmations, with their page, those to pay first. A pending top-up has to be paid while its rate is locked.",
			number("left", "Time left", 115, of("rate_locked_until_timestamp_seconds", "")+" - time()").unit(duration).decimals(0).colours(rising(bad, from(0, warn), from(600, plain))),
			fixed("status", "Status", 95).from(of("info", ", status, coin, network")),
			money("amount", "Amount", of("amount_usd", "")),
			address("page", "Open", of("links_info", ", page")),
			flexible("coin", "Coin", 80), flexible("network", "Network", 90),
			number("have", "Have", 57, of("confirmations", "")), number("need", "Need", 57, of("confirmations_needed", "")),
			agoColumn("created", "Created", of("created_timestamp_seconds", "")),
			accountColumn("accounts"),
		),
		panel{id: 401, title: "Top-ups by status", w: 24, h: 4, names: true, steps: rising(muted), overrides: counted(ofName("failed", setSteps(rising(muted, from(1, bad))))), alerts: "TopupFailed"}.number(
			help("topups"),
			ofAccounts("topups", now("A", "{{status}}", "sum by (status) ("+gauge("account, status", "topups", account)+")"))...),
	}
}

func servers() []dashboard.Panel {
	return []dashboard.Panel{
		panel{id: 301, title: "Servers by status", w: 24, h: 4, names: true, steps: rising(muted, from(1, warn)), alerts: "ServerSuspended ServerAdded ServerRemoved", overrides: counted(ofName("active", setSteps(someIsGood)), ofName("suspended", setSteps(noneIsGood)))}.number(
			help("servers"),
			ofAccounts("servers", now("A", "{{status}}", "sum by (status) ("+gauge("account, status", "servers", account)+")"))...),
		panel{id: 304, title: "Servers", w: 24, h: 11, sort: "Host name", noValue: "No server is known", alerts: "ServerSuspended ServerPriceChanged"}.table(
			"Every server of the chosen accounts, and its price before the exporter last saw it change. Prices exclude VAT. The metrics contain no addresses.",
			serverStatus(),
			flexible("hostname", "Host name", 200).from(perServer("server_info", ", hostname, plan, location, os")),
			planColumn("accounts"),
			money("price", "Per month", perServer("server_price_usd_per_month", "")),
			money("before", "Before", perServer("server_previous_price_usd_per_month", "")),
			agoColumn("changed", "Changed", perServer("server_last_price_change_timestamp_seconds", "")),
			locationColumn("accounts", "status"), accountColumn("accounts"),
			flexible("os", "System", 110), flexible("server", "Id", 180),
		),
	}
}

func security() []dashboard.Panel {
	return []dashboard.Panel{
		panel{id: 601, title: "Security of accounts", w: 24, h: 7, sort: "Account", noValue: "No account is known", alerts: "TwoFactorDisabled SSHKeysChanged"}.table(
			"The chosen accounts: two-factor authentication, the number of SSH keys and of saved configurations, when a key last came or went while the exporter ran, and the last paid top-up.",
			accountColumn("accounts"),
			flexible("name", "Name", 130).from(gauge("account, name", "account_info", account)),
			state("factor", "Two-factor", 100, perAccount("account_two_factor_enabled"), yesNo("On", good, "Off", warn)),
			number("keys", "SSH keys", 85, perAccount("ssh_keys")),
			number("saved", "Configurations", 125, perAccount("configurations")), number("limit", "of at most", 90, perAccount("configurations_limit")),
			agoColumn("changed", "Keys changed", latest("account", "ssh_keys_changed_timestamp_seconds", "ssh_keys", account)),
			agoColumn("paid", "Last top-up", perAccount("topup_last_paid_timestamp_seconds")),
		),
		panel{id: 602, title: "SSH keys", w: 24, h: 8, sort: "Added", descending: true, hidden: []string{"ssh_key"}, noValue: "No SSH key is known", alerts: "SSHKeysChanged"}.table(
			"The SSH keys of the chosen accounts, the newest first. Treat a key that nobody of you added as an emergency.",
			when("created", "Added", 105, gauge("account, ssh_key", "ssh_key_created_timestamp_seconds", account), date),
			fixed("name", "Key", 140),
			fixed("type", "Type", 110).mapped(words(".+", "", muted)),
			accountColumn("accounts").with("custom.width", 140),
			flexible("fingerprint", "Fingerprint", 420).from(gauge("account, ssh_key, name, type, fingerprint", "ssh_key_info", account)),
		),
	}
}
