package alerts_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// month is the number of minutes of a history.
const month = 30 * 24 * 60

// exporters returns which exporter is scraped in each minute, 0 for none: each is replaced
// by the next, some after a gap of hours.
func exporters(r *rand.Rand) []int {
	var all []int
	for n := 1; len(all) < month; n++ {
		for range 12*60 + r.IntN(5*24*60) {
			all = append(all, n)
		}
		if r.IntN(2) == 0 {
			all = append(all, make([]int, 60+r.IntN(10*60))...)
		}
	}
	return all[:month]
}

// planHistory is whether a plan is in stock in each minute.
type planHistory []bool

// newPlanHistory returns a history with stays of given mean lengths in minutes.
func newPlanHistory(r *rand.Rand, soldOut, inStock int) planHistory {
	var all planHistory
	for len(all) < month {
		for range soldOut/2 + r.IntN(soldOut) {
			all = append(all, false)
		}
		for range inStock/2 + r.IntN(inStock) {
			all = append(all, true)
		}
	}
	return all[:month]
}

// means returns how many known minutes there are for each restock, and in how many of
// them the plan is in stock. Both are 0 without restocks.
func (h planHistory) means(exporters []int) (returns, stay float64) {
	known, inStock, restocks := 0, 0, 0
	for i, stock := range h {
		if exporters[i] == 0 {
			continue
		}
		known++
		if stock {
			inStock++
			if i > 0 && exporters[i-1] != 0 && !h[i-1] {
				restocks++
			}
		}
	}
	if restocks == 0 {
		return 0, 0
	}
	return float64(known) / float64(restocks), float64(inStock) / float64(restocks)
}

// input adds the values of the gauge and of the counter of each exporter to a test.
func (h planHistory) input(values map[string]*strings.Builder, plan string, exporters []int) {
	restocks := 0
	for i, n := range exporters {
		if n == 0 {
			continue
		}
		switch {
		case i == 0 || exporters[i-1] != n:
			restocks = 0
		case h[i] && !h[i-1]:
			restocks++
		}
		stock := 0
		if h[i] {
			stock = 1
		}
		for name, value := range map[string]int{"server_rental_plan_in_stock": stock, "server_rental_plan_restocks_total": restocks} {
			series := fmt.Sprintf("%s{plan=%q, job=\"rental\", instance=\"%d\"}", name, plan, n)
			if values[series] == nil {
				values[series] = &strings.Builder{}
				fmt.Fprintf(values[series], "_x%d", i)
			}
			fmt.Fprintf(values[series], " %d", value)
		}
	}
}

// TestStayAndReturn compares the recording rules with a count minute by minute over a
// month with gaps and replaced exporters.
func TestStayAndReturn(t *testing.T) {
	promtool := repo.Program(t, "promtool")
	if testing.Short() {
		t.Skip("evaluates rules over a month")
	}
	const seed = 22
	r := rand.New(rand.NewPCG(seed, 0))
	scraped := exporters(r)
	plans := map[string]planHistory{
		"often": newPlanHistory(r, 300, 20),
		"half":  newPlanHistory(r, 400, 400),
		// Mostly in stock between two evaluations.
		"short": newPlanHistory(r, 180, 2),
		"never": make(planHistory, month), "always": slices.Repeat(planHistory{true}, month),
	}
	values := map[string]*strings.Builder{}
	var returns, stays []sample
	for plan, h := range plans {
		h.input(values, plan, scraped)
		if back, stay := h.means(scraped); back > 0 {
			labels := fmt.Sprintf("{plan=%q}", plan)
			returns, stays = append(returns, sample{labels, back * 60}), append(stays, sample{labels, stay * 60})
		}
	}
	simtest.AssertEqual(t, "plans that came back", len(returns), 3)
	var input []map[string]string
	for series, v := range values {
		input = append(input, map[string]string{"series": series, "values": v.String()})
	}
	rules, expr := waitingRules(t)
	dir := t.TempDir()
	write := func(name string, content any) string {
		text, err := yaml.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		return simtest.WriteFile(t, filepath.Join(dir, name), string(text))
	}
	run(t, promtool, "test", "rules", write("waiting.test.yml", map[string]any{
		"rule_files":          []string{write("waiting.rules.yml", map[string]any{"groups": []any{map[string]any{"name": "waiting", "rules": rules}}})},
		"evaluation_interval": "3m",
		"tests": []any{map[string]any{"interval": "1m", "input_series": input, "promql_expr_test": append(
			near(expr["plan:server_rental_plan_return_seconds:avg30d"], returns), near(expr["plan:server_rental_plan_stay_seconds:avg30d"], stays)...,
		)}},
	}))
}

// waitingRules returns the rules to evaluate all the time, and the expressions of those
// to evaluate at the end: thousands of evaluations of 30 days take minutes.
func waitingRules(t *testing.T) (rules []map[string]string, expr map[string]string) {
	t.Helper()
	expr = map[string]string{}
	for _, f := range ruleFiles(t) {
		for _, r := range f.rules() {
			switch r.Record {
			case "plan:server_rental_plan_in_stock:max", "plan:server_rental_plan_in_stock:avg1h", "plan:server_rental_plan_restocks:max1h", "plan:server_rental_plan_stay_seconds:sum1h":
				rules = append(rules, map[string]string{"record": r.Record, "expr": r.Expr})
			case "plan:server_rental_plan_return_seconds:avg30d", "plan:server_rental_plan_stay_seconds:avg30d":
				expr[r.Record] = r.Expr
			}
		}
	}
	simtest.AssertEqual(t, "rules", len(rules)+len(expr), 6)
	return rules, expr
}

// near returns tests of an expression that pass if it has a value for the plans of the
// samples only, and each value is off by less than a tenth.
func near(expr string, want []sample) []any {
	at := fmt.Sprintf("%dm", month-1)
	var all []any
	var plans []sample
	for _, s := range want {
		plans = append(plans, sample{s.Labels, 1})
		all = append(all, map[string]any{
			"expr":      fmt.Sprintf("abs((%s) / %f - 1) < bool 0.1 and on (plan) plan:server_rental_plan_in_stock:max%s", expr, s.Value, s.Labels),
			"eval_time": at, "exp_samples": []sample{{s.Labels, 1}},
		})
	}
	return append(all, map[string]any{"expr": "count by (plan) (" + expr + ")", "eval_time": at, "exp_samples": plans})
}
