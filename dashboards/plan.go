package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// onePlan is about one plan: since when it is in stock, for how long it stays, and what it costs.
func onePlan() board {
	price := panel{id: 301, title: "Price, " + inCurrency, w: 5, h: 8, decimals: new(2.0), sparkline: true}.number(
		definition("plan_price_usd_per_month").Help+" Behind it, how it was in the time range.",
		line("A", "newest, per month", by("plan", prices("plan_price_", thisPlan))))
	locations := panel{id: 401, title: "Locations", w: 4, h: 8, sort: "Location"}.table(
		"The locations that offer the plan, in stock or not.",
		locationColumn("plan", "stock").from(gauge("location", "plan_offered", thisPlan)))
	overTime := stockOverTime(24, 5, thisPlan, course("A", "All locations", by("", over("avg", "plan_in_stock", thisPlan))))
	return board{
		name: "plan", title: "Server rental: one plan", from: "now-24h",
		description: "One plan: stock, order form, price, restocks, locations and saved configurations.",
		rows: []row{{panels: []dashboard.Panel{
			health("plan"), planStock(), planHistory(), price, locations, overTime, configurations("plan", thisPlan, 24, 5),
		}}},
	}
}

func planStock() dashboard.Panel {
	of := func(name string) string { return gauge("plan", "plan_"+name, thisPlan) }
	removed := "max(max_over_time(" + own("plan_removed_timestamp_seconds", thisPlan) + "[30d])) and on () " + own("catalog_plans")
	return panel{id: 101, title: "Stock, " + inCurrency, w: 8, h: 8, lines: true}.number(
		definition("plan_in_stock").Help+" What is old is grey. For how long it has been so, as far as alerts/stock.rules.yml recorded "+
			"it within 90 days, or since when it is not listed; and the alternative that the provider names while the plan is sold out.",
		line("stock", "stock", dated(of("in_stock"), "", "plans")).mapped(stockStates...),
		line("gone", "not listed since", "1e3 * "+removed+" unless on () "+own("plan_in_stock", thisPlan)).unit(ago),
		line("for", "for", "time() - "+known("plan", lastChange(thisPlan), "plan_in_stock")).unit(span).decimals(1),
		line("price", "per month", by("plan", prices("plan_price_", thisPlan))).decimals(2),
		line("cores", "cores", of("cpu_cores")),
		line("memory", "memory", of("memory_bytes")).unit("bytes").decimals(0),
		line("order", "order form", oneOf("plan_links_info", thisPlan, `order!=""`)).mapped(value("1", "Order", plain)).
			linked(link{"Order", "${__field.labels.order}", true}),
		line("alternative", "{{alternative}}", by("alternative", oneOf("plan_availability_info", thisPlan, `alternative!=""`))).
			mapped(value("1", "Alternative", plain)))
}

func planHistory() dashboard.Panel {
	recorded := func(name string) string { return by("plan", "plan:server_rental_plan_"+name+"{"+thisPlan+"}") }
	history := recordedStock + "{" + thisPlan + "}"
	// What rules recorded says little before there is a week of it, and nothing of a plan that is not listed.
	lasting := func(expr string) string {
		return known("plan", expr+" and on (plan) "+history+" offset 7d", "plan_in_stock", thisPlan)
	}
	return panel{
		id: 103, title: "How long and how often", w: 7, h: 8, lines: true, unit: span, decimals: new(1.0),
		noValue: "alerts/stock.rules.yml recorded nothing yet",
	}.number(
		"How long the plan stays in stock, and away, on average; restocks, and the share of time in stock, after a week. All are of "+
			"30 days, or as many as are known, by the rules in alerts/stock.rules.yml, which see what lasts a minute.",
		line("stays", "stays", recorded("stay_seconds:avg30d")),
		line("away", "away", recorded("away_seconds:avg30d")),
		line("restocks", "restocks", lasting(by("plan", "changes("+history+"[30d]) - resets("+history+"[30d])"))).unit("none").decimals(0),
		line("month", "in stock, 30 d", lasting(recorded("in_stock:avg30d"))).unit(percent).decimals(0),
		// Samples can have been recorded at any interval.
		line("known", "known for", "900 * "+by("plan", "count_over_time("+history+"[30d:15m])")))
}
