//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"server_rental_exporter/collector"
	"server_rental_exporter/exporter"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/simulator/simtest"
)

// absentWhileHealthy are the metrics that a healthy provider does not result in.
func absentWhileHealthy() []string {
	return []string{"server_rental_exporter_api_backoff_until_timestamp_seconds"} // absent without a back-off
}

// exportedTypes returns the type of every exported metric.
func exportedTypes() map[string]string {
	all := map[string]string{}
	for _, d := range exporter.Definitions() {
		if !slices.Contains(absentWhileHealthy(), d.Name) {
			all[d.Name] = string(d.Type)
		}
	}
	return all
}

// activeServers is the number of active servers of two example accounts.
const activeServers = 8

// TestPrometheusScrapes: Prometheus stores every metric with its type, discovers the
// servers, and logs no problem.
func TestPrometheusScrapes(t *testing.T) {
	t.Parallel()
	exporter := startScraped(t)
	for name, c := range map[string]struct {
		flags     []string
		histogram string // suffix of a histogram's name in queries
	}{
		"classic histograms": {nil, "_bucket"},
		"native histograms":  {[]string{"--enable-feature=native-histograms"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPrometheus(t, scrapeConfig(exporter), c.flags...)
			p.Eventually("several scrapes of both jobs", func() bool {
				return len(p.query(`count_over_time(up{job="rental"}[1m]) >= 5`)) == 1 &&
					len(p.query(`count_over_time(up{job="servers"}[1m]) >= 2`)) == activeServers
			})
			if got := p.query(`min_over_time(up[1m]) < 1`); len(got) > 0 {
				t.Errorf("a scrape failed: %v", got)
			}
			p.checkSeries(c.histogram)
			p.checkTypes()
			p.checkDiscovery()
			p.checkProblems()
		})
	}
}

