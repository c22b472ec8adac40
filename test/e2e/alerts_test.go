//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/ntfy"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// phone keeps what somebody reads who has subscribed to a topic of ntfy.
type phone struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	messages []string
}

func newPhone(t testing.TB) *phone {
	p := &phone{t: t}
	p.Server = httptest.NewServer(ntfy.Handler(p.receive))
	t.Cleanup(p.Close)
	return p
}

func (p *phone) receive(message string, err error) {
	if err != nil {
		p.t.Errorf("notification: %v", err)
		return
	}
	p.t.Logf("%s: %s", time.Now().Format(time.TimeOnly), message)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages = append(p.messages, message)
}

// count returns how many messages begin with a text.
func (p *phone) count(text string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.messages {
		if strings.HasPrefix(m, text) {
			n++
		}
	}
	return n
}

// expect waits until so many messages in all begin with a text, for at most a time.
func (p *phone) expect(text string, n int, within time.Duration) {
	p.t.Helper()
	began := time.Now()
	for p.count(text) < n {
		if time.Sleep(100 * time.Millisecond); time.Since(began) > within {
			p.t.Fatalf("after %s: %d messages %q, want %d", within, p.count(text), text, n)
		}
	}
	p.t.Logf("%q: after %s", text, time.Since(began).Round(time.Second))
}

// startCluster runs a cluster of n Alertmanagers.
func startCluster(t *testing.T, n int, config string) (all []*simtest.Process) {
	t.Helper()
	var peers []string
	for range n {
		dir, address := t.TempDir(), simtest.FreeAddress(t)
		args := []string{
			"--config.file=" + simtest.WriteFile(t, filepath.Join(dir, "alertmanager.yml"), config), "--storage.path=" + filepath.Join(dir, "data"),
			"--cluster.listen-address=" + address, "--cluster.advertise-address=" + address,
		}
		all = append(all, start(t, simtest.FreeAddress(t), repo.Program(t, "prometheus-alertmanager", "alertmanager"), append(args, peers...)...))
		peers = append(peers, "--cluster.peer="+address)
	}
	return all
}

// startNotifier runs a cluster of Alertmanagers with the configuration of the repository, which sends to
// a phone. The collectors' message waits for two minutes instead of five.
func startNotifier(t *testing.T, n int) ([]*simtest.Process, *phone) {
	t.Helper()
	to := newPhone(t)
	config := strings.NewReplacer("http://ntfy.invalid", to.URL, "group_wait: 5m", "group_wait: 2m").Replace(repo.Read(t, "alerts/alertmanager.yml"))
	return startCluster(t, n, config), to
}

// startStack runs a Prometheus that scrapes an exporter with rules, and two Alertmanagers. The target has
// labels of its own with names of labels of the metrics.
func startStack(t *testing.T, exporter *simtest.Process, rules string) (*prometheus, *phone) {
	t.Helper()
	cluster, to := startNotifier(t, 2)
	address := func(p *simtest.Process) string { return strings.TrimPrefix(p.URL, "http://") }
	return startPrometheus(t, t.TempDir(), fmt.Sprintf(`
global: {scrape_interval: 15s, evaluation_interval: 15s}
rule_files: ['%s/*.rules.yml']
scrape_configs:
  - {job_name: rental, honor_labels: true, static_configs: [{targets: [%q], labels: {account: cloud, location: home, plan: p, server: s}}]}
alerting:
  alertmanagers: [{static_configs: [{targets: [%q, %q]}]}]
`, rules, address(exporter), address(cluster[0]), address(cluster[1]))), to
}

// post sends an alert to all members of a cluster, as Prometheus does. It ends at a time, if that is not
// zero.
func post(t *testing.T, cluster []*simtest.Process, labels, annotations map[string]string, startsAt, endsAt time.Time) {
	t.Helper()
	alert := map[string]any{"labels": labels, "annotations": annotations, "startsAt": startsAt}
	if !endsAt.IsZero() {
		alert["endsAt"] = endsAt
	}
	body := simtest.Encode(t, []any{alert})
	for _, member := range cluster {
		r, err := http.Post(member.URL+"/api/v2/alerts", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		simtest.AssertEqual(t, "status", r.StatusCode, http.StatusOK)
	}
}

// TestCluster tells two and three Alertmanagers of a restock, its end, a second restock after two minutes
// (Prometheus keeps the first alert for one of them), and of a critical state of an account after that of
// another: one message each.
func TestCluster(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			cluster, to := startNotifier(t, n)
			for _, member := range cluster {
				member.Eventually("members", func() bool {
					return strings.Contains(member.Get("/metrics").Body, fmt.Sprintf("\nalertmanager_cluster_members %d\n", n))
				})
			}
			time.Sleep(20 * time.Second) // until the cluster settles
			restock := map[string]string{"alertname": "ServerRentalWatchHit", "kind": "news", "severity": "warning", "plan": "p"}
			negative := func(account string) map[string]string {
				return map[string]string{"alertname": "ServerRentalBalanceNegative", "kind": "state", "severity": "critical", "account": account}
			}
			summary := map[string]string{"summary": "Plan p hits."}
			began := time.Now()
			at := func(after time.Duration) time.Time {
				time.Sleep(time.Until(began.Add(after)))
				return time.Now()
			}
			post(t, cluster, restock, summary, began, time.Time{})
			to.expect("Plan ", 1, 5*time.Second)
			post(t, cluster, negative("a"), map[string]string{"summary": "Balance of a."}, began, time.Time{})
			to.expect("Balance ", 1, 15*time.Second)
			post(t, cluster, negative("b"), map[string]string{"summary": "Balance of b."}, at(20*time.Second), time.Time{})
			to.expect("Balance ", 2, 45*time.Second)
			post(t, cluster, restock, summary, began, at(90*time.Second))
			second := at(150 * time.Second)
			simtest.AssertEqual(t, "messages of a restock", to.count("Plan "), 1)
			post(t, cluster, restock, summary, second, time.Time{})
			to.expect("Plan ", 2, 15*time.Second)
			post(t, cluster, restock, summary, second, at(200*time.Second))
			at(300 * time.Second)
			simtest.AssertEqual(t, "messages of restocks", to.count("Plan "), 2)
			simtest.AssertEqual(t, "messages", len(to.messages), 4)
		})
	}
}

