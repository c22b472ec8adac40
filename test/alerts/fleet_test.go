package alerts_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/exporter"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/grafana"
	"server_rental_exporter/test/internal/repo"
)

type sample struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

// fleet is a generated account.
type fleet struct {
	name    string
	balance int // in cents
	servers []fleetServer
}

type fleetServer struct {
	renews time.Time // zero where it is not known
	cents  int       // -1 where it is not known
	status string    // empty where it is not known
}

func (s fleetServer) renewsKnown() bool {
	over := slices.Contains([]string{"canceled", "cancelled", "terminated", "deleted", "expired"}, strings.ToLower(s.status))
	return !over && s.cents >= 0 && !s.renews.IsZero()
}

// due returns how many renewals are due until some days after today, their sum in cents,
// and the sum of each renewal's cents times its days from today. An overdue renewal counts
// once, on its day.
func (f fleet) due(today time.Time, days int) (count, sum, weighted int) {
	for _, s := range f.servers {
		if !s.renewsKnown() {
			continue
		}
		for _, day := range collector.RenewalDays(s.renews, today, today.AddDate(0, 0, days)) {
			count++
			sum += s.cents
			weighted += s.cents * int(day.Sub(today).Hours()/24)
		}
	}
	return count, sum, weighted
}

func newFleet(r *rand.Rand, name string, today time.Time, servers int) fleet {
	f := fleet{name: name, balance: r.IntN(1+servers*30_000) - 1000}
	statuses := []string{"active", "active", "active", "suspended", "", "pending", "canceled", "Cancelled", "TERMINATED", "deleted", "expired"}
	for range servers {
		s := fleetServer{cents: r.IntN(50_000), status: statuses[r.IntN(len(statuses))]}
		switch r.IntN(8) {
		case 0:
			s.renews = today
		case 1:
			s.renews = today.AddDate(0, 0, -r.IntN(1000))
		case 2: // the 31st of a month in the last two years
			s.renews = time.Date(today.Year()-r.IntN(2), []time.Month{1, 3, 5, 7, 8, 10, 12}[r.IntN(7)], 31, 0, 0, 0, 0, time.UTC)
		case 3: // not known
		default:
			s.renews = today.AddDate(0, 0, r.IntN(40))
		}
		switch r.IntN(8) {
		case 0:
			s.cents = 0
		case 1:
			s.cents = -1
		}
		f.servers = append(f.servers, s)
	}
	return f
}

func (f fleet) account(now time.Time) *simulator.Account {
	a := simulator.ExampleAccount(f.name, now)
	simulator.Put(a.Account, float64(f.balance)/100, "balance", "usd")
	a.Servers = simulator.Servers(len(f.servers), now)
	for i, s := range f.servers {
		o := a.Servers[i]
		o["status"], o["renews_at"], o["price"] = s.status, s.renews.Format(time.DateOnly), simulator.Object{"monthly": simulator.Object{"usd": float64(s.cents) / 100}}
		if s.status == "" {
			delete(o, "status")
		}
		if s.renews.IsZero() {
			delete(o, "renews_at")
		}
		if s.cents < 0 {
			delete(o, "price")
		}
	}
	return a
}

// export returns what the exporter exposes of the fleets at a time.
func export(t *testing.T, now time.Time, fleets []fleet) (data map[string]float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(now))
		api, tokens := simtest.Start(t, simulator.Options{}), map[string]string{}
		api.Change(func(w *simulator.World) {
			for _, f := range fleets {
				tokens[f.name] = "secret-" + f.name
				w.Accounts[tokens[f.name]] = f.account(now)
			}
		})
		var out, log bytes.Buffer
		if status := exporter.Main(t.Context(), exporter.Environment{
			// Fewer requests than a burst of the rate limit: the clock stands still beside open connections.
			Args:      []string{"--once", "--collector.disable-defaults", "--collector.account", "--collector.servers", "--config.file=" + api.ConfigFile(t.TempDir(), tokens, "")},
			LookupEnv: func(string) (string, bool) { return "", false }, Stdout: &out, Stderr: &log,
		}); status != 0 {
			t.Fatalf("exit status %d: %s", status, log.String())
		}
		data = simtest.ParseExposition(t, out.String(), "text/plain; version=0.0.4").Data()
	})
	return data
}

// panelQuery returns a query of the accounts dashboard with every choice at All.
func panelQuery(t *testing.T, id int, ref string) string {
	t.Helper()
	for _, q := range grafana.Load(t)["server-rental-accounts"].Queries() {
		if q.Panel.ID == id && q.RefID == ref {
			return grafana.Interpolate(q.Expr, nil)
		}
	}
	t.Fatalf("no panel %d with a query %q", id, ref)
	return ""
}

