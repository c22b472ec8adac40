//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/grafana"
	"server_rental_exporter/test/internal/repo"
)

// featureSet are features of Prometheus, and the formats in which it scrapes with them.
type featureSet struct{ names, protocols string }

// featureSets have what there is about types, units and start timestamps, and OpenMetrics 2.0,
// which the exporter does not have: it responds with the next format.
func featureSets() []featureSet {
	return []featureSet{
		{"type-and-unit-labels,created-timestamp-zero-ingestion,openmetrics2", "OpenMetricsText2.0.0, OpenMetricsText1.0.0"},
		{"type-and-unit-labels,st-storage,use-start-timestamps,st-synthesis", "PrometheusProto"},
	}
}

// TestFeatures: with these features, rules alert the same as without, and the
// dashboards' queries return the same series.
func TestFeatures(t *testing.T) {
	t.Parallel()
	if prometheusMajor(t) == "2" {
		t.Skip("Prometheus 2 does not have these features")
	}
	api, tokens := startAPI(t, "main", "lab")
	exporter := strings.TrimPrefix(startExporter(t, api, tokens, restocking).URL, "http://")
	began := time.Now()
	plain := startFeatures(t, exporter, "PrometheusText0.0.4")
	all := []*prometheus{plain}
	for _, set := range featureSets() {
		all = append(all, startFeatures(t, exporter, set.protocols, "--enable-feature="+set.names))
	}
	for _, p := range all {
		p.Eventually("scrapes before the changes", func() bool { return p.value(`count_over_time(up[5m])`) >= 4 })
	}
	api.Change(func(w *simulator.World) { happen(w, tokens["main"]) })
	for _, p := range all {
		for _, expr := range happened(settled) {
			p.Eventually(expr, func() bool { return len(p.query(expr)) == 1 })
		}
	}
	end := time.Now()
	for i, p := range all[1:] {
		t.Run(featureSets()[i].names, func(t *testing.T) {
			eventuallyEqual(t, "alerts", func() []string { return p.labels(`ALERTS`) }, func() []string { return plain.labels(`ALERTS`) })
			compareDashboards(t, &dashboardStack{prometheus: p, began: began, end: end}, &dashboardStack{prometheus: plain, began: began, end: end})
			p.checkProblems()
		})
	}
}

// compareDashboards compares the series of all queries, but those of rules that are evaluated
// once in a minute or less. Those about requests also show the first one if it is known when
// its counter began.
func compareDashboards(t *testing.T, got, want *dashboardStack) {
	t.Helper()
	for _, d := range grafana.Load(t) {
		for _, q := range d.Queries() {
			if !perProcess.MatchString(q.Expr) && !needsMore.MatchString(q.Expr) {
				simtest.AssertEqual(t, q.Key, slices.Sorted(maps.Keys(got.values(q, nil))), slices.Sorted(maps.Keys(want.values(q, nil))))
			}
		}
	}
}

// startFeatures starts a Prometheus with the rules.
func startFeatures(t *testing.T, exporter, protocols string, flags ...string) *prometheus {
	t.Helper()
	return startPrometheus(t, fmt.Sprintf(`
global: {scrape_interval: %[1]s, evaluation_interval: %[1]s}
rule_files: ['%[2]s/*.rules.yml']
scrape_configs:
  - {job_name: server_rental, scrape_protocols: [%[4]s], static_configs: [{targets: [%[3]q]}]}
`, scrapeInterval, repo.Path(t, "alerts"), exporter, protocols), flags...)
}

// labels returns the labels of all series of a query's result.
func (p *prometheus) labels(expr string) (all []string) {
	p.t.Helper()
	for _, s := range p.query(expr) {
		all = append(all, fmt.Sprint(s.labels))
	}
	slices.Sort(all)
	return all
}
