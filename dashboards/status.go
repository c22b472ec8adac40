package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// status is about what the provider reports, and about collectors, requests and the exporter's process.
func status() file {
	return board{
		name: "status", title: "Server rental: provider status and exporter health", from: "now-6h", refresh: "30s", timezone: "browser",
		description: "Health of the provider and of the exporter: alerts, components, incidents, collectors, requests and limits.",
		rows: []row{
			{id: 110, title: "Needs attention now", panels: []dashboard.Panel{alertList()}},
			{id: 200, title: "Provider", panels: append(providerTiles(), providerHistory()...)},
			{id: 300, title: "Collectors", panels: collectors()},
			{id: 400, title: "Requests to the provider", panels: requests(), collapsed: true},
			{id: 500, title: "Exporter", panels: process(), collapsed: true},
		},
	}.build(outages())
}

func alertList() dashboard.Panel {
	// An alert has some of these, and only those that one has are columns.
	labels := []string{"account", "server", "topup", "plan", "configuration", "watch", "location", "component", "collector", "instance"}
	names := []string{"Account", "Server", "Top-up", "Plan", "Configuration", "Watch", "Location", "Component", "Collector", "Exporter"}
	columns := []column{
		fixed("severity", "Severity", 85).mapped(words("^critical$", "", bad), words("^warning$", "", warn)).filled(),
		flexible("alertname", "Alert", 200).mapped(words("^ServerRental(.+)", "$1", plain)).linked(link{"Runbook", runbooks + "#runbook:~:text=${__value.raw}", true}),
		agoColumn("since", "Since", "ALERTS_FOR_STATE{"+ourAlerts+"} and ignoring (alertstate) "+firing),
	}
	for i, l := range labels {
		columns = append(columns, flexible(l, names[i], 90))
	}
	return panel{
		id: 109, title: "Alerts that fire", w: 24, h: 10, sort: "Severity", hidden: []string{"__name__", "kind"}, noValue: "No alert is known to fire",
		description: "Warnings and critical alerts of this project that fire, since when, and what they are about. The name leads to the runbook. They need the rules in alerts/.",
	}.table(columns...)
}

func providerTiles() []dashboard.Panel {
	tile := panel{w: 6, h: 4}
	overall, components, incidents, updated := tile, tile, tile, tile
	overall.id, overall.title, overall.alerts = 101, "Provider", []string{"ProviderNotOperational"}
	overall.description = help("status_info") + " Green if operational, blue if maintenance, red for any other state."
	overall.mappings, overall.field, overall.background = componentStates, "overall", true

	components.id, components.title, components.names, components.alerts = 102, "Components", true, []string{"ComponentNotOperational", "NetworkDown"}
	components.description = "The number of components of the chosen locations by state, as the provider words it: green if operational, blue if it says maintenance, red for any other state."
	components.steps = rising(bad)
	components.overrides = []override{forPattern("/^operational$/i", setSteps(rising(good))), forPattern("/maintenance/i", setSteps(rising(plain)))}

	incidents.id, incidents.title, incidents.names, incidents.alerts = 103, "Incidents", true, []string{"IncidentOngoing", "MaintenanceScheduled"}
	incidents.description = "Ongoing incidents and scheduled maintenance windows."
	incidents.steps, incidents.overrides = noneIsGood, []override{forQuery("maintenance", setSteps(rising(plain)))}

	updated.id, updated.title, updated.names, updated.alerts = 104, "Updated by the provider", true, []string{"CatalogFrozen"}
	updated.description = "When the provider last updated its status, and when it generated its catalog."
	updated.unit, updated.steps, updated.lines = ago, rising(muted), true
	return []dashboard.Panel{
		overall.number(rows("A", gauge("overall", "status_info"))),
		components.number(now("A", "{{state}}", "count by (state) ("+gauge("location, component, state", "component_state", location)+")")),
		incidents.number(now("incidents", "incidents", gauge("", "incidents_ongoing")), now("maintenance", "maintenance", gauge("", "maintenances_scheduled"))),
		updated.number(now("updated", "status", "1000 * "+gauge("", "status_updated_timestamp_seconds")), now("generated", "catalog", "1000 * "+gauge("", "catalog_generated_timestamp_seconds"))),
	}
}

