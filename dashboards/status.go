package main

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// status is about what the provider reports, and about collectors, requests and the exporter's process.
func status() board {
	return board{
		name: "status", title: "Server rental: provider status and exporter health", from: "now-6h",
		description: "Is it the provider, or the exporter: alerts, components, incidents, collectors, requests and limits.",
		rows: []row{
			{panels: []dashboard.Panel{provider(), health("status"), reported(), alertList(), failures()}},
			{id: 200, title: "Components", panels: []dashboard.Panel{components(), incidents()}},
			{id: 300, title: "Collectors", panels: collectors()},
			{id: 400, title: "Rate limits and exporters", panels: []dashboard.Panel{limits(), builds()}},
		},
	}
}

// about is what one alert of a name is about: plan, account, and the rest as a text, if possible with a host name (value 2).
func about() string {
	host := " + on (account, server) group_left (hostname) " + oneOf("server_info") + " by (account, server)"
	return "max by (alertname, plan, account, what) (topk(1, label_join(" + firing + host + " or " + firing +
		`, "what", " ", "watch", "location", "component", "hostname", "collector", "instance")) by (alertname))`
}

func alertList() dashboard.Panel {
	news := "label_replace(" + firing + `, "severity", "warning: news", "kind", "news")` // last in the order of the alphabet
	return panel{id: 109, title: "Alerts that fire", w: 17, h: 8, sort: "Severity"}.table(
		"Warnings, critical alerts and news of the rules in alerts/ that fire: how many of each, what one of them is about, and since "+
			"when. Those that have ended are held for 5 minutes, news for one. The name leads to the runbook.",
		fixed("severity", "Severity", 74).
			mapped(words("^critical$", "", bad), words("^warning$", "", warn), words(".+news$", "news", plain)).centred(),
		// Browsers scroll to the name, because a link cannot be in lower case, as the headings of the runbook are.
		flexible("alertname", "Alert", 168).mapped(words("^ServerRental(.+)", "$1", none)).
			linked(link{"Runbook", documents + "alerts/README.md#runbook:~:text=${__value.raw}", true}),
		number("count", "Count", 60, "count by (severity, alertname) ("+news+")"),
		flexible("what", "For example", 100).from(about()).mapped(words(`^\s*$`, "–", none), words(".+", "", none)),
		planColumn("status"), accountColumn("status"),
		agoColumn("since", "Since", "min by (alertname) (ALERTS_FOR_STATE and ignoring (alertstate) "+firing+")"),
	)
}

func failures() dashboard.Panel {
	return panel{id: 404, title: "Errors in the last hour", w: 7, h: 8, sort: "-Errors"}.table(
		"Failed requests of all exporters. A timeout or no connection is the provider or the network; unauthorized is a token.",
		flexible("reason", "Reason", 110), flexible("path", "Path", 120),
		number("errors", "Errors", 70, "round(sum by (path, reason) (increase("+own("exporter_api_errors_total")+"[1h]))) > 0"))
}

var freshStatus = " on () " + works("status")

func provider() dashboard.Panel {
	return panel{id: 101, title: "Provider", w: 7, h: 7, mappings: componentStates, field: "overall"}.number(
		definition("status_info").Help+" Red is any state but operational and maintenance, grey is old.",
		line("A", "", oneOf("status_info")+" and"+freshStatus),
		line("old", "", oneOf("status_info")+" unless"+freshStatus).mapped(words(".+", "", unknown)))
}

func reported() dashboard.Panel {
	return panel{
		id: 102, title: "Reported by the provider", w: 8, h: 7, lines: true, steps: rising(bad),
		overrides: []override{
			overriding(ofPattern, "/^operational$/i", set("thresholds", rising(good))),
			overriding(ofPattern, "/maintenance/i", set("thresholds", rising(plain))),
		},
	}.number(
		"Components of the chosen locations in each state, as the provider words it; ongoing incidents and scheduled maintenance "+
			"windows. Nothing is counted while the status cannot be fetched.",
		line("components", "{{state}}",
			"count by (state) ("+oneOf("component_state", location)+" by (location, component) and"+freshStatus+")"),
		line("incidents", "incidents", gauge("", "incidents_ongoing")+" and"+freshStatus).colours(good, from(1, bad)),
		line("scheduled", "scheduled maintenance", gauge("", "maintenances_scheduled")+" > 0 and"+freshStatus))
}

