package dashboards_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/server-rental-exporter/server_rental_exporter/exporter"
	"github.com/server-rental-exporter/server_rental_exporter/runner"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/grafana"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// state is one that takes long: series with a sample a minute, and what panels then show.
type state struct {
	name   string
	series map[string]string // values by selector, as promtool reads them
	at     string
	want   map[string]map[string]float64 // values by query and labels; none, if more than one is to be counted
}

var one = func(value float64) map[string]float64 { return map[string]float64{"{}": value} }

var states = []state{
	{"the provider is unreachable for 40 minutes", map[string]string{
		`server_rental_exporter_build_info{job="a", instance="a"}`:                                                              "1x60",
		`server_rental_exporter_collector_success{job="a", instance="a", collector="plans", account=""}`:                        "0x60",
		`server_rental_exporter_collector_last_success_timestamp_seconds{job="a", instance="a", collector="plans", account=""}`: "0x60",
		`server_rental_exporter_collector_interval_seconds{job="a", instance="a", collector="plans", account=""}`:               "60x60",
		`server_rental_plan_in_stock{job="a", instance="a", plan="p"}`:                                                          "1x60",
		`server_rental_status_info{job="a", instance="a", overall="degraded"}`:                                                  "1x60",
		`server_rental_incidents_ongoing{job="a", instance="a"}`:                                                                "1x60",
	}, "40m", map[string]map[string]float64{
		"status/901/api": one(0), "status/901/since": one(0), "status/901/failing": {},
		"stock/110/stock": {`{plan="p"}`: 3}, "plan/101/stock": {`{plan="p"}`: 3}, "status/101/A": {}, "status/101/old": {`server_rental_status_info{job="a", instance="a", overall="degraded"}`: 1}, "status/102/incidents": {},
	}},
	{"one of two tokens is rejected since two minutes, and one collector was never fetched", map[string]string{
		`server_rental_exporter_build_info{job="a", instance="a"}`:                                                                    "1x60",
		`server_rental_exporter_api_token_rejected{job="a", instance="a", account="main"}`:                                            "0x60",
		`server_rental_exporter_api_token_rejected{job="a", instance="a", account="lab"}`:                                             "1x60",
		`server_rental_exporter_collector_success{job="a", instance="a", collector="account", account="main"}`:                        "1x60",
		`server_rental_exporter_collector_success{job="a", instance="a", collector="account", account="lab"}`:                         "0x60",
		`server_rental_exporter_collector_last_success_timestamp_seconds{job="a", instance="a", collector="account", account="main"}`: "600x60",
		`server_rental_exporter_collector_last_success_timestamp_seconds{job="a", instance="a", collector="account", account="lab"}`:  "480x60",
		`server_rental_exporter_collector_interval_seconds{job="a", instance="a", collector="account", account="main"}`:               "60x60",
		`server_rental_exporter_collector_interval_seconds{job="a", instance="a", collector="account", account="lab"}`:                "60x60",
		`server_rental_exporter_collector_interval_seconds{job="a", instance="a", collector="servers", account="lab"}`:                "60x60",
	}, "10m", map[string]map[string]float64{
		"status/901/api": one(1), "status/901/token": one(1), "status/901/since": one(600_000), "status/901/failing": one(2), "status/901/unknown": one(3),
		"accounts/107/token": {`{account="main"}`: 2, `{account="lab"}`: -1},
	}},
	{"no exporter, no rules", map[string]string{`up{job="a", instance="a"}`: "1x60"}, "10m", map[string]map[string]float64{"stock/901/api": one(-1), "stock/901/unknown": one(1), "status/901/rules": one(1)}},
	{"requests fail", map[string]string{
		`server_rental_exporter_api_errors_total{job="a", instance="a", path="/plans", reason="timeout"}`: "0+1x120",
	}, "90m", map[string]map[string]float64{"status/404/errors": {`{path="/plans", reason="timeout"}`: 60}}},
	{"four alerts fire, one of which nobody is told, and one is pending", map[string]string{
		`plan:server_rental_plan_in_stock:avg90d`: "1x60",
		`ALERTS{alertname="ServerRentalServerSuspended", alertstate="firing", severity="critical", kind="state", account="main", server="s"}`:      "1x60",
		`ALERTS_FOR_STATE{alertname="ServerRentalServerSuspended", severity="critical", kind="state", account="main", server="s"}`:                 "60x60",
		`ALERTS_FOR_STATE{alertname="ServerRentalExporterDown", severity="critical", kind="state"}`:                                                "60x60",
		`ALERTS{alertname="ServerRentalConfigurationBackInStock", alertstate="firing", severity="warning", kind="news", plan="p", location="fra"}`: "1x60",
		`ALERTS{alertname="ServerRentalPlanSoldOut", alertstate="firing", severity="info", kind="news", plan="p"}`:                                 "1x60",
		`ALERTS{alertname="ServerRentalBalanceLow", alertstate="firing", severity="warning", kind="state", account="main"}`:                        "1x60",
		`ALERTS{alertname="ServerRentalExporterDown", alertstate="pending", severity="critical", kind="state"}`:                                    "1x60",
		`server_rental_server_info{job="a", instance="a", account="main", server="s", hostname="web"}`:                                             "1x60",
		`server_rental_server_info{job="a", instance="b", account="main", server="s", hostname="web"}`:                                             "1x60",
	}, "10m", map[string]map[string]float64{
		"status/901/critical": one(1), "status/901/warnings": one(1), "status/901/news": one(1), "status/901/rules": {},
		"status/109/count": {
			`{alertname="ServerRentalServerSuspended", severity="critical"}`: 1, `{alertname="ServerRentalConfigurationBackInStock", severity="warning: news"}`: 1,
			`{alertname="ServerRentalBalanceLow", severity="warning"}`: 1,
		},
		"status/109/since": {`{alertname="ServerRentalServerSuspended"}`: 60_000},
		"status/109/what":  {`{alertname="ServerRentalServerSuspended", account="main", what="   web  "}`: 2, `{alertname="ServerRentalConfigurationBackInStock", plan="p", what=" fra    "}`: 1, `{alertname="ServerRentalBalanceLow", account="main", what="     "}`: 1},
	}},
	{"maintenance of one of two components", map[string]string{
		`server_rental_exporter_collector_success{job="a", instance="a", collector="status", account=""}`:                "1x60",
		`server_rental_component_state{job="a", instance="a", location="fra", component="network", state="Maintenance"}`: "1x60",
		`server_rental_component_state{job="a", instance="a", location="fra", component="ddos", state="operational"}`:    "1x60",
		`server_rental_maintenances_scheduled{job="a", instance="a"}`:                                                    "1x60",
	}, "10m", map[string]map[string]float64{
		"status/102/components": {`{state="Maintenance"}`: 1, `{state="operational"}`: 1}, "status/102/scheduled": one(1),
		"status/202/components": {`{component="network", location="fra", state="Maintenance"}`: 1},
	}},
	{"the exporter was replaced by one that saw no change, and rules recorded every three minutes at first", map[string]string{
		`server_rental_plan_in_stock{job="a", instance="old", plan="p"}`:                                                         "1x20 stale",
		`server_rental_plan_in_stock{job="a", instance="new", plan="p"}`:                                                         "_x25 0x100",
		`server_rental_configuration_in_stock{job="a", instance="a", account="main", configuration="c"}`:                         "1x120",
		`server_rental_configuration_last_restock_timestamp_seconds{job="a", instance="a", account="main", configuration="c"}`:   "60x120",
		`server_rental_configuration_in_stock{job="a", instance="a", account="main", configuration="old"}`:                       "1x120",
		`server_rental_configuration_last_restock_timestamp_seconds{job="a", instance="a", account="main", configuration="old"}`: "60x120",
		`server_rental_configuration_last_sellout_timestamp_seconds{job="a", instance="a", account="main", configuration="old"}`: "90x120",
		`plan:server_rental_plan_in_stock:max{plan="p"}`:                                                                         "0 _ _ 1 _ _ 0 _ _ 1 _ _ 1x8 stale _x4 0x95",
		`plan:server_rental_plan_in_stock:changed{plan="p"}`:                                                                     "_ _ _ 180 stale _ 360 stale _ 540 stale _x14 1500",
		`plan:server_rental_plan_in_stock:avg30d{plan="p"}`:                                                                      "1x120",
		`plan:server_rental_plan_stay_seconds:avg30d{plan="p"}`:                                                                  "60x120",
		`plan:server_rental_plan_away_seconds:avg30d{plan="p"}`:                                                                  "30x120",
	}, "2h", map[string]map[string]float64{
		"stock/110/since": {`{plan="p"}`: 1_500_000}, "plan/101/for": {`{plan="p"}`: 5700}, "plan/103/restocks": {}, "plan/103/away": {`{plan="p"}`: 30},
		"stock/501/changed": {`{account="main", configuration="c"}`: 60_000, `{account="main", configuration="old"}`: 90_000},
		"stock/110/share":   {}, "plan/103/known": {`{plan="p"}`: 8100},
	}},
	{"rules have run for eight days", map[string]string{
		`server_rental_plan_in_stock{job="a", instance="a", plan="p"}`: "_x10100 1x60",
		`plan:server_rental_plan_in_stock:max{plan="p"}`:               "1x30 0x30 _x10050 1x60",
	}, "169h", map[string]map[string]float64{"plan/103/restocks": {`{plan="p"}`: 1}}},
	{"a plan is not listed any more", map[string]string{
		`server_rental_catalog_plans{job="a", instance="a"}`:                            "15x60",
		`server_rental_plan_in_stock{job="a", instance="a", plan="p"}`:                  "1x20 stale",
		`server_rental_plan_removed_timestamp_seconds{job="a", instance="a", plan="p"}`: "_x20 1200x5 stale",
		`plan:server_rental_plan_in_stock:max{plan="p"}`:                                "1x20 stale",
	}, "40m", map[string]map[string]float64{"plan/101/stock": {}, "plan/101/gone": one(1_200_000), "plan/103/restocks": {}}},
	{"one of three accounts is known, and of one the data is old", map[string]string{
		`server_rental_account_balance_usd{job="a", instance="a", account="main"}`:                                     "12.5x60",
		`server_rental_account_balance_usd{job="a", instance="a", account="lab"}`:                                      "100x60",
		`server_rental_account_renewals_due_usd{job="a", instance="a", account="main", days="30"}`:                     "20x60",
		`server_rental_account_two_factor_enabled{job="a", instance="a", account="lab"}`:                               "1x60",
		`server_rental_exporter_collector_success{job="a", instance="a", collector="account", account="main"}`:         "1x60",
		`server_rental_exporter_collector_success{job="a", instance="a", collector="account", account="lab"}`:          "0x60",
		`server_rental_exporter_collector_success{job="a", instance="a", collector="account", account="held"}`:         "0x60",
		`server_rental_server_status{job="a", instance="a", account="lab", server="s", status="active"}`:               "1x60",
		`server_rental_account_funded_until_timestamp_seconds{job="a", instance="a", account="lab"}`:                   "0x60",
		`server_rental_account_funded_until_timestamp_seconds{job="a", instance="a", account="main"}`:                  "87000x60",
		`server_rental_exporter_collector_success{job="a", instance="a", collector="servers", account="lab"}`:          "0x60",
		`server_rental_exporter_collector_interval_seconds{job="a", instance="a", collector="servers", account="lab"}`: "60x60",
	}, "10m", map[string]map[string]float64{
		"accounts/701/balance": one(12.5), "accounts/701/unknown": one(2), "accounts/701/missing": one(7.5), "accounts/701/until": one(1),
		"accounts/107/left": {`{account="main"}`: 1}, "accounts/107/balance": {`{account="main"}`: 12.5}, "accounts/304/status": {}, "accounts/107/factor": {`{account="lab"}`: 3},
	}},
	{"money of two accounts", map[string]string{
		`server_rental_transactions_month_debit_usd{job="a", instance="a", account="main", type="renewal", month="current"}`:  "60x60",
		`server_rental_transactions_month_debit_usd{job="a", instance="a", account="lab", type="renewal", month="current"}`:   "5x60",
		`server_rental_transactions_month_debit_usd{job="a", instance="a", account="main", type="renewal", month="previous"}`: "50x60",
		`server_rental_transactions_month_credit_usd{job="a", instance="a", account="main", type="topup", month="current"}`:   "40x60",
	}, "10m", map[string]map[string]float64{
		"accounts/502/out": {`{type="renewal"}`: 65}, "accounts/502/lastout": {`{type="renewal"}`: 50}, "accounts/502/in": {`{type="topup"}`: 40}, "accounts/502/lastin": {},
	}},
	{"another program fails", map[string]string{
		`up{job="b", instance="b"}`:                                "0x60",
		`server_rental_exporter_build_info{job="a", instance="a"}`: "1x60",
	}, "10m", map[string]map[string]float64{"status/901/down": {}}},
	{"all accounts are known; neither a watch nor a saved configuration exists", map[string]string{
		`server_rental_account_balance_usd{job="a", instance="a", account="main"}`:                             "12.5x60",
		`server_rental_exporter_collector_success{job="a", instance="a", collector="account", account="main"}`: "1x60",
		`server_rental_configurations{job="a", instance="a", account="main"}`:                                  "0x60",
		`server_rental_catalog_plans{job="a", instance="a"}`:                                                   "15x60",
	}, "10m", map[string]map[string]float64{"accounts/701/unknown": {}, "stock/501/stock": {}, "stock/601/plans": one(-1)}},
	{"no account is configured", map[string]string{
		`server_rental_exporter_build_info{job="a", instance="a"}`:                                                "1x60",
		`server_rental_exporter_build_info{job="a", instance="b"}`:                                                "1x60",
		`server_rental_exporter_collector_interval_seconds{job="a", instance="a", collector="plans", account=""}`: "60x60",
	}, "10m", map[string]map[string]float64{"accounts/107/token": one(-2), "stock/501/stock": one(-2), "accounts/701/unknown": {}}},
	{"nothing is known of watches and saved configurations", map[string]string{`up{job="a", instance="a"}`: "1x60"}, "10m", map[string]map[string]float64{"stock/501/stock": {}, "stock/601/plans": {}}},
}

