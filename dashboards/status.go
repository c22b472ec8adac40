package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// status is about what the provider reports, and about collectors, requests and the exporter's process.
func status() board {
	return board{
		name: "status", title: "Server rental: provider status and exporter health", from: "now-6h",
		description: "Is it the provider, or the exporter: alerts, components, incidents, collectors, requests and limits.",
		rows: []row{
			{panels: append(providerTiles(), alertList(), failures())},
			{id: 200, title: "Components", panels: components()},
			{id: 300, title: "Collectors", panels: collectors()},
			{id: 400, title: "Requests and the exporter's process", panels: details()},
		},
	}
}

// about is what one of the alerts of a name is about: its plan, its account, and the rest as one text, if possible with a host name, which makes its value 2.
func about() string {
	const ours = `ALERTS{kind=~".+", severity!="info", alertstate="firing"}`
	return "max by (alertname, plan, account, what) (topk(1, label_join(" + ours + " + on (account, server) group_left (hostname) " + oneOf("server_info") + " by (account, server) or " +
		ours + `, "what", " ", "watch", "location", "component", "hostname", "collector", "instance")) by (alertname))`
}

// asNews are alerts of which news have a severity that is last in the order of the alphabet.
func asNews(alerts string) string {
	return "label_replace(" + alerts + `, "severity", "warning: news", "kind", "news")`
}

func alertList() dashboard.Panel {
	return panel{id: 109, title: "Alerts that fire", w: 17, h: 8, sort: "Severity", noValue: "No alert is known to fire"}.table(
		"Warnings and critical alerts of this project that fire: how many of each, what one of them is about, and since when; news are blue. The name leads to the runbook, its plan and its account to their dashboards. They need the rules in alerts/.",
		fixed("severity", "Severity", 74).mapped(words("^critical$", "", bad), words("^warning$", "", warn), words(".+news$", "news", plain)).filled(),
		// Browsers scroll to the name, because a link cannot be in lower case, as the headings of the runbook are.
		flexible("alertname", "Alert", 168).mapped(words("^ServerRental(.+)", "$1", plain)).linked(link{"Runbook", runbooks + "runbook:~:text=${__value.raw}", true}),
		number("count", "Count", 60, "count by (severity, alertname) ("+asNews(firing)+")"),
		flexible("what", "For example", 100).from(about()).mapped(words(`^\s*$`, "–", unknown), words(".+", "", muted)),
		planColumn("status"), accountColumn("status"),
		agoColumn("since", "Since", "min by (severity, alertname) ("+asNews("ALERTS_FOR_STATE and ignoring (alertstate) "+firing)+")"),
	)
}

func failures() dashboard.Panel {
	return panel{id: 404, title: "Errors in the last hour", w: 7, h: 8, sort: "-Errors", noValue: "No error is known", alerts: "CollectorFailing"}.table(
		"Failed requests of the last hour by reason and path, of all exporters. A timeout or no connection is the provider or the network; unauthorized is a token.",
		flexible("reason", "Reason", 110), flexible("path", "Path", 120), number("errors", "Errors", 70, "round(sum by (path, reason) (increase("+own("exporter_api_errors_total")+"[1h]))) > 0"))
}

func providerTiles() []dashboard.Panel {
	overall, fresh := oneOf("status_info"), " on () "+works("", "status")+" == 1"
	return []dashboard.Panel{
		panel{id: 101, title: "Provider", w: 7, h: 7, mappings: componentStates, field: "overall", background: true, alerts: "ProviderNotOperational", overrides: []override{ofQuery("old", set("mappings", []mapping{words(".+", "", unknown)}))}}.number(
			help("status_info")+" Green if operational, blue if maintenance, red for any other state, grey if old.",
			rows("A", overall+" and"+fresh), rows("old", overall+" unless"+fresh)),
		health("status"),
		panel{id: 102, title: "Reported by the provider", w: 8, h: 7, lines: true, steps: rising(bad), alerts: "ComponentNotOperational NetworkDown IncidentOngoing MaintenanceScheduled CatalogFrozen", overrides: []override{
			ofPattern("/^operational$/i", setSteps(rising(good))), ofPattern("/maintenance/i", setSteps(rising(plain))),
			ofQuery("incidents", setSteps(rising(good, from(1, bad)))),
		}}.number(
			"The number of components of the chosen locations in each state, as the provider words it: green if operational, blue if it says maintenance, red for any other state; ongoing incidents and scheduled maintenance windows. Nothing is counted while the status cannot be fetched.",
			now("components", "{{state}}", "count by (state) ("+oneOf("component_state", location)+" by (location, component) and"+fresh+")"),
			now("incidents", "incidents", gauge("", "incidents_ongoing")+" and"+fresh), now("scheduled", "scheduled maintenance", gauge("", "maintenances_scheduled")+" > 0 and"+fresh)),
	}
}

