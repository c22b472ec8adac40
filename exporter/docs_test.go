package exporter

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator/simtest"
)

// TestMetricsDocument compares docs/metrics.md with the definitions in the code.
func TestMetricsDocument(t *testing.T) {
	part := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	simtest.Golden(t, "../docs/metrics.md", metricsDocument(part("../docs/example-queries.md"))+part("../docs/omitted-fields.md"))
}

func metricsDocument(queries string) string {
	var b strings.Builder
	b.WriteString("# Metrics\n\nThis file is generated from the code (`make update`).\n\n" +
		"A label whose source is null is empty; a metric whose source is null is absent: unknown is never 0. " +
		"Data series disappear when the last good answer is older than the collector's `max_age`. " +
		"Each series count is for one exporter.\n\n" + strings.TrimSpace(queries) + "\n")
	rest := Definitions()
	// section writes a table and removes its metrics from the rest.
	section := func(title, text string, ds []*metric.Definition) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", title, text)
		writeTable(&b, ds)
		rest = slices.DeleteFunc(rest, func(d *metric.Definition) bool { return slices.Contains(ds, d) })
	}
	for _, r := range collector.Resources() {
		scope := "public"
		if r.Account {
			scope = "for each account"
		}
		section(r.Name, fmt.Sprintf("%s. From `GET %s`, %s, every %s and exported for at most %s unless configured otherwise; %s.",
			strings.ToUpper(r.Help[:1])+r.Help[1:], r.Endpoint, scope, model.Duration(r.Interval), model.Duration(r.MaxAge), requestsOf(r)), r.Metrics)
	}
	// filter returns the rest whose names begin with the prefix, or do not.
	filter := func(prefix string, begin bool) []*metric.Definition {
		return slices.DeleteFunc(slices.Clone(rest), func(d *metric.Definition) bool {
			return strings.HasPrefix(d.Name, metric.Namespace+prefix) != begin
		})
	}
	section("Watches", "Computed from plans and locations as soon as either was fetched, for each watch of the configuration; see [watches](watches.md). "+
		"Absent while the plans are unknown or, for a watch of regions or countries, the locations.", filter("watch_", true))
	section("Derived metrics", "Computed from the data of several collectors; absent while one of them has no data.", filter("exporter_", false))
	section("The exporter itself", "In addition, there are the usual `go_*`, `process_*` and `promhttp_*` metrics.", slices.Clone(rest))
	return b.String() + "\n"
}

func requestsOf(r collector.Resource) string {
	if r.MaxRequests > r.Requests {
		return fmt.Sprintf("a refresh takes %d request, or %d if the history has more than %d entries", r.Requests, r.MaxRequests, rentalapi.MaxPageItems)
	}
	return fmt.Sprintf("a refresh takes %d request", r.Requests)
}

func writeTable(b *strings.Builder, ds []*metric.Definition) {
	b.WriteString("| metric | type | labels | unit | series | source | meaning |\n|---|---|---|---|---|---|---|\n")
	for _, d := range ds {
		labels := ""
		if len(d.Labels) > 0 {
			labels = "`" + strings.Join(d.Labels, "`, `") + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", d.Name, d.Type, labels, d.Unit(), d.Series(), d.Source, d.Help)
	}
}

func TestDefinitions(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Definitions() {
		switch {
		case seen[d.Name]:
			t.Errorf("%s: defined twice", d.Name)
		case !strings.HasSuffix(d.Help, "."):
			t.Errorf("%s: help is not a sentence: %q", d.Name, d.Help)
		case d.Source == "":
			t.Errorf("%s: no source", d.Name)
		case (d.Type == metric.CounterType) != strings.HasSuffix(d.Name, "_total"):
			t.Errorf("%s: type %s", d.Name, d.Type)
		}
		seen[d.Name] = true
	}
}
