package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// onePlan is about one plan: since when it is in stock, for how long it stays, and what it costs.
func onePlan() board {
	return board{
		name: "plan", title: "Server rental: one plan", from: "now-24h",
		description: "One plan: stock, order form, price, restocks, locations and saved configurations.",
		rows: []row{
			{panels: append(planTiles(), panel{id: 401, title: "Locations", w: 8, h: 8, sort: "Location"}.table(
				"The locations that offer the plan, in stock or not.",
				locationColumn("plan", "stock").from(gauge("location", "plan_offered", thisPlan))),
				stockOverTime(24, 5, thisPlan, course("A", "All locations", by("", next("avg", "plan_in_stock", thisPlan)))), configurations("plan", thisPlan))},
			{id: 200, title: "Price and restocks", panels: []dashboard.Panel{
				panel{id: 301, title: "Price, " + inCurrency, w: 12, h: 8, decimals: new(2.0), alerts: "PlanPriceChanged"}.chart(
					help("plan_price_usd_per_month"),
					course("A", "{{plan}}", by("plan", prices("plan_price_", thisPlan)))),
				panel{id: 208, title: "Restocks", w: 12, h: 8, min: new(0.0), interval: "5m", alerts: "PlanBackInStock"}.chart(
					"How many times the plan came back in stock in the interval that begins at each time, also between two scrapes.",
					course("A", "{{plan}}", "round("+by("plan", "increase("+own("plan_restocks_total", thisPlan)+"[$__rate_interval] offset -$__interval)")+")")),
			}},
		},
	}
}

func planTiles() []dashboard.Panel {
	recorded := func(name string) string { return by("plan", "plan:server_rental_plan_"+name+"{"+thisPlan+"}") }
	history := recordedStock + "{" + thisPlan + "}"
	return []dashboard.Panel{
		panel{id: 101, title: "Stock, " + inCurrency, w: 8, h: 8, lines: true, background: true, steps: rising(dark), unit: span, decimals: new(1.0), alerts: "PlanBackInStock PlanSoldOut", overrides: []override{
			ofQuery("stock", set("mappings", append(oldStock[:3:3], stockTexts...))),
			ofQuery("price", set("unit", "none"), set("decimals", 2)), ofQuery("cores", set("unit", "none"), set("decimals", 0)), ofQuery("memory", set("unit", "bytes"), set("decimals", 0)),
			ofQuery("alternative", set("mappings", []mapping{value("1", "Alternative", plain)})),
			ofQuery("order", set("mappings", []mapping{value("1", "Order", plain)}), set("links", []link{{"Order", "${__field.labels.order}", true}})),
		}}.number(
			help("plan_in_stock")+" For how long it has been so, as far as alerts/stock.rules.yml recorded it within 90 days; the price per month, excluding VAT; cores and memory; the order form; and the alternative that the provider names while the plan is sold out. What is old is grey.",
			now("stock", "stock", dated(gauge("plan", "plan_in_stock", thisPlan), "", "plans")),
			now("for", "for", "time() - "+known("plan", lastChange(thisPlan), "plan_in_stock")),
			now("price", "per month", by("plan", prices("plan_price_", thisPlan))),
			now("cores", "cores", gauge("plan", "plan_cpu_cores", thisPlan)), now("memory", "memory", gauge("plan", "plan_memory_bytes", thisPlan)),
			now("order", "order form", oneOf("plan_links_info", thisPlan, `order!=""`)),
			now("alternative", "{{alternative}}", by("alternative", oneOf("plan_availability_info", thisPlan, `alternative!=""`)))),
		panel{id: 103, title: "How long and how often", w: 8, h: 8, lines: true, unit: span, decimals: new(1.0), steps: rising(muted), noValue: "alerts/stock.rules.yml recorded nothing yet", overrides: []override{
			ofQuery("restocks", set("unit", "none"), set("decimals", 0)), ofQuery("month", set("unit", percent), set("decimals", 0)), ofQuery("known", set("unit", "suffix: d"), set("decimals", 0)),
		}}.number(
			"How long the plan stays in stock, and away, on average; how many restocks there were, and the share of time in stock, of 30 days, or the part of them that is known, as the last line says. Needs the recording rules in alerts/stock.rules.yml, which see what lasts a minute.",
			now("stays", "stays", recorded("stay_seconds:avg30d")),
			now("away", "away", recorded("away_seconds:avg30d")),
			now("restocks", "restocks", by("plan", "changes("+history+"[30d]) - resets("+history+"[30d])")),
			now("month", "in stock, 30 d", recorded("in_stock:avg30d")),
			now("known", "known for", by("plan", "count_over_time("+history+"[30d:15m])")+" / 96")), // samples can have been recorded at any interval
	}
}
