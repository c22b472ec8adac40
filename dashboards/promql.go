package main

import (
	"fmt"
	"strings"

	"github.com/server-rental-exporter/server_rental_exporter/exporter"
	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

// Matchers of the variables. They match only series with the label.
const (
	account  = `account=~"$account"`
	location = `location=~"$location"`
	plan     = `plan=~"$plan"`
	onePlan  = `plan="$plan"` // of the dashboard of one plan, whose variable is not escaped for a regular expression

	// accountOrPublic also matches public collectors, which have no account and belong to every choice.
	accountOrPublic = `account=~"$account|"`

	// States of components as the provider reports them.
	inMaintenance = `state=~"(?i).*maintenance.*"`
	failed        = `state!~"(?i)operational|.*maintenance.*"`
)

// definitions are the metrics of the exporter by name.
var definitions = func() map[string]*metric.Definition {
	all := map[string]*metric.Definition{}
	for _, d := range exporter.Definitions() {
		all[d.Name] = d
		if d.Type == "histogram" {
			all[d.Name+"_bucket"] = d
		}
	}
	return all
}()

// definition returns a metric of the exporter by its name without prefix. It panics if there is
// none, so that a metric that is renamed fails here.
func definition(name string) *metric.Definition {
	d := definitions[metric.Namespace+name]
	if d == nil {
		panic(fmt.Sprintf("%s: no such metric", name))
	}
	return d
}

// help returns the description of a metric.
func help(name string) string { return definition(name).Help }

func selector(metric string, matchers ...string) string {
	return metric + "{" + strings.Join(append([]string{`job=~"$job"`}, matchers...), ", ") + "}"
}

// own selects a metric of the exporter.
func own(name string, matchers ...string) string {
	definition(name)
	return selector(metric.Namespace+name, matchers...)
}

// maxBy makes one series for each value of the labels, of any exporter.
func maxBy(labels, expr string) string {
	if labels == "" {
		return "max(" + expr + ")"
	}
	return "max by (" + labels + ") (" + expr + ")"
}

// gauge is maxBy of one gauge of the exporter.
func gauge(labels, name string, matchers ...string) string {
	return maxBy(labels, own(name, matchers...))
}

// prices selects a price in the chosen currency; the name ends before it.
func prices(name string, matchers ...string) string {
	definition(name + "eur_per_month")
	return selector(strings.Replace(definition(name+"usd_per_month").Name, "usd", "${currency}", 1), matchers...)
}

// known keeps the labels of a recorded series, or of what happened in the past, that are there now.
func known(labels, expr, name string, matchers ...string) string {
	return expr + " and on (" + labels + ") " + own(name, matchers...)
}

// latest is the newest of timestamps that the exporter forgets at a restart, if it is still listed.
func latest(labels, name, listed string, matchers ...string) string {
	return known(labels, maxBy(labels, "max_over_time("+own(name, matchers...)+"[7d])"), listed)
}

// perExporter keeps the exporters of a metric that other programs export, too.
func perExporter(expr string) string {
	return maxBy("instance", expr+" and on (job, instance) "+own("exporter_build_info"))
}

// newsOf is an annotation of changes that alerts tell.
func newsOf(matcher string) annotation {
	expr := `ALERTS{alertname=~"ServerRental.*", alertstate="firing", kind="news", ` + matcher + `}`
	return newAnnotation("News", plain, expr, "{{alertname}}", "{{watch}} {{plan}} {{location}} {{account}} {{server}}", "alertname")
}

// outages marks the times in which a component was neither operational nor in maintenance.
func outages() annotation {
	return newAnnotation("Outages", bad, reported(failed), "{{component}} in {{location}}", "The component was not operational: {{state}}.", "location,component")
}

// reported is whether each component had such a state in an interval. Only those that had have series.
func reported(state string) string {
	return maxBy("location, component, state", "max_over_time("+own("component_state", location, state)+"[$__interval])")
}
