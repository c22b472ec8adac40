package exporter

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/runner"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestMetricsDocument compares docs/metrics.md with the definitions in the code.
func TestMetricsDocument(t *testing.T) {
	rest := runner.Definitions()
	// take removes the metrics whose names begin with a prefix from the rest.
	take := func(prefix string) (taken []*metric.Definition) {
		rest = slices.DeleteFunc(rest, func(d *metric.Definition) bool {
			begins := strings.HasPrefix(d.Name, metric.Namespace+prefix)
			if begins {
				taken = append(taken, d)
			}
			return begins
		})
		return taken
	}
	var data struct {
		Resources                  []collector.Resource
		Watches, Exporter, Derived []*metric.Definition
	}
	data.Resources = collector.Resources()
	for _, r := range data.Resources {
		rest = slices.DeleteFunc(rest, func(d *metric.Definition) bool { return slices.Contains(r.Metrics, d) })
	}
	data.Watches, data.Exporter, data.Derived = take("watch_"), take("exporter_"), rest

	document, err := template.ParseFiles("../docs/metrics.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := document.Execute(&b, data); err != nil {
		t.Fatal(err)
	}
	simtest.Golden(t, "../docs/metrics.md", b.String())
}

// TestHelp asserts that the HELP of each price, cost and due amount says that it excludes VAT.
func TestHelp(t *testing.T) {
	amounts := regexp.MustCompile("_(price|cost|due|license)_(usd|eur)|_fee$")
	for _, d := range runner.Definitions() {
		if amounts.MatchString(d.Name) && !strings.Contains(d.Help, "excluding VAT") {
			t.Errorf("%s: HELP %q", d.Name, d.Help)
		}
	}
}