func providerHistory() []dashboard.Panel {
	none := value("0", "None", good)
	return []dashboard.Panel{
		componentMatrix(),
		panel{
			id: 202, title: "Components that were not operational", w: 12, h: 11, mappings: []mapping{value("1", "Not operational", bad)}, alerts: []string{"ComponentNotOperational"},
			description: "The components that the provider reported as not operational in the time range, with their state, and when. Nothing is drawn if there were none.",
			overrides:   []override{forQuery("maintenance", set("mappings", []mapping{value("1", "Maintenance", plain)}))},
		}.timeline(course("failed", "{{component}} in {{location}}: {{state}}", reported(failed)), course("maintenance", "{{component}} in {{location}}: {{state}}", reported(inMaintenance))),
		panel{
			id: 204, title: "Incidents and maintenance", w: 24, h: 5, mappings: []mapping{none, between(1, endless, "Ongoing", bad)}, alerts: []string{"IncidentOngoing", "MaintenanceScheduled"},
			description: "Whether the provider reported ongoing incidents or scheduled maintenance windows at some time in an interval.",
			overrides:   []override{forQuery("maintenance", set("mappings", []mapping{none, between(1, endless, "Scheduled", plain)}))},
		}.timeline(
			course("incidents", "Incidents", maxBy("", "max_over_time("+own("incidents_ongoing")+"[$__interval])")),
			course("maintenance", "Maintenance", maxBy("", "max_over_time("+own("maintenances_scheduled")+"[$__interval])"))),
	}
}

// componentMatrix has a column for each component.
func componentMatrix() dashboard.Panel {
	out := panel{
		id: 201, title: "Components by location", w: 12, h: 11, sort: "Location", noValue: "No component is known", alerts: []string{"ComponentNotOperational"},
		description: help("component_state") + " Green if operational, blue if it says maintenance, red for any other state.",
		overrides: []override{forPattern("^(?!Location$).+", set("mappings", componentStates), set("custom.cellOptions", object{"type": "color-background", "mode": "basic"}),
			set("custom.minWidth", 72), set("custom.inspect", true))},
	}.table(column{label: `location\component`, name: "Location"}.from(gauge("location, component, state", "component_state", location)).with(set("custom.width", 80)).
		linked(linkTo("status", "stock", "Stock of this location", "var-location=${__value.raw}")))
	out.Targets[0] = rows("state", gauge("location, component, state", "component_state", location))
	out.Transformations = []transformation{
		{Id: "groupingToMatrix", Options: object{"columnField": "component", "rowField": "location", "valueField": "state", "emptyValue": "empty"}},
		organize(map[string]string{`location\component`: "Location"}, map[string]bool{}, map[string]int{}),
	}
	return out
}

func collectors() []dashboard.Panel {
	of := func(name string) string { return gauge(perCollector, "exporter_collector_"+name, accountOrPublic) }
	return []dashboard.Panel{
		panel{
			id: 301, title: "Collectors", w: 24, h: 12, noValue: "No collector is known", alerts: []string{"CollectorFailing", "DataMissing", "ItemsInvalid"},
			description: "Whether the last fetch of each collector succeeded, those that failed first; the time since its last success, in intervals too; when the provider made the data that is shown; and items that were not understood in full. " +
				"Public collectors have no account. With several exporters, the better one counts.",
		}.table(
			state("success", "Last fetch", 92, of("success"), successTexts).ascending(),
			flexible("collector", "Collector", 120),
			flexible("account", "Account", 120).linked(linkTo("status", "accounts", "This account", "var-account=${__value.raw}")),
			agoColumn("last", "Last success", of("last_success_timestamp_seconds")),
			number("intervals", "Intervals", 85, intervals(accountOrPublic)).decimals(1).colours(intervalSteps),
			agoColumn("data", "Data made", of("data_timestamp_seconds")),
			number("interval", "Interval", 110, of("interval_seconds")).unit(duration).decimals(0),
			number("duration", "Duration", 85, of("duration_seconds")).unit("s").decimals(2),
			number("invalid", "Invalid", 70, of("invalid_items")).colours(rising(muted, from(1, warn))),
		),
		panel{
			id: 302, title: "Collectors that failed", w: 24, h: 9, mappings: successTexts, alerts: []string{"CollectorFailing"},
			description: "Whether a fetch of each collector failed in an interval, for any of the chosen accounts. Gaps are times without data.",
		}.timeline(course("A", "{{collector}}", "min by (collector) (min_over_time("+own("exporter_collector_success", accountOrPublic)+"[$__interval]))")),
	}
}

