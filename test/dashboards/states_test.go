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
	want   map[string]map[string]float64 // values by query and labels
}

var one = func(value float64) map[string]float64 { return map[string]float64{"{}": value} }

var states = []state{
	{"the provider is down for 40 intervals", map[string]string{
		`server_rental_exporter_collector_last_success_timestamp_seconds{job="a", instance="a", collector="plans", account=""}`: "0x60",
		`server_rental_exporter_collector_data_timestamp_seconds{job="a", instance="a", collector="plans", account=""}`:         "0x5",
		`server_rental_exporter_collector_interval_seconds{job="a", instance="a", collector="plans", account=""}`:               "60x60",
	}, "40m", map[string]map[string]float64{"status/903/A": one(40), "status/301/intervals": {`{collector="plans"}`: 40}, "status/301/data": {}}},
	{"no rules", map[string]string{`up{job="a", instance="a"}`: "1x60"}, "10m", map[string]map[string]float64{"stock/904/A": {}}},
	{"no alert fires", map[string]string{`exporter:server_rental_exporter_build_info:count`: "1x60"}, "1m", map[string]map[string]float64{"stock/904/A": one(0)}},
	{"two alerts of one name fire, one of which nobody is told, and one is pending", map[string]string{
		`exporter:server_rental_exporter_build_info:count`:                                                        "1x60",
		`ALERTS{alertname="ServerRentalTokenRejected", alertstate="firing", severity="critical", account="main"}`: "1x60",
		`ALERTS{alertname="ServerRentalTokenRejected", alertstate="firing", severity="critical", account="lab"}`:  "1x60",
		`ALERTS{alertname="ServerRentalPlanSoldOut", alertstate="firing", severity="info", plan="p"}`:             "1x60",
		`ALERTS{alertname="ServerRentalExporterDown", alertstate="pending", severity="critical"}`:                 "1x60",
	}, "10m", map[string]map[string]float64{"status/904/A": one(2)}},
	{"maintenance of one of two components", map[string]string{
		`server_rental_component_state{job="a", instance="a", location="fra", component="network", state="Maintenance"}`: "1x60",
		`server_rental_component_state{job="a", instance="a", location="fra", component="ddos", state="operational"}`:    "1x60",
	}, "10m", map[string]map[string]float64{
		"status/102/A": {`{state="Maintenance"}`: 1, `{state="operational"}`: 1}, "status/202/failed": {},
		"status/202/maintenance": {`{component="network", location="fra", state="Maintenance"}`: 1},
	}},
	{"the exporter was replaced by one that saw no restock", map[string]string{
		`server_rental_plan_last_restock_timestamp_seconds{job="a", instance="old", plan="p"}`: "60x20 _x100",
		`server_rental_plan_in_stock{job="a", instance="old", plan="p"}`:                       "1x20 _x100",
		`server_rental_plan_in_stock{job="a", instance="new", plan="p"}`:                       "_x25 1x100",
		`plan:server_rental_plan_in_stock:max{plan="p"}`:                                       "0 1 0 1x117",
	}, "2h", map[string]map[string]float64{"stock/110/restock": {`{plan="p"}`: 60_000}, "plan/103/restocks": {`{plan="p"}`: 2}}},
	{"plans are not collected any more", map[string]string{
		`plan:server_rental_plan_in_stock:max{plan="p"}`: "0 1 0 1x20 _x100",
	}, "2h", map[string]map[string]float64{"plan/103/restocks": {`{plan="p"}`: 2}}},
	{"a price changed, of which an alert told at 11m", map[string]string{
		`ALERTS{alertname="ServerRentalPlanPriceChanged", alertstate="firing", kind="news", plan="p"}`: "_x11 1x20",
		`ALERTS{alertname="ServerRentalPlanBackInStock", alertstate="firing", kind="news", plan="p"}`:  "_x11 1x20",
	}, "12m", map[string]map[string]float64{"plan/annotation/News": {`ALERTS{alertname="ServerRentalPlanPriceChanged", alertstate="firing", kind="news", plan="p"}`: 1}}},
	{"an alert tells of a price since nine minutes", map[string]string{
		`ALERTS{alertname="ServerRentalPlanPriceChanged", alertstate="firing", kind="news", plan="p"}`: "_x11 1x20",
	}, "20m", map[string]map[string]float64{"plan/annotation/News": {}}},
	{"one of three accounts is known", map[string]string{
		`server_rental_account_balance_usd{job="a", instance="a", account="main"}`:                                      "12.5x60",
		`server_rental_exporter_collector_interval_seconds{job="a", instance="a", collector="account", account="main"}`: "60x60",
		`server_rental_exporter_collector_interval_seconds{job="a", instance="a", collector="account", account="lab"}`:  "60x60",
		`server_rental_exporter_collector_interval_seconds{job="a", instance="a", collector="servers", account="lab"}`:  "60x60",
		`server_rental_exporter_collector_interval_seconds{job="a", instance="a", collector="account", account="held"}`: "60x60",
	}, "10m", map[string]map[string]float64{
		"accounts/701/A": one(12.5), "accounts/701/known": one(1), "accounts/701/of": one(3),
		"accounts/702/A": {}, "accounts/702/known": one(0), "accounts/702/of": one(3),
	}},
}

// exporterDown is the state of an exporter that exported everything until ten minutes ago: all panels
// of the present are empty, but for those of what is not the provider's.
func exporterDown(t *testing.T) state {
	s := state{"the exporter is down", map[string]string{
		`up{job="a", instance="a"}`: "1x20 0x20", `exporter:server_rental_exporter_build_info:count`: "1x20 0x20",
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
				switch q.Panel.Title {
				case "Exporters":
					s.want[key][`{instance="a"}`] = 0
				case "Alerts":
					s.want[key]["{}"] = 0
				case "Errors in 24 hours": // the past
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
			expressions = append(expressions, object{"expr": queries[key], "eval_time": s.at, "exp_samples": samples})
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
