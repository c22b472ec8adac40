package web

import (
	"errors"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/exposition"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/runner"
	"server_rental_exporter/internal/simulator/simtest"
)

// series are the value and the labels of a metric, whose name has no namespace.
type series struct {
	name   string
	value  float64
	labels []string
}

func one(name string, value float64, labels ...string) series { return series{name, value, labels} }

// given is what a view is made of.
type given struct {
	series     []series
	health     []health // instead of fresh ones
	disabled   []string // collectors
	configured Configured
}

// view returns the view of the account main, at sceneTime.
func (g given) view() *view {
	b := &metric.Builder{}
	definitions := slices.Concat(collector.Definitions(), runner.HealthDefinitions(), rentalapi.Definitions())
	for _, s := range g.series {
		i := slices.IndexFunc(definitions, func(d *metric.Definition) bool { return d.Name == metric.Namespace+s.name })
		b.Add(definitions[i], s.value, s.labels...)
	}
	samples := map[string][]*sample{}
	for _, m := range b.Metrics() {
		s := m.(*sample)
		name := strings.TrimPrefix(s.Definition().Name, metric.Namespace)
		samples[name] = append(samples[name], s)
	}
	for _, family := range samples {
		slices.SortFunc(family, func(a, b *sample) int { return slices.Compare(a.Labels, b.Labels) })
	}
	var all []health
	for _, r := range collector.Resources() {
		h := state(r.Name, time.Minute, nil)
		if i := slices.IndexFunc(g.health, func(h health) bool { return h.Collector == r.Name }); i >= 0 {
			h = g.health[i]
		}
		if r.Account {
			h.Account = "main"
		}
		if !slices.Contains(g.disabled, r.Name) {
			all = append(all, h)
		}
	}
	o := allEnabled()
	o.Published, o.Configured = exposition.NewPublisher(), func() Configured { return g.configured }
	v := newView(&fakeCollectors{health: all, ready: true}, o, sceneTime)
	v.samples = samples
	return v
}

// state is that of a collector, given how long ago it last succeeded, or 0 if never.
func state(name string, ago time.Duration, err error) health {
	h := health{Collector: name, State: refresh.State{Finished: true, Err: err, Settings: refresh.Settings{Interval: time.Minute, MaxAge: 9 * time.Minute}}}
	if ago > 0 {
		h.LastSuccess = sceneTime.Add(-ago)
		h.Taken = h.LastSuccess
	}
	return h
}

// unix is a time relative to sceneTime.
func unix(d time.Duration) float64 { return float64(sceneTime.Add(d).Unix()) }

// TestExpiredDespiteSuccess has fetches that succeeded and kept the old data until it expired.
func TestExpiredDespiteSuccess(t *testing.T) {
	h := state("plans", time.Minute, errDown)
	h.Taken = sceneTime.Add(-h.MaxAge)
	row := newCollectorRow(h, sceneTime, true)
	simtest.AssertEqual(t, "state, known and age", []any{row.Words, row.Known, row.Age}, []any{"failing, data expired", false, h.MaxAge})
}

// withAge is a collector whose last response was old.
func withAge(h health, age time.Duration) health {
	h.ResponseAge = &age
	return h
}

// withInvalid is a collector with an invalid item.
func withInvalid(h health, fields ...string) health {
	for _, field := range fields {
		h.Invalid.Add("epyc", rentalapi.FieldError{Field: field, Problem: "null"})
	}
	return h
}

var (
	errDown = errors.New("/plans: connection refused")
	usd     = 100.0
	cheap   = collector.Watch{Name: "cheap", MaxUSDPerMonth: &usd}
)

