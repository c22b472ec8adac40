package main

import (
	"strings"

	"github.com/server-rental-exporter/server_rental_exporter/exporter"
	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

// Matchers of the variables. They match only series with the label.
const (
	account  = `account=~"$account"`
	location = `location=~"$location"`
	plan     = `plan=~"$plan"`
	thisPlan = `plan="$plan"` // of the dashboard of one plan, whose variable is not escaped for a regular expression

	// accountOrPublic also matches public collectors, which have no account and belong to every choice.
	accountOrPublic = `account=~"$account|"`

	// States of components as the provider reports them.
	operational   = `state=~"(?i)operational"`
	inMaintenance = `state=~"(?i).*maintenance.*"`
	failed        = `state!~"(?i)operational|.*maintenance.*"`
)

// definition returns a metric of the exporter by its name without prefix. It panics if there is none,
// so that a metric that is renamed fails here.
func definition(name string) *metric.Definition {
	for _, d := range exporter.Definitions() {
		if d.Name == metric.Namespace+name || d.Type == "histogram" && d.Name+"_bucket" == metric.Namespace+name {
			return d
		}
	}
	panic(name + ": no such metric")
}

// help returns the description of a metric.
func help(name string) string { return definition(name).Help }

// own selects a metric of the exporter.
func own(name string, matchers ...string) string {
	definition(name)
	if len(matchers) > 0 {
		name += "{" + strings.Join(matchers, ", ") + "}"
	}
	return metric.Namespace + name
}

// prices selects a price in the chosen currency; the name ends before the currency.
func prices(name string, matchers ...string) string {
	return strings.Replace(own(name+"usd_per_month", matchers...), "usd", "${currency}", 1)
}

// by makes one series of those of several exporters for each value of the labels.
func by(labels, expr string) string {
	if labels == "" {
		return "max(" + expr + ")"
	}
	return "max by (" + labels + ") (" + expr + ")"
}

// gauge is one gauge of the exporter, by labels.
func gauge(labels, name string, matchers ...string) string { return by(labels, own(name, matchers...)) }

// over is a function of a metric over a range.
func over(function, name, window string, matchers ...string) string {
	return function + "_over_time(" + own(name, matchers...) + "[" + window + "])"
}

// known keeps what is there now of a recorded series, or of the past.
func known(labels, expr, name string, matchers ...string) string {
	return expr + " and on (" + labels + ") " + own(name, matchers...)
}

// latest is the newest of timestamps that the exporter forgets at a restart, of what is still listed.
func latest(labels, name, listed string, matchers ...string) string {
	return known(labels, by(labels, over("max", name, "7d", matchers...)), listed)
}

// reported is whether each component had such a state in an interval. Only those that had have series.
func reported(state string) string {
	return by("location, component, state", over("max", "component_state", "$__interval", location, state))
}

// perExporter keeps the exporters of a metric that other programs export, too.
func perExporter(expr string) string {
	return by("instance", expr+" and on (job, instance) "+own("exporter_build_info"))
}
