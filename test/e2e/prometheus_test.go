//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// rightlyAbsent are the metrics that a healthy provider gives no reason to show.
func rightlyAbsent() map[string]string {
	return map[string]string{
		"server_rental_exporter_api_backoff_until_timestamp_seconds": "absent where nothing is being waited for",
	}
}

// scrapedTypes lists every metric of the exporter with its type.
func scrapedTypes() map[string]string {
	all := map[string]string{ // of package main
		"server_rental_exporter_build_info":                                   "gauge",
		"server_rental_exporter_config_last_reload_successful":                "gauge",
		"server_rental_exporter_config_last_reload_success_timestamp_seconds": "gauge",
		"server_rental_exporter_exposition_bytes":                             "gauge",
	}
	add := func(ds []*metric.Definition) {
		for _, d := range ds {
			all[d.Name] = string(d.Type)
		}
	}
	for _, r := range collector.Resources() {
		add(r.Metrics)
	}
	add(collector.Definitions())
	add(rentalapi.Definitions())
	return all
}

// The exporter, a provider with two accounts and Prometheus, each a process of its
// own: everything arrives, under its type, and Prometheus has nothing to complain of.
func TestPrometheusScrapes(t *testing.T) {
	prometheus := program(t, "prometheus")
	exporter := startScraped(t)
	for name, tc := range map[string]struct {
		flags     []string
		histogram string // what a histogram's name is queried with
	}{
		"classic histograms": {nil, "_bucket"},
		"native histograms":  {[]string{"--enable-feature=native-histograms"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startScraper(t, prometheus, exporter, tc.flags...)
			s.await("both jobs were scraped a few times", time.Minute, func() bool {
				return len(s.query(t, `count_over_time(up{job="rental"}[1m]) >= 5`)) == 1 &&
					len(s.query(t, `count_over_time(up{job="servers"}[1m]) >= 2`)) == 8
			})
			if got := s.query(t, `min_over_time(up[1m]) < 1`); len(got) > 0 {
				t.Errorf("a scrape failed: %v", got)
			}
			s.checkSeries(t, tc.histogram)
			s.checkTypes(t)
			s.checkDiscovery(t)
			s.checkComplaints(t)
		})
	}
}

// promtool has nothing to say on the page. No name of it needs an exception.
func TestPromtoolAcceptsPage(t *testing.T) {
	promtool := program(t, "promtool")
	exporter := startScraped(t)
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = bytes.NewReader(download(t, "http://"+exporter+"/metrics"))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// startScraped starts a provider with two accounts and an exporter that is configured
// by a file, and returns the exporter's address once it is ready.
func startScraped(t *testing.T) string {
	t.Helper()
	dir, provider, exporter := t.TempDir(), freeAddress(t), freeAddress(t)
	simulator := filepath.Join(dir, "simulator")
	if out, err := exec.Command("go", "build", "-o", simulator, "../cmd/simulator").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	start(t, simulator, "--listen-address="+provider, "--account=main:token-of-main", "--account=lab:token-of-lab").
		await("the provider", time.Minute, func() bool { return answersOK("http://" + provider + "/api/v1/status") })

	config := fmt.Sprintf("api: {base_url: http://%s/api/v1}\naccounts:\n", provider)
	for _, name := range []string{"main", "lab"} {
		writeScrapeFile(t, filepath.Join(dir, name+".token"), "token-of-"+name+"\n")
		config += fmt.Sprintf("  - {name: %s, token_file: %s.token}\n", name, name)
	}
	config += "collectors:\n  account: {interval: 5s}\n  servers: {interval: 5s}\n"
	file := writeScrapeFile(t, filepath.Join(dir, "rental.yml"), config)
	start(t, buildExporter(t), "--config.file="+file, "--web.listen-address="+exporter, "--web.enable-service-discovery").
		await("the exporter", time.Minute, func() bool { return answersOK("http://" + exporter + "/-/ready") })
	return exporter
}

func writeScrapeFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func download(t *testing.T, address string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, error %v", address, resp.StatusCode, err)
	}
	return body
}

// scraper is a Prometheus.
type scraper struct {
	*process
	url string
}

