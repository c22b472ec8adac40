//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/grafana"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// TestDashboardQueries runs every query of every dashboard, with values for its
// variables, against a Prometheus that scrapes two exporters of the same provider: one
// with an outage, a maintenance, a restock, a changed price, transactions, open top-ups,
// and an account that is rate limited.
func TestDashboardQueries(t *testing.T) {
	t.Parallel()
	s := startDashboardStack(t)
	valuesOf := regexp.MustCompile(`^label_values\((.+), ([a-z_]+)\)$`)
	for uid, d := range grafana.Load(t) {
		for _, v := range d.Templating.List {
			parts := valuesOf.FindStringSubmatch(v.Query)
			if parts != nil && len(s.query(fmt.Sprintf(`group by (%s) (%s)`, parts[2], grafana.Interpolate(parts[1], nil)))) == 0 {
				t.Errorf("%s: variable %s has no values", uid, v.Name)
			}
		}
		for _, q := range d.Queries() {
			s.checkQuery(q)
			s.checkNotDoubled(q)
		}
	}
	s.checkTruth()
}

// dashboardStack is a provider, two exporters and a Prometheus.
type dashboardStack struct {
	*prometheus
	api       *simtest.API
	tokens    map[string]string // tokens by account; nothing is ever known of the account held
	alone     *prometheus       // scrapes the first exporter only
	exporters []string          // addresses, which are the values of the label instance
	began     time.Time
	end       time.Time // all queries are evaluated at this time
}

const (
	restockedPlan = "ryzen-5-3600" // sold out at first
	savedPlan     = "ryzen-9-9950x"
	oldPrice      = 12.5 // price of the first server of main, before it is 15
	// restocking are the settings of an exporter that soon sees what happen changes.
	restocking = "collectors: {transactions: {interval: 60s}, servers: {interval: 10s}}\nwatches: [{name: restocked, plans: [" + restockedPlan + "]}]\n"
	queryStep  = 5 * time.Second
	// queryWindow is Grafana's $__interval and $__rate_interval.
	queryWindow = 20 * time.Second
	// settled is how long ago both exporters showed all changes: the windows of the last
	// step are after them, so that it does not matter which exporter was scraped first.
	settled = queryWindow + 2*queryStep
	// scrapeInterval is also the timeout of a scrape.
	scrapeInterval = 5 * time.Second
)

func startDashboardStack(t *testing.T) *dashboardStack {
	t.Helper()
	names := []string{"main", "lab", "held"}
	api, tokens := startAPI(t, names...)
	api.Change(func(w *simulator.World) {
		simulator.Put(w.Accounts[tokens["main"]].Servers[0], oldPrice, "price", "monthly", "usd")
	})
	api.Inject(simtest.Fault{Token: tokens["held"], Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"600"}}})
	s := &dashboardStack{api: api, tokens: tokens, began: time.Now()}
	for range 2 {
		s.exporters = append(s.exporters, strings.TrimPrefix(startExporter(t, api, tokens, restocking).URL, "http://"))
	}
	// Prometheus scrapes itself, which no panel may show when all jobs are selected.
	const config = `
global: {scrape_interval: %[1]s, evaluation_interval: %[1]s}
rule_files: ['%[2]s/*.rules.yml']
scrape_configs:
  - {job_name: server_rental, static_configs: [{targets: [%[3]s]}]}
  - {job_name: other, static_configs: [{targets: [SELF]}]}
`
	s.prometheus = startPrometheus(t, fmt.Sprintf(config, scrapeInterval, repo.Path(t, "alerts"), strings.Join(s.exporters, ", ")))
	s.alone = startPrometheus(t, fmt.Sprintf(config, scrapeInterval, repo.Path(t, "alerts"), s.exporters[0]))
	// Panels compare with the value an interval or a minute ago, so that must exist before the change.
	old := fmt.Sprintf(`count(count by (instance) (server_rental_transactions{account="main"} offset %s))`, time.Minute+scrapeInterval)
	simtest.Eventually(t, "old scrapes of both exporters", func() bool { return s.value(old) == 2 })
	api.Change(func(w *simulator.World) { happen(w, tokens["main"]) })
	for _, change := range []string{
		`increase(server_rental_plan_restocks_total{plan="` + restockedPlan + `"}[5m] offset %s) > 0`,
		`delta(server_rental_transactions_month_credit_usd{account="main", type="topup", month="current"}[5m] offset %s) > 0`,
		`delta(server_rental_transactions_month_debit_usd{account="main", type="renewal", month="current"}[5m] offset %s) > 0`,
		`server_rental_incidents_ongoing offset %s > 0`,
		`server_rental_server_previous_price_usd_per_month{account="main"} offset %s > 0`,
	} {
		expr := fmt.Sprintf(change, settled)
		simtest.Eventually(t, expr+" in both exporters", func() bool { return len(s.query(expr)) == 2 })
	}
	// Subqueries with steps of a minute see nothing before a whole minute.
	simtest.Eventually(t, "an incident at a whole minute", func() bool {
		return s.value(`count(last_over_time((server_rental_incidents_ongoing > 0)[1h:1m]))`) == 2
	})
	// A rule may fire in one Prometheus some seconds before the other one.
	simtest.Eventually(t, "a time at which both exporters are up, and both servers have the same alerts", func() bool {
		at := v1.Range{End: time.Now()}
		s.end = at.End
		time.Sleep(scrapeInterval) // the last scrape before it may still fail
		const up, firing = `up{job="server_rental"} == 1`, `ALERTS{alertstate="firing"}`
		return len(s.prometheus.evaluate(up, at)) == 2 && len(s.alone.evaluate(up, at)) == 1 &&
			len(s.prometheus.evaluate(firing, at)) == len(s.alone.evaluate(firing, at))
	})
	return s
}

