package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/common/model"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// TestMetricsDocument compares docs/metrics.md with the definitions in the code.
// With UPDATE_DOCS=1 it writes the file.
func TestMetricsDocument(t *testing.T) {
	const file = "docs/metrics.md"
	left, err := os.ReadFile("docs/left-out.md")
	if err != nil {
		t.Fatal(err)
	}
	want := metricsDocument() + string(left)
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is behind the code; run make docs", file)
	}
}

func metricsDocument() string {
	var b strings.Builder
	b.WriteString("# Metrics\n\nThis file is generated from the code (`make docs`).\n\n" +
		"A label whose source is null is empty; a metric whose source is null is absent: unknown is never 0. " +
		"Data series disappear when the last good answer is older than the collector's `max_age`. " +
		"A series count is for one exporter.\n")
	for _, r := range collector.Resources() {
		fmt.Fprintf(&b, "\n## %s\n\n%s. From `GET %s`, %s, every %s unless configured otherwise, shown for %s at most; %s.\n\n",
			r.Name, strings.ToUpper(r.Help[:1])+r.Help[1:], r.Endpoint, scopeOf(r), model.Duration(r.Interval), model.Duration(r.MaxAge), costOf(r))
		writeTable(&b, r.Metrics)
	}
	b.WriteString("\n## The exporter itself\n\n")
	var own []*metric.Definition
	own = append(own, buildInfo)
	own = append(own, collector.Definitions()...)
	own = append(own, rentalapi.Definitions()...)
	writeTable(&b, append(own, reloadSuccessful, reloadTime, expositionBytes))
	b.WriteString("\nBesides these there are the usual `go_*`, `process_*` and `promhttp_*` metrics.\n\n")
	return b.String()
}

func scopeOf(r collector.Resource) string {
	if r.Account {
		return "for each account"
	}
	return "public"
}

func costOf(r collector.Resource) string {
	switch {
	case r.MaxRequests > r.Requests:
		return fmt.Sprintf("a refresh costs %d request, or %d where the history has more than %d entries", r.Requests, r.MaxRequests, rentalapi.MaxPage)
	default:
		return fmt.Sprintf("a refresh costs %d request", r.Requests)
	}
}

func writeTable(b *strings.Builder, ds []*metric.Definition) {
	b.WriteString("| metric | type | labels | unit | series | source | since | meaning |\n|---|---|---|---|---|---|---|---|\n")
	for _, d := range ds {
		labels := ""
		if len(d.Labels) > 0 {
			labels = "`" + strings.Join(d.Labels, "`, `") + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s | %s | %s | %s |\n", d.Name, d.Type, labels, d.Unit(), d.Series(), d.Source, d.Since, d.Help)
	}
}

// TestDefinitions holds what every definition has to have.
func TestDefinitions(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range definitions() {
		switch {
		case seen[d.Name]:
			t.Errorf("%s: defined twice", d.Name)
		case !strings.HasSuffix(d.Help, "."):
			t.Errorf("%s: help is no sentence: %q", d.Name, d.Help)
		case d.Source == "":
			t.Errorf("%s: no source", d.Name)
		case (d.Type == metric.CounterType) != strings.HasSuffix(d.Name, "_total"):
			t.Errorf("%s: is a %s", d.Name, d.Type)
		}
		seen[d.Name] = true
	}
}
