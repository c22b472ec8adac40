package main

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// stock is about what can be ordered now, and the history of stock.
func stock() board {
	plans := course("A", "{{plan}}", by("plan", over("avg", "plan_in_stock", plan)))
	const recorded = "account_configuration:server_rental_configuration_in_stock:"
	share := known(saved, by(saved, recorded+"avg30d"), "configuration_in_stock", account)
	saved := configurations("stock", account, 16, 6, priceColumn(by(saved, prices("configuration_price_", account))),
		shareColumn(share+" and on ("+saved+") "+recorded+"max offset 7d"))
	return board{
		name: "stock", title: "Server rental: stock and prices", from: "now-24h",
		description: "What can be ordered now, where, at what price, and how fast one must be. Prices are per month and exclude VAT.",
		rows: []row{
			{panels: []dashboard.Panel{health("stock"), planTable(), watchTable(), saved}},
			{id: 200, title: "History and locations", panels: []dashboard.Panel{stockOverTime(15, 14, account, plans), locations()}},
		},
	}
}

// Columns of stock, which look the same in all tables.
func stockColumn(expr string) column { return state("stock", "Stock", 88, expr, stockStates) }

func priceColumn(expr string) column { return number("price", "Price", 70, expr).decimals(2) }

func agoColumn(ref, name, expr string) column { return number(ref, name, 136, "1e3 * "+expr).unit(ago) }

func shareColumn(expr string) column {
	return number("share", "Share", 62, expr).unit(percent).decimals(0)
}

func planColumn(board string) column {
	return flexible("plan", "Plan", 140).linked(linkTo(board, "plan", "This plan", "var-plan=${__value.raw}"))
}

func locationColumn(board, to string) column {
	return fixed("location", "Location", 79).linked(linkTo(board, to, "This location", "var-location=${__value.raw}&var-watch=$__all"))
}

func accountColumn(board string) column {
	return flexible("account", "Account", 86).linked(linkTo(board, "accounts", "This account", "var-account=${__value.raw}"))
}

func watchTable() dashboard.Panel {
	return panel{id: 601, title: "Watches", w: 8, h: 6, sort: "Watch", links: configuring("watches", "watches")}.table(
		"The watches, which lead to their plans: how many match, and how many of these are in stock, which is empty while plans "+
			"cannot be fetched. If no plan matches, check the criteria.",
		flexible("watch", "Watch", 120).
			linked(linkTo("stock", "stock", "Its plans", "var-watch=${__value.raw}&var-location=$__all&var-plan=$__all")),
		number("now", "In stock", 75, gauge("watch", "watch_plans_in_stock")+" and on () "+works("plans")).
			colours(none, from(1, plain)),
		number("plans", "Plans", 125, by("watch", own("watch_plans")+" or on () 0 * "+own("catalog_plans")+" - 1")).
			colours(warn, from(1, none)).mapped(value("-1", "None configured", unknown)),
	)
}

// saved are the labels of a saved configuration.
const saved = "account, configuration"

// configurations are the saved configurations of the chosen accounts, or of one plan, with further columns.
func configurations(board, matcher string, w, h uint32, further ...column) dashboard.Panel {
	stock := dated(once(saved, "plan, location", "configuration_in_stock", matcher), "account", "configurations")
	if board == "stock" {
		stock += " or " + noAccount
	}
	order := known(saved, once(saved, "order", "configuration_links_info"), "configuration_in_stock", matcher)
	changed := by(saved, `{__name__=~"server_rental_configuration_last_(restock|sellout)_timestamp_seconds", `+matcher+"}")
	columns := []column{stockColumn(stock), planColumn(board), address("order", "Order", order), locationColumn(board, "status")}
	return panel{
		id: 501, title: "Saved configurations, " + inCurrency, w: w, h: h, sort: "-Stock", hidden: []string{"configuration"},
		links: configuring("accounts", "configuration-file"),
	}.table(
		definition("configuration_in_stock").Help+" What is old is grey. Changed is when an exporter saw it change. Prices are per month, with "+
			"options, excluding VAT. Share is of the time known within 30 days, and needs alerts/stock.rules.yml and a week.",
		slices.Concat(columns, further, []column{agoColumn("changed", "Changed", changed), accountColumn(board)})...)
}

