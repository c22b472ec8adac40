//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
)

// rightlyEmpty are the queries of dashboards that return nothing here, and why.
// The key is uid/panel/query.
func rightlyEmpty() map[string]string {
	return map[string]string{}
}

// TestDashboardQueries runs every query of every dashboard, its variables filled
// in, against a Prometheus that scrapes two exporters of the same provider. The
// provider is one with something to show: an outage, a maintenance, a restock,
// money that moves, open top-ups, and an account that is told to wait.
func TestDashboardQueries(t *testing.T) {
	s := startDashboardStage(t)
	dashboards := readDashboards(t)
	if len(dashboards) != 3 {
		t.Fatalf("got %d dashboards, want 3", len(dashboards))
	}
	reasons := rightlyEmpty()
	for _, d := range dashboards {
		for _, v := range d.Templating.List {
			if v.Type == "query" {
				s.checkVariable(t, d.UID+", variable "+v.Name, v.Query)
			}
		}
		for _, q := range d.queries() {
			if filled := s.checkQuery(t, q); filled == (reasons[q.key] != "") {
				t.Errorf("%s: got data %t, want the opposite (reason to be empty: %q)\n%s", q.key, filled, reasons[q.key], q.expr)
			}
			delete(reasons, q.key)
			s.checkNotDoubled(t, q)
		}
	}
	for key := range reasons {
		t.Errorf("%s: is on the list of empty queries, but there is no such query", key)
	}
}

type dashboardFile struct {
	UID        string
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Annotations struct {
		List []struct{ Name, Expr string }
	}
	Panels []struct {
		ID      int
		Targets []struct {
			RefID, Expr string
			Instant     bool
		}
	}
}

type dashboardQuery struct {
	key, expr string
	instant   bool
}

func readDashboards(t *testing.T) []dashboardFile {
	t.Helper()
	files, err := filepath.Glob("../dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []dashboardFile
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboardFile
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, d)
	}
	return all
}

func (d dashboardFile) queries() []dashboardQuery {
	var all []dashboardQuery
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			all = append(all, dashboardQuery{fmt.Sprintf("%s/%d/%s", d.UID, p.ID, q.RefID), q.Expr, q.Instant})
		}
	}
	for _, a := range d.Annotations.List {
		all = append(all, dashboardQuery{fmt.Sprintf("%s/annotation/%s", d.UID, a.Name), a.Expr, false})
	}
	return all
}

// dashboardStage is the provider, two exporters and a Prometheus.
type dashboardStage struct {
	prometheus string
	exporters  []string // addresses, which are the values of the label instance
	began      time.Time
	asked      time.Time // all queries are as of this moment
}

const (
	dashboardScrape   = time.Second
	dashboardStep     = 5 * time.Second
	dashboardRestock  = "ryzen-5-3600" // sold out in the simulator's first world
	dashboardLookBack = 20 * time.Second
	dashboardPatience = 3 * time.Minute
)

func startDashboardStage(t *testing.T) *dashboardStage {
	t.Helper()
	sim := simulator.New(simulator.Options{KeepRequests: -1})
	provider := httptest.NewServer(sim)
	t.Cleanup(provider.Close)
	troubleDashboards(sim)

	s := &dashboardStage{began: time.Now()}
	binary, dir := buildExporter(t), t.TempDir()
	config := dashboardConfig(t, dir, provider.URL)
	for range 2 {
		address := freeAddress(t)
		s.exporters = append(s.exporters, address)
		start(t, binary, "--config.file="+config, "--web.listen-address="+address).
			await("ready", dashboardPatience, func() bool { return answersOK("http://" + address + "/-/ready") })
	}
	prometheus := s.startPrometheus(t, dir)
	// Long enough ago that one of the steps of a query over time falls on it.
	restocked := fmt.Sprintf(`count(increase(server_rental_plan_restocks_total{plan=%q}[5m] offset %s) > 0) == 2`, dashboardRestock, 2*dashboardStep)
	prometheus.await("first scrapes", dashboardPatience, func() bool { return len(s.now(t, `count(server_rental_transactions_total) > 0`, time.Now())) > 0 })
	moveDashboards(sim)
	prometheus.await("restock in both exporters", dashboardPatience, func() bool { return len(s.now(t, restocked, time.Now())) > 0 })
	s.asked = time.Now()
	return s
}

// troubleDashboards has the provider begin with something wrong.
func troubleDashboards(sim *simulator.Simulator) {
	sim.Change(func(w *simulator.World) {
		now := time.Now()
		for _, name := range []string{"main", "lab", "held"} {
			w.Accounts["token-of-"+name] = simulator.ExampleAccount(name, now)
		}
		components := w.Status["locations"].(simulator.Object)["fra"].(simulator.Object)["components"].(simulator.Object)
		components["network"] = "outage"
		w.Status["overall"], w.Status["ongoing"], w.Status["scheduled"] = "outage", 1, 1
	})
	sim.Inject(simulator.Fault{
		Token: "token-of-held", Kind: simulator.Respond, Status: http.StatusTooManyRequests,
		Header: http.Header{"Retry-After": {"600"}},
	})
}

