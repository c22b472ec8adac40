package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// onePlan is about one plan: since when it is in stock, for how long it stays, and what it costs.
func onePlan() board {
	return board{
		name: "plan", title: "Server rental: one plan", from: "now-24h",
		description: "One plan: stock, order form, price, restocks, locations and saved configurations.",
		rows: []row{
			{panels: append(planTiles(), panel{id: 301, title: "Price, " + inCurrency, w: 5, h: 8, decimals: new(2.0), sparkline: true, alerts: "PlanPriceChanged"}.number(
				help("plan_price_usd_per_month")+" Behind it, how it was in the time range.",
				course("A", "per month", by("plan", prices("plan_price_", thisPlan)))), panel{id: 401, title: "Locations", w: 4, h: 8, sort: "Location"}.table(
				"The locations that offer the plan, in stock or not.",
				locationColumn("plan", "stock").from(gauge("location", "plan_offered", thisPlan))),
				stockOverTime(24, 5, thisPlan, course("A", "All locations", by("", next("avg", "plan_in_stock", thisPlan)))), configurations("plan", thisPlan, 24, 5))},
		},
	}
}

func planTiles() []dashboard.Panel {
	recorded := func(name string) string { return by("plan", "plan:server_rental_plan_"+name+"{"+thisPlan+"}") }
	history := recordedStock + "{" + thisPlan + "}"
	// What rules recorded says little before there is a week of it, and nothing of a plan that is not listed.
	lasting := func(expr string) string {
		return known("plan", expr+" and on (plan) "+history+" offset 7d", "plan_in_stock", thisPlan)
	}
	stock := own("plan_in_stock", thisPlan)
	return []dashboard.Panel{
		health("plan"),
		panel{id: 101, title: "Stock, " + inCurrency, w: 8, h: 8, lines: true, background: true, steps: rising(dark), unit: span, decimals: new(1.0), alerts: "PlanBackInStock PlanSoldOut", overrides: []override{
			ofQuery("stock", set("mappings", stockStates)),
			ofQuery("gone", set("unit", ago)),
			ofQuery("price", set("unit", "none"), set("decimals", 2)), ofQuery("cores", set("unit", "none"), set("decimals", 0)), ofQuery("memory", set("unit", "bytes"), set("decimals", 0)),
			ofQuery("alternative", set("mappings", []mapping{value("1", "Alternative", plain)})),
			ofQuery("order", set("mappings", []mapping{value("1", "Order", plain)}), set("links", []link{{"Order", "${__field.labels.order}", true}})),
		}}.number(
			help("plan_in_stock")+" For how long it has been so, as far as alerts/stock.rules.yml recorded it within 90 days, or when it was last listed; the price per month, excluding VAT; cores and memory; the order form; and the alternative that the provider names while the plan is sold out. What is old is grey.",
			now("stock", "stock", dated(gauge("plan", "plan_in_stock", thisPlan), "", "plans")),
			now("gone", "not listed since", "1e3 * max(max_over_time(timestamp("+stock+")[30d:5m])) and on () "+own("catalog_plans")+" unless on () "+stock),
			now("for", "for", "time() - "+known("plan", lastChange(thisPlan), "plan_in_stock")),
			now("price", "per month", by("plan", prices("plan_price_", thisPlan))),
			now("cores", "cores", gauge("plan", "plan_cpu_cores", thisPlan)), now("memory", "memory", gauge("plan", "plan_memory_bytes", thisPlan)),
			now("order", "order form", oneOf("plan_links_info", thisPlan, `order!=""`)),
			now("alternative", "{{alternative}}", by("alternative", oneOf("plan_availability_info", thisPlan, `alternative!=""`)))),
		panel{id: 103, title: "How long and how often", w: 7, h: 8, lines: true, unit: span, decimals: new(1.0), steps: rising(muted), noValue: "alerts/stock.rules.yml recorded nothing yet", overrides: []override{
			ofQuery("restocks", set("unit", "none"), set("decimals", 0)), ofQuery("month", set("unit", percent), set("decimals", 0)),
		}}.number(
			"How long the plan stays in stock, and away, on average; how many restocks there were, and the share of time in stock, of 30 days, or the part of them that is known, as the last line says; the last two after a week. Needs the recording rules in alerts/stock.rules.yml, which see what lasts a minute.",
			now("stays", "stays", recorded("stay_seconds:avg30d")),
			now("away", "away", recorded("away_seconds:avg30d")),
			now("restocks", "restocks", lasting(by("plan", "changes("+history+"[30d]) - resets("+history+"[30d])"))),
			now("month", "in stock, 30 d", lasting(recorded("in_stock:avg30d"))),
			now("known", "known for", "900 * "+by("plan", "count_over_time("+history+"[30d:15m])"))), // samples can have been recorded at any interval
	}
}