// happen brings a plan back in stock at another price, begins an outage and a maintenance,
// changes the price of an account's server, and adds a top-up and a renewal to its transactions.
func happen(w *simulator.World, token string) {
	w.SetStock(restockedPlan, "", true)
	for _, p := range w.Plans {
		if p["id"] == restockedPlan {
			simulator.Put(p, 49.9, "price", "monthly", "usd")
		}
	}
	simulator.Put(w.Status, "outage", "locations", "fra", "components", "network")
	w.Status["overall"], w.Status["ongoing"], w.Status["scheduled"] = "outage", 1, 1
	a := w.Accounts[token]
	simulator.Put(a.Servers[0], 15.0, "price", "monthly", "usd")
	for i, amount := range []float64{40, -15} {
		next := maps.Clone(a.Transactions[0])
		next["id"] = next["id"].(int) + 1
		next["type"] = []string{"topup", "renewal"}[i]
		next["amount"] = simulator.Object{"usd": amount}
		a.Transactions = slices.Insert(a.Transactions, 0, next)
	}
}

// evaluate runs a query, instant or over the whole time, with values for Grafana's variables.
func (s *dashboardStack) evaluate(p *prometheus, q grafana.Query, currency string, selected map[string]string) []series {
	s.t.Helper()
	values := map[string]string{"__rate_interval": queryWindow.String(), "__interval": queryWindow.String(), "currency": currency}
	if strings.HasPrefix(q.Key, "server-rental-plan/") {
		values["plan"] = savedPlan
	}
	maps.Copy(values, selected)
	expr := grafana.Interpolate(q.Expr, values)
	if q.Instant {
		return p.evaluate(expr, v1.Range{End: s.end})
	}
	return p.evaluate(expr, v1.Range{Start: s.began, End: s.end, Step: queryStep})
}

// values returns the result of a query by labels.
func (s *dashboardStack) values(p *prometheus, q grafana.Query) map[string]float64 {
	s.t.Helper()
	all := map[string]float64{}
	for _, one := range s.evaluate(p, q, "usd", nil) {
		delete(one.labels, "__name__")
		all[fmt.Sprint(one.labels)] = one.value
	}
	return all
}

// assertNear compares results, whose values may differ by 5 percent.
func assertNear(t testing.TB, what string, got, want map[string]float64) {
	t.Helper()
	for labels, value := range want {
		if v, found := got[labels]; found && math.Abs(v-value) <= 0.05*math.Abs(value) {
			got[labels] = value
		}
	}
	simtest.AssertEqual(t, what, got, want)
}

// needsMore matches queries of the results of recording rules, and of what did not happen.
var needsMore = regexp.MustCompile(`:avg\d+d|in_stock:max|plan_restocks_total{plan="|offset 30d|month="|state=~"\(\?i\)\.\*maintenance|configuration_last_|api_errors_total|ALERTS|absent\(exporter|unless on|up == 0|success{account=""|"\$plan"}\[1d|alternative!=`)

// checkQuery checks that a query returns data in some currency, and none of another
// program, with the labels that the legend names.
func (s *dashboardStack) checkQuery(q grafana.Query) {
	s.t.Helper()
	selected := map[string]string{"account": "main", "location": "fra", "plan": "epyc-4464p|" + restockedPlan}
	s.evaluate(s.prometheus, q, "usd", selected) // must be valid with single values too
	if needsMore.MatchString(q.Expr) {
		return
	}
	var shown []series
	for _, currency := range []string{"usd", "eur"} {
		shown = append(shown, s.evaluate(s.prometheus, q, currency, nil)...)
	}
	for _, one := range shown {
		if one.labels["job"] == "other" || one.labels["instance"] == s.address {
			s.t.Errorf("%s: shows another program's %v", q.Key, one.labels)
		}
	}
	if !slices.ContainsFunc(shown, func(one series) bool { return one.finite }) {
		s.t.Errorf("%s: no data\n%s", q.Key, q.Expr)
	}
	for _, name := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(q.LegendFormat, -1) {
		if !slices.ContainsFunc(shown, func(one series) bool { return one.labels[name[1]] != "" }) {
			s.t.Errorf("%s: the legend names %s, which the result does not have", q.Key, name[1])
		}
	}
}

