package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

const (
	perCollector = "collector, account"
	// urgent selects the alerts that somebody is told.
	urgent = `alertname=~"ServerRental.*", severity!="info"`
	firing = "ALERTS{" + urgent + `, alertstate="firing"}`
	// rulesRun has data wherever the rules are evaluated.
	rulesRun = "exporter:server_rental_exporter_build_info:count"
)

// intervals is the time since each collector's last success, in its intervals.
func intervals(matchers ...string) string {
	return "(time() - " + gauge(perCollector, "exporter_collector_last_success_timestamp_seconds", matchers...) + ") / " + gauge(perCollector, "exporter_collector_interval_seconds", matchers...)
}

// health shows whether what a dashboard shows is current: the same on each.
func health(board string) []dashboard.Panel {
	var links []dashboard.DashboardLink
	if board != "status" {
		links = append(links, panelLink(linkTo(board, "status", "Exporter health", "")))
	}
	return []dashboard.Panel{
		panel{id: 901, title: "Exporters", w: 6, h: 3, lines: true, background: true, mappings: yesNo("Up", good, "Down", bad), noValue: "None scraped", links: links, alerts: "ExporterDown ExporterTargetDown"}.number(
			"Whether Prometheus can scrape each exporter of the last 7 days. While none is up, the panels of the present are empty.",
			now("A", "{{instance}}", by("instance", "up and on (job, instance) "+over("last", "exporter_build_info", "7d")))),
		panel{id: 902, title: "Collectors", w: 6, h: 3, background: true, unit: "suffix: failing", steps: noneIsGood, mappings: []mapping{value("0", "Working", good)}, links: links, alerts: "CollectorFailing"}.number(
			"The number of collectors whose last fetch failed at every exporter. Their data is the last that was fetched, and disappears after max_age.",
			now("A", "collectors", "sum(1 - "+gauge(perCollector, "exporter_collector_success")+")")),
		panel{id: 903, title: "Oldest data", w: 6, h: 3, background: true, unit: "suffix: intervals", decimals: new(1.0), steps: intervalSteps, links: links, alerts: "CollectorFailing DataMissing"}.number(
			"The longest time since the last success of a collector, in its intervals. One is normal.",
			now("A", "intervals", by("", intervals()))),
		panel{id: 904, title: "Alerts", w: 6, h: 3, background: true, unit: "suffix: firing", steps: noneIsGood, mappings: []mapping{value("0", "None", good)}, noValue: "No rule has run", links: links, alerts: "ExporterDown"}.number(
			"The number of warnings and critical alerts of this project that fire. The dashboard of the status lists them.",
			now("A", "alerts", "count("+firing+") or 0 * "+by("", rulesRun))),
	}
}

// outages marks the times in which a component was neither operational nor in maintenance.
func outages(enabled bool) annotation {
	return marks("Outages", bad, reported(failed), "{{component}} in {{location}}", "The component was not operational: {{state}}.", enabled)
}

// news marks when alerts about changes began to fire, but for those of stock, of which there are bands and bars.
func news(matcher string) annotation {
	return marks("News", plain, `ALERTS{alertname=~"ServerRental.*", alertname!~".*(BackInStock|SoldOut)", alertstate="firing", kind="news", `+matcher+"} unless ALERTS offset $__interval", "{{alertname}}", "{{watch}} {{plan}} {{account}} {{server}}", true)
}
