package main

import (
	"strings"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/runner"
)

// Matchers of the variables. They match only series with the label.
const (
	account         = `account=~"$account"`
	location        = `location=~"$location"`
	plan            = `plan=~"$plan"`
	thisPlan        = `plan="$plan"`         // of the dashboard of one plan, whose variable is not escaped for a regular expression
	accountOrPublic = `account=~"$account|"` // also public collectors, which have no account
	watch           = `watch=~"$watch"`
)

// definition returns a metric of the exporter by its name without prefix. It panics if there is none,
// so that a metric that is renamed fails here.
func definition(name string) *metric.Definition {
	for _, d := range runner.Definitions() {
		if d.Name == metric.Namespace+name {
			return d
		}
	}
	panic(name + ": no such metric")
}

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

// once is a gauge with further labels, of which several exporters may tell different values: one of them is shown.
func once(labels, further, name string, matchers ...string) string {
	return by(labels+", "+further, oneOf(name, matchers...)+" by ("+labels+")")
}

// oneOf is one series of a gauge, of which several exporters may tell different labels.
func oneOf(name string, matchers ...string) string { return "topk(1, " + own(name, matchers...) + ")" }

// over is a function of a metric over the interval before each step.
func over(function, name string, matchers ...string) string {
	return function + "_over_time(" + own(name, matchers...) + "[$__interval])"
}

// known keeps what is there now of a recorded series, or of the past.
func known(labels, expr, name string, matchers ...string) string {
	return expr + " and on (" + labels + ") " + own(name, matchers...)
}

// works is 1 for each exporter at which the last fetch of a collector succeeded.
func works(collector string) string {
	return own(success, `collector="`+collector+`"`) + " == 1"
}

// dated adds 2 to what is old, because its collector fails.
func dated(expr, labels, collector string) string {
	return expr + " + on (" + labels + ") group_left () (2 - 2 * " + gauge(labels, success, `collector="`+collector+`"`) + ")"
}
