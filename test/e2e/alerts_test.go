//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// awaitedPlan is sold out at first, and in no saved configuration, which would have an
// alert of its own.
const awaitedPlan = "gpu-l40s"

// TestAlertsArrive runs everything twice: two exporters, two Prometheus servers that
// scrape both, and a cluster of two Alertmanagers that both notify. It brings a watched
// plan back in stock, suspends a server, and restarts the exporters: chat and pager must
// receive one message each and nothing else. Rules and routes are those of the repository;
// only the receivers are the test's own.
func TestAlertsArrive(t *testing.T) {
	t.Parallel()
	api, tokens := startAPI(t, "main")
	api.Change(func(w *simulator.World) {
		a := w.Accounts[tokens["main"]]
		a.Topups, a.Servers = nil, a.Servers[:1]
		a.Servers[0]["renews_at"] = "2090-01-31"
		simulator.Put(a.Account, 5000.0, "balance", "usd")
	})
	config := api.ConfigFile(t.TempDir(), tokens, "collectors: {account: {interval: 5s}, servers: {interval: 5s}}\nwatches: [{name: awaited, plans: ["+awaitedPlan+"]}]\n")
	addresses := []string{simtest.FreeAddress(t), simtest.FreeAddress(t)}
	startExporters := func() (all []*simtest.Process) {
		for _, address := range addresses {
			all = append(all, start(t, address, simtest.Binary(t), "--config.file="+config))
		}
		return all
	}
	exporters := startExporters()
	var messages simtest.Buffer
	hooks := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { writeAlerts(&messages, r) }))
	t.Cleanup(hooks.Close)
	alertmanagers := startCluster(t, hooks.URL)
	replicas := startReplicas(t, addresses, alertmanagers)
	for _, p := range replicas {
		p.Eventually("the sold-out plan", func() bool {
			return p.value(fmt.Sprintf(`count_over_time(server_rental_plan_in_stock{plan=%q}[1m] offset 4s)`, awaitedPlan)) > 0
		})
	}
	api.Change(func(w *simulator.World) {
		setInStock(w, awaitedPlan)
		w.Accounts[tokens["main"]].Servers[0]["status"] = "suspended"
	})
	simtest.Eventually(t, "both messages", func() bool { return strings.Count(messages.String(), "\n") >= 2 })
	// The second Alertmanager waits 15 seconds for the first one before it notifies itself.
	restarted := time.Now().Unix() - 2 // start times are relative to the kernel's, which is in whole seconds
	for _, e := range exporters {
		simtest.AssertEqual(t, "signal", e.Cmd.Process.Signal(syscall.SIGTERM), nil)
		simtest.AssertEqual(t, "exit status", e.Wait(), 0)
	}
	startExporters()
	for _, p := range replicas {
		p.Eventually("many evaluations after the restart", func() bool {
			return p.value(fmt.Sprintf(`count(process_start_time_seconds{job="anything"} >= %d) == 2 and on () vector(time()) > %d`, restarted, restarted+25)) == 2
		})
		simtest.AssertEqual(t, "firing alerts", p.value(`count(max_over_time(ALERTS{alertstate="firing"}[10m]))`), 3.0) // the digest waits
	}

	got := slices.Sorted(strings.Lines(messages.String()))
	simtest.AssertEqual(t, "messages", got, []string{
		"chat: ServerRentalWatchHit: A plan in stock began to match a watch. " +
			"Plan gpu-l40s hit watch awaited, 1190.00 USD. The price is monthly and excludes VAT. https://rental.example/order?plan=gpu-l40s\n",
		"pager: ServerRentalServerSuspended: A server is suspended. Server node-1.main.example (srv_d699b788091a39c5) of account main is suspended.\n",
	})
}

// startReplicas runs two Prometheus servers that scrape the same exporters, and send alerts
// to the same Alertmanagers.
func startReplicas(t *testing.T, exporters, alertmanagers []string) (replicas []*prometheus) {
	t.Helper()
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
	return replicas
}

// startCluster runs two Alertmanagers with the example configuration, in which each
// receiver is a webhook and groups are sent again after seconds, so that a second
// message would come in time. It returns the addresses.
func startCluster(t *testing.T, hooks string) (addresses []string) {
	t.Helper()
	var config map[string]any
	repo.ReadYAML(t, repo.Path(t, "alerts/alertmanager.example.yml"), &config)
	var receivers []any
	for _, r := range config["receivers"].([]any) {
		name := r.(map[string]any)["name"].(string)
		receivers = append(receivers, map[string]any{
			"name": name, "webhook_configs": []any{map[string]any{"url": fmt.Sprintf("%s/%s", hooks, name), "send_resolved": strings.HasSuffix(name, "-resolved")}},
		})
	}
	config["receivers"] = receivers
	route := config["route"].(map[string]any)
	route["group_interval"] = "2s"
	for _, r := range route["routes"].([]any) {
		delete(r.(map[string]any), "group_interval")
	}
	peers := []string{simtest.FreeAddress(t), simtest.FreeAddress(t)}
	for i, peer := range peers {
		addresses = append(addresses, startAlertmanager(t, config, "--cluster.listen-address="+peer, "--cluster.peer="+peers[1-i]))
	}
	return addresses
}

