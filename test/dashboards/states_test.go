package dashboards_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/server-rental-exporter/server_rental_exporter/exporter"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/grafana"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// state is one that takes long: series with a sample a minute, and what panels then show.
type state struct {
	name   string
	series map[string]string // values by selector, as promtool reads them
	at     string
	want   map[string]map[string]float64 // values by query, or by the sum of one, and labels
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
	}, "40m", map[string]map[string]float64{
		"status/901/api": one(0), "status/901/since": one(0), "status/901/failing": one(1), "status/901/of": one(1), "status/901/oldest": one(2400),
		"stock/110/stock": {`{plan="p"}`: 3}, "plan/101/stock": {`{plan="p"}`: 3}, "status/101/A": {}, "status/101/old": {`{overall="degraded"}`: 1},
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
		"status/901/api": one(3), "status/901/since": one(480_000), "status/901/failing": one(2), "status/901/of": one(3), "status/901/oldest": one(600),
		"accounts/107/token": {`{account="main"}`: 2, `{account="lab"}`: -1},
	}},
	{"no exporter, no rules", map[string]string{`up{job="a", instance="a"}`: "1x60"}, "10m", map[string]map[string]float64{"stock/901/api": one(-1), "status/901/rules": one(1)}},
	{"three alerts fire, one of which nobody is told, and one is pending", map[string]string{
		`plan:server_rental_plan_in_stock:avg90d`: "1x60",
		`ALERTS{alertname="ServerRentalServerSuspended", alertstate="firing", severity="critical", kind="state", account="main", server="s"}`:      "1x60",
		`ALERTS{alertname="ServerRentalConfigurationBackInStock", alertstate="firing", severity="warning", kind="news", plan="p", location="fra"}`: "1x60",
		`ALERTS{alertname="ServerRentalPlanSoldOut", alertstate="firing", severity="info", kind="news", plan="p"}`:                                 "1x60",
		`ALERTS{alertname="ServerRentalExporterDown", alertstate="pending", severity="critical", kind="state"}`:                                    "1x60",
		`server_rental_server_info{job="a", instance="a", account="main", server="s", hostname="web"}`:                                             "1x60",
		`server_rental_server_info{job="a", instance="b", account="main", server="s", hostname="web"}`:                                             "1x60",
	}, "10m", map[string]map[string]float64{
		"status/901/critical": one(1), "status/901/warnings": {`{kind="news"}`: 1}, "status/901/rules": {},
		"status/109/what": {`{alertname="ServerRentalServerSuspended", what="    web  main "}`: 1, `{alertname="ServerRentalConfigurationBackInStock", what=" p fra     "}`: 1},
	}},
	{"of two exporters, one shows older data", map[string]string{
		`server_rental_exporter_collector_success{job="a", instance="a", collector="status", account=""}`:                "0x60",
		`server_rental_exporter_collector_success{job="a", instance="b", collector="status", account=""}`:                "1x60",
		`server_rental_component_state{job="a", instance="a", location="fra", component="network", state="operational"}`: "1x60",
		`server_rental_component_state{job="a", instance="b", location="fra", component="network", state="operational"}`: "1x3 stale",
		`server_rental_component_state{job="a", instance="b", location="fra", component="network", state="outage"}`:      "_x4 1x56",
		`server_rental_server_status{job="a", instance="a", account="main", server="s", status="active"}`:                "1x60",
		`server_rental_server_status{job="a", instance="b", account="main", server="s", status="suspended"}`:             "1x60",
	}, "10m", map[string]map[string]float64{
		"sum status/102/components": one(1), "sum status/201/state": one(1), "sum accounts/304/status": one(1), // either
	}},
	{"maintenance of one of two components", map[string]string{
		`server_rental_exporter_collector_success{job="a", instance="a", collector="status", account=""}`:                "1x60",
		`server_rental_component_state{job="a", instance="a", location="fra", component="network", state="Maintenance"}`: "1x60",
		`server_rental_component_state{job="a", instance="a", location="fra", component="ddos", state="operational"}`:    "1x60",
	}, "10m", map[string]map[string]float64{
		"status/102/components": {`{state="Maintenance"}`: 1, `{state="operational"}`: 1}, "status/202/failed": {},
		"status/202/maintenance": {`{component="network", location="fra", state="Maintenance"}`: 1},
	}},
	{"the exporter was replaced by one that saw no restock", map[string]string{
		`server_rental_plan_last_restock_timestamp_seconds{job="a", instance="old", plan="p"}`: "60x20 _x100",
		`server_rental_plan_last_sellout_timestamp_seconds{job="a", instance="old", plan="p"}`: "30x20 _x100",
		`server_rental_plan_in_stock{job="a", instance="old", plan="p"}`:                       "1x20 _x100",
		`server_rental_plan_in_stock{job="a", instance="new", plan="p"}`:                       "_x25 1x100",
		`plan:server_rental_plan_in_stock:max{plan="p"}`:                                       "0 1 0 1x117",
		`plan:server_rental_plan_in_stock:avg30d{plan="p"}`:                                    "1x120",
	}, "2h", map[string]map[string]float64{
		"stock/110/since": {`{plan="p"}`: 60_000}, "plan/101/for": {`{plan="p"}`: 7140}, "plan/103/restocks": {`{plan="p"}`: 2},
		"stock/110/share": {}, "plan/103/known": {`{plan="p"}`: 121.0 / 480},
	}},
	{"one of three accounts is known", map[string]string{
		`server_rental_account_balance_usd{job="a", instance="a", account="main"}`:                                      "12.5x60",
		`server_rental_account_renewals_due_usd{job="a", instance="a", account="main", days="30"}`:                      "20x60",
		`server_rental_exporter_collector_interval_seconds{job="a", instance="a", collector="account", account="main"}`: "60x60",
		`server_rental_exporter_collector_interval_seconds{job="a", instance="a", collector="account", account="lab"}`:  "60x60",
		`server_rental_exporter_collector_interval_seconds{job="a", instance="a", collector="account", account="held"}`: "60x60",
	}, "10m", map[string]map[string]float64{
		"accounts/701/balance": one(12.5), "accounts/701/known": one(1), "accounts/701/of": one(3), "accounts/701/missing": one(7.5),
	}},
	{"all accounts are known; neither a watch nor a saved configuration exists", map[string]string{
		`server_rental_account_balance_usd{job="a", instance="a", account="main"}`:                                      "12.5x60",
		`server_rental_exporter_collector_interval_seconds{job="a", instance="a", collector="account", account="main"}`: "60x60",
		`server_rental_configurations{job="a", instance="a", account="main"}`:                                           "0x60",
		`server_rental_catalog_plans{job="a", instance="a"}`:                                                            "15x60",
	}, "10m", map[string]map[string]float64{"accounts/701/known": {}, "accounts/701/of": {}, "stock/501/stock": one(-1), "stock/601/plans": one(-1)}},
	{"nothing is known of watches and saved configurations", map[string]string{`up{job="a", instance="a"}`: "1x60"}, "10m", map[string]map[string]float64{"stock/501/stock": {}, "stock/601/plans": {}}},
}

