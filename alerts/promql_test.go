package alerts_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// This file reads as much of PromQL as is needed to know which metrics and labels
// an expression uses. Whether it is an expression at all is promtool's business.

// names is a set of labels.
type names map[string]bool

func setOf(list ...string) names {
	s := names{}
	for _, n := range list {
		s[n] = true
	}
	return s
}

// catalogue maps every metric that rules may use to its labels.
type catalogue map[string]names

// exported is what the exporter itself shows. The last three are those of package
// main, which cannot be imported.
func exported() catalogue {
	c := catalogue{
		"server_rental_exporter_build_info":                                   setOf("version", "revision", "branch", "goversion", "goos", "goarch", "tags"),
		"server_rental_exporter_config_last_reload_successful":                setOf("job", "instance"), // Prometheus adds these
		"server_rental_exporter_config_last_reload_success_timestamp_seconds": setOf("job", "instance"),
	}
	var all []*metric.Definition
	for _, r := range collector.Resources() {
		all = append(all, r.Metrics...)
	}
	all = append(all, collector.Definitions()...)
	all = append(all, rentalapi.Definitions()...)
	for _, d := range all {
		c[d.Name] = setOf(d.Labels...)
		if d.Type == metric.HistogramType {
			c[d.Name+"_count"], c[d.Name+"_sum"] = c[d.Name], c[d.Name]
			c[d.Name+"_bucket"] = setOf(append(slices.Clone(d.Labels), "le")...)
		}
	}
	return c
}

// usage is what an expression uses, and which labels its result may have.
type usage struct {
	metrics names // not ALERTS
	result  names
}

