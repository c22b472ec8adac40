package dashboards_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/grafana"
	"server_rental_exporter/test/internal/repo"
)

// TestMoney evaluates how much the sums over all transactions grew in the interval that
// begins at a time. They are gauges: an exporter's restart, a removed transaction and a
// first value are no money.
func TestMoney(t *testing.T) {
	type sample = map[string]any
	grew := func(byType ...any) []sample { // type, sum, type, sum
		samples := []sample{}
		for pair := range slices.Chunk(byType, 2) {
			samples = append(samples, sample{"labels": fmt.Sprintf("{type=%q}", pair[0]), "value": pair[1]})
		}
		return samples
	}
	var tests []any
	for _, c := range []struct {
		name         string
		series       []string // exporter, type, a sample for each minute
		at, interval string
		want         []sample
	}{
		{"first value of an account", []string{"a", "topup", "_x20 100x40"}, "19m", "5m", grew("topup", 0)},
		{"the hour of an account's first value", []string{"a", "topup", "_x20 100x40 150x40"}, "1m", "1h", grew("topup", 50)},
		{"restart", []string{"a", "topup", "100x20 _x10 130x60"}, "28m", "5m", grew("topup", 30)},
		{"removed", []string{"a", "topup", "100x100 60x30"}, "98m", "5m", grew("topup", 0)},
		{"after a removal", []string{"a", "topup", "100x100 60x30 75x20"}, "131m", "5m", grew("topup", 15)},
		{"the hour of a removal", []string{"a", "topup", "100x100 60x30 75x20"}, "80m", "1h", grew("topup", 0)},
		{"an interval of six hours that has not ended", []string{"a", "topup", "100x100 150x20"}, "1m", "6h", grew("topup", 50)},
		{"first value of a type", []string{"a", "topup", "100x200", "a", "refund", "_x100 12x80"}, "99m", "5m", grew("topup", 0, "refund", 12)},
		{"two exporters", []string{"a", "topup", "100x100 110x80", "b", "topup", "100x103 110x77"}, "99m", "5m", grew("topup", 10)},
		{"after the first of two exporters", []string{"a", "topup", "100x100 110x80", "b", "topup", "100x103 110x77"}, "101m", "5m", grew("topup", 0)},
	} {
		series := []map[string]string{}
		for s := range slices.Chunk(c.series, 3) {
			series = append(series, map[string]string{
				"series": fmt.Sprintf(`server_rental_transactions_credit_usd{job="rental", instance=%q, account="main", type=%q}`, s[0], s[1]), "values": s[2],
			})
		}
		expr := grafana.Interpolate(queryOf(t, "server-rental-accounts/501/in"), map[string]string{"__interval": c.interval})
		tests = append(tests, queryTest(c.name, series, expr, c.at, c.want))
	}
	promtool(t, tests)
}