// noticeTests have each notice, and states that are next to its condition.
var noticeTests = []struct {
	name  string
	given given
	want  []notice
}{
	{name: "nothing", given: given{series: []series{
		one("status_info", 1, "Operational"), one("component_operational", 1, "fra", "network"), one("component_state", 1, "fra", "network", "Operational"),
		one("incidents_ongoing", 0), one("maintenances_scheduled", 0), one("location_info", 1, "fra", "", "Frankfurt", "", "", ""),
		one("catalog_generated_timestamp_seconds", unix(-time.Minute-30*time.Minute)),
		one("account_two_factor_enabled", 1, "main"), one("account_balance_usd", 10, "main"), one("account_cost_usd_per_month", 100, "main"),
		one("account_funded_until_timestamp_seconds", unix(8*day-9*time.Hour), "main"), one("exporter_api_token_rejected", 0, "main"),
		one("topup_info", 1, "main", "t1", "confirming", "btc", ""), one("topup_created_timestamp_seconds", unix(-3*time.Hour), "main", "t1"),
		one("topup_info", 1, "main", "t2", "pending", "btc", ""), one("topup_rate_locked_until_timestamp_seconds", unix(601*time.Second), "main", "t2"),
		one("topup_info", 1, "main", "t3", "pending", "btc", ""), one("topup_rate_locked_until_timestamp_seconds", unix(0), "main", "t3"),
		one("exporter_api_backoff_until_timestamp_seconds", unix(0), ""),
		one("watch_plans", 1, "cheap"), one("watch_last_hit_timestamp_seconds", unix(-901*time.Second), "cheap"),
	}, configured: Configured{Watches: []collector.Watch{cheap}}}},

	{name: "provider", given: given{series: []series{
		one("status_info", 1, "degraded"), one("incidents_ongoing", 2), one("maintenances_scheduled", 1),
		one("catalog_generated_timestamp_seconds", unix(-32*time.Minute)),
		one("component_operational", 0, "ams", "ipmi"), one("component_state", 1, "ams", "ipmi", "maintenance"),
		one("component_operational", 0, "fra", "network"), one("component_state", 1, "fra", "network", "outage"),
		one("location_info", 1, "fra", "", "Frankfurt", "", "", ""), one("location_plans", 1, "fra"), one("location_plans_in_stock", 0, "fra"),
		one("location_info", 1, "nyc", "", "New York", "", "", ""), one("location_plans", 0, "nyc"), one("location_plans_in_stock", 0, "nyc"),
	}}, want: []notice{
		{"bad", "ComponentNotOperational", "Frankfurt (fra)", "Component network: outage."},
		{"warn", "ProviderNotOperational", "Provider", "Overall state: degraded."},
		{"warn", "IncidentOngoing", "Provider", "2 incidents ongoing."},
		{"warn", "CatalogFrozen", "Catalog", "The provider has not updated it since 2026-03-30 08:28:00 UTC (32m ago)."},
		{"warn", "LocationWithoutStatus", "New York (nyc)", "The status has no component of this location."},
		{"info", "MaintenanceScheduled", "Provider", "1 maintenance window scheduled."},
		{"info", "ComponentNotOperational", "ams", "Component ipmi: maintenance."},
		{"info", "LocationSoldOut", "Frankfurt (fra)", "Nothing is in stock."},
	}},
	{name: "overall maintenance", given: given{series: []series{one("status_info", 1, "Under Maintenance")}}, want: []notice{
		{"info", "ProviderNotOperational", "Provider", "Overall state: Under Maintenance."},
	}},
	{name: "state not known", given: given{series: []series{one("status_info", 1, ""), one("location_info", 1, "fra", "", "", "", "", "")}}},

	{name: "account", given: given{
		series: []series{
			one("exporter_api_token_rejected", 1, "main"), one("account_two_factor_enabled", 0, "main"),
			one("server_info", 1, "main", "s1", "", "", "", "", "node-1"), one("server_status", 1, "main", "s1", "Suspended"),
			one("account_balance_usd", 9.99, "main"), one("account_cost_usd_per_month", 100, "main"),
			one("account_funded_until_timestamp_seconds", unix(7*day-9*time.Hour), "main"),
			one("topup_info", 1, "main", "t1", "Confirming", "btc", ""), one("topup_created_timestamp_seconds", unix(-181*time.Minute), "main", "t1"),
			one("topup_info", 1, "main", "t2", "Pending", "btc", ""), one("topup_rate_locked_until_timestamp_seconds", unix(10*time.Minute), "main", "t2"),
			one("topup_amount_usd", 50, "main", "t2"),
		},
		health: []health{state("account", 0, &rentalapi.Error{Reason: rentalapi.Unauthorized})},
	}, want: []notice{
		{"bad", "TokenRejected", "Account main", "The API token was rejected, or cannot be read."},
		{"bad", "ServerSuspended", "Account main", "1 server suspended: node-1."},
		{"warn", "BalanceLow", "Account main", "The balance of 9.99 USD is less than 10 % of the monthly cost of 100.00 USD."},
		{"warn", "RenewalsUnfunded", "Account main", "The balance cannot pay the renewals of 2026-04-06 (7 days)."},
		{"warn", "TopupStuck", "Account main", "A top-up of – USD is confirming; it was created 3h1m ago."},
		{"info", "TwoFactorDisabled", "Account main", "Two-factor authentication is disabled."},
		{"info", "TopupExpiring", "Account main", "A top-up of 50.00 USD awaits its payment; the rate lock ends in 10m."},
	}},
	{name: "debt", given: given{series: []series{one("account_balance_usd", -1, "main"), one("account_cost_usd_per_month", 1, "main")}}, want: []notice{
		{"bad", "BalanceLow", "Account main", "The balance is negative: -1.00 USD."},
	}},
	{name: "debt, costs not known", given: given{series: []series{one("account_balance_usd", -1, "main"), one("server_info", 1, "main", "s1", "", "", "", "", "")}}, want: []notice{
		{"bad", "BalanceLow", "Account main", "The balance is negative: -1.00 USD."},
	}},
	{name: "debt without servers", given: given{series: []series{one("account_balance_usd", -1, "main"), one("account_cost_usd_per_month", 0, "main")}}, want: []notice{
		{"warn", "BalanceLow", "Account main", "The balance is negative: -1.00 USD."},
	}},
	{name: "unfunded in 2 days", given: given{series: []series{one("account_funded_until_timestamp_seconds", unix(2*day-9*time.Hour), "main")}}, want: []notice{
		{"bad", "RenewalsUnfunded", "Account main", "The balance cannot pay the renewals of 2026-04-01 (2 days)."},
	}},

	{name: "collectors", given: given{
		health: []health{
			state("plans", time.Minute, errDown), state("account", 0, errDown), state("transactions", 9*time.Minute, nil), // fetched slowly
			withAge(state("locations", time.Minute, nil), 27*time.Hour), withAge(state("os", time.Minute, nil), 9*time.Minute), withAge(state("status", time.Minute, nil), 539*time.Second),
			withInvalid(state("ssh_keys", time.Minute, nil), "name"),
		},
		series: []series{
			one("exporter_api_backoff_until_timestamp_seconds", unix(time.Minute), ""), one("exporter_api_backoff_until_timestamp_seconds", unix(time.Hour), "main"),
		},
		configured: Configured{ReloadFailed: true},
	}, want: []notice{
		{"bad", "CollectorFailing", "Collector account of account main", "failing since the start: /plans: connection refused"},
		{"warn", "CollectorFailing", "Collector plans", "no success since 2026-03-30 08:59:00 UTC (1m ago): /plans: connection refused"},
		{"warn", "DataStale", "Collector locations", "The data is 1d3h1m old."},
		{"warn", "DataStale", "Collector os", "The data is 10m old."},
		{"warn", "DataStale", "Collector transactions of account main", "The data is 9m old."},
		{"warn", "ItemsInvalid", "Collector ssh_keys of account main", "1 invalid item in the last response: epyc: name: null."},
		{"warn", "RateLimited", "Public requests", "The API asked for a pause: no request is made for 1m."},
		{"warn", "RateLimited", "Account main", "The API asked for a pause: no request is made for 1h."},
		{"warn", "ConfigReloadFailed", "Configuration", "The last reload was refused, for the reason in the log. The former configuration is in force."},
	}},
	{name: "duplicate", given: given{health: []health{{Collector: "account", DuplicateOf: "lab", State: state("account", time.Minute, nil).State}}}, want: []notice{
		{"warn", "", "Account main", "same provider account as lab: sums over accounts count it twice"},
	}},

	{name: "watches", given: given{
		configured: Configured{Watches: []collector.Watch{cheap}},
		series:     []series{one("watch_plans", 0, "cheap"), one("catalog_plans", 1), one("plan_info", 1, planLabels()...)},
	}, want: []notice{
		{"warn", "WatchEmpty", "Watch cheap", "no plan whose values are known matches, in stock or not: check its criteria."},
	}},
	{name: "watch of an empty catalog", given: given{configured: Configured{Watches: []collector.Watch{cheap}}, series: []series{
		one("watch_plans", 0, "cheap"), one("catalog_plans", 0),
	}}, want: []notice{{"warn", "", "Watch cheap", "no plan matches: the catalog is empty."}}},
	{name: "watch without data", given: given{
		configured: Configured{Watches: []collector.Watch{{Name: "europe", Regions: []string{"Europe"}}, cheap}},
		disabled:   []string{"locations"}, series: []series{one("watch_plans", 1, "cheap")},
	}, want: []notice{{"warn", "", "Watch europe", "no data: locations: the collector is disabled."}}},
	{name: "watch at first", given: given{configured: Configured{Watches: []collector.Watch{cheap}}}, want: []notice{{"warn", "", "Watch cheap", "no data yet."}}},
	{name: "hit", given: given{configured: Configured{Watches: []collector.Watch{cheap}}, series: []series{
		one("watch_plans", 1, "cheap"), one("watch_last_hit_timestamp_seconds", unix(-15*time.Minute), "cheap"),
	}}, want: []notice{{"info", "WatchHit", "Watch cheap", "A plan began to match 15m ago."}}},
}

