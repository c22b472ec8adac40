//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"server_rental_exporter/internal/simulator"
)

// The plan that comes back: sold out in the simulator's first world, and in no
// saved configuration, which would be news of its own.
const alertPlan = "gpu-l40s"

// TestAlertsArrive has a plan come back and a server be suspended, and waits for what
// a chat and a pager get: one message each, and nothing else, although the exporter is
// restarted meanwhile. Rules and routes are those that are delivered; only the receivers
// are the test's own.
func TestAlertsArrive(t *testing.T) {
	promBinary := program(t, "prometheus")
	amBinary := program(t, "prometheus-alertmanager", "alertmanager")
	s := &alertStage{exporterAt: freeAddress(t), binary: buildExporter(t), dir: t.TempDir()}
	s.startProvider(t)
	exporter := s.startExporter(t)
	s.startAlertmanager(t, amBinary)
	prometheus := s.startPrometheus(t, promBinary)

	prometheus.await("the sold-out plan in the rules", time.Minute, func() bool {
		return s.value(t, fmt.Sprintf(`count_over_time(server_rental:plan_in_stock:max{plan=%q}[1m] offset 4s)`, alertPlan)) > 0 &&
			s.value(t, `count(count_over_time(server_rental:account_renewals_due_usd:sum7d[1m] offset 4s))`) == alertAccounts
	})
	server := s.disturb()

	// The public data is fetched once a minute.
	prometheus.await("both messages", 2*time.Minute, func() bool { return len(s.received()) >= 2 })
	exporter.stop()
	s.startExporter(t)
	time.Sleep(20 * time.Second) // for a message that must not come

	want := []string{
		"chat: ServerRentalPlanBackInStock: A sold-out plan came back in stock. " +
			"GPU L40S (plan gpu-l40s, family gpu) went from sold out to in stock, for 1190.00 USD a month excluding VAT. Offered in fra, nyc.",
		"pager: ServerRentalServerSuspended: A server is suspended. " + server,
	}
	got := s.received()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got messages\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := s.value(t, `count(max_over_time(ALERTS{alertstate="firing"}[10m]))`); n != 2 {
		t.Errorf("got %v alerts fired, want 2", n)
	}
	s.compareFunding(t)
}

// alertAccounts is how many accounts there are: one that is watched, and more with
// balances from debt to plenty.
const alertAccounts = 8

type alertStage struct {
	sim          *simulator.Simulator
	dir, binary  string
	providerAt   string // URL
	exporterAt   string // address
	alertmanager string // address
	prometheus   string // address

	mu       sync.Mutex
	messages []string
}

func (s *alertStage) startProvider(t *testing.T) {
	t.Helper()
	s.sim = simulator.New(simulator.Options{KeepRequests: -1})
	s.sim.Change(func(w *simulator.World) {
		for i := range alertAccounts {
			a := simulator.ExampleAccount(alertAccount(i), time.Now())
			for _, server := range a.Servers {
				server["status"] = "active"
			}
			a.Account["balance"] = simulator.Object{"usd": 25*float64(i*i) - 30}
			w.Accounts["token-of-"+alertAccount(i)] = a
		}
	})
	provider := httptest.NewServer(s.sim)
	t.Cleanup(provider.Close)
	s.providerAt = provider.URL
}

func alertAccount(i int) string { return "account-" + strconv.Itoa(i) }

// startExporter asks for account data every few seconds, and for public data as often
// as may be.
func (s *alertStage) startExporter(t *testing.T) *process {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "api: {base_url: %s/api/v1}\naccounts:\n", s.providerAt)
	for i := range alertAccounts {
		name := alertAccount(i)
		file := filepath.Join(s.dir, name)
		if err := os.WriteFile(file, []byte("token-of-"+name), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "  - {name: %s, token_file: %s}\n", name, file)
	}
	b.WriteString("collectors:\n  account: {interval: 5s}\n  servers: {interval: 5s}\n")
	config := s.write(t, "exporter.yml", b.String())
	p := start(t, s.binary, "--config.file="+config, "--web.listen-address="+s.exporterAt)
	p.await("the exporter", time.Minute, func() bool { return answersOK("http://" + s.exporterAt + "/-/ready") })
	return p
}

// startAlertmanager takes the example, with webhooks of the same names as receivers. A
// group is told again after seconds, so that a second message would come in time.
func (s *alertStage) startAlertmanager(t *testing.T, binary string) {
	t.Helper()
	hooks := httptest.NewServer(http.HandlerFunc(s.receive))
	t.Cleanup(hooks.Close)
	text, err := os.ReadFile("../alerts/alertmanager.example.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	for _, r := range config["receivers"].([]any) {
		receiver := r.(map[string]any)
		for key := range receiver {
			if key != "name" {
				delete(receiver, key)
			}
		}
		receiver["webhook_configs"] = []any{map[string]any{
			"url": fmt.Sprintf("%s/%s", hooks.URL, receiver["name"]), "send_resolved": false,
		}}
	}
	route := config["route"].(map[string]any)
	route["group_interval"] = "2s"
	for _, r := range route["routes"].([]any) {
		delete(r.(map[string]any), "group_interval")
	}
	changed, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	s.alertmanager = freeAddress(t)
	p := start(t, binary, "--config.file="+s.write(t, "alertmanager.yml", string(changed)),
		"--storage.path="+filepath.Join(s.dir, "alertmanager"),
		"--web.listen-address="+s.alertmanager, "--cluster.listen-address=")
	p.await("Alertmanager", time.Minute, func() bool { return answersOK("http://" + s.alertmanager + "/-/ready") })
}

