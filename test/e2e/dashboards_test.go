//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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
}

// dashboardStack is a provider, two exporters and a Prometheus.
type dashboardStack struct {
	*prometheus
	exporters []string // addresses, which are the values of the label instance
	began     time.Time
	end       time.Time // all queries are evaluated at this time
}

const (
	restockedPlan = "ryzen-5-3600" // sold out at first
	savedPlan     = "ryzen-9-9950x"
	// restocking are the settings of an exporter that soon sees what happen changes.
	restocking = "collectors: {transactions: {interval: 10s}}\nwatches: [{name: restocked, plans: [" + restockedPlan + "]}]\n"
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
	api.Inject(simtest.Fault{Token: tokens["held"], Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"600"}}})
	s := &dashboardStack{began: time.Now()}
	for range 2 {
		s.exporters = append(s.exporters, strings.TrimPrefix(startExporter(t, api, tokens, restocking).URL, "http://"))
	}
	// Prometheus scrapes itself, which no panel may show when all jobs are selected.
	s.prometheus = startPrometheus(t, fmt.Sprintf(`
global: {scrape_interval: %[1]s, evaluation_interval: %[1]s}
rule_files: ['%[2]s/*.rules.yml']
scrape_configs:
  - {job_name: server_rental, static_configs: [{targets: [%[3]q, %[4]q]}]}
  - {job_name: other, static_configs: [{targets: [SELF]}]}
`, scrapeInterval, repo.Path(t, "alerts"), s.exporters[0], s.exporters[1]))
	// Panels compare with the value an interval or a minute ago, so that must exist before the change.
	old := fmt.Sprintf(`count(count by (instance) (server_rental_transactions{account="main"} offset %s))`, time.Minute+scrapeInterval)
	simtest.Eventually(t, "old scrapes of both exporters", func() bool { return s.value(old) == 2 })
	api.Change(func(w *simulator.World) { happen(w, tokens["main"]) })
	for _, change := range []string{
		`increase(server_rental_plan_restocks_total{plan="` + restockedPlan + `"}[5m] offset %s) > 0`,
		`delta(server_rental_transactions_credit_usd{account="main", type="topup"}[5m] offset %s) > 0`,
		`delta(server_rental_transactions_debit_usd{account="main", type="renewal"}[5m] offset %s) > 0`,
		`server_rental_incidents_ongoing offset %s > 0`,
	} {
		expr := fmt.Sprintf(change, settled)
		simtest.Eventually(t, expr+" in both exporters", func() bool { return len(s.query(expr)) == 2 })
	}
	// Subqueries with steps of a minute see nothing before a whole minute.
	simtest.Eventually(t, "an incident at a whole minute", func() bool {
		return s.value(`count(last_over_time((server_rental_incidents_ongoing > 0)[1h:1m]))`) == 2
	})
	simtest.Eventually(t, "a time at which both exporters are up", func() bool {
		s.end = time.Now()
		time.Sleep(scrapeInterval) // the last scrape before it may still fail
		return len(s.prometheus.evaluate("query", url.Values{"query": {`up{job="server_rental"} == 1`}, "time": {seconds(s.end)}})) == 2
	})
	return s
}

// happen brings a plan back in stock at another price, begins an outage and a maintenance,
// and adds a top-up and a renewal to an account's transactions.
func happen(w *simulator.World, token string) {
	setInStock(w, restockedPlan)
	for _, p := range w.Plans {
		if p["id"] == restockedPlan {
			simulator.Put(p, 49.9, "price", "monthly", "usd")
		}
	}
	simulator.Put(w.Status, "outage", "locations", "fra", "components", "network")
	w.Status["overall"], w.Status["ongoing"], w.Status["scheduled"] = "outage", 1, 1
	a := w.Accounts[token]
	for i, amount := range []float64{40, -15} {
		next := maps.Clone(a.Transactions[0])
		next["id"] = next["id"].(int) + 1
		next["type"] = []string{"topup", "renewal"}[i]
		next["amount"] = simulator.Object{"usd": amount}
		a.Transactions = slices.Insert(a.Transactions, 0, next)
	}
}

// seconds returns a time as Prometheus' API expects it.
func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// evaluate runs a query, instant or over the whole time, with values for Grafana's variables.
func (s *dashboardStack) evaluate(q grafana.Query, currency string, selected map[string]string) []series {
	s.t.Helper()
	values := map[string]string{"__rate_interval": queryWindow.String(), "__interval": queryWindow.String(), "currency": currency}
	if strings.HasPrefix(q.Key, "server-rental-plan/") {
		values["plan"] = savedPlan
	}
	maps.Copy(values, selected)
	expr := grafana.Interpolate(q.Expr, values)
	if q.Instant {
		return s.prometheus.evaluate("query", url.Values{"query": {expr}, "time": {seconds(s.end)}})
	}
	return s.prometheus.evaluate("query_range", url.Values{
		"query": {expr}, "start": {seconds(s.began)}, "end": {seconds(s.end)}, "step": {queryStep.String()},
	})
}

// values returns the result of a query by labels.
func (s *dashboardStack) values(q grafana.Query, selected map[string]string) map[string]float64 {
	s.t.Helper()
	all := map[string]float64{}
	for _, one := range s.evaluate(q, "usd", selected) {
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

// firstExporter is the first exporter's instance as Grafana inserts it: escaped for a
// regular expression in a string.
func (s *dashboardStack) firstExporter() string {
	return strings.ReplaceAll(regexp.QuoteMeta(s.exporters[0]), `\`, `\\`)
}

// needsMore matches queries of the results of recording rules, and of what did not happen.
var needsMore = regexp.MustCompile(`:avg\d+d|state=~"\(\?i\)\.\*maintenance|ssh_keys_changed|_last_sellout_|configuration_last_restock|api_errors_total`)

// checkQuery checks that a query returns data in some currency, and none of another
// program, with the labels that the legend names.
func (s *dashboardStack) checkQuery(q grafana.Query) {
	s.t.Helper()
	selected := map[string]string{"job": "server_rental", "instance": s.firstExporter(), "account": "main", "location": "fra", "plan": "epyc-4464p|" + restockedPlan}
	s.evaluate(q, "usd", selected) // must be valid with single values too
	if needsMore.MatchString(q.Expr) {
		return
	}
	var shown []series
	for _, currency := range []string{"usd", "eur"} {
		shown = append(shown, s.evaluate(q, currency, nil)...)
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

// perProcess matches queries about when and how often exporters make requests, of which two
// exporters make more, and of times at which each saw a change.
var perProcess = regexp.MustCompile(`server_rental_exporter_(collector|api)|_total|_last_(restock|hit)_|avg_over_time|time\(\)`)

// checkNotDoubled checks that two exporters of one provider show what one shows: the
// same series, with the same values where they are the provider's.
func (s *dashboardStack) checkNotDoubled(q grafana.Query) {
	s.t.Helper()
	alone, both := s.values(q, map[string]string{"instance": s.firstExporter()}), s.values(q, nil)
	labels := slices.Sorted(maps.Keys(both))
	switch perExporter := strings.Contains(fmt.Sprint(labels), "instance:"); {
	case perExporter:
	case perProcess.MatchString(q.Expr):
		simtest.AssertEqual(s.t, q.Key+": series of two exporters", labels, slices.Sorted(maps.Keys(alone)))
	default:
		assertNear(s.t, q.Key+": two exporters", both, alone)
	}
}
