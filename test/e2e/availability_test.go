//go:build e2e

package e2e

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// TestHighAvailability runs everything twice: two exporters of one account, two
// Prometheus servers that scrape both, and a cluster of two Alertmanagers that both
// notify. There is one notification of each event.
func TestHighAvailability(t *testing.T) {
	t.Parallel()
	api, tokens := startAPI(t, "main")
	api.Change(func(w *simulator.World) {
		for _, s := range w.Accounts[tokens["main"]].Servers {
			s["status"] = "active"
		}
	})
	config := api.ConfigFile(t.TempDir(), tokens, "collectors: {servers: {interval: 5s}}\nwatches: [{name: awaited, plans: ["+alertPlan+"]}]\n")
	exporters := []string{simtest.FreeAddress(t), simtest.FreeAddress(t)}
	for _, address := range exporters {
		start(t, address, simtest.Binary(t), "--config.file="+config)
	}
	var messages messages
	hooks := httptest.NewServer(&messages)
	t.Cleanup(hooks.Close)
	peers := []string{simtest.FreeAddress(t), simtest.FreeAddress(t)}
	var alertmanagers []string
	for i, peer := range peers {
		alertmanagers = append(alertmanagers, startAlertmanager(t, hooks.URL, "--cluster.listen-address="+peer, "--cluster.peer="+peers[1-i]))
	}
	var replicas []*prometheus
	for _, replica := range []string{"a", "b"} {
		replicas = append(replicas, startPrometheus(t, fmt.Sprintf(`
global: {scrape_interval: 2s, evaluation_interval: 2s, external_labels: {replica: %s}}
rule_files: ['%s/*.rules.yml']
scrape_configs:
  - {job_name: anything, static_configs: [{targets: [%q, %q]}]}
alerting:
  alert_relabel_configs: [{action: labeldrop, regex: replica}]
  alertmanagers: [{static_configs: [{targets: [%q, %q]}]}]
`, replica, repo.Path(t, "alerts"), exporters[0], exporters[1], alertmanagers[0], alertmanagers[1])))
	}
	inStock := recorded(t, "server_rental_plan_in_stock", "max")
	for _, p := range replicas {
		simtest.Eventually(t, "both exporters, and the sold-out plan in the rules", func() bool {
			return p.value(`count(up == 1)`) == 2 && p.value(fmt.Sprintf(`count_over_time(%s{plan=%q}[1m] offset 4s)`, inStock, alertPlan)) > 0
		})
	}

	var server string
	api.Change(func(w *simulator.World) {
		setInStock(w, alertPlan)
		server = suspend(t, "main", w.Accounts[tokens["main"]])
	})
	simtest.Eventually(t, "both messages", func() bool { return len(messages.list()) >= 2 })
	// The second Alertmanager waits 15 seconds for the first one before it notifies itself.
	sent := time.Now().Unix()
	for _, p := range replicas {
		simtest.Eventually(t, "more evaluations", func() bool {
			return p.value(fmt.Sprintf(`count(ALERTS{alertstate="firing"}) and on () vector(time()) > %d`, sent+25)) > 1
		})
	}
	for i, address := range alertmanagers {
		am := simtest.Get(t, "http://"+address+"/metrics").Exposition(t)
		simtest.AssertEqual(t, fmt.Sprintf("members that Alertmanager %d sees", i), am.Values["alertmanager_cluster_members{}"], 2.0)
		if am.Values[simtest.Series("alertmanager_alerts_received_total", "status", "firing", "version", "v2")] == 0 {
			t.Errorf("Alertmanager %d received no alert", i)
		}
	}
	got := messages.list()
	slices.Sort(got)
	simtest.AssertEqual(t, "messages", got, []string{
		"chat: ServerRentalWatchHit: A plan in stock began to match a watch. " +
			"Watch awaited: GPU L40S (plan gpu-l40s) for 1190.00 USD a month excluding VAT, offered in fra, nyc.",
		"pager: ServerRentalServerSuspended: A server is suspended. " + server,
	})
}