// TestFleets exports generated fleets, evaluates the recording rules and the queries of
// the dashboard on what is exported, and compares all with a count day by day.
func TestFleets(t *testing.T) {
	promtool := repo.Program(t, "promtool")
	if testing.Short() {
		t.Skip("evaluates rules on thousands of series")
	}
	const seed = 10
	t.Logf("seed %d", seed)
	for i, c := range []struct {
		day   string
		sizes []int
	}{
		{"2000-01-31", []int{0, 1, 40, 60}},
		{"2000-02-01", []int{1, 50}},
		{"2000-02-28", []int{1, 5, 40, 60}},
		{"2000-02-29", []int{1, 40, 60}},
		{"2000-04-30", []int{40, 60}},
		{"2000-12-31", []int{40, 60}},
		{"2001-01-30", []int{40, 60}},
		{"2001-02-01", []int{50}},
		{"2001-02-28", []int{40, 60}},
		{"2000-03-15", []int{1500}},
	} {
		t.Run(c.day, func(t *testing.T) {
			t.Parallel()
			today, err := time.Parse(time.DateOnly, c.day)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			var fleets []fleet
			for n, size := range c.sizes {
				fleets = append(fleets, newFleet(r, fmt.Sprintf("a%d", n), today, size))
			}
			now := today.Add(time.Duration(r.IntN(24*3600)) * time.Second)
			testFleets(t, promtool, now, fleets, export(t, now, fleets))
		})
	}
}

func testFleets(t *testing.T, promtool string, now time.Time, fleets []fleet, data map[string]float64) {
	t.Helper()
	type exprTest struct {
		Expr    string   `json:"expr"`
		Time    string   `json:"eval_time"`
		Samples []sample `json:"exp_samples"`
	}
	at := fmt.Sprintf("%ds", now.Unix())
	today := now.Truncate(24 * time.Hour)
	var week, month, estimate, missing, weighted, unfunded []sample
	totalWeek, totalMonth := 0, 0
	for _, f := range fleets {
		labels := fmt.Sprintf("{account=%q}", f.name)
		_, due7, _ := f.due(today, 7)
		count, due30, weight := f.due(today, 30)
		totalWeek, totalMonth = totalWeek+due7, totalMonth+due30
		priced := slices.ContainsFunc(f.servers, fleetServer.renewsKnown)
		_, costKnown := data[simtest.Series("server_rental_account_cost_usd_per_month", "account", f.name)]
		if priced || costKnown {
			week, month = append(week, sample{labels, float64(due7)}), append(month, sample{labels, float64(due30)})
			missing = append(missing, sample{labels, float64(max(due30-f.balance, 0))})
		}
		if priced {
			estimate = append(estimate, sample{labels, float64(due7)})
		}
		if due7 > max(f.balance, 0) {
			unfunded = append(unfunded, sample{labels, 1})
		}
		if count > 0 {
			weighted = append(weighted, sample{labels, float64(weight)})
		}
	}
	const prefix = "account:server_rental_account_renewals_due_usd:"
	cents := func(expr string) string { return "round(100 * (" + expr + "))" }
	byAccount := fmt.Sprintf(`sum by (account) (label_join(%s, "key", "/", "account", "server", "renewal") * on (key) group_left () (%s))`, panelQuery(t, 201, "amount"), panelQuery(t, 202, "left"))
	exprs := []exprTest{
		{cents(prefix + "sum7d"), at, week},
		{cents(prefix + "sum30d"), at, month},
		{cents(prefix + "estimate7d"), at, estimate},
		{cents(panelQuery(t, 107, "missing")), at, missing},
		{cents(byAccount), at, weighted},
		{"count by (account) (account:server_rental_account_funded_until_timestamp_seconds:max <= time() + 7 * 86400)", at, unfunded},
	}
	if len(week) > 0 {
		for expr, v := range map[string]int{
			"total:server_rental_account_renewals_due_usd:sum7d": totalWeek, "total:server_rental_account_renewals_due_usd:sum30d": totalMonth,
			panelQuery(t, 703, "week"): totalWeek, panelQuery(t, 703, "month"): totalMonth,
		} {
			exprs = append(exprs, exprTest{cents(expr), at, []sample{{"{}", float64(v)}}})
		}
	}
	var input []map[string]string
	for series, v := range data {
		series = strings.Replace(series, "{", `{job="rental",instance="a",`, 1)
		input = append(input, map[string]string{"series": series, "values": fmt.Sprintf("_ %.15g", v)})
	}
	file := simtest.Encode(t, map[string]any{
		"rule_files": []string{repo.Path(t, "alerts/billing.rules.yml")}, "evaluation_interval": at,
		"group_eval_order": []string{"server_rental_billing", "server_rental_totals"},
		"tests":            []any{map[string]any{"interval": at, "input_series": input, "promql_expr_test": exprs}},
	})
	run(t, promtool, "test", "rules", simtest.WriteFile(t, filepath.Join(t.TempDir(), "fleet.test.yml"), string(file)))
}
