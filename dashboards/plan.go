package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// onePlan is about one plan: whether it can be ordered, what it costs, and how often and for how long
// it is in stock.
func onePlan() board {
	return board{
		name: "plan", title: "Server rental: one plan", from: "now-24h",
		description: "One plan: stock, price, restocks, order form, locations and saved configurations.",
		annotations: []annotation{news(thisPlan)},
		rows: []row{
			{id: 100, title: "$plan", panels: append(planTiles(), orderForm(), configurations("plan", thisPlan))},
			{id: 200, title: "History", panels: []dashboard.Panel{
				stockOverTime(18, 8, thisPlan, thisPlan),
				panel{id: 401, title: "Locations", w: 6, h: 8, sort: "Location", noValue: "No location is known"}.table(
					"The locations that offer the plan, in stock or not.",
					locationColumn("plan", "stock"), flexible("city", "City", 100).from(known("location", gauge("location, city", "location_info"), "plan_offered", thisPlan))),
				panel{id: 301, title: "Price, " + inCurrency, w: 12, h: 8, decimals: new(2.0), alerts: "PlanPriceChanged"}.chart(
					help("plan_price_usd_per_month"),
					course("A", "{{plan}}", by("plan", prices("plan_price_", thisPlan)))),
				restocks(12, 8, thisPlan),
			}},
		},
	}
}

func planTiles() []dashboard.Panel {
	const noValue, history = "Nothing recorded by alerts/stock.rules.yml", "plan:server_rental_plan_in_stock:max{" + thisPlan + "}[30d]"
	recorded := func(name string) string { return by("plan", "plan:server_rental_plan_"+name+"{"+thisPlan+"}") }
	var shares []query
	for _, days := range []string{"1", "7", "30", "90"} {
		shares = append(shares, now("d"+days, days+" d", recorded("in_stock:avg"+days+"d")))
	}
	return []dashboard.Panel{
		panel{id: 101, title: "Stock", w: 4, h: 4, mappings: stockTexts, background: true, alerts: "PlanBackInStock PlanSoldOut"}.number(
			help("plan_in_stock"),
			now("A", "stock", gauge("plan", "plan_in_stock", thisPlan))),
		panel{id: 102, title: "Price, " + inCurrency, w: 4, h: 4, decimals: new(2.0), alerts: "PlanPriceChanged"}.number(
			help("plan_price_usd_per_month"),
			now("A", "price", by("plan", prices("plan_price_", thisPlan)))),
		panel{id: 106, title: "Share of time in stock", w: 8, h: 4, unit: percent, decimals: new(0.0), names: true, steps: rising(muted), noValue: noValue}.number(
			"Which part of the last 1, 7, 30 and 90 days the plan was in stock. Needs the recording rules in alerts/stock.rules.yml.",
			shares...),
		panel{id: 103, title: "Restocks of 30 days", w: 8, h: 4, names: true, unit: hours, decimals: new(1.0), steps: rising(muted), noValue: noValue, overrides: []override{ofQuery("restocks", set("unit", "none"), set("decimals", 0))}}.number(
			"How many times the plan came back in stock within 30 days, how long it stays in stock and how long it is then sold out, on average. Needs the recording rules in alerts/stock.rules.yml, which see what lasts three minutes.",
			now("restocks", "restocks", "floor("+by("plan", "changes("+history+") + last_over_time("+history+")")+" / 2)"),
			now("stays", "stays", recorded("stay_seconds:avg30d")+" / 3600"),
			now("gone", "gone", "("+recorded("return_seconds:avg30d")+" - "+recorded("stay_seconds:avg30d")+") / 3600"),
		),
	}
}

func orderForm() dashboard.Panel {
	return panel{id: 105, title: "Order", w: 24, h: 4, sort: "Name", hidden: []string{"plan"}, noValue: "The plan is not known"}.table(
		"The order form and hardware of the plan, and the alternative that the provider names while it is sold out.",
		address("order", "Order", gauge("plan, order", "plan_links_info", thisPlan)),
		flexible("name", "Name", 130).from(gauge("plan, name, family, gpu_model, storage", "plan_info", thisPlan)),
		flexible("family", "Family", 90),
		number("cores", "Cores", 58, gauge("plan", "plan_cpu_cores", thisPlan)),
		number("memory", "Memory", 75, gauge("plan", "plan_memory_bytes", thisPlan)).unit("bytes").decimals(0),
		flexible("gpu_model", "GPU", 130),
		flexible("storage", "Storage", 180),
		flexible("alternative", "Alternative", 140).from(gauge("plan, alternative", "plan_availability_info", thisPlan)).linked(linkTo("plan", "plan", "This plan", "var-plan=${__value.raw}")),
	)
}
