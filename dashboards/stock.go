package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// stock is about what can be ordered now, and the history of stock and prices.
func stock() board {
	watches := course("watches", "Watch {{watch}}", by("watch", over("max", "watch_plans_in_stock", "$__interval"))+" > bool 0")
	return board{
		name: "stock", title: "Server rental: stock and prices", from: "now-24h",
		description: "What can be ordered now, and stock, prices and restocks of plans and saved configurations over time. Prices are per month and exclude VAT.",
		// One component anywhere would shade every chart; stock is in Stock over time already.
		annotations: []annotation{outages(false), news(`plan!=""`)},
		rows: []row{
			{id: 700, title: "Watches and saved configurations", panels: append(watchTables(), configurations("stock", account))},
			{id: 600, title: "Plans", panels: []dashboard.Panel{plans()}},
			{id: 200, title: "History", panels: []dashboard.Panel{
				stockOverTime(24, 14, plan, account, watches),
				panel{id: 301, title: "Price changes", w: 12, h: 9, unit: percent, decimals: new(1.0), bars: true, interval: "2m", noValue: "No price changed", alerts: "PlanPriceChanged"}.chart(
					"By how much the price of a plan changed within the interval that ends at each bar. Plans whose price is the same are not drawn.",
					course("A", "{{plan}}", priceSince("$__interval")+" != 0")),
				restocks(12, 9, plan),
			}},
			{id: 400, title: "Locations", panels: locations()},
		},
	}
}

// Columns of stock, which look the same in all tables.
func stockColumn(expr string) column { return state("stock", "Stock", 80, expr, stockTexts) }

func priceColumn(expr string) column          { return number("price", "Price", 75, expr).decimals(2) }
func agoColumn(ref, name, expr string) column { return when(ref, name, 148, expr, ago) }
func shareColumn(expr string) column {
	return number("share", "Share", 65, expr).unit(percent).decimals(0)
}

func planColumn(board string) column {
	return flexible("plan", "Plan", 165).linked(linkTo(board, "plan", "This plan", "var-plan=${__value.raw}"))
}

func locationColumn(board, to string) column {
	return fixed("location", "Location", 85).linked(linkTo(board, to, "This location", "var-location=${__value.raw}"))
}

func accountColumn(board string) column {
	return flexible("account", "Account", 130).linked(linkTo(board, "accounts", "This account", "var-account=${__value.raw}"))
}

func watchTables() []dashboard.Panel {
	// Keeps the plans that a watch waits for and that are in stock.
	awaited := func(expr string) string { return known("plan", expr, "watch_plan_in_stock") + " == 1" }
	return []dashboard.Panel{
		panel{id: 602, title: "Order now, " + inCurrency, w: 12, h: 8, noValue: "No plan that a watch waits for is known to be in stock", alerts: "WatchHit"}.table(
			"The plans that match a watch and are in stock, cheapest first, with their order form and when they last came back in stock. Whichever plans are chosen. Prices are per month, excluding VAT.",
			planColumn("stock"),
			priceColumn(awaited(by("plan", prices("plan_price_")))).ascending(),
			address("order", "Order", awaited(gauge("plan, order", "plan_links_info"))),
			agoColumn("restock", "Restocked", awaited(by("plan", over("max", "plan_last_restock_timestamp_seconds", "7d")))),
		),
		panel{id: 601, title: "Watches", w: 12, h: 8, sort: "Watch", noValue: "No watch is known", alerts: "WatchEmpty"}.table(
			"The watches of the configuration: how many plans match, how many of these are in stock, and when one of them last began to match in stock. If no plan matches, check the criteria.",
			flexible("watch", "Watch", 120),
			number("plans", "Plans", 70, gauge("watch", "watch_plans")).colours(rising(warn, from(1, muted))),
			number("now", "In stock", 80, gauge("watch", "watch_plans_in_stock")).colours(someIsGood),
			agoColumn("hit", "Last hit", latest("watch", "watch_last_hit_timestamp_seconds", "watch_plans")),
		),
	}
}

// configurations are the saved configurations of the chosen accounts, or of one plan.
func configurations(board, matcher string) dashboard.Panel {
	const saved = "account, configuration"
	// Keeps those of the plan, or of the accounts, of what has no such label or is recorded.
	only := func(expr string) string { return known(saved, expr, "configuration_in_stock", matcher) }
	price, order, height := by(saved, prices("configuration_price_", account)), gauge(saved+", order", "configuration_links_info", account), uint32(8)
	if board == "plan" {
		price, order, height = only(by(saved, prices("configuration_price_"))), only(gauge(saved+", order", "configuration_links_info")), 6
	}
	seen := own("exporter_collector_last_success_timestamp_seconds", `collector="configurations"`) + " + on (job, instance, account) group_right () 0 * " + own("configuration_in_stock", matcher)
	return panel{id: 501, title: "Saved configurations, " + inCurrency, w: 24, h: height, sort: "Stock", descending: true, hidden: []string{"configuration"}, noValue: "No saved configuration is known", alerts: "ConfigurationBackInStock"}.table(
		help("configuration_in_stock")+" Seen is when the provider last said so. The price is per month including options and excluding VAT. Share is of 30 days in stock, and needs alerts/stock.rules.yml.",
		stockColumn(gauge(saved, "configuration_in_stock", matcher)),
		planColumn(board),
		locationColumn(board, "status"),
		priceColumn(price),
		address("order", "Order", order),
		agoColumn("seen", "Seen", by(saved, seen)),
		shareColumn(only(by(saved, "account_configuration:server_rental_configuration_in_stock:avg30d"))),
		agoColumn("restock", "Restocked", latest(saved, "configuration_last_restock_timestamp_seconds", "configuration_in_stock", matcher)),
		agoColumn("sellout", "Sold out", latest(saved, "configuration_last_sellout_timestamp_seconds", "configuration_in_stock", matcher)),
		accountColumn(board),
		flexible("hostname", "Host name", 130).from(gauge(saved+", plan, location, hostname", "configuration_info", matcher)),
	)
}