// TestLastKnown evaluates the variables of the last data, and queries with their values, at the
// first scrape, later, and after the exporter goes down.
func TestLastKnown(t *testing.T) {
	query := func(key, at, to string) string {
		return grafana.Interpolate(queryOf(t, key), map[string]string{
			"at": at, "saved": at, "__to:date:seconds": to, "currency": "usd", "__interval": "1h", "__interval_ms": "3600000",
		})
	}
	type check struct {
		expr, time, labels string
		value              float64
	}
	checks := []check{
		{query("server-rental-plan/101/stock", "+", "0"), "0m", `{plan="a"}`, 1},
		{query("server-rental-plan/101/stock", "6000.", "6600"), "110m", `{plan="a"}`, 11},
		{query("server-rental-plan/905/A", "+", "300"), "5m", `{state="Up to date"}`, 300_000},
		{query("server-rental-plan/905/A", "6000.", "6600"), "110m", `{state="The exporter is down since"}`, 6_000_000},
		{query("server-rental-stock/110/since", "6000.", "6600"), "110m", `{plan="a"}`, 240_000}, // of a subquery
		{query("server-rental-stock/501/stock", "6000.", "6600"), "110m", `{key="main/c"}`, 11},
		{query("server-rental-stock/601/now", "+", "0"), "0m", `{watch="w", now="2"}`, 1},
		{query("server-rental-stock/601/now", "6000.", "6600"), "110m", `{watch="w", now="(2)"}`, 1},
		{query("server-rental-stock/602/stock", "6000.", "6600"), "110m", `{item="main/c"}`, 11},
		{query("server-rental-stock/303/new", "6000.", "6600"), "90m", `{plan="a"}`, 120}, // of the interval that has not ended
		{query("server-rental-accounts/107/token", "6000.", "6600"), "110m", `{account="main"}`, 11},
	}
	for _, v := range grafana.Load(t)["server-rental-plan"].Templating.List {
		if slices.Contains([]string{"at", "saved", "provider"}, v.Name) {
			last := grafana.Interpolate(strings.TrimSuffix(strings.TrimPrefix(v.Query, "query_result("), ")"), nil)
			for at, value := range map[string]string{"0m": "+", "90m": "+", "105m": "6000.", "110m": "6000.", "12h": "6000.", "2d": "+"} {
				checks = append(checks, check{last, at, fmt.Sprintf("{at=%q}", value), 1})
			}
		}
	}
	var queries []any
	for _, c := range checks {
		queries = append(queries, map[string]any{"expr": c.expr, "eval_time": c.time, "exp_samples": []map[string]any{{"labels": c.labels, "value": c.value}}})
	}
	series := []map[string]string{}
	for s := range slices.Chunk([]string{
		"exporter_build_info", "", "1", "catalog_plans", "", "1", "plan_in_stock", `, plan="a"`, "1", "plan_stock_changed_timestamp_seconds", `, plan="a"`, "240",
		"configuration_info", `, account="main", configuration="c", plan="a", location="fra"`, "1", "configuration_in_stock", `, account="main", configuration="c"`, "1", "configurations", `, account="main"`, "1",
		"watch_plans_in_stock", `, watch="w"`, "2", "exporter_api_token_rejected", `, account="main"`, "1", "exporter_collector_interval_seconds", `, account="main"`, "60",
		"plan_price_usd_per_month", `, plan="a"`, "100x94 120",
	}, 3) {
		values := s[2] + "x100 stale"
		if strings.Contains(s[2], " ") {
			values = s[2] + "x5 stale _"
		}
		series = append(series, map[string]string{"series": fmt.Sprintf(`server_rental_%s{job="rental", instance="a"%s}`, s[0], s[1]), "values": values})
	}
	promtool(t, []any{map[string]any{"interval": "1m", "promql_expr_test": queries, "input_series": series}})
}

// TestBalanceAhead evaluates the balance in the next 30 days, which the time range stands for,
// after the first scrape: at its beginning and in the middle.
func TestBalanceAhead(t *testing.T) {
	ahead := func(at string, value float64) map[string]any {
		expr := grafana.Interpolate(queryOf(t, "server-rental-accounts/108/ranked"), map[string]string{
			"__to:date:seconds": "90", "__from:date:seconds": "0", "__range_s": "180",
		})
		return map[string]any{"expr": expr, "eval_time": at, "exp_samples": []map[string]any{{"labels": `{name="1. main"}`, "value": value}}}
	}
	input := func(metric, labels, value string) map[string]string {
		return map[string]string{"series": fmt.Sprintf(`server_rental_%s{job="rental", instance="a", account="main"%s}`, metric, labels), "values": "_ " + value + "x10"}
	}
	promtool(t, []any{map[string]any{
		"interval": "90s", "promql_expr_test": []any{ahead("0s", 100), ahead("90s", 40), untilLater},
		"input_series": []map[string]string{
			input("account_balance_usd", "", "100"), input("servers", `, status="active"`, "1"), input("account_funded_until_timestamp_seconds", "", "86400"),
			input("server_info", `, server="s", plan="a", location="fra"`, "1"), input("server_status", `, server="s", status="active"`, "1"),
			input("server_renews_timestamp_seconds", `, server="s"`, "180"), input("server_price_usd_per_month", `, server="s"`, "60"),
		},
	}})
}

