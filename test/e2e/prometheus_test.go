//go:build e2e

package e2e

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// logProblem matches a line of Prometheus' log at level debug that reports a problem.
var logProblem = regexp.MustCompile(`(?i)level=(warn|error)|scrape failed|append failed|\berr(or)?=`)

// checkProblems checks Prometheus' log, which has each scrape that fails, and its counters of failures.
func (p *prometheus) checkProblems() {
	p.t.Helper()
	for line := range strings.Lines(p.Log.String()) {
		if logProblem.MatchString(line) {
			p.t.Errorf("Prometheus logs: %s", line)
		}
	}
	for line := range strings.Lines(p.Get("/metrics").Body) {
		failures := strings.HasPrefix(line, "prometheus_target_scrapes_") || strings.HasPrefix(line, "prometheus_sd_http_failures_total")
		if failures && !strings.HasSuffix(line, " 0\n") {
			p.t.Errorf("Prometheus counts: %s", line)
		}
	}
}

// TestTools: the tools of Prometheus, Alertmanager and VictoriaMetrics find no fault in
// the demo's configuration and in the rules. In VictoriaMetrics too, what is no change causes
// no alert.
func TestTools(t *testing.T) {
	t.Parallel()
	// In the container the rules are where compose.yaml mounts them.
	config := strings.ReplaceAll(repo.Read(t, "deploy/compose/prometheus.yml"), "/etc/prometheus/alerts", repo.Path(t, "alerts"))
	if !strings.Contains(config, repo.Path(t, "alerts")) {
		t.Fatal("the configuration names no rules")
	}
	file := simtest.WriteFile(t, filepath.Join(t.TempDir(), "prometheus.yml"), config)
	for _, check := range [][]string{
		{"promtool", "check", "config", file},
		{"amtool", "check-config", repo.Path(t, "deploy/compose/alertmanager.yml"), repo.Path(t, "deploy/compose/production.example/alertmanager.yml")},
		{"vmalert", "-dryRun", "-rule=*.rules.yml"},
		{"vmalert-tool", "unittest", "-disableAlertgroupLabel", "-files=tests/hazards.test.yml"},
	} {
		t.Run(check[0], func(t *testing.T) {
			cmd := exec.Command(repo.Program(t, check[0]), check[1:]...)
			cmd.Dir = repo.Path(t, "alerts")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", cmd, err, out)
			}
		})
	}
}