// priceSince is the change of each plan's price as a share of the price before.
func priceSince(offset string) string {
	return by("plan", prices("plan_price_", plan)) + " / " + by("plan", prices("plan_price_", plan)+" offset "+offset) + " - 1"
}

func plans() dashboard.Panel {
	const stays, returns = "plan:server_rental_plan_stay_seconds:avg30d", "plan:server_rental_plan_return_seconds:avg30d"
	of := func(name, labels string) string { return gauge("plan"+labels, "plan_"+name, plan) }
	recorded := func(expr string) string { return by("plan", known("plan", expr, "plan_in_stock", plan)) }
	return panel{id: 110, title: "Plans, " + inCurrency, w: 24, h: 17, noValue: "No plan is known", alerts: "PlanBackInStock PlanPriceChanged"}.table(
		"The chosen plans, cheapest first. "+help("plan_in_stock")+" Prices are per month and exclude VAT; 30 d is their change in 30 days. Share is of 30 days in stock, Stays how long it stays in stock, and Gone how long it is then sold out, on average: they need alerts/stock.rules.yml.",
		stockColumn(of("in_stock", "")),
		planColumn("stock"),
		priceColumn(by("plan", prices("plan_price_", plan))).ascending(),
		number("change", "30 d", 70, priceSince("30d")).unit(percent).decimals(1),
		address("order", "Order", of("links_info", ", order")),
		shareColumn(recorded("plan:server_rental_plan_in_stock:avg30d")),
		number("stays", "Stays", 75, recorded(stays)+" / 3600").unit(hours).decimals(1),
		number("gone", "Gone", 75, recorded(returns+" - "+stays)+" / 3600").unit(hours).decimals(1),
		agoColumn("restock", "Restocked", latest("plan", "plan_last_restock_timestamp_seconds", "plan_in_stock", plan)),
		agoColumn("sellout", "Sold out", latest("plan", "plan_last_sellout_timestamp_seconds", "plan_in_stock", plan)),
		number("cores", "Cores", 58, of("cpu_cores", "")),
		number("memory", "Memory", 75, of("memory_bytes", "")).unit("bytes").decimals(0),
		flexible("storage", "Storage", 150).from(of("info", ", family, storage")),
		flexible("family", "Family", 90),
	)
}

// stockOverTime is the history of stock, by matchers of plans and of saved configurations, with more bands.
func stockOverTime(w, h uint32, plans, configurations string, more ...query) dashboard.Panel {
	queries := append([]query{course("A", "{{plan}}", by("plan", over("avg", "plan_in_stock", "$__interval", plans)))}, more...)
	return panel{id: 201, title: "Stock over time", w: w, h: h, mappings: append(stockTexts[:2:2], between(0, 1, "Part of the time", warn))}.timeline(
		"Whether each plan, and each plan and location that is saved as a configuration, was in stock: all of the time in an interval, part of it, or never. A watch is in stock if a plan that matches was. Gaps are times without data.",
		append(queries, course("saved", "Saved {{plan}}, {{location}}", by("plan, location", over("avg", "configuration_in_stock", "$__interval", configurations))))...)
}

func restocks(w, h uint32, matcher string) dashboard.Panel {
	return panel{id: 208, title: "Restocks", w: w, h: h, decimals: new(0.0), min: new(0.0), softMax: new(4.0), bars: true, interval: "2m", points: 60, noValue: "No restock is known", alerts: "PlanBackInStock"}.chart(
		"How many times each plan came back in stock in the interval that begins at the left edge of each bar, also between two scrapes.",
		course("A", "{{plan}}", "round("+by("plan", "increase("+own("plan_restocks_total", matcher)+"[$__interval] offset -$__interval)")+") > 0")) // the last interval has not ended
}

func locations() []dashboard.Panel {
	return []dashboard.Panel{
		panel{id: 403, title: "Locations", w: 10, h: 9, sort: "In stock", descending: true, noValue: "No location is known", alerts: "LocationSoldOut"}.table(
			"How many plans each location offers, and how many of them are in stock anywhere: the provider reports no stock of a plan by location.",
			locationColumn("stock", "stock"),
			number("stock", "In stock", 80, gauge("location", "location_plans_in_stock", location)).colours(rising(bad, from(1, good))),
			number("offered", "Offered", 75, gauge("location", "location_plans", location)),
			flexible("city", "City", 100).from(gauge("location, city", "location_info", location)),
		),
		panel{id: 402, title: "Plans in stock by location", w: 14, h: 9, decimals: new(0.0), alerts: "LocationSoldOut", mappings: []mapping{value("0", "None", gone), between(1, 3, "Up to 3", warn), between(4, endless, "4 or more", good)}}.timeline(
			"The least number of plans in stock that each location offered in each interval.",
			course("A", "{{location}}", by("location", over("min", "location_plans_in_stock", "$__interval", location)))),
	}
}