// TestFigures evaluates queries at times at which part of the data is unknown, or after changes
// that the present values do not show.
func TestFigures(t *testing.T) {
	maintained := []string{
		"component_operational", `location="fra", component="network"`, "1x3 0x6",
		"component_state", `location="fra", component="network", state="Scheduled Maintenance"`, "_x4 1x5",
	}
	const (
		alert    = `alertname="ServerRentalComponentNotOperational", severity="critical", location="fra", component="network"`
		about    = `alertname="ServerRentalComponentNotOperational", severity="critical", object="      fra network ", anchor="ServerRentalComponentNotOperational"`
		sentence = alert + `, object="ServerRentalComponentNotOperational", state="An alert fires: ServerRentalComponentNotOperational"`
	)
	restocked := []string{"plan_in_stock", `plan="a"`, "0x30 1x20 0x60", "plan_stock_changed_timestamp_seconds", `plan="a"`, "_x31 1860x20 3120x60", "plan_price_usd_per_month", `plan="a"`, "100x60 120x60"}
	var tests []any
	for _, c := range []struct {
		name         string
		series       []string // metric, labels, a sample for each minute
		at, interval string
		key          string
		want         string // labels of the only series, if any
		value        float64
	}{
		{
			"nothing to pay",
			[]string{"account_cost_usd_per_month", `account="a"`, "0x60", "servers", `account="a", status="active"`, "0x60"},
			"0m", "1m",
			"server-rental-accounts/107/until", `{account="a"}`, 1e14,
		},
		{
			"balance unknown",
			[]string{"account_cost_usd_per_month", `account="a"`, "60x60", "servers", `account="a", status="active"`, "1x60"},
			"0m", "1m",
			"server-rental-accounts/107/until", "", 0,
		},
		{
			"prices unknown",
			[]string{"account_balance_usd", `account="a"`, "60x60", "servers", `account="a", status="active"`, "1x60"},
			"0m", "1m",
			"server-rental-accounts/107/missing", "", 0,
		},
		{"top-up that is no longer expired", []string{"topups", `account="a", status="expired"`, "3x60 2x10"}, "65m", "10m", "server-rental-accounts/401/A", `{status="expired"}`, 0},
		{"old response", []string{
			"exporter_build_info", "", "1x60", "exporter_collector_last_success_timestamp_seconds", `collector="plans", account=""`, "3000x60",
			"exporter_collector_interval_seconds", `collector="plans", account=""`, "60x60", "exporter_collector_success", `collector="plans", account=""`, "1x60",
			"exporter_collector_response_age_seconds", `collector="plans", account=""`, "1200x60",
		}, "60m", "1m", "server-rental-status/301/age", `{key="plans/(public)"}`, 1800},
		{"old response of the status", []string{
			"exporter_build_info", "", "1x60", "exporter_collector_last_success_timestamp_seconds", `collector="status", account=""`, "3000x60",
			"exporter_collector_interval_seconds", `collector="status", account=""`, "60x60", "exporter_collector_success", `collector="status", account=""`, "1x60",
			"exporter_collector_response_age_seconds", `collector="status", account=""`, "1200x60",
		}, "60m", "1m", "server-rental-status/301/age", `{key="status/(public)"}`, 600},
		{
			"change before a restart",
			[]string{"plan_in_stock", `plan="a"`, "0x70 1x110", "plan_stock_changed_timestamp_seconds", `plan="a"`, "_x71 4260x20 stale"},
			"180m", "1m",
			"server-rental-stock/110/since", `{plan="a"}`, 4_260_000,
		},
		{"share of a watch", []string{"watch_plans_in_stock", `watch="w"`, "0x30 1x149"}, "180m", "1m", "server-rental-stock/601/share", `{watch="w"}`, 0.75},
		{"sold out without an exporter that saw it", []string{"plan_in_stock", `plan="a"`, "1x50 0x20 1x109"}, "180m", "1m", "server-rental-stock/110/since", `{plan="a"}`, 3_600_000},
		{
			"restocks of this hour",
			[]string{"plan_info", `plan="a"`, "1x180", "plan_restocks_total", `plan="a"`, "0x150 3x29", "plan:server_rental_plan_restocks:max1h", `plan="a"`, "0x180"},
			"180m", "1m",
			"server-rental-plan/103/month", `{plan="a"}`, 3,
		},
		{"price of the next step", []string{"plan_price_usd_per_month", `plan="a"`, "100x10 120x100"}, "5m", "1h", "server-rental-stock/303/new", `{plan="a"}`, 120},
		{"price before a gap", []string{"plan_price_usd_per_month", `plan="a"`, "100x10 _x60 120x60"}, "60m", "1h", "server-rental-stock/303/old", `{plan="a"}`, 100},
		{"stock of the last step", []string{"plan_in_stock", `plan="a"`, "0x10 1x10"}, "11m", "1h", "server-rental-stock/201/A", `{plan="a"}`, 1},
		{"stock after a step without data", []string{"plan_in_stock", `plan="a"`, "1x5 _x20 1x10"}, "20m", "1h", "server-rental-stock/201/A", `{plan="a"}`, 1},
		{"one in stock", []string{"catalog_plans", "", "2x5", "watch_plan_in_stock", `watch="w", plan="a"`, "0x5", "watch_plan_in_stock", `watch="w", plan="b"`, "1x5"}, "1m", "1m", "server-rental-stock/602/stock", `{item="b"}`, 1},
		{"none in stock", []string{"catalog_plans", "", "2x5", "watch_plan_in_stock", `watch="w", plan="a"`, "0x5"}, "1m", "1m", "server-rental-stock/602/stock", `{item="a"}`, 0},
		{"nothing to wait for", []string{"catalog_plans", "", "2x5"}, "1m", "1m", "server-rental-stock/602/stock", `{item="none"}`, -1},
		{
			"usually back",
			[]string{
				"plan_in_stock", `plan="a"`, "0x5", "plan_last_in_stock_timestamp_seconds", `plan="a"`, "3600x5",
				"plan:server_rental_plan_return_seconds:avg30d", `plan="a"`, "7200x5", "plan:server_rental_plan_stay_seconds:avg30d", `plan="a"`, "600x5",
			},
			"1m", "1m", "server-rental-stock/602/back", `{item="a"}`, 10_200_000,
		},
		{"usually back without rules", []string{"plan_in_stock", `plan="a"`, "0x5", "plan_last_in_stock_timestamp_seconds", `plan="a"`, "3600x5"}, "1m", "1m", "server-rental-stock/602/back", "", 0},
		{"stays without rules", []string{"plan_in_stock", `plan="a"`, "1x5"}, "1m", "1m", "server-rental-stock/110/stays", `{plan="a"}`, -1},
		{"no watches", []string{"catalog_plans", "", "2x5"}, "1m", "1m", "server-rental-stock/601/now", `{watch="None configured", now="0"}`, 1},
		{"watches not known", []string{"catalog_plans", "", "2x5", "exporter_collector_success", `collector="locations"`, "0x5"}, "1m", "1m", "server-rental-stock/601/now", "", 0},
		{
			"restocks by hour",
			[]string{"plan:server_rental_plan_restocks:max1h", `plan="a"`, "_x119 3 _x60"},
			"180m", "1m", "server-rental-stock/205/restocks", `{part="1"}`, 3,
		},
		{
			"a location with less",
			[]string{"plan_in_stock", `plan="a"`, "1x5", "plan_offered", `plan="a", location="fra"`, "1x5", "location_plans_in_stock", `location="fra"`, "0x5"},
			"1m", "1m", "server-rental-stock/403/missing", `{location="fra"}`, 1,
		},
		{
			"a contradiction",
			[]string{"plan_in_stock", `plan="a"`, "0x5", "configuration_in_stock", `account="m", configuration="c"`, "1x5", "configuration_info", `account="m", configuration="c", plan="a", location="fra"`, "1x5"},
			"1m", "1m", "server-rental-stock/404/stock", `{account="m", configuration="c", plan="a", location="fra", key="m/c"}`, 1,
		},
		{"a restock began", restocked, "90m", "1m", "server-rental-plan/207/start", `{began="1860"}`, 1_860_000},
		{"a restock lasted", restocked, "90m", "1m", "server-rental-plan/207/lasted", `{began="1860"}`, 1200},
		{"a restock's price", restocked, "90m", "1m", "server-rental-plan/207/price", `{began="1860"}`, 100},
		{"incident of the last step", []string{"incidents_ongoing", "", "0x10 1x10"}, "10m", "1h", "server-rental-status/204/incidents", "{}", 1},
		{"outages without rules", []string{"exporter_build_info", "", "1x10", "component_operational", `location="fra", component="network"`, "0x10"}, "5m", "2m", "server-rental-status/202/A", `{location="needs the recording rules"}`, -1},
		{"failing collectors without rules", []string{"exporter_build_info", "", "1x10", "exporter_collector_success", `collector="plans", account=""`, "0x10"}, "5m", "1m", "server-rental-status/302/A", `{collector="needs the recording rules"}`, -1},
		{
			"an outage of ten minutes so far",
			[]string{"location_component:server_rental_component_failing:group", `location="fra", component="network"`, "_x61 1x10"},
			"60m", "30m",
			"server-rental-status/206/lasted", `{location="fra", component="network"}`, 660,
		},
		{"maintenance is not down", append(maintained, "status_info", `overall="maintenance"`, "1x10"), "9m", "1m", "server-rental-status/102/A", `{class="maintenance"}`, 1},
		{"states that were last known", append(maintained, "status_info", `overall="maintenance"`, "1x3 stale"), "9m", "1m", "server-rental-status/102/A", `{class="maintenance, last known"}`, 1},
		{"maintenance is no outage", maintained, "0m", "5m", "server-rental-status/annotation/Outages", "", 0},
		{"an outage", maintained[:3], "0m", "5m", "server-rental-status/annotation/Outages", `{location="fra", component="network"}`, 240_000},
		{
			"maintenance over time",
			[]string{
				"location_component:server_rental_component_operational:max", `location="fra", component="network"`, "0x10",
				"location_component:server_rental_component_maintenance:group", `location="fra", component="network"`, "1x10",
			},
			"5m", "2m", "server-rental-status/202/A", `{location="fra"}`, 0.5,
		},
		{
			"the highest age between two steps",
			[]string{
				"collector_account:server_rental_exporter_collector_data_timestamp_seconds:max", `collector="plans", account=""`, "0x29 3000x30",
				"exporter_collector_interval_seconds", `collector="plans", account=""`, "60x60",
			},
			"0m", "1h", "server-rental-status/303/A", `{collector="plans"}`, 28,
		},
		{"an alert", []string{"ALERTS", alert + `, alertstate="firing"`, "1x10", "ALERTS_FOR_STATE", alert, "60x10"}, "5m", "1m", "server-rental-status/109/since", "{" + about + "}", 60_000},
		{"a sentence about an alert", []string{"ALERTS", alert + `, alertstate="firing"`, "1x10", "ALERTS_FOR_STATE", alert, "60x10"}, "5m", "1m", "server-rental-status/108/A", "{" + sentence + "}", 60_000},
		{"the provider, by what it last said before", []string{"status_info", `overall="operational"`, "1x3 stale", "status_info", `overall="degraded"`, "_x3 1x10", "status_since_timestamp_seconds", "", "0x20"}, "10m", "1m", "server-rental-status/108/A", `{overall="degraded", object="degraded", state="The provider reports: degraded"}`, 180_000},
		{"no problem without rules", []string{"exporter_build_info", "", "1x10"}, "5m", "1m", "server-rental-status/108/A", `{state="No problem is known, without rules for alerts"}`, 300_000},
		{"no open top-ups", []string{"topups", `account="a", status="paid"`, "1x10", "account_balance_usd", `account="a"`, "1x10"}, "9m", "1m", "server-rental-accounts/402/info", `{status="None open", key="/"}`, 0},
		{"no open top-ups, last known", []string{"topups", `account="a", status="paid"`, "1x10", "account_balance_usd", `account="a"`, "1x3 stale", "exporter_collector_interval_seconds", `collector="topups", account="a"`, "60x10"}, "9m", "1m", "server-rental-accounts/402/info", `{status="(None open)", key="/"}`, 0},
		{
			"an account that is not known",
			[]string{"account_cost_usd_per_month", `account="a"`, "0x10", "exporter_collector_interval_seconds", `collector="account", account="a"`, "60x10", "exporter_collector_interval_seconds", `collector="account", account="b"`, "60x10"},
			"5m", "1m", "server-rental-accounts/104/unknown", "{}", 1,
		},
		{"a provider that never worked", []string{"exporter_build_info", "", "1x10", "exporter_collector_success", `collector="plans", account=""`, "0x10", "exporter_config_last_reload_success_timestamp_seconds", "", "60x10"}, "5m", "1m", "server-rental-plan/905/A", `{state="The provider fails since"}`, 60_000},
		{
			"an account that fails",
			[]string{
				"exporter_build_info", "", "1x10", "exporter_collector_success", `collector="account", account="a"`, "0x10", "exporter_collector_success", `collector="account", account="b"`, "1x10",
				"exporter_collector_last_success_timestamp_seconds", `collector="account", account="a"`, "60x10", "exporter_collector_last_success_timestamp_seconds", `collector="account", account="b"`, "240x10",
			},
			"5m", "1m", "server-rental-accounts/905/A", `{state="An account fails since"}`, 60_000,
		},
		{"alerts without rules", []string{"exporter_build_info", "", "1x10"}, "5m", "1m", "server-rental-status/109/since", `{alertname="needs the recording rules"}`, -1},
		{"a sentence about an exporter that is down", []string{"exporter_build_info", "", "1x10 stale"}, "30m", "1m", "server-rental-status/108/A", `{state="No exporter is scraped, last known states"}`, 600_000},
		{
			"when to pay with a coin",
			[]string{"account_funded_until_timestamp_seconds", `account="a"`, "86400x10", "topup_settlement_seconds", `account="a", coin="btc"`, "3600x10"},
			"5m", "1m", "server-rental-accounts/109/by", `{key="a/btc"}`, 82_800_000,
		},
		{"a cost with VAT", []string{"account_cost_usd_per_month", `account="a"`, "60x10"}, "5m", "1m", "server-rental-accounts/107/cost", `{account="a"}`, 75},
		{
			"servers after a restart",
			[]string{
				"servers", `account="a", status="active"`, "5x60", "servers", `account="b", status="active"`, "3x5 stale",
				"exporter_collector_interval_seconds", `collector="servers", account="a"`, "60x60", "exporter_collector_interval_seconds", `collector="servers", account="b"`, "60x60",
			},
			"30m", "1m", "server-rental-accounts/301/known", `{known="5", all="8", with="1", accounts="2"}`, 1,
		},
		{"a date in Hawaii", []string{"status_since_timestamp_seconds", "", "86400x10"}, "10m", "1m", "server-rental-status/205/since", "{}", (86400 + 10.5*3600) * 1000},
	} {
		series := []map[string]string{}
		for s := range slices.Chunk(c.series, 3) {
			name := s[0]
			if !strings.Contains(name, ":") && !strings.HasPrefix(name, "ALERTS") { // recorded ones have the prefix
				name = "server_rental_" + name
			}
			series = append(series, map[string]string{"series": fmt.Sprintf(`%s{job="rental", instance="a", %s}`, name, s[1]), "values": s[2]})
		}
		samples := []map[string]any{}
		if c.want != "" {
			samples = append(samples, map[string]any{"labels": c.want, "value": c.value})
		}
		to := "" // the query's
		if strings.Contains(c.key, "/303/") || strings.Contains(c.key, "/206/") {
			to = "10800" // later than the last step
		}
		expr := grafana.Interpolate(queryOf(t, c.key), map[string]string{"__interval": c.interval, "__interval_ms": "3600000", "currency": "usd", "vat": "25", "__range": "1h", "__to:date:seconds": to})
		expr = strings.ReplaceAll(expr, "[30d:2m]", "[2h:2m]") // promtool loads no more
		tests = append(tests, queryTest(c.name, series, expr, c.at, samples))
	}
	promtool(t, tests)
}

// queryTest returns a test of a query for promtool, with a sample for each minute.
func queryTest(name string, series []map[string]string, expr, at string, want []map[string]any) map[string]any {
	return map[string]any{"name": name, "interval": "1m", "input_series": series, "promql_expr_test": []any{
		map[string]any{"expr": expr, "eval_time": at, "exp_samples": want}, untilLater,
	}}
}

// untilLater makes promtool load what is later than the other queries, which their intervals may be.
var untilLater = map[string]any{"expr": "vector(0)", "eval_time": "3h", "exp_samples": []any{map[string]any{"labels": "{}", "value": 0}}}

// promtool runs tests of queries.
func promtool(t *testing.T, tests []any) {
	t.Helper()
	program := repo.Program(t, "promtool")
	file, err := yaml.Marshal(map[string]any{"tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "test", "rules", simtest.WriteFile(t, filepath.Join(t.TempDir(), "money.test.yml"), string(file)))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// queryOf returns the query with a key.
func queryOf(t *testing.T, key string) string {
	t.Helper()
	for _, d := range grafana.Load(t) {
		for _, q := range d.Queries() {
			if q.Key == key {
				return q.Expr
			}
		}
	}
	t.Fatalf("no query %s", key)
	return ""
}