// exporterDown is the state of an exporter that exported everything until ten minutes ago: all panels
// of the present are empty, but for those of what is not the provider's.
func exporterDown(t *testing.T) state {
	s := state{"the exporter is down", map[string]string{
		`up{job="a", instance="a"}`: "1x20 0x20", `plan:server_rental_plan_in_stock:avg90d`: "1x20 0x20",
	}, "30m", map[string]map[string]float64{}}
	for _, d := range runner.Definitions() {
		labels := []string{`job="a"`, `instance="a"`}
		for _, l := range d.Labels {
			labels = append(labels, l+`="p"`)
		}
		s.series[d.Name+"{"+strings.Join(labels, ", ")+"}"] = "1x20 stale"
	}
	for _, d := range grafana.Load(t) {
		for _, q := range d.Queries() {
			if key := strings.TrimPrefix(q.Key, "server-rental-"); q.Instant {
				s.want[key] = map[string]float64{}
				switch {
				case q.RefID == "api":
					s.want[key] = one(-1)
				case q.RefID == "unknown" && q.Panel.Title == "Health": // the alerts of what expired
					s.want[key] = one(1)
				case q.RefID == "down":
					s.want[key][`up{job="a", instance="a"}`] = 0
				case q.Panel.Title == "Errors in the last hour": // the past
					delete(s.want, key)
				}
			}
		}
	}
	return s
}