// planLabels are the labels of plan_info of the plan epyc.
func planLabels() []string {
	d := collector.Definitions()[slices.IndexFunc(collector.Definitions(), func(d *metric.Definition) bool { return d.Name == metric.Namespace+"plan_info" })]
	labels := make([]string, len(d.Labels))
	labels[0] = "epyc"
	return labels
}

func TestNotices(t *testing.T) {
	for _, tc := range noticeTests {
		simtest.AssertEqual(t, tc.name, tc.given.view().Attention(), tc.want)
	}
}

// alertsOnly are the alerts of what the page does not show.
var alertsOnly = map[string]string{
	"PlanBackInStock": "needs history", "PlanSoldOut": "needs history", "PlanAdded": "needs history", "PlanRemoved": "needs history",
	"PlanPriceChanged": "needs history", "ConfigurationBackInStock": "needs history", "ServerCountDropped": "needs history",
	"SSHKeysChanged": "needs history", "TopupFailed": "needs history: the API tells the number of all times",
	"AccountNameConflict": "needs the metrics of several exporters", "ShardsInconsistent": "needs the metrics of several exporters",
	"ExporterDown": "without the exporter there is no page", "ExporterTargetDown": "without the exporter there is no page",
}

// TestAlerts compares the notices and the list of the documents with the alerts.
func TestAlerts(t *testing.T) {
	noticed := map[string]bool{}
	for _, tc := range noticeTests {
		for _, n := range tc.want {
			noticed[n.Alert] = true
		}
	}
	delete(noticed, "")
	files, err := filepath.Glob(filepath.Join("..", "alerts", "*.rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	rules := ""
	for _, file := range append(files, filepath.Join("..", "docs", "operations.md")) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rules += string(content)
	}
	list := regexp.MustCompile(`(?s)## What needs attention\n(.*?)\nOnly alerts:(.*?)\n## `).FindStringSubmatch(rules)
	if list == nil {
		t.Fatal("docs/operations.md has no list of what needs attention")
	}
	want, documented, only := map[string]bool{}, alertNames("`", list[1]), alertNames("`", list[2])
	for name := range alertNames("- alert: ", rules) {
		want[name] = true
	}
	simtest.AssertEqual(t, "documented notices", documented, noticed)
	for name := range alertsOnly {
		simtest.AssertEqual(t, name+": only an alert, also in the document", []bool{noticed[name], only[name]}, []bool{false, true})
		noticed[name] = true
	}
	simtest.AssertEqual(t, "notices, and alerts without one", noticed, want)
	simtest.AssertEqual(t, "documented alerts without a notice", len(only), len(alertsOnly))
}

// alertNames returns the names of alerts after a text, without their prefix.
func alertNames(after, in string) map[string]bool {
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(after+`ServerRental(\w+)`).FindAllStringSubmatch(in, -1) {
		names[m[1]] = true
	}
	return names
}

var cellEnds = regexp.MustCompile(`</t[hd]><t[hd][^>]*>`)

// section returns the text of a section's paragraphs and rows.
func (g given) section(t *testing.T, id string) []string {
	t.Helper()
	var b strings.Builder
	if err := newTemplate().Execute(&b, g.view()); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(b.String(), `<h2 id="`+id+`">`)
	body, _, _ := strings.Cut(rest, "</section>")
	var rows []string
	for line := range strings.Lines(strings.ReplaceAll(body, "<ul>\n", "<ul>")) {
		if strings.HasPrefix(line, "<p") || strings.HasPrefix(line, "<tr") || strings.HasPrefix(line, "<li") {
			rows = append(rows, strings.TrimSpace(html.UnescapeString(tag.ReplaceAllString(cellEnds.ReplaceAllString(line, " | "), ""))))
		}
	}
	return rows
}

// server returns the series of a server; without a price or a day of renewal if they are
// zero.
func server(id, status string, price float64, renews time.Duration) []series {
	s := []series{one("server_info", 1, "main", id, "", "", "", "", id), one("server_status", 1, "main", id, status)}
	if price > 0 {
		s = append(s, one("server_price_usd_per_month", price, "main", id))
	}
	if renews > 0 {
		s = append(s, one("server_renews_timestamp_seconds", unix(renews-9*time.Hour), "main", id))
	}
	return s
}

// TestSections asserts that what is not known, or old, is said to be.
func TestSections(t *testing.T) {
	funded := one("account_funded_until_timestamp_seconds", unix(20*day-9*time.Hour), "main")
	cost, topup := one("account_cost_usd_per_month", 50, "main"), one("topup_info", 1, "main", "t1", "Pending", "btc", "")
	europe := collector.Watch{Name: "europe", Regions: []string{"Europe"}}
	var accountCollectors []string
	for _, r := range collector.Resources() {
		if r.Account {
			accountCollectors = append(accountCollectors, r.Name)
		}
	}
	const nextAccount = "main | – | – | – | – | "
	for _, tc := range []struct {
		name, section string
		given         given
		want          []string
	}{
		{"watches", "watches", given{
			configured: Configured{Watches: []collector.Watch{europe, cheap, {Name: "stock not known"}}},
			health:     []health{state("locations", 0, errDown)},
			series: []series{
				one("watch_plans", 1, "cheap"), one("watch_plans_in_stock", 1, "cheap"), one("watch_plan_in_stock", 1, "cheap", "epyc"),
				one("watch_hits_total", 2, "cheap", "epyc"), one("plan_offered", 1, "epyc", "fra"), one("plan_price_usd_per_month", 90, "epyc"),
				one("plan_in_stock", 1, "epyc"), one("watch_plans", 1, "stock not known"),
			},
		}, []string{
			"Data: 1m old, fresh.",
			"europe | no data: locations: failing, no data | – | – | –",
			"cheap | epyc in stock: 90.00 USD; fra | 1 | 1 | 2",
			"stock not known | unknown | – | 1 | 0",
		}},
		{"no watches", "watches", given{}, nil},
		{"locations of plans", "plans", given{
			health: []health{withAge(state("plans", time.Minute, nil), 27*time.Hour)},
			series: []series{one("plan_info", 1, planLabels()...), one("plan_in_stock", 0, "epyc"), one("plan_price_usd_per_month", 1, "epyc")},
		}, []string{
			"Data: 1d3h1m old, old (10 intervals or more).",
			"epyc | sold out | 1.00 | – | – / – | – | – | – | offered nowhere | not since the start | –",
		}},
		{"plan that is not understood in full", "plans", given{
			health: []health{withInvalid(state("plans", time.Minute, nil), "availability.locations")}, series: []series{one("plan_info", 1, planLabels()...)},
		}, []string{
			"Data: 1m old, fresh, invalid items.",
			"epyc | unknown | – | – | – / – | – | – | – | – | not since the start | –",
		}},
		{"states of components", "locations", given{health: []health{withAge(state("locations", time.Minute, nil), time.Minute)}, series: []series{
			one("component_state", 1, "fra", "a", "Operational"), one("component_state", 1, "fra", "b", "Maintenance"), one("component_state", 1, "fra", "c", "outage"),
			one("location_info", 1, "ams", "", "Amsterdam", "", "", ""),
		}}, []string{
			"Overall state: –, since –. Ongoing incidents: –. Scheduled maintenance windows: –.",
			"Data of the status: 1m old, fresh. Data of the locations: 2m old, fresh.",
			"Amsterdam ams, – | – of – | unknown",
			"fra | – of – | outage: cMaintenance: bOperational: a",
		}},
		{"fresh account", "accounts", given{
			series: slices.Concat(server("s1", "active", 50, 3*day), server("s2", "canceled", 0, 0), []series{
				cost, funded, topup, one("servers", 1, "main", "active"),
				one("topup_confirmations_needed", 2, "main", "t1"), one("topup_rate_locked_until_timestamp_seconds", unix(0), "main", "t1"),
			}),
			health: []health{withAge(state("topups", time.Minute, nil), time.Minute)},
		}, []string{
			"main | – | 50.00 | 2026-04-19 (20 days) | 1 active | account: 1m old, fresh; servers: 1m old, fresh; topups: 2m old, fresh; configurations: 1m old, fresh",
			"2026-04-02 (3 days) | main | s1 | 50.00",
			"main | – | btc | Pending | – of 2 | rate lock ended", "none",
		}},
		{"unknown price and date", "accounts", given{series: slices.Concat(server("s1", "active", 0, 3*day), server("s2", "active", 50, 0), []series{cost, funded})}, []string{
			"main | – | at least 50.00 | at most 2026-04-19 (20 days) | – | account: 1m old, fresh; servers: 1m old, fresh; topups: 1m old, fresh; configurations: 1m old, fresh",
			"2026-04-02 (3 days) | main | s1 | –",
			"not known of main: the dates of 1 server",
			"none", "none",
		}},
		{"funded for long, but a price is unknown", "accounts", given{series: slices.Concat(server("s1", "active", 0, 40*day), []series{
			one("account_funded_until_timestamp_seconds", float64(sceneTime.AddDate(10, 0, 0).Add(-9*time.Hour).Unix()), "main"),
		})}, []string{nextAccount + "account: 1m old, fresh; servers: 1m old, fresh; topups: 1m old, fresh; configurations: 1m old, fresh", "none", "none", "none"}},
		{"failing and expired", "accounts", given{health: []health{state("servers", 20*time.Minute, errDown), state("topups", 0, errDown)}}, []string{
			nextAccount + "account: 1m old, fresh; servers: failing, data expired; topups: failing, no data; configurations: 1m old, fresh",
			"not known of main: failing, data expired",
			"not known of main: failing, no data", "none",
		}},
		{"disabled", "accounts", given{disabled: []string{"servers", "topups", "configurations"}, health: []health{withAge(state("account", time.Minute, nil), 10*time.Minute)}}, []string{
			nextAccount + "account: 11m old, old (10 intervals or more); servers: the collector is disabled; topups: the collector is disabled; configurations: the collector is disabled",
			"not known of main: the collector is disabled",
			"not known of main: the collector is disabled",
			"not known of main: the collector is disabled",
		}},
		{"all disabled", "accounts", given{
			configured: Configured{Accounts: 1},
			disabled:   accountCollectors,
		}, []string{"All collectors of accounts are disabled."}},
		{"no accounts", "accounts", given{disabled: accountCollectors}, []string{
			"No accounts are configured.",
		}},
	} {
		simtest.AssertEqual(t, tc.name, tc.given.section(t, tc.section), tc.want)
	}
}

// TestClip asserts that a text stays in its row.
func TestClip(t *testing.T) {
	for in, want := range map[string]string{
		"A" + strings.Repeat("\u0301", 70) + "B\u0301": "A\u0301\u0301\u0301B\u0301",
		strings.Repeat("x", 81):                        strings.Repeat("x", 80) + "…",
		"a\u202e\x07":                                  "a��",
		" ":                                            none,
	} {
		simtest.AssertEqual(t, in, text(in), want)
	}
}
