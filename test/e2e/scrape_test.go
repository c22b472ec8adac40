//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

const apiDuration = "server_rental_exporter_api_request_duration_seconds"

// protocol is a format in which Prometheus asks for metrics.
type protocol struct {
	name    string // as in scrape_protocols
	created bool   // whether the format has created timestamps
	native  bool   // whether the format has native histograms
}

// protocols are all that Prometheus 3 has. Version 1.0.0 of the text format only adds
// names that need quotes, which the exporter does not have: it responds with 0.0.4.
var protocols = []protocol{
	{"PrometheusProto", true, true},
	{"OpenMetricsText1.0.0", true, false},
	{"OpenMetricsText0.0.1", true, false},
	{"PrometheusText1.0.0", false, false},
	{"PrometheusText0.0.4", false, false},
}

// scrapeJob is one way of scraping.
type scrapeJob struct {
	protocol
	histograms      string // classic, native or both
	settings        string // in the job's configuration
	classic, native bool   // which histograms are stored
}

func (j scrapeJob) String() string { return j.name + ", " + j.histograms }

// scrapeJobs returns what a single Prometheus 3 can be configured for.
func scrapeJobs() []scrapeJob {
	var all []scrapeJob
	for _, p := range protocols {
		settings := fmt.Sprintf("scrape_protocols: [%s]", p.name)
		all = append(all,
			scrapeJob{p, "classic", settings + ", scrape_native_histograms: false", true, false},
			scrapeJob{p, "native", settings + ", scrape_native_histograms: true", !p.native, p.native},
			scrapeJob{p, "both", settings + ", scrape_native_histograms: true, always_scrape_classic_histograms: true", true, p.native},
		)
	}
	return all
}

// TestEveryProtocol: in every format, with classic histograms, native ones and both,
// Prometheus stores the same series and logs no problem, and promtool reports nothing.
// Prometheus 2.42 asks for OpenMetrics, or for protobuf with native histograms.
func TestEveryProtocol(t *testing.T) {
	t.Parallel()
	exporter := startScraped(t)
	run := func(name string, jobs []scrapeJob, check func(*testing.T, *simtest.Process, []scrapeJob, ...string), flags ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, exporter, jobs, flags...)
		})
	}
	t.Run("promtool", func(t *testing.T) {
		cmd := exec.Command(repo.Program(t, "promtool"), "check", "metrics")
		cmd.Stdin = strings.NewReader(exporter.Get("/metrics").Body)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("promtool check metrics: %v\n%s", err, out)
		}
	})
	if prometheusMajor(t) == "2" {
		run("classic", []scrapeJob{{protocols[1], "classic", "", true, false}}, checkScrapes)
		run("native", []scrapeJob{{protocols[0], "native", "", false, true}}, checkScrapes, "--enable-feature=native-histograms")
		return
	}
	run("all", scrapeJobs(), checkScrapes)
	created := slices.DeleteFunc(scrapeJobs(), func(j scrapeJob) bool { return !j.created || j.histograms != "classic" })
	run("created timestamps", created, checkCreated, "--enable-feature=created-timestamp-zero-ingestion")
}

func checkScrapes(t *testing.T, exporter *simtest.Process, jobs []scrapeJob, flags ...string) {
	p := startScraper(t, exporter, jobs, flags...)
	simtest.Eventually(t, "several scrapes of every job", func() bool {
		return len(p.query(`count_over_time(up[5m]) >= 3`)) == len(jobs)
	})
	if got := p.query(`min_over_time(up[5m]) < 1`); len(got) > 0 {
		t.Errorf("a scrape failed: %v", got)
	}
	page := exporter.Scrape()
	for _, job := range jobs {
		p.checkSeries(job.String(), page)
		p.checkHistograms(job)
	}
	p.checkProblems()
}

// checkCreated checks that Prometheus 3 stores a 0 at the time at which each counter was
// created, so that increase() counts from there.
func checkCreated(t *testing.T, exporter *simtest.Process, jobs []scrapeJob, flags ...string) {
	p := startScraper(t, exporter, jobs, flags...)
	simtest.Eventually(t, "a scrape of every job", func() bool { return len(p.query(`up == 1`)) == len(jobs) })
	want := createdTimes(t, exporter)
	for _, job := range jobs {
		got := map[string]float64{}
		for _, name := range withCreatedTimestamp() {
			maps.Copy(got, p.firstZeros(fmt.Sprintf(`%s{job=%q}`, name, job)))
		}
		for series, seconds := range got {
			if math.Abs(want[series]-seconds) < 0.002 { // Prometheus truncates to milliseconds
				got[series] = want[series]
			}
		}
		simtest.AssertEqual(t, job.String()+": created timestamps", got, want)
	}
	p.checkProblems()
}