// older is the state of two exporters that tell different texts of each thing: no query shows both.
func older(t *testing.T) state {
	s := state{"of two exporters, one shows older data", map[string]string{}, "30m", map[string]map[string]float64{}}
	for _, collector := range []string{"status", "plans", "configurations"} {
		for _, account := range []string{"", "p"} {
			s.series[fmt.Sprintf(`server_rental_exporter_collector_success{job="a", instance="a", collector=%q, account=%q}`, collector, account)] = "1x60"
		}
	}
	things := []string{"account", "collector", "component", "configuration", "days", "location", "month", "plan", "server", "ssh_key", "topup", "type", "watch"}
	for _, d := range runner.Definitions() {
		if len(d.Labels) == 0 || strings.Contains(d.Name, "_exporter_") {
			continue // of an exporter
		}
		for _, instance := range []string{"a", "b"} {
			labels := []string{`job="a"`, fmt.Sprintf("instance=%q", instance)}
			for _, l := range d.Labels {
				text := instance
				if slices.Contains(things, l) {
					text = "p"
				}
				labels = append(labels, fmt.Sprintf("%s=%q", l, text))
			}
			s.series[d.Name+"{"+strings.Join(labels, ", ")+"}"] = "1x60"
		}
	}
	for _, d := range grafana.Load(t) {
		for _, q := range d.Queries() {
			if q.Instant && q.RefID != "success" { // there are several collectors
				s.want["count "+strings.TrimPrefix(q.Key, "server-rental-")] = map[string]float64{}
			}
		}
	}
	return s
}