// components are now, in a matrix that has a column for each component, and over time.
func components() []dashboard.Panel {
	coloured := ofPattern("^(?!Location$).+", set("mappings", solid(componentStates)), set("custom.cellOptions", object{"type": "color-background", "mode": "basic"}), set("custom.minWidth", 104), set("custom.inspect", true))
	matrix := panel{id: 201, title: "Components by location", w: 12, h: 10, sort: "Location", hidden: []string{"Value"}, alerts: "ComponentNotOperational", overrides: []override{coloured}}.table(
		help("component_state")+" Green if operational, blue if it says maintenance, red for any other state. Empty while the status cannot be fetched.",
		fixed(`location\component`, "Location", 85).linked(linkTo("status", "stock", "Stock of this location", "var-location=${__value.raw}")))
	matrix.Targets = append(matrix.Targets, rows("state", oneOf("component_state", location)+" by (location, component) and on () "+works("", "status")+" == 1"))
	group := transformation{Id: "groupingToMatrix", Options: object{"columnField": "component", "rowField": "location", "valueField": "state", "emptyValue": "empty"}}
	matrix.Transformations = append([]transformation{group}, matrix.Transformations...)

	texts := func(text, colour string) property {
		return set("mappings", []mapping{value("0", "None", good), between(1, endless, text, colour)})
	}
	return []dashboard.Panel{
		matrix,
		panel{id: 202, title: "Incidents, and components that were not operational", w: 12, h: 10, alerts: "IncidentOngoing MaintenanceScheduled ComponentNotOperational", overrides: []override{
			ofQuery("incidents", texts("Ongoing", bad)), ofQuery("scheduled", texts("Scheduled", plain)), ofQuery("components", texts("Not operational", bad)), ofPattern("/: .*maintenance/i", texts("Maintenance", plain)),
		}}.timeline(
			"Whether the provider reported ongoing incidents or scheduled maintenance windows at some time in an interval, and the components that were not operational in the time range, with their state, and when.",
			course("incidents", "Incidents", by("", next("max", "incidents_ongoing"))), course("scheduled", "Scheduled maintenance", by("", next("max", "maintenances_scheduled"))),
			// Only components that had such a state have series.
			course("components", "{{component}} in {{location}}: {{state}}", by("location, component, state", next("max", "component_state", location, notOperational)))),
	}
}

func collectors() []dashboard.Panel {
	of := func(name string) string { return gauge(perCollector, "exporter_collector_"+name, accountOrPublic) }
	failing := func(labels, matcher string) string {
		return "min by (" + labels + ") (" + by(perCollector, next("min", success, matcher)) + ") == 0"
	}
	return []dashboard.Panel{
		panel{id: 301, title: "Collectors", w: 24, h: 10, alerts: "CollectorFailing DataMissing ItemsInvalid"}.table(
			"Whether the last fetch of each collector succeeded, those that failed first; its last success; and invalid items. Public collectors have no account. With several exporters, the better one counts.",
			state("success", "Last fetch", 92, of("success"), successTexts).ascending(),
			flexible("collector", "Collector", 120), accountColumn("status"),
			agoColumn("last", "Last success", of("last_success_timestamp_seconds")),
			number("invalid", "Invalid", 70, of("invalid_items")).colours(rising(muted, from(1, warn))),
		),
		panel{id: 302, title: "Collectors and accounts that failed", w: 24, h: 8, mappings: successTexts, alerts: "CollectorFailing"}.timeline(
			"The public collectors, and the chosen accounts, of which a fetch failed at every exporter in an interval, and when. All others worked.",
			course("up", "All others", by("", next("max", "exporter_build_info"))),
			course("public", "{{collector}}", failing("collector", `account=""`)), course("accounts", "Account {{account}}", failing("account", account))),
	}
}

// details are what nobody needs at first.
func details() []dashboard.Panel {
	rate := func(labels, name string) string {
		return "sum by (" + labels + ") (rate(" + own(name) + "[$__rate_interval]))"
	}
	of := func(name string) string { return gauge("account", "exporter_api_"+name, accountOrPublic) }
	line := func(colour string) property {
		return set("color", dashboard.FieldColor{Mode: "fixed", FixedColor: &colour})
	}
	return []dashboard.Panel{
		panel{id: 405, title: "Requests by HTTP status", w: 12, h: 9, min: new(0.0), interval: "5m", unit: "reqpm", decimals: new(1.0), alerts: "RateLimited", overrides: []override{ofPattern(`/^2\d\d$/`, line(plain)), ofPattern(`/^4\d\d$/`, line(warn)), ofPattern(`/^(5\d\d|error)$/`, line(bad))}}.chart(
			"Requests per minute by HTTP status, of all exporters. The code is error if there was no response.",
			course("A", "{{code}}", "60 * "+rate("code", "exporter_api_requests_total"))),
		panel{id: 406, title: "Latency", w: 12, h: 9, min: new(0.0), interval: "5m", unit: "s", alerts: "CollectorFailing", overrides: []override{ofPattern("/.*/", set("custom.spanNulls", 2*60*60*1000))}}.chart( // the images are fetched once an hour
			"Time within which 90 percent of requests were sent and their responses read, by path.",
			course("A", "{{path}}", "histogram_quantile(0.9, "+rate("path, le", "exporter_api_request_duration_seconds_bucket")+")")),
		panel{id: 407, title: "Rate limits", w: 12, h: 8, sort: "-Waits", alerts: "RateLimited TokenRejected"}.table(
			"The limit of each token and what is left of it, as last seen, and how long no requests are sent after a 429, a 503 or an exhausted limit; public are those without a token.",
			accountColumn("status"),
			number("waits", "Waits", 120, "label_replace("+of("backoff_until_timestamp_seconds")+` - time() > 0, "account", "public", "account", "")`).unit(duration).colours(rising(warn)),
			number("left", "Left", 90, of("rate_limit_remaining")), number("limit", "Limit", 90, of("rate_limit")),
		),
		panel{id: 505, title: "Builds and configuration", w: 12, h: 8, sort: "Exporter", hidden: []string{"job"}, alerts: "ConfigReloadFailed"}.table(
			"The build of each exporter, and whether its configuration was loaded. After a failed reload it keeps its current configuration.",
			flexible("instance", "Exporter", 150), state("reload", "Configuration", 115, gauge("job, instance", "exporter_config_last_reload_successful"), yesNo("OK", "Reload failed", bad)),
			flexible("version", "Version", 80),
			flexible("revision", "Revision", 100), flexible("goversion", "Go", 90).from(gauge("job, instance, version, revision, goversion", "exporter_build_info")),
		),
	}
}