func (s *alertStage) startPrometheus(t *testing.T, binary string) *process {
	t.Helper()
	rules, err := filepath.Abs("../alerts")
	if err != nil {
		t.Fatal(err)
	}
	config := s.write(t, "prometheus.yml", fmt.Sprintf(`
global: {scrape_interval: 2s, evaluation_interval: 2s}
rule_files: ['%s/*.rules.yml']
scrape_configs:
  - {job_name: anything, static_configs: [{targets: [%q]}]}
alerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}
`, rules, s.exporterAt, s.alertmanager))
	s.prometheus = freeAddress(t)
	p := start(t, binary, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(s.dir, "prometheus"),
		"--web.listen-address="+s.prometheus)
	p.await("Prometheus", time.Minute, func() bool { return answersOK("http://" + s.prometheus + "/-/ready") })
	return p
}

// disturb brings the plan back and suspends a server. It returns what is to be said of
// the server.
func (s *alertStage) disturb() string {
	var text string
	s.sim.Change(func(w *simulator.World) {
		for _, p := range w.Plans {
			if p["id"] == alertPlan {
				a := p["availability"].(simulator.Object)
				a["in_stock"], a["delivery"], a["alternative"] = true, "instant", nil
			}
		}
		name := alertAccount(alertAccounts - 1)
		account := w.Accounts["token-of-"+name]
		server := account.Servers[0]
		server["status"] = "suspended"
		renews, err := time.Parse(time.DateOnly, server["renews_at"].(string))
		if err != nil {
			panic(err)
		}
		text = fmt.Sprintf("Server %s (%s, %s in %s) of account %s is suspended. It costs %.2f USD a month, its renewal is that of %s (UTC), the balance is %.2f USD.",
			server["hostname"], server["id"], server["name"], server["location"], name,
			server["price"].(simulator.Object)["monthly"].(simulator.Object)["usd"], renews.Format("2 January 2006"),
			account.Account["balance"].(simulator.Object)["usd"])
	})
	return text
}

// receive is the chat, the pager and the mailbox; the path says which.
func (s *alertStage) receive(_ http.ResponseWriter, r *http.Request) {
	var message struct {
		Alerts []struct {
			Status              string
			Labels, Annotations map[string]string
		}
	}
	err := json.NewDecoder(r.Body).Decode(&message)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.messages = append(s.messages, "not understood: "+err.Error())
	}
	for _, a := range message.Alerts {
		s.messages = append(s.messages, fmt.Sprintf("%s: %s: %s %s", strings.Trim(r.URL.Path, "/"),
			a.Labels["alertname"], a.Annotations["summary"], a.Annotations["description"]))
	}
}

// received returns every alert of every message so far.
func (s *alertStage) received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// compareFunding asks that the rules and the exporter agree for each account on
// whether the balance pays the renewals of the next seven days.
func (s *alertStage) compareFunding(t *testing.T) {
	t.Helper()
	const due = `(server_rental:account_renewals_due_usd:sum7d > clamp_min(server_rental:account_balance_usd:max, 0))`
	const date = `(server_rental:account_funded_until_timestamp_seconds:max <= time() + 7 * 86400)`
	if n := s.value(t, `count(`+due+` unless `+date+` or `+date+` unless `+due+`) or vector(0)`); n != 0 {
		t.Errorf("got %v accounts of which rules and exporter say different things", n)
	}
	for _, side := range []string{due, date} {
		if n := s.value(t, `count(`+side+`)`); n < 2 || n > alertAccounts-2 {
			t.Errorf("got %v of %v accounts that cannot pay, which proves little", n, alertAccounts)
		}
	}
}

// value returns the one value of a query, and 0 where it returns nothing.
func (s *alertStage) value(t *testing.T, query string) float64 {
	t.Helper()
	resp, err := http.Get("http://" + s.prometheus + "/api/v1/query?" + url.Values{"query": {query}}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []struct{ Value [2]any } }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if answer.Error != "" {
		t.Fatalf("%s: %s", query, answer.Error)
	}
	if len(answer.Data.Result) == 0 {
		return 0
	}
	v, err := strconv.ParseFloat(fmt.Sprint(answer.Data.Result[0].Value[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (s *alertStage) write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(s.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
