//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

const (
	// alertPlan is sold out at first, and in no saved configuration, which would have
	// an alert of its own.
	alertPlan = "gpu-l40s"
	// alertAccounts is the number of accounts, with balances from debt to plenty.
	alertAccounts = 8
)

// TestAlertsArrive runs everything twice: two exporters, two Prometheus servers that
// scrape both, and a cluster of two Alertmanagers that both notify. It brings a watched
// plan back in stock, suspends a server, and restarts the exporters: chat and pager must
// receive one message each and nothing else. Rules and routes are those of the
// repository; only the receivers are the test's own.
func TestAlertsArrive(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range alertAccounts {
		names = append(names, fmt.Sprint("account-", i))
	}
	api, tokens := startAPI(t, names...)
	api.Change(func(w *simulator.World) {
		for i, name := range names {
			a := w.Accounts[tokens[name]]
			for _, s := range a.Servers {
				s["status"] = "active"
			}
			a.Account["balance"] = simulator.Object{"usd": 25*float64(i*i) - 30}
		}
	})
	config := api.ConfigFile(t.TempDir(), tokens, "collectors: {account: {interval: 5s}, servers: {interval: 5s}}\nwatches: [{name: awaited, plans: ["+alertPlan+"]}]\n")
	addresses, peers := []string{simtest.FreeAddress(t), simtest.FreeAddress(t)}, []string{simtest.FreeAddress(t), simtest.FreeAddress(t)}
	startExporters := func() (all []*simtest.Process) {
		for _, address := range addresses {
			all = append(all, start(t, address, simtest.Binary(t), "--config.file="+config))
		}
		return all
	}
	exporters := startExporters()
	var messages messages
	hooks := httptest.NewServer(&messages)
	t.Cleanup(hooks.Close)
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
`, replica, repo.Path(t, "alerts"), addresses[0], addresses[1], alertmanagers[0], alertmanagers[1])))
	}

	for _, p := range replicas {
		p.Eventually("both exporters, and the sold-out plan in the rules", func() bool {
			return p.value(`count(up == 1)`) == 2 && p.value(fmt.Sprintf(`count_over_time(plan:server_rental_plan_in_stock:max{plan=%q}[1m] offset 4s)`, alertPlan)) > 0 &&
				p.value(`count(count_over_time(account:server_rental_account_renewals_due_usd:sum7d[1m] offset 4s))`) == alertAccounts
		})
	}
	var server string
	api.Change(func(w *simulator.World) {
		setInStock(w, alertPlan)
		server = suspend(t, names[alertAccounts-1], w.Accounts[tokens[names[alertAccounts-1]]])
	})
	simtest.Eventually(t, "both messages", func() bool { return len(messages.list()) >= 2 })
	// The second Alertmanager waits 15 seconds for the first one before it notifies itself.
	restarted := time.Now().Unix()
	for _, e := range exporters {
		e.Signal(syscall.SIGTERM)
		simtest.AssertEqual(t, "exit status", e.Wait(), 0)
	}
	startExporters()
	for _, p := range replicas {
		p.Eventually("many evaluations after the restart", func() bool {
			return p.value(fmt.Sprintf(`count(process_start_time_seconds{job="anything"} >= %d) == 2 and on () vector(time()) > %d`, restarted, restarted+25)) == 2
		})
		simtest.AssertEqual(t, "firing alerts", p.value(`count(max_over_time(ALERTS{alertstate="firing"}[10m]))`), 3.0) // the digest waits
		p.compareFunding()
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
			"Watch awaited: GPU L40S (plan gpu-l40s) for 1190.00 USD a month excluding VAT, offered in fra, nyc, still in stock. Order at https://rental.example/order?plan=gpu-l40s.",
		"pager: ServerRentalServerSuspended: A server is suspended. " + server,
	})
}

// suspend suspends an account's first server and returns the description of the alert.
func suspend(t *testing.T, name string, a *simulator.Account) string {
	s := a.Servers[0]
	s["status"] = "suspended"
	renews, err := time.Parse(time.DateOnly, simulator.Text(s, "renews_at"))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("Server %s (%s, %s in %s) of account %s is suspended. It costs %.2f USD a month, its next renewal is on %s (UTC), the balance is %.2f USD.",
		s["hostname"], s["id"], s["name"], s["location"], name, simulator.At(s, "price", "monthly", "usd"), renews.Format("2 January 2006"),
		simulator.At(a.Account, "balance", "usd"))
}

// startAlertmanager runs Alertmanager with the example configuration, in which each
// receiver is a webhook and groups are sent again after seconds, so that a second
// message would come in time. It returns the address. Several form a cluster if each has
// flags with its own address and that of a peer.
func startAlertmanager(t *testing.T, hooks string, flags ...string) string {
	t.Helper()
	path := repo.Program(t, "prometheus-alertmanager", "alertmanager")
	var config map[string]any
	repo.ReadYAML(t, repo.Path(t, "alerts/alertmanager.example.yml"), &config)
	var receivers []any
	for _, r := range config["receivers"].([]any) {
		name := r.(map[string]any)["name"]
		receivers = append(receivers, map[string]any{
			"name": name, "webhook_configs": []any{map[string]any{"url": fmt.Sprintf("%s/%s", hooks, name), "send_resolved": false}},
		})
	}
	config["receivers"] = receivers
	route := config["route"].(map[string]any)
	route["group_interval"] = "2s"
	for _, r := range route["routes"].([]any) {
		delete(r.(map[string]any), "group_interval")
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	dir, address := t.TempDir(), simtest.FreeAddress(t)
	file := simtest.WriteFile(t, filepath.Join(dir, "alertmanager.yml"), string(text))
	if len(flags) == 0 {
		flags = []string{"--cluster.listen-address="}
	}
	start(t, address, path, append(flags, "--config.file="+file, "--storage.path="+filepath.Join(dir, "data"))...)
	return address
}

// messages are the alerts that receivers were sent.
type messages struct {
	mu  sync.Mutex
	all []string
}

// ServeHTTP is the webhook of every receiver; the path is its name.
func (m *messages) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var message struct {
		Alerts []struct{ Labels, Annotations map[string]string }
	}
	err := json.NewDecoder(r.Body).Decode(&message)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.all = append(m.all, "invalid: "+err.Error())
	}
	for _, a := range message.Alerts {
		m.all = append(m.all, fmt.Sprintf("%s: %s: %s %s", strings.Trim(r.URL.Path, "/"), a.Labels["alertname"], a.Annotations["summary"], a.Annotations["description"]))
	}
}

func (m *messages) list() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all)
}

// compareFunding checks that rules and exporter agree, for each account, on whether
// the balance pays the renewals of the next seven days. At midnight both need a moment.
func (p *prometheus) compareFunding() {
	p.t.Helper()
	const byRules = `(account:server_rental_account_renewals_due_usd:sum7d > clamp_min(account:server_rental_account_balance_usd:max, 0))`
	const byExporter = `(account:server_rental_account_funded_until_timestamp_seconds:max <= time() + 7 * 86400)`
	differ := fmt.Sprintf(`count(%[1]s unless %[2]s or %[2]s unless %[1]s) or vector(0)`, byRules, byExporter)
	p.Eventually("no account differs", func() bool { return p.value(differ) == 0 })
	if n := p.value(`count(` + byRules + `)`); n < 2 || n > alertAccounts-2 {
		p.t.Errorf("got %v of %v accounts that cannot pay, which proves little", n, alertAccounts)
	}
}