var lexemes = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9][0-9a-z.]*|=~|!~|!=|==|<=|>=|[^\s]`)

var word = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)

// check reads an expression and returns what it uses, or what is wrong with it.
func (c catalogue) check(expr string) (usage, error) {
	tokens := lexemes.FindAllString(expr, -1)
	u := usage{metrics: names{}, result: names{}}
	for _, tok := range tokens {
		if tok == "without" || tok == "ignoring" || tok == "group_right" {
			return u, fmt.Errorf("%s: name the labels that are meant with by, on and group_left", tok)
		}
	}
	have, err := c.selectors(tokens, u.metrics)
	if err != nil {
		return u, err
	}
	for i, tok := range tokens {
		switch tok {
		case "by":
			list, rest := group(tokens[i+1:])
			if i+1 >= len(tokens) || len(rest) == 0 || rest[0] != "(" {
				return u, fmt.Errorf("by: write the labels before what is aggregated")
			}
			inner, _ := group(rest)
			given, err := c.selectors(inner, names{})
			if err != nil {
				return u, err
			}
			for _, l := range words(list) {
				if !given[l] {
					return u, fmt.Errorf("by (%s): nothing that is aggregated has that label", l)
				}
				u.result[l] = true
			}
		case "on", "group_left":
			if i+1 >= len(tokens) || tokens[i+1] != "(" {
				continue // group_left alone
			}
			list, _ := group(tokens[i+1:])
			for _, l := range words(list) {
				if !have[l] {
					return u, fmt.Errorf("%s (%s): nothing in the expression has that label", tok, l)
				}
				if tok == "group_left" {
					u.result[l] = true
				}
			}
		}
	}
	for m := range u.metrics {
		if strings.Contains(m, ":") {
			maps.Copy(u.result, c[m])
		}
	}
	return u, nil
}

// selectors collects the metrics of an expression, and returns all labels of them.
func (c catalogue) selectors(tokens []string, metrics names) (names, error) {
	have := names{}
	for i := 0; i < len(tokens); i++ {
		tok := tokens[i]
		next := ""
		if i+1 < len(tokens) {
			next = tokens[i+1]
		}
		switch {
		case tok == "by" || tok == "on" || tok == "group_left" && next == "(":
			list, _ := group(tokens[i+1:])
			i += len(list) + 2
			continue
		case !word.MatchString(tok) || next == "(" || operators[tok] || aggregation(tok, next):
			continue
		}
		labels, known := c[tok]
		if tok == "ALERTS" {
			labels, known = setOf("alertname", "alertstate", "severity"), true
		} else {
			metrics[tok] = true
		}
		if !known {
			return nil, fmt.Errorf("%s: no such metric", tok)
		}
		maps.Copy(have, labels)
		if next != "{" {
			continue
		}
		for i += 2; i < len(tokens) && tokens[i] != "}"; i++ {
			if word.MatchString(tokens[i]) && !labels[tokens[i]] {
				return nil, fmt.Errorf("%s{%s}: no such label", tok, tokens[i])
			}
		}
	}
	return have, nil
}

var operators = setOf("and", "or", "unless", "offset", "bool", "group_left")

// aggregation tells whether a word is an operator such as the max of max by (...).
func aggregation(tok, next string) bool { return next == "by" && !strings.Contains(tok, "_") }

// group splits tokens that begin with a parenthesis into what it holds and what follows.
func group(tokens []string) (inner, rest []string) {
	depth := 0
	for i, tok := range tokens {
		switch tok {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth == 0 {
			return tokens[min(1, i):i], tokens[i+1:]
		}
	}
	return nil, nil
}

func words(tokens []string) []string {
	return slices.DeleteFunc(slices.Clone(tokens), func(s string) bool { return !word.MatchString(s) })
}

func TestReaderOfExpressions(t *testing.T) {
	c := exported()
	c["plan:server_rental_plan_in_stock:max"] = setOf("plan")
	for _, expr := range []string{
		`max by (plan) (increase(server_rental_plan_restocks_total[15m])) > 0`,
		`plan:server_rental_plan_in_stock:max == 1 and on (plan) last_over_time(plan:server_rental_plan_in_stock:max[6h] offset 15m) == 0`,
		`sum(increase(server_rental_exporter_api_errors_total{reason="rate_limited", endpoint!~"/os|by (x)"}[15m])) > 0`,
		`absent_over_time(server_rental_exporter_build_info[3m])`,
		`plan:server_rental_plan_in_stock:max < on (plan) group_left count_over_time(plan:server_rental_plan_in_stock:max[6h])`,
		`max by (account) (server_rental_ssh_keys) unless on (account) ALERTS{alertname="A", alertstate="firing"}`,
	} {
		if _, err := c.check(expr); err != nil {
			t.Errorf("%s\ngot the error %q, want none", expr, err)
		}
	}
	for expr, want := range map[string]string{
		`max by (plan) (server_rental_plan_instock)`: "server_rental_plan_instock: no such metric",
		`server_rental:plan:avg1h == 1`:              "server_rental:plan:avg1h: no such metric",
		`up == 0`:                                    "up: no such metric",
		`max by (plan) (server_rental_plan_in_stock{location="fra"})`:                                      "server_rental_plan_in_stock{location}: no such label",
		`max by (plan, location) (server_rental_plan_in_stock)`:                                            "by (location): nothing that is aggregated has that label",
		`max by (plan) (server_rental_ssh_keys) or server_rental_plan_in_stock`:                            "by (plan): nothing that is aggregated has that label",
		`server_rental_plan_in_stock and on (account) server_rental_plan_price_usd_per_month`:              "on (account): nothing in the expression has that label",
		`server_rental_plan_in_stock * on (plan) group_left (city) server_rental_plan_price_usd_per_month`: "group_left (city): nothing in the expression has that label",
		`sum without (instance) (server_rental_plan_in_stock)`:                                             "without: name the labels that are meant with by, on and group_left",
		`max (server_rental_plan_in_stock) by (plan)`:                                                      "by: write the labels before what is aggregated",
	} {
		_, err := c.check(expr)
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%s\ngot  %q\nwant %q", expr, got, want)
		}
	}
	u, err := c.check(`max by (location, component) (server_rental_component_operational) * on (location) group_left (city) max by (location, city) (server_rental_location_info)`)
	if got := slices.Sorted(maps.Keys(u.result)); err != nil || !slices.Equal(got, []string{"city", "component", "location"}) {
		t.Errorf("labels of the result: got %q, %v", got, err)
	}
}
