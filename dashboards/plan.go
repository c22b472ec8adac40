package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// planBoard is about one plan: whether it can be ordered, what it costs, and how often and for how
// long it is in stock.
func planBoard() file {
	return board{
		name: "plan", title: "Server rental: one plan", from: "now-24h", refresh: "1m", timezone: "browser",
		description: "One plan: stock, price, restocks, order form, locations and saved configurations.",
		rows: []row{
			{id: 100, title: "$plan", panels: append(planTiles(), orderForm(), configurations("plan", onePlan))},
			{id: 200, title: "History", panels: []dashboard.Panel{
				stockOverTime(18, 8, onePlan, onePlan),
				panel{
					id: 401, title: "Locations", w: 6, h: 8, sort: "Location", noValue: "No location is known",
					description: "The locations that offer the plan, in stock or not.",
				}.table(
					locationColumn("plan", "stock"),
					flexible("city", "City", 100).from(known("location", gauge("location, city", "location_info"), "plan_offered", onePlan)),
				),
				panel{
					id: 301, title: "Price, " + inCurrency, w: 12, h: 8, decimals: new(2.0), stepped: true, alerts: []string{"PlanPriceChanged"},
					description: help("plan_price_usd_per_month"),
				}.chart(course("A", "{{plan}}", maxBy("plan", prices("plan_price_", onePlan)))),
				restocks(12, 8, onePlan),
			}},
		},
	}.build(newsOf(onePlan))
}

func planTiles() []dashboard.Panel {
	const noValue = "No data from alerts/stock.rules.yml"
	recorded := func(name string) string { return maxBy("plan", "plan:server_rental_plan_"+name+"{"+onePlan+"}") }
	inHours := func(ref, expr string) query { return now(ref, ref, expr+" / 3600") }
	var shares []query
	for _, days := range []string{"1", "7", "30", "90"} {
		shares = append(shares, now("d"+days, days+" d", recorded("in_stock:avg"+days+"d")))
	}
	const series = "plan:server_rental_plan_in_stock:max{" + onePlan + "}"
	return []dashboard.Panel{
		panel{
			id: 101, title: "Stock", w: 6, h: 4, mappings: stockTexts, background: true, alerts: []string{"PlanBackInStock", "PlanSoldOut"},
			description: help("plan_in_stock"),
		}.number(now("A", "stock", gauge("plan", "plan_in_stock", onePlan))),
		panel{
			id: 102, title: "Price, " + inCurrency, w: 6, h: 4, decimals: new(2.0), alerts: []string{"PlanPriceChanged"},
			description: help("plan_price_usd_per_month"),
		}.number(now("A", "price", maxBy("plan", prices("plan_price_", onePlan)))),
		panel{
			id: 106, title: "Share of time in stock", w: 6, h: 4, unit: percent, decimals: new(0.0), names: true, steps: rising(muted), noValue: noValue,
			description: "Which part of the last 1, 7, 30 and 90 days the plan was in stock. Needs the recording rules in alerts/stock.rules.yml.",
		}.number(shares...),
		panel{
			id: 103, title: "Restocks of 30 days", w: 6, h: 4, names: true, unit: hours, decimals: new(1.0), steps: rising(muted), noValue: noValue,
			description: "How many times the plan came back in stock within 30 days, how long it stays in stock and how long it is then sold out, on average. Needs the recording rules in alerts/stock.rules.yml, which see what lasts three minutes.",
			overrides:   []override{forQuery("restocks", set("unit", "none"), set("decimals", 0))},
		}.number(
			now("restocks", "restocks", "floor(("+maxBy("plan", "changes("+series+"[30d])")+" + "+maxBy("plan", series)+") / 2)"),
			inHours("stays", recorded("stay_seconds:avg30d")),
			inHours("gone", "("+recorded("return_seconds:avg30d")+" - "+recorded("stay_seconds:avg30d")+")"),
		),
	}
}

func orderForm() dashboard.Panel {
	return panel{
		id: 105, title: "Order", w: 24, h: 4, sort: "Name", hidden: []string{"plan"}, noValue: "The plan is not known",
		description: "The order form and hardware of the plan, and the alternative that the provider names while it is sold out.",
	}.table(
		address("order", "Order", gauge("plan, order", "plan_links_info", onePlan)),
		flexible("name", "Name", 130).from(gauge("plan, name, family, gpu_model, storage", "plan_info", onePlan)),
		flexible("family", "Family", 90),
		number("cores", "Cores", 58, gauge("plan", "plan_cpu_cores", onePlan)),
		number("memory", "Memory", 75, gauge("plan", "plan_memory_bytes", onePlan)).unit("bytes").decimals(0),
		flexible("gpu_model", "GPU", 130),
		flexible("storage", "Storage", 180),
		flexible("alternative", "Alternative", 140).from(gauge("plan, alternative", "plan_availability_info", onePlan)).linked(linkTo("plan", "plan", "This plan", "var-plan=${__value.raw}")),
	)
}
