//go:build e2e

package e2e

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// TestRulesWithRemoteWrite: the rules give the same results where the samples come by
// remote write, from a Prometheus in agent mode or from vmagent to VictoriaMetrics, as
// in a Prometheus that scrapes the exporter itself.
func TestRulesWithRemoteWrite(t *testing.T) {
	t.Parallel()
	api, tokens := startAPI(t, "main", "lab")
	exporter := simtest.StartProcess(t, "--config.file="+api.ConfigFile(t.TempDir(), tokens, "watches: [{name: any, min_cores: 1}]\n"))
	exporter.WaitReady()
	const rules = "global: {scrape_interval: 2s, evaluation_interval: 2s}\nrule_files: ['%s/*.rules.yml']\n"
	scrape := fmt.Sprintf("scrape_configs: [{job_name: rental, scrape_interval: 2s, static_configs: [{targets: [%q]}]}]\n", strings.TrimPrefix(exporter.URL, "http://"))
	direct := startPrometheus(t, fmt.Sprintf(rules, repo.Path(t, "alerts"))+scrape)
	simtest.Eventually(t, "evaluations of all rules, and an alert", func() bool {
		return direct.value(`count_over_time(total:server_rental_account_renewals_due_usd:sum30d[5m])`) >= 5 &&
			len(direct.query(`ALERTS{alertname="ServerRentalExporterDown"}`)) == 0 &&
			len(direct.query(`ALERTS{alertname="ServerRentalServerSuspended", alertstate="firing", account="main"}`)) == 1
	})

	// vmalert needs a minute: it evaluates the rules 30 seconds late, and a rule of a rule
	// later still.
	t.Run("Prometheus agent", func(t *testing.T) {
		t.Parallel()
		p := startPrometheus(t, fmt.Sprintf(rules, repo.Path(t, "alerts")), "--web.enable-remote-write-receiver")
		startAgent(t, scrape+fmt.Sprintf("remote_write: [{url: '%s/api/v1/write'}]\n", p.URL))
		eventuallyEqual(t, "results of the rules", p.ruleResults, direct.ruleResults)
		p.checkSeries("rental", exporter.Scrape())
		p.checkProblems()
	})
	t.Run("VictoriaMetrics", func(t *testing.T) {
		t.Parallel()
		p := startVictoriaMetrics(t, scrape)
		eventuallyEqual(t, "results of the rules", p.ruleResults, direct.ruleResults)
		p.checkSeries("rental", exporter.Scrape())
	})
}

// startAgent runs Prometheus in agent mode.
func startAgent(t *testing.T, config string) {
	t.Helper()
	dir, address := t.TempDir(), simtest.FreeAddress(t)
	mode := "--agent"
	if prometheusMajor(t) == "2" {
		mode = "--enable-feature=agent"
	}
	start(t, address, repo.Program(t, "prometheus"), mode,
		"--config.file="+simtest.WriteFile(t, filepath.Join(dir, "agent.yml"), config), "--storage.agent.path="+filepath.Join(dir, "data"))
}

// startVictoriaMetrics runs VictoriaMetrics, into which vmagent writes what it scrapes,
// and vmalert the results of the rules. Its query API is that of Prometheus.
func startVictoriaMetrics(t *testing.T, scrape string) *prometheus {
	t.Helper()
	path, vmagent, vmalert := repo.Program(t, "victoria-metrics"), repo.Program(t, "vmagent"), repo.Program(t, "vmalert")
	dir, address := t.TempDir(), simtest.FreeAddress(t)
	run := func(listen, path string, args ...string) *simtest.Process {
		return startUntil(t, listen, "/health", exec.Command(path, append(args, "-httpListenAddr="+listen)...))
	}
	store := run(address, path, "-storageDataPath="+filepath.Join(dir, "data"), "-search.latencyOffset=0s", "-inmemoryDataFlushInterval=1s")
	run(simtest.FreeAddress(t), vmagent, "-promscrape.config="+simtest.WriteFile(t, filepath.Join(dir, "scrape.yml"), scrape),
		"-remoteWrite.url="+store.URL+"/api/v1/write", "-remoteWrite.tmpDataPath="+filepath.Join(dir, "queue"))
	run(simtest.FreeAddress(t), vmalert, "-rule="+repo.Path(t, "alerts")+"/*.rules.yml", "-evaluationInterval=2s", "-notifier.blackhole",
		"-datasource.url="+store.URL, "-remoteRead.url="+store.URL, "-remoteWrite.url="+store.URL, "-remoteWrite.flushInterval=1s")
	return &prometheus{store, t, address}
}

// ruleResults returns what the rules recorded, and their alerts, without the history of
// the stock and without times of fetches: the history has an interval of three minutes, so that two servers have the
// first results at different times.
func (p *prometheus) ruleResults() map[string]float64 {
	p.t.Helper()
	all := map[string]float64{}
	for _, s := range p.query(`{__name__=~".+:server_rental_.+:.+|ALERTS", __name__!~".+:avg[0-9]+[hd]|.+:(max|sum)1h|.+_timestamp_seconds:.+"}`) {
		delete(s.labels, "alertgroup")                           // of vmalert
		all[seriesKey(s.labels)] = math.Round(s.value*1e6) / 1e6 // VictoriaMetrics keeps 15 digits
	}
	return all
}
