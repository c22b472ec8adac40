package promqltest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

func TestCheck(t *testing.T) {
	c := Exported()
	c["plan:in_stock:max"] = sets.New("plan")
	c["ALERTS"] = sets.New("alertname", "account")
	for expr, want := range map[string]string{
		`sum(increase(server_rental_exporter_api_errors_total{reason="timeout", path!~"/os|by (x)"}[15m])) > 0`:       "",
		`absent_over_time(server_rental_exporter_build_info[3m])`:                                                     "",
		`plan:in_stock:max == 1 and on (plan) last_over_time(plan:in_stock:max[6h] offset 15m) == 0`:                  "plan",
		`plan:in_stock:max / on (plan) max by (plan, job) (server_rental_plan_in_stock)`:                              "plan",
		`plan:in_stock:max * on (plan) group_right () max by (plan, name) (server_rental_plan_info)`:                  "name plan",
		`max by (job) (up) or plan:in_stock:max`:                                                                      "up: no such metric",
		`topk by (plan) (1, max by (plan, name) (max_over_time(server_rental_plan_info[90d:5m])))`:                    "name plan",
		`histogram_quantile(0.5, sum by (le) (rate(server_rental_exporter_api_request_duration_seconds_bucket[5m])))`: "",
		`max by (plan) ({__name__="server_rental_plan_price_usd_per_month", __name__=~".+_eur_.+"})`:                  "plan",
		`max by (plan) ({__name__=~"server_rental_plan_price_eur_per_month"})`:                                        "plan",
		`max by (plan) (server_rental_plan_instock)`:                                                                  "server_rental_plan_instock: no such metric",
		`max by (plan) (server_rental_plan_in_stock{location="fra"})`:                                                 "server_rental_plan_in_stock{location}: no such label",
		`max by (plan) (server_rental_ssh_keys) or server_rental_plan_in_stock`:                                       "by must name labels that",
		`server_rental_plan_in_stock and on (account) server_rental_ssh_keys`:                                         "name those to match with on",
		`server_rental_plan_in_stock * on (plan) group_left (city) plan:in_stock:max`:                                 `["city"]: the other side`,
		`plan:in_stock:max * ignoring (plan) plan:in_stock:max`:                                                       "name those to match with on",
		`label_replace(plan:in_stock:max, "kind", "x", "", "")`:                                                       "kind plan",
		`sum without (instance) (server_rental_plan_in_stock)`:                                                        "by must name labels that",
		`max by (plan) (plan:in_stock:max`:                                                                            "unclosed left parenthesis",
	} {
		have, err := c.Check(expr)
		got := strings.Join(sets.List(have), " ")
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != want || err != nil && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("%s\ngot  %q\nwant %q", expr, got, want)
		}
	}
}
