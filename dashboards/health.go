package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

const (
	perCollector = "collector, account"
	ourAlerts    = `alertname=~"ServerRental.*", severity!="info"`
	firing       = "ALERTS{" + ourAlerts + `, alertstate="firing"}`

	// rulesRun has data wherever the rules are evaluated, and is absent where they are not loaded.
	rulesRun = "exporter:server_rental_exporter_build_info:count"
)

// intervals is the time since each collector's last success, in its intervals.
func intervals(matchers ...string) string {
	return "(time() - " + gauge(perCollector, "exporter_collector_last_success_timestamp_seconds", matchers...) + ") / " +
		gauge(perCollector, "exporter_collector_interval_seconds", matchers...)
}

// health shows whether what a dashboard shows is current: the same on each.
func health(board string) []dashboard.Panel {
	var links []dashboard.DashboardLink
	if board != "status" {
		l := linkTo(board, "status", "Exporter health", "")
		links = []dashboard.DashboardLink{panelLink(l.Title, l.URL, false)}
	}
	return []dashboard.Panel{
		panel{
			id: 901, title: "Exporters", w: 6, h: 3, background: true, links: links, alerts: []string{"ExporterDown", "ExporterTargetDown"},
			description: "Whether Prometheus can scrape each exporter of the last 7 days. While none is up, the panels of the present are empty.",
			mappings:    yesNo("Up", good, "Down", bad), steps: noneIsBad, noValue: "None scraped",
		}.number(now("A", "{{instance}}", maxBy("instance", selector("up")+" and on (job, instance) last_over_time("+own("exporter_build_info")+"[7d])"))),
		panel{
			id: 902, title: "Collectors", w: 6, h: 3, background: true, links: links, alerts: []string{"CollectorFailing"},
			description: "The number of collectors whose last fetch failed at every exporter. Their data is the last that was fetched, and disappears after max_age.",
			unit:        "suffix: failing", steps: noneIsGood, mappings: []mapping{value("0", "Working", good)},
		}.number(now("A", "collectors", "sum(1 - "+gauge(perCollector, "exporter_collector_success")+")")),
		panel{
			id: 903, title: "Oldest data", w: 6, h: 3, background: true, links: links, alerts: []string{"CollectorFailing", "DataMissing"},
			description: "The longest time since the last success of a collector, in its intervals. One is normal.",
			unit:        "suffix: intervals", decimals: new(1.0), steps: intervalSteps,
		}.number(now("A", "intervals", maxBy("", intervals()))),
		panel{
			id: 904, title: "Alerts", w: 6, h: 3, background: true, links: links, alerts: []string{"ExporterDown"},
			description: "The number of warnings and critical alerts of this project that fire. The dashboard of the status lists them.",
			unit:        "suffix: firing", steps: noneIsGood, mappings: []mapping{value("0", "None", good)}, noValue: "No rule has run",
		}.number(now("A", "alerts", "count("+firing+") or 0 * "+maxBy("", rulesRun))),
	}
}
