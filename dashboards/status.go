package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// status is about what the provider reports, and about collectors, requests and the exporter's process.
func status() board {
	return board{
		name: "status", title: "Server rental: provider status and exporter health", from: "now-6h",
		description: "Health of the provider and of the exporter: alerts, components, incidents, collectors, requests and limits.",
		annotations: []annotation{outages(true)},
		rows: []row{
			{id: 110, title: "Needs attention now", panels: []dashboard.Panel{alertList()}},
			{id: 200, title: "Provider", panels: append(providerTiles(), providerHistory()...)},
			{id: 300, title: "Collectors", panels: collectors()},
			{id: 400, title: "Requests to the provider", panels: requests(), collapsed: true},
			{id: 500, title: "Exporter", panels: process(), collapsed: true},
		},
	}
}

func alertList() dashboard.Panel {
	return panel{id: 109, title: "Alerts that fire", w: 24, h: 10, sort: "Severity", hidden: []string{"__name__", "kind"}, noValue: "No alert is known to fire"}.table(
		"Warnings and critical alerts of this project that fire, since when, and what they are about: only what one of them has is a column. The name leads to the runbook. They need the rules in alerts/.",
		fixed("severity", "Severity", 85).mapped(words("^critical$", "", bad), words("^warning$", "", warn)).filled(),
		// Browsers scroll to the name, because a link cannot be in lower case, as the headings of the runbook are.
		flexible("alertname", "Alert", 210).mapped(words("^ServerRental(.+)", "$1", plain)).linked(link{"Runbook", runbooks + "runbook:~:text=${__value.raw}", true}),
		agoColumn("since", "Since", "ALERTS_FOR_STATE{"+urgent+"} and ignoring (alertstate) "+firing),
		flexible("account", "Account", 135), flexible("server", "Server", 180), flexible("topup", "Top-up", 180), flexible("plan", "Plan", 120),
		flexible("configuration", "Configuration", 180), flexible("watch", "Watch", 120), flexible("location", "Location", 70),
		flexible("component", "Component", 70), flexible("collector", "Collector", 70), flexible("instance", "Exporter", 70),
	)
}

func providerTiles() []dashboard.Panel {
	return []dashboard.Panel{
		panel{id: 101, title: "Provider", w: 6, h: 5, mappings: componentStates, field: "overall", background: true, alerts: "ProviderNotOperational"}.number(
			help("status_info")+" Green if operational, blue if maintenance, red for any other state.",
			rows("A", gauge("overall", "status_info"))),
		panel{id: 102, title: "Components", w: 6, h: 5, names: true, lines: true, steps: rising(bad), alerts: "ComponentNotOperational NetworkDown", overrides: []override{ofPattern("/^operational$/i", setSteps(rising(good))), ofPattern("/maintenance/i", setSteps(rising(plain)))}}.number(
			"The number of components of the chosen locations in each state, as the provider words it: green if operational, blue if it says maintenance, red for any other state.",
			now("A", "{{state}}", "count by (state) ("+gauge("location, component, state", "component_state", location)+")")),
		panel{id: 103, title: "Incidents", w: 6, h: 5, names: true, steps: noneIsGood, alerts: "IncidentOngoing MaintenanceScheduled", overrides: []override{ofQuery("maintenance", setSteps(rising(plain)))}}.number(
			"Ongoing incidents and scheduled maintenance windows.",
			now("incidents", "incidents", gauge("", "incidents_ongoing")), now("maintenance", "maintenance", gauge("", "maintenances_scheduled"))),
		panel{id: 104, title: "Updated by the provider", w: 6, h: 5, lines: true, unit: ago, steps: rising(muted), alerts: "CatalogFrozen"}.number(
			"When the provider last updated its status, and when it generated its catalog.",
			now("updated", "status", "1000 * "+gauge("", "status_updated_timestamp_seconds")), now("generated", "catalog", "1000 * "+gauge("", "catalog_generated_timestamp_seconds"))),
	}
}

