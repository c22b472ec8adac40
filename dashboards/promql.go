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
	notOperational  = `state!~"(?i)operational"`
)

// definition returns a metric of the exporter by its name without prefix. It panics if there is none,
// so that a metric that is renamed fails here.
func definition(name string) *metric.Definition {
	for _, d := range runner.Definitions() {
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

// once is a gauge with further labels, of which several exporters may tell different values: one of them is shown.
func once(labels, further, name string, matchers ...string) string {
	return by(labels+", "+further, oneOf(name, matchers...)+" by ("+labels+")")
}

// oneOf is one series of a gauge, of which several exporters may tell different labels.
func oneOf(name string, matchers ...string) string { return "topk(1, " + own(name, matchers...) + ")" }

// next is a function of a metric over the interval that begins at each step.
func next(function, name string, matchers ...string) string {
	return function + "_over_time(" + own(name, matchers...) + "[$__interval] offset -$__interval)"
}

// known keeps what is there now of a recorded series, or of the past.
func known(labels, expr, name string, matchers ...string) string {
	return expr + " and on (" + labels + ") " + own(name, matchers...)
}

// configurationChanged is when the stock of a saved configuration last changed, as far as a running exporter saw it. A change
// into another state than the present one is older than one that no exporter saw.
func configurationChanged(matchers ...string) string {
	at := func(change, stock string) string {
		return own("configuration_last_"+change+"_timestamp_seconds") + " and " + own("configuration_in_stock") + " == " + stock
	}
	return "(" + by(saved, at("restock", "1")+" or "+at("sellout", "0")) + " == " +
		by(saved, `{__name__=~"`+metric.Namespace+`configuration_last_(restock|sellout)_timestamp_seconds", `+strings.Join(matchers, ", ")+"}") + ")"
}

// works is 1 if the last fetch of a collector succeeded at some exporter, by labels.
func works(labels, collector string) string {
	return gauge(labels, "exporter_collector_success", `collector="`+collector+`"`)
}

// dated adds 2 to what is old, because its collector fails.
func dated(expr, labels, collector string) string {
	return expr + " + on (" + labels + ") group_left () (2 - 2 * " + works(labels, collector) + ")"
}