// queries returns the queries of all panels by key, with values of variables.
func queries(t *testing.T, values map[string]string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, d := range grafana.Load(t) {
		for _, q := range d.Queries() {
			all[strings.TrimPrefix(q.Key, "server-rental-")] = grafana.Interpolate(q.Expr, values)
		}
	}
	return all
}

type object = map[string]any

// expression is what a query is expected to give at a time.
func expression(expr, at string, samples ...object) object {
	return object{"expr": expr, "eval_time": at, "exp_samples": samples}
}

// runPromtool runs unit tests.
func runPromtool(t *testing.T, tests ...object) {
	t.Helper()
	text, err := yaml.Marshal(object{"tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	file := simtest.WriteFile(t, filepath.Join(t.TempDir(), "states.test.yml"), string(text))
	if out, err := exec.Command(repo.Program(t, "promtool"), "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestStates lets promtool evaluate queries of panels in each state.
func TestStates(t *testing.T) {
	all := queries(t, map[string]string{"currency": "usd", "plan": "p", "__interval": "5m", "__rate_interval": "5m"})
	var tests []object
	for _, s := range append(states, exporterDown(t), older(t)) {
		series, expressions := []object{}, []object{}
		for selector, values := range s.series {
			series = append(series, object{"series": selector, "values": values})
		}
		for key, want := range s.want {
			var samples []object
			for labels, value := range want {
				samples = append(samples, object{"labels": labels, "value": value})
			}
			expr := all[key]
			if name, isCount := strings.CutPrefix(key, "count "); isCount {
				expr = "count(" + all[name] + ") > 1"
			}
			expressions = append(expressions, expression(expr, s.at, samples...))
		}
		tests = append(tests, object{"name": s.name, "interval": "1m", "input_series": series, "promql_expr_test": expressions})
	}
	runPromtool(t, tests...)
}

// changes are series that the demo does not have at its start.
const changes = `
server_rental_plan_last_restock_timestamp_seconds{plan="ryzen-9-9950x"} 1
server_rental_configuration_last_sellout_timestamp_seconds{account="main", configuration="cfg_a81f078c67518701", plan="ryzen-9-9950x", location="fra"} 1
server_rental_server_previous_price_usd_per_month{account="main", server="srv_d699b788091a39c5"} 1
server_rental_exporter_api_backoff_until_timestamp_seconds{account="main"} 9e9
server_rental_exporter_collector_success{collector="servers", account="held"} 0
server_rental_exporter_collector_success{collector="held", account=""} 0
server_rental_component_state{location="fra", component="held", state="outage"} 1
plan:server_rental_plan_in_stock:max{plan="ryzen-9-9950x"} 1
plan:server_rental_plan_in_stock:avg30d{plan="ryzen-9-9950x"} 1
plan:server_rental_plan_in_stock:avg90d{plan="ryzen-9-9950x"} 1
plan:server_rental_plan_stay_seconds:avg30d{plan="ryzen-9-9950x"} 1
plan:server_rental_plan_in_stock:changed{plan="ryzen-9-9950x"} 1
plan:server_rental_plan_away_seconds:avg30d{plan="ryzen-9-9950x"} 1
account_configuration:server_rental_configuration_in_stock:max{account="main", configuration="cfg_a81f078c67518701"} 1
account_configuration:server_rental_configuration_in_stock:avg30d{account="main", configuration="cfg_a81f078c67518701"} 1
up 0
`

// TestDemo lets promtool evaluate each query on a month in which two exporters export what the demo does:
// there is a result, unless one of the states has one, and one exporter alone gives the same. Variables
// have values.
func TestDemo(t *testing.T) {
	var page bytes.Buffer
	environment := exporter.Environment{Args: []string{"--demo", "--once"}, Stdout: &page, Stderr: t.Output()}
	simtest.AssertEqual(t, "exit status", exporter.Main(t.Context(), environment), 0)
	var series []object
	for _, parts := range regexp.MustCompile(`(?m)^(server_\w+?|up|process_\w+?|\w+:\w+:\w+)(_total|_bucket)?(?:\{(.*)\})? (\S+)$`).FindAllStringSubmatch(page.String()+changes, -1) {
		increase := map[bool]string{true: "+1x40", false: "x40"}[parts[2] != ""]
		for _, instance := range []string{"a", "b"} {
			selector := fmt.Sprintf(`%s{job="rental", instance=%q, %s}`, parts[1]+parts[2], instance, parts[3])
			series = append(series, object{"series": selector, "values": parts[4] + increase})
		}
	}
	expressions := []object{expression("none", "35d")} // only with later samples does promtool's topk take the first of equals
	expect := func(expr string, samples ...object) {
		expressions = append(expressions, expression(expr, "31d", samples...))
	}
	values := map[string]string{"currency": "eur", "plan": "ryzen-9-9950x", "__interval": "2d", "__rate_interval": "3d"}
	all := queries(t, values)
	otherwise := map[string]bool{} // queries that have a result in one of the states
	for _, s := range states {
		for key, want := range s.want {
			otherwise[all[key]] = otherwise[all[key]] || len(want) > 0
		}
	}
	for key, expr := range all {
		if !otherwise[expr] {
			expect("count("+expr+") > bool 0 # "+key, object{"labels": "{}", "value": 1})
		}
		if strings.Contains(expr, "instance") { // shows each exporter
			continue
		}
		alone, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
		if err != nil {
			t.Fatal(err)
		}
		parser.Inspect(alone, func(n parser.Node, _ []parser.Node) error {
			if v, isSelector := n.(*parser.VectorSelector); isSelector {
				v.LabelMatchers = append(v.LabelMatchers, labels.MustNewMatcher(labels.MatchEqual, model.InstanceLabel, "a"))
			}
			return nil
		})
		expect(fmt.Sprintf("(%s) unless (%s) == (%s) # %s", expr, alone, expr, key))
	}
	valuesOf := regexp.MustCompile(`^label_values\((.+), ([a-z_]+)\)$`)
	for uid, d := range grafana.Load(t) {
		for _, v := range d.Templating.List {
			if parts := valuesOf.FindStringSubmatch(v.Query); parts != nil {
				expect(fmt.Sprintf(`count(count by (%s) (%s)) > bool 0 # %s`, parts[2], grafana.Interpolate(parts[1], nil), uid), object{"labels": "{}", "value": 1})
			}
		}
	}
	runPromtool(t, object{"interval": "1d", "input_series": series, "promql_expr_test": expressions})
}
