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

// TestHelp checks that the HELP of each metric ends with a full stop and names the unit that the name
// of the metric says, and that prices exclude VAT.
func TestHelp(t *testing.T) {
	for _, d := range runner.Definitions() {
		value := strings.TrimSuffix(d.Name, "_timestamp_seconds") // a time has no unit that HELP must name
		for name, help := range map[string]string{
			"":            `\.$`,
			"_usd(_|$)":   "US dollars",
			"_eur(_|$)":   "euros",
			"_per_month$": "a month",
			"_(price|cost|due|license)_(usd|eur)|_fee$": "excluding VAT",
			"_seconds$": "in seconds",
			"_bytes$":   "in bytes",
			"_hertz$":   "in hertz",
			"_degrees$": "in degrees",
			"_ratio$":   "as a share",
		} {
			if regexp.MustCompile(name).MatchString(value) && !regexp.MustCompile(help).MatchString(d.Help) {
				t.Errorf("%s: HELP %q does not match %q", d.Name, d.Help, help)
			}
		}
	}
}