// startAlertmanager runs Alertmanager and returns its address.
func startAlertmanager(t *testing.T, config map[string]any, flags ...string) (address string) {
	t.Helper()
	dir, address := t.TempDir(), simtest.FreeAddress(t)
	file := simtest.WriteFile(t, filepath.Join(dir, "alertmanager.yml"), string(simtest.Encode(t, config)))
	flags = append(flags, "--config.file="+file, "--storage.path="+filepath.Join(dir, "data"))
	start(t, address, repo.Program(t, "prometheus-alertmanager", "alertmanager"), flags...)
	return address
}

// writeAlerts writes the alerts of a request to a webhook, whose path is the receiver.
func writeAlerts(w io.Writer, r *http.Request) {
	var message struct {
		Alerts []struct{ Labels, Annotations map[string]string }
	}
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
		fmt.Fprintf(w, "invalid: %v\n", err)
	}
	for _, a := range message.Alerts {
		text := strings.TrimSpace(a.Annotations["description"] + " " + a.Annotations["link"])
		fmt.Fprintf(w, "%s: %s: %s %s\n", strings.Trim(r.URL.Path, "/"), a.Labels["alertname"], a.Annotations["summary"], text)
	}
}

// labels are the labels of an alert.
type labels map[string]string

// TestInhibition asks Alertmanager, with the rules of the example, which alerts it keeps back while
// another one fires.
func TestInhibition(t *testing.T) {
	t.Parallel()
	var config map[string]any
	repo.ReadYAML(t, repo.Path(t, "alerts/alertmanager.example.yml"), &config)
	config["route"], config["receivers"] = map[string]any{"receiver": "nobody"}, []any{map[string]any{"name": "nobody"}}
	for _, c := range []struct{ cause, inhibited, other labels }{
		{
			labels{"alertname": "ServerRentalBalanceLow", "account": "main", "severity": "critical"},
			labels{"alertname": "ServerRentalBalanceLow", "account": "main", "severity": "warning"},
			labels{"alertname": "ServerRentalBalanceLow", "account": "lab", "severity": "warning"},
		}, {
			labels{"alertname": "ServerRentalComponentNotOperational", "location": "fra", "component": "network", "severity": "critical"},
			labels{"alertname": "ServerRentalComponentNotOperational", "location": "fra", "component": "network", "severity": "warning"},
			labels{"alertname": "ServerRentalComponentNotOperational", "location": "ams", "component": "network", "severity": "warning"},
		}, {
			labels{"alertname": "ServerRentalExporterDown"},
			labels{"alertname": "ServerRentalRenewalsUnfunded", "account": "main"},
			labels{"alertname": "SomebodyElses"},
		}, {
			labels{"alertname": "ServerRentalTokenRejected", "account": "main"},
			labels{"alertname": "ServerRentalCollectorFailing", "account": "main", "collector": "account"},
			labels{"alertname": "ServerRentalDataStale", "collector": "plans"},
		}, {
			labels{"alertname": "ServerRentalCollectorFailing", "account": "main", "collector": "servers"},
			labels{"alertname": "ServerRentalDataStale", "account": "main", "collector": "servers"},
			labels{"alertname": "ServerRentalComponentNotOperational", "component": "ddos"},
		}, {
			labels{"alertname": "ServerRentalCollectorFailing", "collector": "status"},
			labels{"alertname": "ServerRentalComponentNotOperational", "component": "ddos"},
			labels{"alertname": "ServerRentalDataStale", "collector": "plans"},
		}, {
			labels{"alertname": "ServerRentalIncidentOngoing"},
			labels{"alertname": "ServerRentalProviderNotOperational", "overall": "outage"},
			labels{"alertname": "ServerRentalComponentNotOperational", "component": "ddos"},
		},
	} {
		t.Run(fmt.Sprint(c.cause), func(t *testing.T) {
			t.Parallel()
			address := startAlertmanager(t, config, "--cluster.listen-address=")
			type alert struct {
				Labels labels `json:"labels"`
			}
			body := simtest.Encode(t, []alert{{c.cause}, {c.inhibited}, {c.other}})
			r, err := http.Post("http://"+address+"/api/v2/alerts", "application/json", bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			simtest.AssertEqual(t, "status of the alerts", r.StatusCode, http.StatusOK)
			_ = r.Body.Close()
			eventuallyEqual(t, "inhibited", func() (got []alert) {
				if err := json.Unmarshal([]byte(simtest.Get(t, "http://"+address+"/api/v2/alerts?active=false").Body), &got); err != nil {
					t.Fatal(err)
				}
				return got
			}, func() []alert { return []alert{{c.inhibited}} })
		})
	}
}
