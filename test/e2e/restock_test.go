//go:build e2e

package e2e

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// TestRestockIsReported measures the time from when the API shows a restock until the
// chat has the message, with the recommended intervals and a provider that makes its
// answers at fixed times.
func TestRestockIsReported(t *testing.T) {
	t.Parallel()
	api, _ := startAPI(t)
	offset := time.Since(time.Now().Truncate(time.Minute)) + 40*time.Second // 20 seconds ago
	api.SetCache(simtest.Cache{Kind: simtest.AtFixedTimes, Offset: offset})
	address := simtest.FreeAddress(t)
	exporter := start(t, address, simtest.Binary(t),
		"--config.file="+api.ConfigFile(t.TempDir(), nil, "watches: [{name: awaited, plans: ["+alertPlan+"]}]\n"))
	var messages messages
	hooks := httptest.NewServer(&messages)
	t.Cleanup(hooks.Close)
	alertmanager := startAlertmanager(t, hooks.URL)
	p := startPrometheus(t, fmt.Sprintf(`
global: {scrape_interval: 15s, evaluation_interval: 15s}
rule_files: ['%s/*.rules.yml']
scrape_configs:
  - {job_name: anything, static_configs: [{targets: [%q]}]}
alerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}
`, repo.Path(t, "alerts"), address, alertmanager))

	exported := func(metric string, labels ...string) float64 {
		return exporter.Scrape().Values[simtest.Series("server_rental_"+metric, labels...)]
	}
	simtest.Eventually(t, "the exporter in phase", func() bool {
		age := exported("exporter_collector_answer_age_seconds", "collector", "plans", "account", "")
		return len(api.RequestsFor("/plans")) > 1 && age < 5
	})
	simtest.Eventually(t, "the sold-out plan in the rules", func() bool {
		return p.value(fmt.Sprintf(`count_over_time(%s{plan=%q}[5m])`, recorded(t, "server_rental_plan_in_stock", "max"), alertPlan)) > 2
	})
	nextAnswer := func() time.Time { return time.Now().Add(-offset).Truncate(time.Minute).Add(time.Minute + offset) }
	if left := time.Until(nextAnswer()); left < 5*time.Second { // it may lack the change
		time.Sleep(left)
	}
	shown := nextAnswer()
	api.Change(func(w *simulator.World) { setInStock(w, alertPlan) })
	since := func() time.Duration { return time.Since(shown).Round(100 * time.Millisecond) }
	simtest.Eventually(t, "the restock in the metrics", func() bool { return exported("plan_in_stock", "plan", alertPlan) == 1 })
	fetched := since()
	simtest.Eventually(t, "the restock in Prometheus", func() bool {
		return p.value(fmt.Sprintf(`server_rental_plan_in_stock{plan=%q}`, alertPlan)) == 1
	})
	scraped := since()
	simtest.Eventually(t, "the message", func() bool { return strings.Contains(strings.Join(messages.list(), "\n"), "WatchHit") })
	told := since()
	t.Logf("after the API showed the restock: exported %v, scraped %v, reported %v", fetched, scraped, told)
	// docs/operations.md says 3 seconds and 35. An exporter out of phase needs up to a minute.
	if fetched < 0 || fetched > 30*time.Second || told > 90*time.Second {
		t.Error("want at most 30 seconds until it was exported, and 90 until it was reported")
	}
}