// startScraper starts a Prometheus that scrapes the exporter, and the servers that the
// exporter's service discovery names. These do not exist, so the exporter stands in for
// them.
func startScraper(t *testing.T, binary, exporter string, flags ...string) *scraper {
	t.Helper()
	dir, address := t.TempDir(), freeAddress(t)
	config := writeScrapeFile(t, filepath.Join(dir, "prometheus.yml"), fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - job_name: rental
    static_configs: [{targets: [%[1]q]}]
  - job_name: servers
    metrics_path: /-/healthy
    http_sd_configs: [{url: 'http://%[1]s/sd/servers?port=9100', refresh_interval: 1s}]
    relabel_configs:
      - {source_labels: [__address__], target_label: instance}
      - {source_labels: [__meta_server_rental_account], target_label: account}
      - {source_labels: [__meta_server_rental_server], target_label: server}
      - {target_label: __address__, replacement: %[1]q}
      - {target_label: __metrics_path__, replacement: /metrics}
    metric_relabel_configs:
      - {source_labels: [__name__], regex: go_goroutines, action: keep}
`, exporter))
	args := append([]string{
		"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address, "--log.level=debug",
	}, flags...)
	s := &scraper{start(t, binary, args...), "http://" + address}
	s.await("Prometheus", time.Minute, func() bool { return answersOK(s.url + "/-/ready") })
	return s
}

// get asks Prometheus' API and decodes what it calls data.
func (s *scraper) get(t *testing.T, path string, into any) {
	t.Helper()
	answer := struct {
		Status, Error string
		Warnings      []string
		Data          any
	}{Data: into}
	if err := json.Unmarshal(download(t, s.url+path), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Status != "success" || len(answer.Warnings) > 0 {
		t.Errorf("%s: %s %v", path, answer.Error, answer.Warnings)
	}
}

// query returns the labels of what an expression gives.
func (s *scraper) query(t *testing.T, expr string) []map[string]string {
	t.Helper()
	var data struct {
		Result []struct{ Metric map[string]string }
	}
	s.get(t, "/api/v1/query?"+url.Values{"query": {expr}}.Encode(), &data)
	var found []map[string]string
	for _, r := range data.Result {
		found = append(found, r.Metric)
	}
	return found
}

// checkSeries asks for every metric.
func (s *scraper) checkSeries(t *testing.T, histogram string) {
	t.Helper()
	reasons := rightlyAbsent()
	for name, kind := range scrapedTypes() {
		if kind == "histogram" {
			name += histogram
		}
		reason := reasons[name]
		if found := len(s.query(t, fmt.Sprintf(`count(%s{job="rental"})`, name))) > 0; found == (reason != "") {
			t.Errorf("%s: got data %t, want the opposite (reason to be absent: %q)", name, found, reason)
		}
	}
	const slowest = `histogram_quantile(0.99, sum by (%s) (server_rental_exporter_api_request_duration_seconds%s{job="rental"})) > 0`
	by := map[string]string{"": "endpoint", "_bucket": "endpoint, le"}[histogram]
	if got, want := len(s.query(t, fmt.Sprintf(slowest, by, histogram))), len(collector.Resources()); got != want {
		t.Errorf("quantiles of request durations: got %d endpoints, want %d", got, want)
	}
	if got, want := len(s.query(t, `count by (account) (server_rental_account_balance_usd{account=~"main|lab"})`)), 2; got != want {
		t.Errorf("got %d accounts, want %d", got, want)
	}
}

// checkTypes compares the types that Prometheus learned.
func (s *scraper) checkTypes(t *testing.T) {
	t.Helper()
	var metadata map[string][]struct{ Type, Help string }
	s.get(t, "/api/v1/metadata", &metadata)
	got := map[string]string{}
	for name, known := range metadata {
		if !strings.HasPrefix(name, "server_rental_") {
			continue
		}
		if len(known) != 1 || known[0].Help == "" {
			t.Errorf("%s: got %v, want one type and a help", name, known)
		}
		if known[0].Type == "counter" { // OpenMetrics names the family without the suffix
			name = strings.TrimSuffix(name, "_total") + "_total"
		}
		got[name] = known[0].Type
	}
	want := scrapedTypes()
	maps.DeleteFunc(want, func(name, _ string) bool { return rightlyAbsent()[name] != "" })
	if !reflect.DeepEqual(got, want) {
		t.Errorf("types:\ngot  %v\nwant %v", got, want)
	}
}

// checkDiscovery compares the targets that Prometheus made of the servers with the
// servers that the exporter shows as active.
func (s *scraper) checkDiscovery(t *testing.T) {
	t.Helper()
	name := func(labels map[string]string) string { return labels["account"] + "/" + labels["server"] }
	var got, want []string
	for _, labels := range s.query(t, `up{job="servers", instance=~"198[.].+:9100"} == 1`) {
		got = append(got, name(labels))
	}
	for _, labels := range s.query(t, `server_rental_server_status{status="active"}`) {
		want = append(want, name(labels))
	}
	slices.Sort(got)
	slices.Sort(want)
	if len(want) != 8 || !slices.Equal(got, want) {
		t.Errorf("discovered servers:\ngot  %v\nwant %v", got, want)
	}
}

// checkComplaints looks for whatever Prometheus found wrong.
func (s *scraper) checkComplaints(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(s.log.String()) {
		for _, complaint := range []string{"level=warn", "level=error", "Scrape failed", "append failed", "err="} {
			if strings.Contains(line, complaint) {
				t.Errorf("Prometheus complains: %s", line)
				break
			}
		}
	}
	var targets struct {
		ActiveTargets []struct {
			ScrapeURL, Health, LastError string
		}
	}
	s.get(t, "/api/v1/targets", &targets)
	for _, target := range targets.ActiveTargets {
		if target.Health != "up" || target.LastError != "" {
			t.Errorf("target %s: %s: %s", target.ScrapeURL, target.Health, target.LastError)
		}
	}
	for line := range strings.Lines(string(download(t, s.url+"/metrics"))) {
		isFault := strings.HasPrefix(line, "prometheus_target_scrapes_") || strings.HasPrefix(line, "prometheus_sd_http_failures_total")
		if isFault && !strings.HasSuffix(line, " 0\n") {
			t.Errorf("Prometheus counts: %s", line)
		}
	}
}
