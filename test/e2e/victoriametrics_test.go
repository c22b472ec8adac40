//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// TestVictoriaMetrics: samples are the same, and rules give the same results, where VictoriaMetrics
// stores what two vmagents scrape as in a Prometheus that scrapes the exporter itself.
func TestVictoriaMetrics(t *testing.T) {
	t.Parallel()
	const restocked = "ryzen-5-3600" // sold out at first
	api, tokens := startAPI(t, "main", "lab")
	exporter := startExporter(t, api, tokens, "watches: [{name: restocked, plans: ["+restocked+"]}]\n")
	target := strings.TrimPrefix(exporter.URL, "http://")
	scrape := fmt.Sprintf("scrape_configs: [{job_name: rental, scrape_interval: 2s, static_configs: [{targets: [%q]}]}]\n", target)
	rules := fmt.Sprintf("global: {scrape_interval: 2s, evaluation_interval: 2s}\nrule_files: ['%s/*.rules.yml']\n", repo.Path(t, "alerts"))
	direct, p := startPrometheus(t, t.TempDir(), rules+scrape), startVictoriaMetrics(t, scrape)
	for _, p := range []*prometheus{direct, p} {
		p.Eventually("old scrapes", func() bool { return p.value(`count_over_time(up[5m])`) > 10 })
	}
	api.Change(func(w *simulator.World) {
		w.SetStock(restocked, "", true)
		w.Status["ongoing"], w.Status["scheduled"] = 1, 1
		simulator.Put(w.Accounts[tokens["main"]].Account, -1.0, "balance", "usd")
	})
	direct.Eventually("an alert of a change", func() bool { return len(direct.query(`ALERTS{alertname="ServerRentalPlanBackInStock"}`)) > 0 })
	eventuallyEqual(t, "alerts", p.alerts, direct.alerts)
	p.checkSeries("rental", exporter.Scrape())
}

// TestHazards runs the unit tests of hazards with vmalert-tool. It has another name for expressions,
// and its time does not begin in 1970: one case needs that, because its timestamps are absolute.
func TestHazards(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("promql_expr_test", "metricsql_expr_test", "../", repo.Path(t, "alerts")+"/").Replace(repo.Read(t, "alerts/tests/hazards.test.yml"))
	before, after, _ := strings.Cut(text, "  - name: news during a lost scrape\n")
	_, others, found := strings.Cut(after, "\n\n")
	if !found {
		t.Fatal("no such case")
	}
	file := simtest.WriteFile(t, filepath.Join(t.TempDir(), "hazards.test.yml"), before+others)
	repo.Run(t, ".", repo.Program(t, "vmalert-tool"), "unittest", "-disableAlertgroupLabel", "-files="+file)
}

// startVictoriaMetrics runs VictoriaMetrics, into which two vmagents write what they scrape,
// and vmalert the results of the rules. Its query API is that of Prometheus.
func startVictoriaMetrics(t *testing.T, scrape string) *prometheus {
	t.Helper()
	path, vmagent, vmalert := repo.Program(t, "victoria-metrics"), repo.Program(t, "vmagent"), repo.Program(t, "vmalert")
	dir, address := t.TempDir(), simtest.FreeAddress(t)
	run := func(listen, path string, args ...string) *simtest.Process {
		return simtest.StartServing(t, exec.Command(path, append(args, "-httpListenAddr="+listen)...), listen, "/health")
	}
	store := run(address, path, "-storageDataPath="+filepath.Join(dir, "data"), "-search.latencyOffset=0s", "-inmemoryDataFlushInterval=1s", "-dedup.minScrapeInterval=2s")
	config := simtest.WriteFile(t, filepath.Join(dir, "scrape.yml"), scrape)
	for _, replica := range []string{"a", "b"} {
		run(simtest.FreeAddress(t), vmagent, "-promscrape.config="+config, "-promscrape.cluster.name="+replica, // the name sets the time of scrapes
			"-remoteWrite.url="+store.URL+"/api/v1/write", "-remoteWrite.tmpDataPath="+filepath.Join(dir, "queue-"+replica))
	}
	run(simtest.FreeAddress(t), vmalert, "-rule="+repo.Path(t, "alerts")+"/*.rules.yml", "-evaluationInterval=2s", "-notifier.blackhole",
		"-datasource.url="+store.URL, "-remoteRead.url="+store.URL, "-remoteWrite.url="+store.URL, "-remoteWrite.flushInterval=1s")
	return newPrometheus(t, store)
}

// alerts returns the alerts that are pending or fire, as vmalert and Prometheus store them.
func (p *prometheus) alerts() map[string]float64 {
	p.t.Helper()
	all := map[string]float64{}
	for _, s := range p.query("ALERTS") {
		delete(s.Metric, "alertgroup") // vmalert adds it
		all[seriesKey(s.Metric)] = float64(s.Value)
	}
	return all
}