// withCreatedTimestamp are the counters whose created timestamp is documented.
func withCreatedTimestamp() []string {
	return []string{
		"server_rental_plan_restocks_total", "server_rental_plan_sellouts_total", "server_rental_watch_hits_total",
		"server_rental_exporter_api_requests_total", "server_rental_exporter_api_errors_total",
	}
}

// createdTimes returns the created timestamps that the exporter serves, in seconds, by
// the counter's series.
func createdTimes(t *testing.T, exporter *simtest.Process) map[string]float64 {
	t.Helper()
	var lines strings.Builder
	for line := range strings.Lines(exporter.Get("/metrics", "Accept", "application/openmetrics-text;version=1.0.0").Body) {
		if strings.Contains(line, "_created{") {
			lines.WriteString(line)
		}
	}
	all := map[string]float64{}
	for series, seconds := range simtest.ParseExposition(t, lines.String(), "text/plain; version=0.0.4").Values {
		if name, labels, _ := strings.Cut(series, "_created{"); slices.Contains(withCreatedTimestamp(), name+"_total") {
			all[name+"_total{"+labels] = seconds
		}
	}
	if len(all) == 0 {
		t.Fatal("no created timestamps")
	}
	return all
}

// firstZeros returns the times of the first samples, which must be 0, by series.
func (p *prometheus) firstZeros(selector string) map[string]float64 {
	p.t.Helper()
	var data struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any
		}
	}
	p.api("query", url.Values{"query": {selector + "[1h]"}}, &data)
	all := map[string]float64{}
	for _, r := range data.Result {
		first := r.Values[0]
		if first[1] != "0" {
			p.t.Errorf("%v: begins with %v, want 0", r.Metric, first[1])
		}
		all[seriesKey(r.Metric)] = first[0].(float64)
	}
	return all
}

// startScraper runs a Prometheus that scrapes the exporter in several ways.
func startScraper(t *testing.T, exporter *simtest.Process, jobs []scrapeJob, flags ...string) *prometheus {
	t.Helper()
	config := "global: {scrape_interval: 5s}\nscrape_configs:\n"
	for _, j := range jobs {
		config += fmt.Sprintf("  - {job_name: %q, static_configs: [{targets: [%q]}], %s}\n", j, strings.TrimPrefix(exporter.URL, "http://"), j.settings)
	}
	return startPrometheus(t, config, flags...)
}

// seriesKey writes the labels of a result as [simtest.Series] does, without job and
// instance.
func seriesKey(labels map[string]string) string {
	var pairs []string
	for name, value := range labels {
		if name != "__name__" && name != "job" && name != "instance" {
			pairs = append(pairs, name, value)
		}
	}
	return simtest.Series(labels["__name__"], pairs...)
}

// changes matches the metrics whose values the next fetch can change, although the
// provider's data stay the same.
var changes = regexp.MustCompile(`^server_rental_(exporter_|catalog_generated_|status_updated_|plan_last_in_stock_)`)

// checkSeries compares the stored series with those that the exporter serves as text,
// and the values of those that do not change.
func (p *prometheus) checkSeries(job string, page simtest.Exposition) {
	p.t.Helper()
	// OpenMetrics has created timestamps as samples, which Prometheus stores as series.
	const selector = `{job=%q, __name__=~"server_rental_.+", __name__!~"%s.*|server_rental_.+_created"}`
	got, want := map[string]float64{}, map[string]float64{}
	for _, s := range p.query(fmt.Sprintf(selector, job, apiDuration)) {
		got[withoutEmpty(seriesKey(s.labels))] = s.value
	}
	for series, value := range page.WithPrefix("server_rental_") {
		if !strings.HasPrefix(series, apiDuration) {
			want[withoutEmpty(series)] = value
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

func withoutEmpty(series string) string {
	return strings.ReplaceAll(emptyLabel.ReplaceAllString(series, ""), ",}", "}")
}

// checkHistograms checks that a quantile can be computed for each endpoint, of the
// histograms that the job stores and of no other.
func (p *prometheus) checkHistograms(job scrapeJob) {
	p.t.Helper()
	for _, h := range []struct {
		suffix, by string
		stored     bool
	}{{"_bucket", "endpoint, le", job.classic}, {"", "endpoint", job.native}} {
		want := 0
		if h.stored {
			want = len(collector.Resources())
		}
		query := fmt.Sprintf(`histogram_quantile(0.99, sum by (%s) (%s%s{job=%q})) > 0`, h.by, apiDuration, h.suffix, job)
		simtest.AssertEqual(p.t, fmt.Sprintf("%s: endpoints with quantiles of %q", job, apiDuration+h.suffix), len(p.query(query)), want)
	}
}
