package main

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

const (
	perCollector = "collector, account"
	// firing selects the alerts that somebody is told.
	firing = `ALERTS{alertname=~"ServerRental.*", severity!="info", alertstate="firing"}`
)

// Names of metrics of collectors.
const success, succeeded, interval, rejected = "exporter_collector_success", "exporter_collector_last_success_timestamp_seconds", "exporter_collector_interval_seconds", "exporter_api_token_rejected"

// health says whether what a dashboard shows is current: on the dashboard of the status, also why not.
func health(board string) dashboard.Panel {
	all, ours := gauge(perCollector, interval), `ALERTS{alertname=~"ServerRental.*", alertstate="firing", severity=`
	queries := []query{
		now("api", "API", gauge("", success, `collector=~"status|plans|account|servers"`)+" == 0 or 2 + "+gauge("", rejected)+" or "+gauge("", "exporter_build_info")+" or vector(-1)"),
		now("critical", "critical", "count("+ours+`"critical"})`),
		now("unknown", "other alerts", "-absent("+own("catalog_plans")+")"), // alerts end with the data that they are about
		now("warnings", "{{kind}}", "count by (kind) ("+ours+`"warning"})`),
	}
	p := panel{
		id: 901, title: "Health", w: 24, h: 3, background: true, steps: rising(bad), alerts: "ExporterDown TokenRejected CollectorFailing DataMissing",
		overrides: []override{
			ofQuery("api", set("mappings", []mapping{between(1, 2, "Answers", good), value("3", "Bad token", bad), value("0", "Unreachable", bad), value("-1", "No exporter", bad)})),
			ofQuery("unknown", set("mappings", []mapping{value("-1", "Unknown", dark)})),
			ofName("state", set("displayName", "warnings"), setSteps(rising(warn))), ofName("news", setSteps(rising(plain))),
		},
	}
	p.overrides = append(p.overrides, ofPattern("/critical|warnings|news|state/", set("links", []link{linkTo(board, "status", "Alerts that fire", "viewPanel=109")})))
	if board != "status" {
		p.links = []dashboard.DashboardLink{panelLink(linkTo(board, "status", "Exporter health", ""))}
		return p.number("Whether the provider's API answers, is unreachable, or rejects a token, and how many alerts and news are told, which end with the data that they are about. A number leads to its alerts. Why, says the dashboard of the status.", queries...)
	}
	p.w, p.h, p.lines = 9, 7, true
	queries = slices.Insert(queries, 1,
		now("since", "last success", "1e3 * ("+gauge("", succeeded)+" unless on () "+own(rejected)+" == 1 or min("+gauge("account", succeeded)+" and on (account) "+own(rejected)+" == 1))"),
		now("down", "{{instance}}", "up == 0 and on (job, instance) "+"last_over_time("+own("exporter_build_info")+"[7d])"),
		now("failing", "collectors fail", "count("+all+") - sum("+gauge(perCollector, success)+" > 0) > 0"))
	queries = append(queries, now("rules", "rules", "absent(plan:server_rental_plan_in_stock:avg90d) unless on () ALERTS"))
	p.overrides = append(p.overrides,
		ofQuery("since", set("unit", ago), setSteps(rising(dark))),
		ofQuery("down", set("mappings", []mapping{value("0", "Down", bad)})),
		ofQuery("rules", set("mappings", []mapping{value("1", "None has run", warn)})))
	return p.number("Whether the provider's API answers, is unreachable, or rejects a token, and the last success, of that token if one is rejected; exporters that are down; "+
		"how many collectors fail at every exporter, if not all of them; alerts and news that are told.", queries...)
}
