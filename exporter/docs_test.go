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
	var data struct {
		Resources                  []collector.Resource
		Watches, Exporter, Derived []*metric.Definition
	}
	data.Resources = collector.Resources()
	for _, d := range runner.Definitions() {
		switch name := strings.TrimPrefix(d.Name, metric.Namespace); {
		case slices.ContainsFunc(data.Resources, func(r collector.Resource) bool { return slices.Contains(r.Metrics, d) }):
		case strings.HasPrefix(name, "watch_"):
			data.Watches = append(data.Watches, d)
		case strings.HasPrefix(name, "exporter_"):
			data.Exporter = append(data.Exporter, d)
		default:
			data.Derived = append(data.Derived, d)
		}
	}
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