func providerHistory() []dashboard.Panel {
	const legend = "{{component}} in {{location}}: {{state}}"
	none := value("0", "None", good)
	return []dashboard.Panel{
		componentMatrix(),
		panel{id: 202, title: "Components that were not operational", w: 12, h: 11, mappings: []mapping{value("1", "Not operational", bad)}, alerts: "ComponentNotOperational", overrides: []override{ofQuery("maintenance", set("mappings", []mapping{value("1", "Maintenance", plain)})), ofQuery("operational", set("mappings", []mapping{value("1", "Operational", good)}))}}.timeline(
			"The components that the provider reported as not operational in the time range, with their state, and when. All others were operational.",
			course("failed", legend, reported(failed)), course("maintenance", legend, reported(inMaintenance)),
			course("operational", "All others", by("", over("max", "component_state", "$__interval", location, operational)))),
		panel{id: 204, title: "Incidents and maintenance", w: 24, h: 5, mappings: []mapping{none, between(1, endless, "Ongoing", bad)}, alerts: "IncidentOngoing MaintenanceScheduled", overrides: []override{ofQuery("maintenance", set("mappings", []mapping{none, between(1, endless, "Scheduled", plain)}))}}.timeline(
			"Whether the provider reported ongoing incidents or scheduled maintenance windows at some time in an interval.",
			course("incidents", "Incidents", by("", over("max", "incidents_ongoing", "$__interval"))), course("maintenance", "Maintenance", by("", over("max", "maintenances_scheduled", "$__interval")))),
	}
}

// componentMatrix has a column for each component.
func componentMatrix() dashboard.Panel {
	coloured := ofPattern("^(?!Location$).+", set("mappings", componentStates), set("custom.cellOptions", object{"type": "color-background", "mode": "basic"}), set("custom.minWidth", 104), set("custom.inspect", true))
	out := panel{id: 201, title: "Components by location", w: 12, h: 11, sort: "Location", hidden: []string{"Value"}, noValue: "No component is known", alerts: "ComponentNotOperational", overrides: []override{coloured}}.table(
		help("component_state")+" Green if operational, blue if it says maintenance, red for any other state.",
		fixed(`location\component`, "Location", 85).linked(linkTo("status", "stock", "Stock of this location", "var-location=${__value.raw}")))
	out.Targets = append(out.Targets, rows("state", gauge("location, component, state", "component_state", location)))
	matrix := transformation{Id: "groupingToMatrix", Options: object{"columnField": "component", "rowField": "location", "valueField": "state", "emptyValue": "empty"}}
	out.Transformations = append([]transformation{matrix}, out.Transformations...)
	return out
}

func collectors() []dashboard.Panel {
	of := func(name string) string { return gauge(perCollector, "exporter_collector_"+name, accountOrPublic) }
	return []dashboard.Panel{
		panel{id: 301, title: "Collectors", w: 24, h: 12, noValue: "No collector is known", alerts: "CollectorFailing DataMissing ItemsInvalid"}.table(
			"Whether the last fetch of each collector succeeded, those that failed first; the time since its last success, in intervals too; when the provider made the data that is shown; and items that were not understood in full. Public collectors have no account. With several exporters, the better one counts.",
			state("success", "Last fetch", 92, of("success"), successTexts).ascending(),
			flexible("collector", "Collector", 120), accountColumn("status"),
			agoColumn("last", "Last success", of("last_success_timestamp_seconds")),
			number("intervals", "Intervals", 85, intervals(accountOrPublic)).decimals(1).colours(intervalSteps),
			agoColumn("data", "Data made", of("data_timestamp_seconds")),
			number("interval", "Interval", 110, of("interval_seconds")).unit(duration).decimals(0),
			number("duration", "Duration", 85, of("duration_seconds")).unit("s").decimals(2),
			number("invalid", "Invalid", 70, of("invalid_items")).colours(rising(muted, from(1, warn))),
		),
		panel{id: 302, title: "Collectors that failed", w: 24, h: 9, mappings: successTexts, alerts: "CollectorFailing"}.timeline(
			"Whether a fetch of each collector failed in an interval, for any of the chosen accounts. Gaps are times without data.",
			course("A", "{{collector}}", "min by (collector) ("+over("min", "exporter_collector_success", "$__interval", accountOrPublic)+")")),
	}
}