// TestPromtoolAcceptsPage: promtool reports nothing about the metrics.
func TestPromtoolAcceptsPage(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(program(t, "promtool"), "check", "metrics")
	cmd.Stdin = strings.NewReader(startScraped(t).Get("/metrics").Body)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// startScraped runs the exporter with two accounts against the simulator's binary.
func startScraped(t *testing.T) *simtest.Process {
	t.Helper()
	dir, address := t.TempDir(), freeAddress(t)
	binary := filepath.Join(dir, "simulator")
	if out, err := exec.Command("go", "build", "-o", binary, "server_rental_exporter/cmd/simulator").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	config := fmt.Sprintf("api: {base_url: http://%s/api/v1}\ncollectors: {account: {interval: 5s}, servers: {interval: 5s}}\nwatches: [{name: any, min_cores: 1}]\naccounts:\n", address)
	args := []string{"--listen-address=" + address}
	for name, token := range simtest.Tokens() {
		args = append(args, "--account="+name+":"+token)
		simtest.WriteFile(t, filepath.Join(dir, name+".token"), token)
		config += fmt.Sprintf("  - {name: %s, token_file: %s.token}\n", name, name)
	}
	api := simtest.StartCommand(t, exec.Command(binary, args...))
	api.Eventually("serving", func() bool {
		r, err := simtest.Do(http.DefaultClient, http.MethodGet, "http://"+address+"/api/v1/status")
		return err == nil && r.Status == http.StatusOK
	})
	p := simtest.StartProcess(t, "--config.file="+simtest.WriteFile(t, filepath.Join(dir, "rental.yml"), config), "--web.enable-service-discovery")
	p.WaitReady()
	return p
}

// scrapeConfig scrapes the exporter, and the servers that its service discovery
// returns. Those do not exist, so the exporter is scraped in their place.
func scrapeConfig(exporter *simtest.Process) string {
	return fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - job_name: rental
    static_configs: [{targets: [%[1]q]}]
  - job_name: servers
    http_sd_configs: [{url: 'http://%[1]s/sd/servers?port=9100', refresh_interval: 1s}]
    relabel_configs:
      - {source_labels: [__address__], target_label: instance}
      - {source_labels: [__meta_server_rental_account], target_label: account}
      - {source_labels: [__meta_server_rental_server], target_label: server}
      - {target_label: __address__, replacement: %[1]q}
    metric_relabel_configs:
      - {source_labels: [__name__], regex: go_goroutines, action: keep}
`, strings.TrimPrefix(exporter.URL, "http://"))
}

// checkSeries queries every metric.
func (p *prometheus) checkSeries(histogram string) {
	p.t.Helper()
	for name, kind := range exportedTypes() {
		if kind == string(metric.HistogramType) {
			name += histogram
		}
		if len(p.query(fmt.Sprintf(`count(%s{job="rental"})`, name))) == 0 {
			p.t.Errorf("%s: no data", name)
		}
	}
	for _, name := range absentWhileHealthy() {
		simtest.AssertEqual(p.t, name, len(p.query(name)), 0)
	}
	const slowest = `histogram_quantile(0.99, sum by (%s) (server_rental_exporter_api_request_duration_seconds%s{job="rental"})) > 0`
	by := map[string]string{"": "endpoint", "_bucket": "endpoint, le"}[histogram]
	simtest.AssertEqual(p.t, "endpoints with quantiles of durations", len(p.query(fmt.Sprintf(slowest, by, histogram))), len(collector.Resources()))
	simtest.AssertEqual(p.t, "accounts", len(p.query(`count by (account) (server_rental_account_balance_usd{account=~"main|lab"})`)), 2)
}

// checkTypes compares the types that Prometheus stored.
func (p *prometheus) checkTypes() {
	p.t.Helper()
	var metadata map[string][]struct{ Type, Help string }
	p.api("metadata", nil, &metadata)
	maps.DeleteFunc(metadata, func(name string, _ []struct{ Type, Help string }) bool {
		return !strings.HasPrefix(name, "server_rental_")
	})
	got := map[string]string{}
	for name, known := range metadata {
		if len(known) != 1 || known[0].Help == "" {
			p.t.Errorf("%s: got %v, want one type and a help", name, known)
		}
		if known[0].Type == string(metric.CounterType) { // OpenMetrics names the family without the suffix
			name = strings.TrimSuffix(name, "_total") + "_total"
		}
		got[name] = known[0].Type
	}
	simtest.AssertEqual(p.t, "types", got, exportedTypes())
}

// checkDiscovery compares Prometheus' targets with the active servers.
func (p *prometheus) checkDiscovery() {
	p.t.Helper()
	names := func(expr string) []string {
		var all []string
		for _, s := range p.query(expr) {
			all = append(all, s.labels["account"]+"/"+s.labels["server"])
		}
		slices.Sort(all)
		return all
	}
	want := names(`server_rental_server_status{status="active"}`)
	simtest.AssertEqual(p.t, "active servers", len(want), activeServers)
	simtest.AssertEqual(p.t, "targets", names(`up{job="servers", instance=~"198[.].+:9100"} == 1`), want)
}

// checkProblems checks Prometheus' log, targets and counters of failures.
func (p *prometheus) checkProblems() {
	p.t.Helper()
	for line := range strings.Lines(p.Log.String()) {
		for _, problem := range []string{"level=warn", "level=error", "Scrape failed", "append failed", "err="} {
			if strings.Contains(line, problem) {
				p.t.Errorf("Prometheus logs: %s", line)
				break
			}
		}
	}
	var targets struct {
		ActiveTargets []struct{ ScrapeURL, Health, LastError string }
	}
	p.api("targets", nil, &targets)
	for _, target := range targets.ActiveTargets {
		if target.Health != "up" || target.LastError != "" {
			p.t.Errorf("target %s: %s: %s", target.ScrapeURL, target.Health, target.LastError)
		}
	}
	for line := range strings.Lines(p.Get("/metrics").Body) {
		failures := strings.HasPrefix(line, "prometheus_target_scrapes_") || strings.HasPrefix(line, "prometheus_sd_http_failures_total")
		if failures && !strings.HasSuffix(line, " 0\n") {
			p.t.Errorf("Prometheus counts: %s", line)
		}
	}
}

// TestComposeConfiguration checks the demo's configuration, including the rules, with
// the tools of Prometheus and Alertmanager.
func TestComposeConfiguration(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(absolute(t, "deploy/compose/prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	// In the container the rules are where compose.yaml mounts them.
	config := strings.ReplaceAll(string(text), "/etc/prometheus/alerts", absolute(t, "alerts"))
	if config == string(text) {
		t.Fatal("the configuration names no rules")
	}
	file := simtest.WriteFile(t, filepath.Join(t.TempDir(), "prometheus.yml"), config)
	for _, check := range [][]string{
		{program(t, "promtool"), "check", "config", file},
		{program(t, "amtool"), "check-config", absolute(t, "deploy/compose/alertmanager.yml")},
	} {
		if out, err := exec.Command(check[0], check[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", check[0], err, out)
		}
	}
}
