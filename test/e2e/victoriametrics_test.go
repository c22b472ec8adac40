//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/grafana"
	"server_rental_exporter/test/internal/repo"
)

// TestVictoriaMetrics: rules give the same results where VictoriaMetrics stores what two
// vmagents scrape as in a Prometheus that scrapes the exporter itself, and the same queries of
// dashboards have results.
func TestVictoriaMetrics(t *testing.T) {
	t.Parallel()
	api, tokens := startAPI(t, "main", "lab")
	exporter := startExporter(t, api, tokens, restocking)
	began := time.Now()
	scrape := fmt.Sprintf("scrape_configs: [{job_name: rental, scrape_interval: 2s, static_configs: [{targets: [%q]}]}]\n", strings.TrimPrefix(exporter.URL, "http://"))
	rules := fmt.Sprintf("global: {scrape_interval: 2s, evaluation_interval: 2s}\nrule_files: ['%s/*.rules.yml']\n", repo.Path(t, "alerts"))
	direct := startPrometheus(t, rules+scrape)
	p := startVictoriaMetrics(t, scrape)
	everywhere := func(what, expr string) {
		t.Helper()
		simtest.Eventually(t, what, func() bool {
			return len(p.query(expr)) > 0 && len(direct.query(expr)) > 0
		})
	}
	everywhere("old scrapes", fmt.Sprintf(`server_rental_transactions{account="main"} offset %s`, queryWindow))
	api.Change(func(w *simulator.World) { happen(w, tokens["main"]) })
	for _, expr := range happened(settled) {
		everywhere(expr, expr)
	}
	everywhere("an outage at a whole minute", `last_over_time((server_rental_incidents_ongoing > 0)[1h:1m])`)
	everywhere("an alert", `ALERTS{alertname="ServerRentalServerSuspended", alertstate="firing", account="main"}`)
	want := &dashboardStack{prometheus: direct, began: began, end: time.Now()}
	// vmalert evaluates the rules 30 seconds late, and a rule of a rule later still.
	p.Eventually("an evaluation of the rules at the end", func() bool {
		return p.value(`timestamp(ALERTS{alertname="ServerRentalServerSuspended"})`) >= float64(want.end.Unix())
	})
	eventuallyEqual(t, "results of the rules", p.ruleResults, direct.ruleResults)
	p.checkSeries("rental", exporter.Scrape())
	got := &dashboardStack{prometheus: p, began: want.began, end: want.end}
	for _, d := range grafana.Load(t) {
		for _, q := range d.Queries() {
			if needsMore.MatchString(q.Expr) { // its rules may have been evaluated by one of them only
				continue
			}
			simtest.AssertEqual(t, q.Key+": has results", len(got.values(q, nil)) > 0, len(want.values(q, nil)) > 0)
		}
	}
}

// TestHazards: in VictoriaMetrics too, what is no change causes no alert.
func TestHazards(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(repo.Program(t, "vmalert-tool"), "unittest", "-disableAlertgroupLabel", "-files=tests/hazards.test.yml")
	cmd.Dir = repo.Path(t, "alerts")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// startVictoriaMetrics runs VictoriaMetrics, into which two vmagents write what they scrape,
// and vmalert the results of the rules. Its query API is that of Prometheus.
func startVictoriaMetrics(t *testing.T, scrape string) *prometheus {
	t.Helper()
	path, vmagent, vmalert := repo.Program(t, "victoria-metrics"), repo.Program(t, "vmagent"), repo.Program(t, "vmalert")
	dir, address := t.TempDir(), simtest.FreeAddress(t)
	run := func(listen, path string, args ...string) *simtest.Process {
		return startUntil(t, listen, "/health", exec.Command(path, append(args, "-httpListenAddr="+listen)...))
	}
	store := run(address, path, "-storageDataPath="+filepath.Join(dir, "data"), "-search.latencyOffset=0s", "-inmemoryDataFlushInterval=1s", "-dedup.minScrapeInterval=2s")
	config := simtest.WriteFile(t, filepath.Join(dir, "scrape.yml"), scrape)
	for _, replica := range []string{"a", "b"} {
		run(simtest.FreeAddress(t), vmagent, "-promscrape.config="+config, "-promscrape.cluster.name="+replica, // which sets the time of scrapes
			"-remoteWrite.url="+store.URL+"/api/v1/write", "-remoteWrite.tmpDataPath="+filepath.Join(dir, "queue-"+replica))
	}
	run(simtest.FreeAddress(t), vmalert, "-rule="+repo.Path(t, "alerts")+"/*.rules.yml", "-evaluationInterval=2s", "-notifier.blackhole",
		"-datasource.url="+store.URL, "-remoteRead.url="+store.URL, "-remoteWrite.url="+store.URL, "-remoteWrite.flushInterval=1s")
	return &prometheus{store, t, address}
}

// ruleResults returns the alerts. Recording rules have an interval of three minutes, so that two
// servers have the first results at different times.
func (p *prometheus) ruleResults() map[string]float64 {
	p.t.Helper()
	all := map[string]float64{}
	for _, s := range p.query("ALERTS") {
		delete(s.labels, "alertgroup") // of vmalert
		all[seriesKey(s.labels)] = s.value
	}
	return all
}