// exporterDown is the state of an exporter that exported everything until ten minutes ago: all panels
// of the present are empty, but for those of what is not the provider's.
func exporterDown(t *testing.T) state {
	s := state{"the exporter is down", map[string]string{
		`up{job="a", instance="a"}`: "1x20 0x20", `plan:server_rental_plan_in_stock:avg90d`: "1x20 0x20",
	}, "30m", map[string]map[string]float64{}}
	for _, d := range exporter.Definitions() {
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

// TestStates lets promtool evaluate queries of panels in each state.
func TestStates(t *testing.T) {
	queries := map[string]string{}
	for _, d := range grafana.Load(t) {
		for _, q := range d.Queries() {
			queries[strings.TrimPrefix(q.Key, "server-rental-")] = grafana.Interpolate(q.Expr, map[string]string{"currency": "usd", "plan": "p", "__interval": "5m"})
		}
	}
	type object = map[string]any
	var tests []object
	for _, s := range append(states, exporterDown(t)) {
		var series, expressions []object
		for selector, values := range s.series {
			series = append(series, object{"series": selector, "values": values})
		}
		for key, want := range s.want {
			var samples []object
			for labels, value := range want {
				samples = append(samples, object{"labels": labels, "value": value})
			}
			expr := queries[strings.TrimPrefix(key, "sum ")]
			if strings.HasPrefix(key, "sum ") {
				expr = "sum(" + expr + ")"
			}
			expressions = append(expressions, object{"expr": expr, "eval_time": s.at, "exp_samples": samples})
		}
		tests = append(tests, object{"name": s.name, "interval": "1m", "input_series": series, "promql_expr_test": expressions})
	}
	text, err := yaml.Marshal(object{"tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	file := simtest.WriteFile(t, filepath.Join(t.TempDir(), "states.test.yml"), string(text))
	if out, err := exec.Command(repo.Program(t, "promtool"), "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