func requests() []dashboard.Panel {
	rate := func(labels, name string) string {
		return "sum by (" + labels + ") (rate(" + own(name) + "[$__rate_interval]))"
	}
	limits := func(name string) string { return perAccountOrPublic("exporter_api_" + name) }
	return []dashboard.Panel{
		panel{
			id: 405, title: "Requests by HTTP status", w: 12, h: 9, min: new(0.0), interval: "5m", unit: "reqpm", decimals: new(1.0), areas: true, alerts: []string{"RateLimited"},
			description: "Requests per minute by HTTP status, of all chosen exporters. The code is error if there was no response.",
			overrides:   []override{forPattern(`/^2\d\d$/`, setColour(plain)), forPattern(`/^4\d\d$/`, setColour(warn)), forPattern(`/^(5\d\d|error)$/`, setColour(bad))},
		}.chart(course("A", "{{code}}", "60 * "+rate("code", "exporter_api_requests_total"))),
		panel{
			id: 404, title: "Errors in 24 hours", w: 12, h: 9, sort: "Errors", descending: true, noValue: "No error is known", alerts: []string{"CollectorFailing"},
			description: "Failed requests of the last 24 hours by path and reason, of all chosen exporters.",
		}.table(
			flexible("path", "Path", 120), flexible("reason", "Reason", 110),
			number("errors", "Errors", 80, "round(sum by (path, reason) (increase("+own("exporter_api_errors_total")+"[24h]))) > 0"),
		),
		panel{
			id: 406, title: "Latency", w: 12, h: 9, min: new(0.0), interval: "5m", unit: "s", calcs: []string{"max", "lastNotNull"}, alerts: []string{"CollectorFailing"}, spanNulls: 2 * 60 * 60 * 1000,
			description: "Time within which 90 percent of requests were sent and their responses read, by path.",
		}.chart(course("A", "{{path}}", "histogram_quantile(0.9, "+rate("path, le", "exporter_api_request_duration_seconds_bucket")+")")),
		panel{
			id: 407, title: "Rate limits", w: 12, h: 9, sort: "Waits", descending: true, noValue: "No rate limit is known", alerts: []string{"RateLimited", "TokenRejected"},
			description: "The limit of each token and what is left of it, as last seen, and how long no requests are sent after a 429, a 503 or an exhausted limit; without an account those without a token.",
		}.table(
			flexible("account", "Account", 120),
			number("waits", "Waits", 120, limits("backoff_until_timestamp_seconds")+" - time() > 0").unit(duration).colours(rising(warn)),
			number("left", "Left", 90, limits("rate_limit_remaining")), number("limit", "Limit", 90, limits("rate_limit")),
		),
	}
}

func perAccountOrPublic(name string) string { return gauge("account", name, accountOrPublic) }

func process() []dashboard.Panel {
	return []dashboard.Panel{
		panel{
			id: 501, title: "CPU", w: 12, h: 9, min: new(0.0), unit: percent, interval: "2m", description: "CPU time of each exporter; 100 % is one core.",
		}.chart(course("A", "{{instance}}", perExporter("rate("+selector("process_cpu_seconds_total")+"[$__rate_interval])"))),
		panel{
			id: 502, title: "Memory", w: 12, h: 9, min: new(0.0), unit: "bytes", description: "Resident memory of each exporter.",
		}.chart(course("A", "{{instance}}", perExporter(selector("process_resident_memory_bytes")))),
		panel{
			id: 505, title: "Builds and configuration", w: 24, h: 5, sort: "Exporter", noValue: "No exporter is known", alerts: []string{"ConfigReloadFailed"},
			description: "The build and start time of each exporter, and whether its configuration was loaded. After a failed reload it keeps its current configuration.",
		}.table(
			flexible("instance", "Exporter", 150), flexible("version", "Version", 80), flexible("revision", "Revision", 100),
			flexible("goversion", "Go", 90).from(gauge("instance, version, revision, goversion", "exporter_build_info")),
			agoColumn("started", "Started", perExporter(selector("process_start_time_seconds"))),
			state("reload", "Configuration", 115, gauge("instance", "exporter_config_last_reload_successful"), yesNo("OK", good, "Reload failed", bad)),
		),
	}
}