// components has a column for each component.
func components() dashboard.Panel {
	cells := overriding(ofPattern, "^(?!Location$).+", set("mappings", componentStates), filled,
		set("custom.minWidth", 104), set("custom.inspect", true))
	matrix := panel{
		id: 201, title: "Components by location", w: 12, h: 10, sort: "Location", hidden: []string{"Value"},
		overrides: []override{cells},
	}.table(
		definition("component_state").Help+" Empty while the status cannot be fetched.",
		fixed(`location\component`, "Location", 85).
			linked(linkTo("status", "stock", "Stock of this location", "var-location=${__value.raw}")))
	matrix.Targets = append(matrix.Targets, rows("state", oneOf("component_state", location)+" by (location, component) and"+freshStatus))
	fields := object{"columnField": "component", "rowField": "location", "valueField": "state", "emptyValue": "empty"}
	matrix.Transformations = append([]transformation{{Id: "groupingToMatrix", Options: fields}}, matrix.Transformations...)
	return matrix
}

func incidents() dashboard.Panel {
	texts := func(text, colour string) property {
		return set("mappings", []mapping{value("0", "None", good), between(1, endless, text, colour)})
	}
	return panel{
		id: 202, title: "Incidents, and components that were not operational", w: 12, h: 10,
		overrides: []override{
			overriding(ofQuery, "incidents", texts("Ongoing", bad)), overriding(ofQuery, "scheduled", texts("Scheduled", plain)),
			overriding(ofQuery, "components", texts("Not operational", bad)),
			overriding(ofPattern, "/: .*maintenance/i", texts("Maintenance", plain)),
		},
	}.timeline(
		"Ongoing incidents and scheduled maintenance windows at some time in an interval, and components that were not operational.",
		course("incidents", "Incidents", by("", over("max", "incidents_ongoing"))),
		course("scheduled", "Scheduled maintenance", by("", over("max", "maintenances_scheduled"))),
		// Only components that had such a state have series.
		course("components", "{{component}} in {{location}}: {{state}}",
			by("location, component, state", over("max", "component_state", location, `state!~"(?i)operational"`))))
}

func collectors() []dashboard.Panel {
	of := func(name string) string { return gauge(perCollector, "exporter_collector_"+name, accountOrPublic) }
	return []dashboard.Panel{
		panel{id: 301, title: "Collectors", w: 24, h: 10}.table(
			"Whether the last fetch of each collector succeeded, at any exporter; its last success; and invalid items. "+
				"Public collectors have no account.",
			state("success", "Last fetch", 92, of("success"), successTexts).ascending(),
			flexible("collector", "Collector", 120), accountColumn("status"),
			agoColumn("last", "Last success", of("last_success_timestamp_seconds")),
			number("invalid", "Invalid", 70, of("invalid_items")).colours(none, from(1, warn)),
		),
		panel{id: 302, title: "Collectors and accounts that failed", w: 24, h: 8, mappings: successTexts}.timeline(
			"The public collectors, and the chosen accounts, of which a fetch failed at every exporter in an interval.",
			course("up", "All others", by("", over("max", "exporter_build_info"))),
			course("public", "{{collector}}", by("collector", over("min", success, `account=""`))+" == 0"),
			course("accounts", "Account {{account}}", "min by (account) ("+by(perCollector, over("min", success, account))+") == 0")),
	}
}

