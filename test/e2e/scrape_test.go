//go:build e2e

package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

const apiDuration = "server_rental_exporter_api_request_duration_seconds"

// TestEveryProtocol: in every format, and with native histograms, Prometheus stores the same
// series and logs no problem. Version 2 asks for OpenMetrics.
func TestEveryProtocol(t *testing.T) {
	t.Parallel()
	api, tokens := startAPI(t, "main", "lab")
	exporter := startExporter(t, api, tokens, "collectors: {account: {interval: 5s}, servers: {interval: 5s}}\nwatches: [{name: any, min_cores: 1}]\n")
	settings := map[string]string{"native": "scrape_native_histograms: true, always_scrape_classic_histograms: true"} // by name of the job
	for _, protocol := range []string{"PrometheusProto", "OpenMetricsText1.0.0", "OpenMetricsText0.0.1", "PrometheusText1.0.0", "PrometheusText0.0.4"} {
		settings[protocol] = "scrape_protocols: [" + protocol + "]"
	}
	if strings.Contains(repo.Run(t, ".", repo.Program(t, "prometheus"), "--version"), "version 2.") {
		settings = map[string]string{"OpenMetricsText0.0.1": ""}
	}
	config := "global: {scrape_interval: 5s}\nscrape_configs:\n"
	for job, more := range settings {
		config += fmt.Sprintf("  - {job_name: %q, static_configs: [{targets: [%q]}], %s}\n", job, strings.TrimPrefix(exporter.URL, "http://"), more)
	}
	p := startPrometheus(t, t.TempDir(), config)
	simtest.Eventually(t, "several scrapes of every job", func() bool {
		return len(p.query(`count_over_time(up[5m]) >= 3`)) == len(settings)
	})
	if got := p.query(`min_over_time(up[5m]) < 1`); len(got) > 0 {
		t.Errorf("a scrape failed: %v", got)
	}
	page := exporter.Scrape()
	for job := range settings {
		p.checkSeries(job, page)
	}
	p.checkProblems()
}

// seriesKey writes the labels of a result as [simtest.Series] does, without job and
// instance.
func seriesKey(m model.Metric) string {
	var pairs []string
	for name, value := range m {
		if name != model.MetricNameLabel && name != model.JobLabel && name != model.InstanceLabel {
			pairs = append(pairs, string(name), string(value))
		}
	}
	return simtest.Series(string(m[model.MetricNameLabel]), pairs...)
}

// changes matches the metrics whose values the next fetch can change, although the
// provider's data stay the same.
var changes = regexp.MustCompile(`^server_rental_(exporter_|catalog_generated_|status_updated_)`)

// checkSeries compares the stored series with those that the exporter serves as text. It compares
// the values, too, of series that do not change.
func (p *prometheus) checkSeries(job string, page simtest.Exposition) {
	p.t.Helper()
	const selector = `{job=%q, __name__=~"server_rental_.+", __name__!~"%s.*"}`
	got, want := map[string]float64{}, map[string]float64{}
	for _, s := range p.query(fmt.Sprintf(selector, job, apiDuration)) {
		got[seriesKey(s.Metric)] = float64(s.Value)
	}
	for series, value := range page.WithPrefix("server_rental_") {
		if !strings.HasPrefix(series, apiDuration) {
			want[strings.ReplaceAll(emptyLabel.ReplaceAllString(series, ""), ",}", "}")] = value
		}
	}
	for series := range want {
		if _, found := got[series]; found && changes.MatchString(series) {
			got[series] = want[series]
		}
	}
	simtest.AssertEqual(p.t, job+": series", got, want)
}

// emptyLabel matches a label without a value, which Prometheus does not store.
var emptyLabel = regexp.MustCompile(`\w+="",?`)