// checkTruth compares what panels show with the provider's data: sums with the number of accounts
// that they know (the account held is never known), and rows without a value last.
func (s *dashboardStack) checkTruth() {
	s.t.Helper()
	queries := map[string]grafana.Query{}
	for _, d := range grafana.Load(s.t) {
		for _, q := range d.Queries() {
			queries[strings.TrimPrefix(q.Key, "server-rental-")] = q
		}
	}
	var want map[string]map[string]float64
	s.api.Change(func(w *simulator.World) { want = s.truth(w) })
	for key, shown := range want {
		assertNear(s.t, key+" against the provider", s.values(s.prometheus, queries[key]), shown)
	}
	simtest.AssertEqual(s.t, "alerts since when", slices.Sorted(maps.Keys(s.values(s.prometheus, queries["status/109/since"]))), slices.Sorted(maps.Keys(s.values(s.prometheus, queries["status/109/count"]))))
	left := s.evaluate(s.prometheus, queries["accounts/107/left"], "usd", nil) // Grafana adds rows without such a value after these
	if len(left) != 2 || !slices.IsSortedFunc(left, func(a, b series) int { return cmp.Compare(a.value, b.value) }) {
		s.t.Errorf("days left: got %v, want 2 rows in ascending order", left)
	}
}

// numberOf returns a number of an object.
func numberOf(o simulator.Object, path ...string) float64 {
	n, _ := strconv.ParseFloat(fmt.Sprint(simulator.At(o, path...)), 64)
	return n
}

// truth is what the provider's data makes of queries, by key and labels.
func (s *dashboardStack) truth(w *simulator.World) map[string]map[string]float64 {
	want := map[string]map[string]float64{}
	add := func(key string, value float64, labels ...string) {
		if want[key] == nil {
			want[key] = map[string]float64{}
		}
		want[key]["map["+strings.Join(labels, " ")+"]"] += value
	}
	months := map[string]string{time.Now().UTC().Format("2006-01"): "out", time.Now().UTC().AddDate(0, 0, -time.Now().UTC().Day()).Format("2006-01"): "lastout"}
	for _, name := range []string{"main", "lab"} {
		a := w.Accounts[s.tokens[name]]
		add("accounts/701/balance", numberOf(a.Account, "balance", "usd"))
		for _, server := range a.Servers {
			labels := []string{"account:" + name, "server:" + simulator.Text(server, "id")}
			add("accounts/304/price", numberOf(server, "price", "monthly", "usd"), labels...)
			add("accounts/304/status", 1, append(labels, "status:"+simulator.Text(server, "status"))...)
		}
		for _, t := range a.Transactions {
			month := months[simulator.Text(t, "created_at")[:len("2006-01")]]
			if usd := numberOf(t, "amount", "usd"); usd < 0 && month != "" {
				add("accounts/502/"+month, -usd, "type:"+simulator.Text(t, "type"))
			}
		}
		add("accounts/701/known", 1)
	}
	add("accounts/701/of", float64(len(s.tokens)))
	add("accounts/304/before", oldPrice, "account:main", "server:"+simulator.Text(w.Accounts[s.tokens["main"]].Servers[0], "id"))
	for _, p := range w.Plans {
		plan, stock := "plan:"+simulator.Text(p, "id"), 0.0
		if simulator.At(p, "availability", "in_stock") == true {
			stock = 1
		}
		add("stock/110/stock", stock, plan)
		add("stock/110/price", numberOf(p, "price", "monthly", "usd"), plan)
	}
	for _, l := range w.Status["locations"].(simulator.Object) {
		for _, state := range simulator.At(l.(simulator.Object), "components").(simulator.Object) {
			add("status/102/components", 1, "state:"+fmt.Sprint(state))
		}
	}
	add("status/102/incidents", 1)
	return want
}

// perProcess matches queries about requests of exporters and about times at which an exporter saw a
// change. Two exporters give other results than one.
var perProcess = regexp.MustCompile(`server_rental_exporter_(collector|api)|_total|_last_\(restock|avg_over_time|time\(\)`)

// recorded matches what rules record every three minutes: of the two Prometheus servers, which
// start one after the other, one may have a record more.
var recorded = regexp.MustCompile(`(plan|configuration):server_rental_`)

// checkNotDoubled checks that two exporters of one provider show what one shows: the
// same series, with the same values where they are the provider's.
func (s *dashboardStack) checkNotDoubled(q grafana.Query) {
	s.t.Helper()
	alone, both := s.values(s.alone, q), s.values(s.prometheus, q)
	labels := slices.Sorted(maps.Keys(both))
	switch perExporter := strings.Contains(fmt.Sprint(labels), "instance:"); {
	case perExporter, recorded.MatchString(q.Expr):
	case perProcess.MatchString(q.Expr):
		simtest.AssertEqual(s.t, q.Key+": series of two exporters", labels, slices.Sorted(maps.Keys(alone)))
	default:
		assertNear(s.t, q.Key+": two exporters", both, alone)
	}
}
