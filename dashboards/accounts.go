package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// accounts is about money and what it is for: until when it lasts, what is due and missing, and servers.
func accounts() board {
	return board{
		name: "accounts", title: "Server rental: accounts and servers", from: "now-7d", timezone: "utc",
		description: "Until when servers are paid, what is due next, and how much is missing. Times are in UTC, like the provider's dates.",
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
func due(days string) string { return perAccount("account_renewals_due_usd", `days="`+days+`"`) }

// Properties of each account.
var (
	balance = perAccount("account_balance_usd")
	until   = perAccount("account_funded_until_timestamp_seconds")
	missing = "clamp_min(" + due("30") + " - " + balance + ", 0)"
)

// noAccount is -2 if none is configured.
var (
	noAccount         = gauge("", "exporter_build_info") + " - 3 unless on () " + own(interval, `account!=""`)
	configureAccounts = []dashboard.DashboardLink{panelLink(link{"How to configure accounts", documents + "docs/configuration.md#configuration-file", true})}
)

// Of days until which renewals are paid, as in the alerts.
var fundedSteps = rising(bad, from(2, warn), from(7, good))

// sums says how many of the chosen accounts are not known.
func sums() dashboard.Panel {
	first := "bottomk(1, " + perServer("server_renews_timestamp_seconds") + ")"
	return panel{id: 701, title: "Money, USD", w: 7, h: 8, noValue: "No account is known", unit: "locale", decimals: new(0.0), lines: true, steps: rising(muted), alerts: "ServersAtRisk RenewalsUnfunded BalanceNegative BalanceLow", overrides: []override{
		ofQuery("until", set("unit", "suffix: days"), set("decimals", 1), setSteps(fundedSteps)), ofQuery("next", set("unit", date)), ofQuery("missing", setSteps(missingSteps)), ofQuery("balance", setSteps(balanceSteps)),
		ofQuery("unknown", set("unit", "suffix: accounts"), setSteps(rising(unknown))),
	}}.number(
		"Of all chosen accounts: the days until the first renewal that a balance cannot pay, ten years ahead at most; the next renewal and its price; what is due within 30 days and what their balances lack for that; and balances. Excludes VAT. If not all accounts are known, how many are not.",
		now("until", "paid for", "(min("+own("account_funded_until_timestamp_seconds", account)+") - time()) / 86400"),
		now("next", "next renewal: {{account}}", "1e3 * "+first),
		now("amount", "costs", perServer("server_price_usd_per_month")+" and "+first),
		now("month", "due within 30 days", "sum("+due("30")+")"),
		now("missing", "missing for that", "sum("+missing+")"),
		now("balance", "balance", "sum("+balance+")"),
		now("unknown", "not known", "count("+perAccount(interval, `collector="account"`)+" unless "+balance+")"),
	)
}

func accountTable() dashboard.Panel {
	works := "2 * min by (account) (" + gauge("account, collector", success, account) + ")"
	api := column{ref: "token", name: "API", expr: "-" + perAccount(rejected) + " == -1 or " + works + " or " + noAccount}
	return panel{id: 107, title: "Accounts, USD", w: 17, h: 8, sort: "API", links: configureAccounts, alerts: "ServersAtRisk RenewalsUnfunded BalanceNegative BalanceLow TokenRejected TwoFactorDisabled"}.table(
		"The chosen accounts: rejected tokens and failing fetches, whose data is old, first, then the first to run dry. Days until the first renewal that the balance cannot pay, ten years ahead at most; what is missing for the renewals within 30 days; the balance, what is due, and two-factor authentication. Everything excludes VAT. Colours are those of the alerts.",
		accountColumn("accounts").with("custom.minWidth", 110),
		api.with("custom.width", 85).mapped(noAccountText, value("-1", "Rejected", bad), value("0", "Failing", unknown), value("2", "OK", good)).filled(),
		number("left", "Days left", 80, "("+until+" - time()) / 86400").decimals(1).colours(fundedSteps).ascending(),
		money("missing", "Missing, 30 d", missing).with("custom.minWidth", 114).colours(missingSteps),
		money("balance", "Balance", balance).colours(balanceSteps),
		money("week", "Due, 7 d", due("7")),
		money("month", "Due, 30 d", due("30")),
		state("factor", "Two-factor", 100, perAccount("account_two_factor_enabled"), yesNo("On", "Off", warn)),
	)
}

func perServer(name string) string { return gauge("account, server", name, account) }

func servers() dashboard.Panel {
	return panel{id: 304, title: "Servers and renewals, USD", w: 24, h: 9, sort: "-Status,Renews", noValue: "No server is known", alerts: "ServerSuspended ServerPriceChanged ServersAtRisk RenewalsUnfunded"}.table(
		"Every server of the chosen accounts, suspended ones first and then by the date of the next renewal, with its price. Prices exclude VAT. The metrics contain no addresses.",
		fixed("status", "Status", 95).from(once("account, server", "status", "server_status", account)).mapped(words("/^active$/i", "", good), words("/^suspended$/i", "", bad), words(".+", "", warn)),
		flexible("hostname", "Host name", 170).from(once("account, server", "hostname, plan, location, os", "server_info", account)),
		when("renews", "Renews", 105, perServer("server_renews_timestamp_seconds"), date),
		money("price", "Per month", perServer("server_price_usd_per_month")),
		accountColumn("accounts"), planColumn("accounts"), locationColumn("accounts", "status"),
		flexible("os", "System", 145), flexible("server", "Id", 170),
	)
}

func payments() []dashboard.Panel {
	month := func(ref, title, name, month string) column {
		expr := "sum by (type) (" + gauge("account, type", "transactions_month_"+name+"_usd", account, `month="`+month+`"`) + ") > 0"
		return money(ref, title, expr).unit("locale").decimals(0).with("custom.minWidth", 125)
	}
	return []dashboard.Panel{
		panel{id: 106, title: "Balance", w: 10, h: 9, unit: usd, decimals: new(2.0), alerts: "BalanceNegative BalanceLow"}.chart(
			"The balances of the chosen accounts. Of more than ten, only the ten lowest at each time.",
			course("A", "{{account}}", "bottomk(10, "+balance+")")),
		panel{id: 502, title: "Money by month, USD", w: 14, h: 9, total: true, sort: "Type", noValue: "No transaction is known"}.table(
			"Credits and debits by type of transaction in this calendar month and in the one before (UTC), of the chosen accounts.",
			fixed("type", "Type", 90), month("out", "Out, this month", "debit", "current"), month("lastout", "Out, last month", "debit", "previous"),
			month("in", "In, this month", "credit", "current"), month("lastin", "In, last month", "credit", "previous")),
	}
}

func topups() dashboard.Panel {
	of := func(name string) string { return gauge("account, topup", "topup_"+name) }
	newest := "topk(50, " + gauge("account, topup", "topup_created_timestamp_seconds", account) + ")"
	return panel{id: 402, title: "Open top-ups, USD", noValue: "No open top-up is known", w: 24, h: 5, sort: "-Status", hidden: []string{"topup"}, alerts: "TopupExpiring TopupStuck TopupFailed"}.table(
		"Top-ups that wait for a payment or its confirmations, the 50 newest at most, with their page, those to pay first. A pending top-up has to be paid while its rate is locked.",
		number("left", "Time left", 115, of("rate_locked_until_timestamp_seconds")+" - time() and "+newest).unit(duration).decimals(0).colours(rising(bad, from(0, warn), from(600, plain))).mapped(between(-endless, 0, "Expired", bad)),
		fixed("status", "Status", 95).from(once("account, topup", "status, coin, network", "topup_info")+" and on (account, topup) "+newest),
		money("amount", "Amount", of("amount_usd")+" and "+newest),
		address("page", "Open", once("account, topup", "page", "topup_links_info")+" and on (account, topup) "+newest),
		flexible("coin", "Coin", 80), flexible("network", "Network", 90),
		accountColumn("accounts"),
	)
}

func keys() dashboard.Panel {
	return panel{id: 602, title: "SSH keys", w: 24, h: 8, sort: "-Added", hidden: []string{"ssh_key"}, alerts: "SSHKeysChanged", noValue: "No SSH key is known"}.table(
		"The SSH keys of the chosen accounts, the newest first. Treat a key that nobody of you added as an emergency.",
		when("created", "Added", 105, gauge("ssh_key", "ssh_key_created_timestamp_seconds", account), date),
		fixed("name", "Key", 140),
		accountColumn("accounts").with("custom.width", 140),
		flexible("fingerprint", "Fingerprint", 420).from(once("account, ssh_key", "name, fingerprint", "ssh_key_info", account)),
	)
}