func requests() []dashboard.Panel {
	rate := func(labels, name string) string {
		return "sum by (" + labels + ") (rate(" + own(name) + "[$__rate_interval]))"
	}
	of := func(name string) string { return gauge("account", "exporter_api_"+name, accountOrPublic) }
	return []dashboard.Panel{
		panel{id: 405, title: "Requests by HTTP status", w: 12, h: 9, min: new(0.0), interval: "5m", unit: "reqpm", decimals: new(1.0), alerts: "RateLimited", overrides: []override{ofPattern(`/^2\d\d$/`, setLine(plain)), ofPattern(`/^4\d\d$/`, setLine(warn)), ofPattern(`/^(5\d\d|error)$/`, setLine(bad))}}.chart(
			"Requests per minute by HTTP status, of all exporters. The code is error if there was no response.",
			course("A", "{{code}}", "60 * "+rate("code", "exporter_api_requests_total"))),
		panel{id: 404, title: "Errors in 24 hours", w: 12, h: 9, sort: "Errors", descending: true, noValue: "No error is known", alerts: "CollectorFailing"}.table(
			"Failed requests of the last 24 hours by path and reason, of all exporters.",
			flexible("path", "Path", 120), flexible("reason", "Reason", 110), number("errors", "Errors", 80, "round(sum by (path, reason) (increase("+own("exporter_api_errors_total")+"[24h]))) > 0")),
		panel{id: 406, title: "Latency", w: 12, h: 9, min: new(0.0), interval: "5m", unit: "s", alerts: "CollectorFailing", overrides: []override{ofPattern("/.*/", set("custom.spanNulls", 2*60*60*1000))}}.chart( // the images are fetched once an hour
			"Time within which 90 percent of requests were sent and their responses read, by path.",
			course("A", "{{path}}", "histogram_quantile(0.9, "+rate("path, le", "exporter_api_request_duration_seconds_bucket")+")")),
		panel{id: 407, title: "Rate limits", w: 12, h: 9, sort: "Waits", descending: true, noValue: "No rate limit is known", alerts: "RateLimited TokenRejected"}.table(
			"The limit of each token and what is left of it, as last seen, and how long no requests are sent after a 429, a 503 or an exhausted limit; without an account those without a token.",
			accountColumn("status"),
			number("waits", "Waits", 120, of("backoff_until_timestamp_seconds")+" - time() > 0").unit(duration).colours(rising(warn)),
			number("left", "Left", 90, of("rate_limit_remaining")), number("limit", "Limit", 90, of("rate_limit")),
		),
	}
}

func process() []dashboard.Panel {
	return []dashboard.Panel{
		panel{id: 501, title: "CPU", w: 12, h: 9, min: new(0.0), unit: percent, interval: "2m"}.chart(
			"CPU time of each exporter; 100 % is one core.",
			course("A", "{{instance}}", perExporter("rate(process_cpu_seconds_total[$__rate_interval])"))),
		panel{id: 502, title: "Memory", w: 12, h: 9, min: new(0.0), unit: "bytes"}.chart(
			"Resident memory of each exporter.",
			course("A", "{{instance}}", perExporter("process_resident_memory_bytes"))),
		panel{id: 505, title: "Builds and configuration", w: 24, h: 5, sort: "Exporter", noValue: "No exporter is known", alerts: "ConfigReloadFailed"}.table(
			"The build and start time of each exporter, and whether its configuration was loaded. After a failed reload it keeps its current configuration.",
			flexible("instance", "Exporter", 150), flexible("version", "Version", 80), flexible("revision", "Revision", 100),
			flexible("goversion", "Go", 90).from(gauge("instance, version, revision, goversion", "exporter_build_info")),
			agoColumn("started", "Started", perExporter("process_start_time_seconds")),
			state("reload", "Configuration", 115, gauge("instance", "exporter_config_last_reload_successful"), yesNo("OK", good, "Reload failed", bad)),
		),
	}
}