func limits() dashboard.Panel {
	of := func(name string) string { return gauge("account", "exporter_api_"+name, accountOrPublic) }
	return panel{id: 407, title: "Rate limits", w: 12, h: 8, sort: "-Waits"}.table(
		"The limit of each token and what is left of it, as last seen, and how long no requests are sent after a 429, a 503 or an "+
			"exhausted limit. Public requests have no account.",
		accountColumn("status"),
		number("waits", "Waits", 120, of("backoff_until_timestamp_seconds")+" - time() > 0").unit(duration).colours(warn),
		number("left", "Left", 90, of("rate_limit_remaining")), number("limit", "Limit", 90, of("rate_limit")),
	)
}

func builds() dashboard.Panel {
	return panel{id: 505, title: "Builds and configuration", w: 12, h: 8, sort: "Exporter", hidden: []string{"job"}}.table(
		"Each exporter, which leads to its page if your browser reaches that address, its build, and whether its configuration was "+
			"loaded. After a failed reload it keeps its current one.",
		flexible("instance", "Exporter", 150).linked(link{"The exporter's page", "http://${__value.raw}/", true}),
		state("reload", "Configuration", 115, gauge("job, instance", "exporter_config_last_reload_successful"),
			yesNo("OK", "Reload failed", bad)),
		flexible("version", "Version", 80), flexible("revision", "Revision", 100),
		flexible("goversion", "Go", 90).from(gauge("job, instance, version, revision, goversion", "exporter_build_info")),
	)
}

const (
	perCollector = "collector, account"
	// firing selects the alerts that somebody is told.
	firing = `ALERTS{kind=~"news|state", severity!="info", alertstate="firing"}`
)

// Names of metrics of collectors.
const (
	success  = "exporter_collector_success"
	interval = "exporter_collector_interval_seconds"
	rejected = "exporter_api_token_rejected"
)

// health says whether what a dashboard shows is current: on the dashboard of the status, also why not.
func health(board string) dashboard.Panel {
	told := func(kind, severity string) string {
		return `count(ALERTS{kind="` + kind + `", severity="` + severity + `", alertstate="firing"})`
	}
	noData := "count(" + own(interval) + " unless on (" + perCollector + ") " + own("exporter_collector_data_timestamp_seconds") + ")"
	alerts := linkTo(board, "status", "Alerts that fire", "viewPanel=109")
	lines := []column{
		line("api", "API", gauge("", success, `collector=~"status|plans|account"`)+" or vector(-1)").
			mapped(value("1", "Answers", good), value("0", "Unreachable", bad), value("-1", "No exporter", bad)),
		line("token", "tokens rejected", "sum("+gauge("account", rejected)+") > 0").colours(bad),
		line("critical", "critical", told("state", "critical")).colours(bad).linked(alerts),
		line("unknown", "other alerts", noData+" or absent("+own(interval)+")").mapped(between(1, endless, "Unknown", unknown)),
		line("warnings", "warnings", told("state", "warning")).colours(warn).linked(alerts),
		line("news", "news", told("news", "warning")).colours(plain).linked(alerts),
	}
	p := panel{id: 901, title: "Health", w: 24, h: 3}
	const description = "Whether the provider's API answers; alerts and news that are told. Others are unknown while some data is " +
		"missing, because alerts end with the data that they are about. "
	if board != "status" {
		p.links = []link{linkTo(board, "status", "Exporter health", "")}
		return p.number(description+"Why, says the dashboard of the status.", lines...)
	}
	p.w, p.h, p.lines = 9, 7, true
	lines = slices.Insert(lines, 1,
		line("since", "last success", "1e3 * "+gauge("", "exporter_collector_last_success_timestamp_seconds")).unit(ago),
		line("down", "{{instance}}", "up == 0 and on (job, instance) last_over_time("+own("exporter_build_info")+"[7d])").
			mapped(value("0", "Down", bad)),
		line("failing", "collectors fail", "count("+gauge(perCollector, interval)+") - sum("+gauge(perCollector, success)+" > 0) > 0").
			colours(bad))
	lines = append(lines, line("rules", "rules", "absent(plan:server_rental_plan_in_stock:avg90d) unless on () ALERTS").
		mapped(value("1", "None has run", warn)))
	return p.number(description+"Collectors fail if they do at every exporter; they are not counted if all do.", lines...)
}