// moveDashboards lets a plan come back and money come and go.
func moveDashboards(sim *simulator.Simulator) {
	sim.Change(func(w *simulator.World) {
		for _, p := range w.Plans {
			if p["id"] == dashboardRestock {
				p["availability"].(simulator.Object)["in_stock"] = true
			}
		}
		a := w.Accounts["token-of-main"]
		for i, amount := range []float64{40, -15} {
			last := a.Transactions[0]
			next := maps.Clone(last)
			next["id"] = last["id"].(int) + 1
			next["type"] = []string{"topup", "renewal"}[i]
			next["amount"] = simulator.Object{"usd": amount}
			a.Transactions = slices.Insert(a.Transactions, 0, next)
		}
	})
}

func dashboardConfig(t *testing.T, dir, provider string) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "api:\n  base_url: %s/api/v1\naccounts:\n", provider)
	for _, name := range []string{"main", "lab", "held"} {
		token := filepath.Join(dir, "token-"+name)
		if err := os.WriteFile(token, []byte("token-of-"+name), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "  - {name: %s, token_file: %s}\n", name, token)
	}
	b.WriteString("collectors:\n  transactions: {interval: 10s}\n")
	file := filepath.Join(dir, "exporter.yml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (s *dashboardStage) startPrometheus(t *testing.T, dir string) *process {
	t.Helper()
	address := freeAddress(t)
	// Prometheus scrapes itself too: while all jobs are chosen, no panel may show it.
	config := fmt.Sprintf(`
global: {scrape_interval: %[1]s}
scrape_configs:
  - {job_name: server-rental, static_configs: [{targets: [%[2]q, %[3]q]}]}
  - {job_name: other, static_configs: [{targets: [%[4]q]}]}
`, dashboardScrape, s.exporters[0], s.exporters[1], address)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.prometheus = "http://" + address
	p := start(t, program(t, "prometheus"), "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	p.await("ready", dashboardPatience, func() bool { return answersOK(s.prometheus + "/-/ready") })
	return p
}

// dashboardSeries is one of a result: its labels and its last value that is a number.
type dashboardSeries struct {
	labels map[string]string
	value  float64
	finite bool
}

type dashboardAnswer struct {
	Status, Error string
	Warnings      []string
	Data          struct {
		Result []struct {
			Metric map[string]string
			Value  []any
			Values [][]any
		}
	}
}

func (s *dashboardStage) ask(t *testing.T, path string, values url.Values, into any) {
	t.Helper()
	resp, err := http.PostForm(s.prometheus+path, values)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func (s *dashboardStage) now(t *testing.T, expr string, at time.Time) []dashboardSeries {
	t.Helper()
	return s.run(t, "/api/v1/query", url.Values{"query": {expr}, "time": {dashboardTime(at)}})
}

func (s *dashboardStage) course(t *testing.T, expr string) []dashboardSeries {
	t.Helper()
	return s.run(t, "/api/v1/query_range", url.Values{"query": {expr}, "start": {dashboardTime(s.began)}, "end": {dashboardTime(s.asked)}, "step": {dashboardStep.String()}})
}

func dashboardTime(at time.Time) string {
	return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)
}

func (s *dashboardStage) run(t *testing.T, path string, values url.Values) []dashboardSeries {
	t.Helper()
	var a dashboardAnswer
	s.ask(t, path, values, &a)
	if a.Status != "success" || len(a.Warnings) > 0 {
		t.Errorf("%s: %s %v\n%s", path, a.Error, a.Warnings, values.Get("query"))
	}
	var all []dashboardSeries
	for _, r := range a.Data.Result {
		one := dashboardSeries{labels: r.Metric}
		for _, sample := range append(r.Values, r.Value) {
			if len(sample) != 2 {
				continue
			}
			v, err := strconv.ParseFloat(fmt.Sprint(sample[1]), 64)
			if err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
				one.value, one.finite = v, true
			}
		}
		all = append(all, one)
	}
	return all
}

// fill puts values in the place of Grafana's variables.
func (s *dashboardStage) fill(expr, currency string, chosen map[string]string) string {
	return regexp.MustCompile(`\$(?:\{(\w+)\}|(\w+))`).ReplaceAllStringFunc(expr, func(v string) string {
		switch name := strings.Trim(v, "${}"); name {
		case "__rate_interval", "__interval":
			return dashboardLookBack.String()
		case "__range":
			return fmt.Sprintf("%ds", int(s.asked.Sub(s.began).Seconds())+1)
		case "currency":
			return currency
		case "job", "instance", "account", "location", "plan":
			if value, is := chosen[name]; is {
				return value
			}
			return ".+" // what all stands for
		default:
			return v // Prometheus will not understand it, and say so
		}
	})
}