// setStock changes the stock of saved configurations of an account, by their position.
func setStock(api *simtest.API, token string, inStock bool, positions ...int) {
	api.Change(func(w *simulator.World) {
		for i, c := range w.Accounts[token].Configurations {
			if slices.Contains(positions, i) {
				c["in_stock"] = inStock
			}
		}
	})
}

// TestRestocks has a restock, another configuration a minute later, a second restock after three
// minutes, twenty at once, and a hundred servers that are suspended together. Rules, intervals and
// routes are those of the repository.
func TestRestocks(t *testing.T) {
	t.Parallel()
	api, tokens := startAPI(t, "main", "lab")
	main, lab := tokens["main"], tokens["lab"]
	var all []int
	api.Change(func(w *simulator.World) {
		first := w.Accounts[lab].Configurations[0]
		for _, token := range tokens {
			a := w.Accounts[token]
			a.Configurations = nil
			for i := range 20 {
				all = append(all, i)
				c := maps.Clone(first)
				c["links"] = simulator.Object{}
				c["id"], c["in_stock"] = fmt.Sprintf("cfg_%d", i+1), false
				simulator.Put(c, "https://rental.example/order?configuration="+strings.Repeat("l", 300), "links", "order")
				a.Configurations = append(a.Configurations, c)
			}
			a.Topups, a.Servers = nil, simulator.Servers(100, time.Now())
			for _, s := range a.Servers {
				s["status"] = "active"
			}
			simulator.Put(a.Account, 1e6, "balance", "usd")
		}
	})
	p, to := startStack(t, startExporter(t, api, tokens, ""), repo.Path(t, "alerts"))
	p.Eventually("sold-out configurations", func() bool {
		return p.value(`count(last_over_time(server_rental_configuration_in_stock[5m] offset 15s))`) == 40
	})
	began := time.Now()
	at := func(after time.Duration) { time.Sleep(time.Until(began.Add(after))) }
	const restock, limit = "Plan ", 47 * time.Second // 45, and the start of a program on a busy machine
	setStock(api, main, true, 0)
	to.expect(restock, 1, limit)
	at(time.Minute)
	setStock(api, main, true, 1)
	setStock(api, main, false, 0)
	to.expect(restock, 2, limit)
	at(3 * time.Minute)
	setStock(api, main, true, 0)
	to.expect(restock, 3, limit)
	setStock(api, lab, true, all...)
	to.expect(restock, 23, limit)
	api.Change(func(w *simulator.World) {
		for _, s := range w.Accounts[main].Servers {
			s["status"] = "suspended"
		}
	})
	to.expect("Server ", 1, 2*time.Minute)
	simtest.AssertEqual(t, "messages", len(to.messages), 24)
	if last := to.messages[23]; !strings.HasSuffix(last, "\nand 92 more") || strings.Count(last, "\n") != 8 {
		t.Errorf("got %s, want eight servers, and 92 more", last)
	}
}

// TestOutage has an API that fails for three accounts: one message. 15 minutes of the rules take 30
// seconds, and five minutes of Alertmanager two: collectors fail within a minute here, not five.
func TestOutage(t *testing.T) {
	t.Parallel()
	api, tokens := startAPI(t, "main", "lab", "guest")
	api.Change(func(w *simulator.World) {
		for _, a := range w.Accounts {
			a.Topups, a.Servers = nil, nil
			simulator.Put(a.Account, 1e6, "balance", "usd")
		}
	})
	var settings strings.Builder
	settings.WriteString("collectors:\n")
	for _, name := range []string{"account", "topups", "transactions", "configurations", "ssh_keys", "servers"} {
		fmt.Fprintf(&settings, "  %s: {interval: 1m, max_age: 5m}\n", name)
	}
	rules := t.TempDir()
	for _, file := range repo.Glob(t, "alerts/*.rules.yml") {
		text := strings.ReplaceAll(repo.Read(t, "alerts/"+filepath.Base(file)), "for: 15m", "for: 30s")
		simtest.WriteFile(t, filepath.Join(rules, filepath.Base(file)), text)
	}
	exporter := startExporter(t, api, tokens, settings.String())
	p, to := startStack(t, exporter, rules)
	p.Eventually("a scrape", func() bool { return p.value(`count(server_rental_exporter_collector_success == 1)`) == 22 })
	api.Inject(simtest.Fault{Status: http.StatusServiceUnavailable})
	to.expect("Collector ", 1, 5*time.Minute)
	time.Sleep(time.Minute)
	simtest.AssertEqual(t, "messages", len(to.messages), 1)
	if text := to.messages[0]; !strings.Contains(text, "\nand ") {
		t.Errorf("got %s, want more collectors", text)
	}
}