const recordedStock = "plan:server_rental_plan_in_stock:max"

// lastChange is when the stock of a plan last changed within 90 days, as rules recorded it.
func lastChange(matcher string) string {
	return by("plan", "last_over_time(plan:server_rental_plan_in_stock:changed{"+matcher+"}[90d])")
}

func planTable() dashboard.Panel {
	of := func(name string) string { return gauge("plan", "plan_"+name, plan) }
	// What rules recorded says little before there is a week of it.
	recorded := func(name string) string {
		return by("plan", known("plan", "plan:server_rental_plan_"+name, "plan_in_stock", plan)+" and on (plan) "+recordedStock+" offset 7d")
	}
	return panel{id: 110, title: "Plans, " + inCurrency, w: 24, h: 10, sort: "-Stock,Price"}.table(
		definition("plan_in_stock").Help+" What is old is grey. Prices are per month, excluding VAT. Watched are plans that a chosen watch "+
			"waits for. Stays is how long a plan stays in stock, and Share for which share of the time, of 30 days, after a week; Since is "+
			"when that changed, within 90 days. These three need alerts/stock.rules.yml.",
		stockColumn(dated(of("in_stock"), "", "plans")),
		planColumn("stock").with("custom.minWidth", 155),
		address("order", "Order", once("plan", "order", "plan_links_info", plan)),
		priceColumn(by("plan", prices("plan_price_", plan))),
		number("where", "Where", 85, "count by (plan) ("+gauge("plan, location", "plan_offered", plan)+")").unit("suffix: places").
			mapped(value("1", "1 place", none)).linked(linkTo("stock", "plan", "Its locations", "var-plan=${__data.fields.Plan}")),
		number("watched", "Watched", 80, gauge("plan", "watch_plan_in_stock", plan, watch)).mapped(between(0, 1, "Yes", plain)),
		number("stays", "Stays", 80, recorded("stay_seconds:avg30d")).unit(span).decimals(1),
		shareColumn(recorded("in_stock:avg30d")),
		agoColumn("since", "Since", known("plan", lastChange(plan), "plan_in_stock")),
		number("cores", "Cores", 60, of("cpu_cores")),
		number("memory", "Memory", 78, of("memory_bytes")).unit("bytes").decimals(0),
		flexible("storage", "Storage", 128).from(once("plan", "storage", "plan_info", plan)),
	)
}

// stockOverTime is the history of stock, with that of the saved configurations that match.
func stockOverTime(w, h uint32, configurations string, queries ...query) dashboard.Panel {
	saved := by("plan, location", over("avg", "configuration_in_stock", configurations))
	return panel{
		id: 201, title: "Stock over time", w: w, h: h,
		mappings: slices.Concat(stockTexts, []mapping{between(0, 1, "Part of the time", warn)}),
	}.timeline(
		"Whether each plan, and each plan and location that is saved as a configuration, was in stock all of the time in an "+
			"interval, part of it, or never. Gaps are times without data.",
		append(queries, course("saved", "Saved {{plan}}, {{location}}", saved))...)
}

func locations() dashboard.Panel {
	return panel{id: 403, title: "Locations", w: 9, h: 14, sort: "-In stock"}.table(
		"How many plans each location offers, and how many of these the provider counts as in stock.",
		locationColumn("stock", "stock"),
		number("stock", "In stock", 75, gauge("location", "location_plans_in_stock", location)).colours(bad, from(1, none)),
		number("offered", "Plans", 60, gauge("location", "location_plans", location)),
		flexible("city", "City", 85).from(once("location", "city", "location_info", location)),
	)
}