// first is the first exporter alone, escaped as Grafana does it: for a regular
// expression that stands in a string.
func (s *dashboardStage) first() string {
	return strings.ReplaceAll(regexp.QuoteMeta(s.exporters[0]), `\`, `\\`)
}

// checkVariable asks for the values that a variable would offer.
func (s *dashboardStage) checkVariable(t *testing.T, where, query string) {
	t.Helper()
	parts := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(query)
	if parts == nil {
		t.Errorf("%s: got %q, want label_values", where, query)
		return
	}
	var a struct {
		Status, Error string
		Data          []string
	}
	resp, err := http.Get(s.prometheus + "/api/v1/label/" + parts[2] + "/values?" + url.Values{"match[]": {s.fill(parts[1], "usd", nil)}}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || a.Status != "success" || len(a.Data) == 0 || slices.Contains(a.Data, "") {
		t.Errorf("%s: got %v, %s, %v, want values", where, a.Data, a.Error, err)
	}
}

// checkQuery tells whether a query returns data for at least one currency.
func (s *dashboardStage) checkQuery(t *testing.T, q dashboardQuery) bool {
	t.Helper()
	some := map[string]string{"job": "server-rental", "instance": s.first(), "account": "main", "location": "fra", "plan": "epyc-4464p|" + dashboardRestock}
	s.get(t, q, s.fill(q.expr, "usd", some)) // must parse with single values chosen too
	return slices.ContainsFunc([]string{"usd", "eur"}, func(currency string) bool {
		found := s.get(t, q, s.fill(q.expr, currency, nil))
		for _, one := range found {
			if one.labels["job"] == "other" || strings.HasPrefix(s.prometheus, "http://"+one.labels["instance"]) && one.labels["instance"] != "" {
				t.Errorf("%s: shows another program's %v", q.key, one.labels)
			}
		}
		return slices.ContainsFunc(found, func(one dashboardSeries) bool { return one.finite })
	})
}

func (s *dashboardStage) get(t *testing.T, q dashboardQuery, expr string) []dashboardSeries {
	t.Helper()
	if q.instant {
		return s.now(t, expr, s.asked)
	}
	return s.course(t, expr)
}

// checkNotDoubled asks that two exporters of a provider show what one shows: the
// same series, and of what the provider says the same values.
func (s *dashboardStage) checkNotDoubled(t *testing.T, q dashboardQuery) {
	t.Helper()
	key := func(one dashboardSeries) string {
		return fmt.Sprint(one.labels) // maps are printed in order
	}
	alone := map[string]float64{}
	for _, one := range s.get(t, q, s.fill(q.expr, "usd", map[string]string{"instance": s.first()})) {
		alone[key(one)] = one.value
	}
	both := s.get(t, q, s.fill(q.expr, "usd", nil))
	perExporter := slices.ContainsFunc(both, func(one dashboardSeries) bool { return one.labels["instance"] != "" })
	// Which requests of the account that has to wait were still answered is chance.
	if perExporter || q.key == "server-rental-status/405/A" {
		return
	}
	if len(both) != len(alone) {
		t.Errorf("%s: got %d series of two exporters, %d of one", q.key, len(both), len(alone))
	}
	for _, one := range both {
		value, there := alone[key(one)]
		switch {
		case !there:
			t.Errorf("%s: got %v of two exporters, not of one", q.key, one.labels)
		case ownToExporters(q.key):
		case math.Abs(one.value-value) > 0.05*math.Abs(value):
			t.Errorf("%s: got %v of two exporters, %v of one for %v", q.key, one.value, value, one.labels)
		}
	}
}

// ownToExporters tells whether a query is about when and how often exporters
// ask, which differs from one to the other or adds up over them.
func ownToExporters(key string) bool {
	uid, rest, _ := strings.Cut(key, "/")
	return uid == "server-rental-status" || strings.HasPrefix(rest, "105/") && uid == "server-rental-stock" ||
		strings.Contains(rest, "/share") || strings.Contains(rest, "/since") || strings.HasPrefix(rest, "annotation/")
}

// TestComposeConfiguration has Prometheus' and Alertmanager's own tools read the
// demo's configuration, the rules it names included.
func TestComposeConfiguration(t *testing.T) {
	text, err := os.ReadFile("../deploy/compose/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs("../alerts")
	if err != nil {
		t.Fatal(err)
	}
	// In the container the rules are where compose.yaml mounts them.
	config := strings.ReplaceAll(string(text), "/etc/prometheus/alerts", rules)
	if config == string(text) {
		t.Fatal("the configuration names no rules")
	}
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, check := range [][]string{
		{program(t, "promtool"), "check", "config", file},
		{program(t, "amtool"), "check-config", "../deploy/compose/alertmanager.yml"},
	} {
		if out, err := exec.Command(check[0], check[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", check[0], err, out)
		}
	}
}
