package web

import (
	"errors"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/exposition"
	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/runner"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// series are the value and the labels of a metric, whose name has no namespace.
type series struct {
	name   string
	value  float64
	labels []string
}

func seriesOf(name string, value float64, labels ...string) series {
	return series{name, value, labels}
}

// given holds the data of a view.
type given struct {
	accounts []string // main if it is nil
	series   []series
	health   []health // instead of fresh ones
	enabled  []string // collectors; all if it is nil
	reload   error    // why it was refused
	watches  []collector.Watched
	events   []collector.Event
	starting bool // not ready yet
	hidden   bool // --no-web.overview
}

// view returns the view at sceneTime.
func (g given) view() *view {
	b := &metric.Builder{}
	definitions := runner.Definitions()
	for _, s := range g.series {
		i := slices.IndexFunc(definitions, func(d *metric.Definition) bool { return d.Name == metric.Namespace+s.name })
		labels := make([]string, len(definitions[i].Labels)) // those that are not given are empty
		copy(labels, s.labels)
		b.Add(definitions[i], s.value, labels...)
	}
	if g.accounts == nil {
		g.accounts = []string{"main"}
	}
	source := &fakeSource{ready: !g.starting, watches: g.watches, events: g.events}
	for _, r := range collector.Resources() {
		if g.enabled != nil && !slices.Contains(g.enabled, r.Name) {
			continue
		}
		h := state(r.Name, time.Minute, nil)
		if i := slices.IndexFunc(g.health, func(h health) bool { return h.Collector == r.Name }); i >= 0 {
			h = g.health[i]
		}
		accounts := []string{""}
		if r.Account {
			accounts = g.accounts
		}
		for _, h.Account = range accounts {
			h.AddMetrics(b)
			source.health = append(source.health, h)
		}
	}
	slices.SortStableFunc(source.health, func(a, b health) int { return strings.Compare(a.Account, b.Account) })
	o := allEnabled()
	o.Configured = func() Configured { return Configured{ReloadError: g.reload} }
	if !g.hidden {
		p := exposition.NewPublisher(definitions, func(time.Time) ([]*metric.Sample, time.Time) { return b.Metrics(), time.Time{} })
		p.Publish()
		o.Published = p.Samples
	}
	return newView(source, o, sceneTime)
}

// state returns the state of a collector that last succeeded some time ago, or never if that is 0.
func state(name string, ago time.Duration, err error) health {
	h := health{Collector: name, Err: err, Next: sceneTime.Add(8 * time.Second), Timing: collector.Timing{Interval: time.Minute, MaxAge: 9 * time.Minute}}
	if ago > 0 {
		h.LastSuccess = sceneTime.Add(-ago)
	}
	if ago < h.MaxAge {
		h.MadeAt = h.LastSuccess
	}
	return h
}

// unix is a time relative to sceneTime.
func unix(d time.Duration) float64 { return float64(sceneTime.Add(d).Unix()) }

// withAge is a collector whose last response was old.
func withAge(h health, age time.Duration) health {
	h.MadeAt = h.MadeAt.Add(-age)
	return h
}

// withInvalid is a collector with an invalid item.
func withInvalid(h health, fields ...string) health {
	for _, field := range fields {
		h.Invalid.Add("epyc", rentalapi.FieldError{Field: field, Problem: "null"})
	}
	return h
}

// failed is the error of a request.
func failed(cause string) error {
	return &rentalapi.Error{Reason: rentalapi.Connection, Err: errors.New(cause)}
}

var (
	errDown = failed("connection refused")
	usd     = 100.0
	cheap   = collector.Watch{Name: "cheap", MaxUSDPerMonth: &usd}
	euros   = collector.Watch{Name: "euros", MaxEURPerMonth: &usd}
)

func TestNotices(t *testing.T) {
	for _, tc := range []struct {
		name  string
		given given
		want  []notice
	}{
		{name: "nothing", given: given{series: []series{
			seriesOf("status_info", 1, "Operational"), seriesOf("component_state", 1, "fra", "network", "Operational"),
			seriesOf("incidents_ongoing", 0), seriesOf("maintenances_scheduled", 0), seriesOf("location_info", 1, "tyo"),
			seriesOf("account_balance_usd", 0, "main"), seriesOf("account_funded_until_timestamp_seconds", unix(15*day), "main"),
			seriesOf("server_status", 1, "main", "s1", "active"),
		}}},
		{name: "provider", given: given{series: []series{
			seriesOf("status_info", 1, "degraded"), seriesOf("incidents_ongoing", 2), seriesOf("maintenances_scheduled", 1),
			seriesOf("component_state", 1, "ams", "ipmi", "maintenance"), seriesOf("component_state", 1, "ams", "network", "outage"), seriesOf("component_state", 1, "lon", "network", "outage"),
		}}, want: []notice{
			{"bad", "Provider", "Overall state: degraded.", []string{""}},
			{"bad", "Location", "Component state outage: network.", []string{"ams", "lon"}},
			{"warn", "Provider", "Ongoing incidents: 2.", []string{""}},
			{"info", "Provider", "Scheduled maintenance windows: 1.", []string{""}},
			{"info", "Location", "Component state maintenance: ipmi.", []string{"ams"}},
		}},
		{name: "account", given: given{series: []series{
			seriesOf("account_balance_usd", -0.005, "main"), seriesOf("account_balance_usd", -0.0049, "lab"), seriesOf("account_two_factor_enabled", 0, "main"), seriesOf("account_two_factor_enabled", 1, "lab"), seriesOf("account_funded_until_timestamp_seconds", unix(-9*time.Hour), "main"),
			seriesOf("server_info", 1, "main", "s1", "", "", "", "", "node-1"), seriesOf("server_status", 1, "main", "s1", "Suspended"), seriesOf("server_status", 1, "main", "s2", "suspended"),
		}}, want: []notice{
			{"bad", "Server", "Suspended.", []string{"node-1 of main", "s2 of main"}},
			{"bad", "Account", "The balance is negative: -0.01 USD.", []string{"main"}},
			{"bad", "Account", "The balance cannot pay all renewals. Funded until: 2026-03-30 (today).", []string{"main"}},
			{"info", "Account", "Two-factor authentication is off.", []string{"main"}},
		}},
		{name: "accounts", given: given{series: []series{
			seriesOf("account_info", 1, "lab", "acc_1"), seriesOf("account_info", 1, "main", "acc_1"), seriesOf("account_info", 1, "other", "acc_2"),
		}}, want: []notice{
			{"warn", "Account", "It is the same provider account as lab: sums over accounts count it twice.", []string{"main"}},
		}},
		{name: "renewals of the next 14 days", given: given{series: []series{seriesOf("account_funded_until_timestamp_seconds", unix(14*day-9*time.Hour), "main")}}, want: []notice{
			{"warn", "Account", "The balance cannot pay all renewals. Funded until: 2026-04-13 (in 14d).", []string{"main"}},
		}},
		{name: "the end of the API", given: given{
			health: []health{{Collector: "plans", LastSuccess: sceneTime, Sunset: "ends 2026-12-31"}, {Collector: "status", LastSuccess: sceneTime, Sunset: "ends 2026-12-31"}},
		}, want: []notice{
			{"warn", "Collector", "The provider announces the end of this API: ends 2026-12-31.", []string{"plans", "status"}},
		}},
		{name: "collectors", given: given{
			health: []health{
				state("plans", time.Minute, errDown), state("status", time.Minute, failed("connection refused")), state("account", 0, errDown),
				state("locations", time.Minute, failed("status 503")), state("transactions", 9*time.Minute, nil), // under way
				withAge(state("os", time.Minute, nil), 27*time.Hour), withInvalid(state("ssh_keys", time.Minute, nil), "name", "type"),
			},
			reload: errors.New("rental.yml:\nline 1: fault"),
		}, want: []notice{
			{"bad", "API", "unreachable, last success: 1m ago.", []string{""}},
			{"bad", "Collector", "Failing: connection refused.", []string{"account (main)"}},
			{"warn", "Collector", "Failing: connection refused.", []string{"plans", "status"}},
			{"warn", "Collector", "Failing: status 503.", []string{"locations"}},
			{"warn", "Collector", "Invalid items in the last response: 2 (epyc: name: null, epyc: type: null).", []string{"ssh_keys (main)"}},
			{"warn", "Configuration", "The last reload was refused, and the former configuration is in force: rental.yml:; line 1: fault.", []string{""}},
		}},
	} {
		simtest.AssertEqual(t, tc.name, tc.given.view().Attention(), tc.want)
	}
}

var (
	paragraphOrRow = regexp.MustCompile(`(?s)<p[ >].*?</p>|<tr[^>]*><t[hd] (scope="row"|colspan).*?</tr>`)
	cellEnd        = regexp.MustCompile(`</t[hd]>\s*<t[hd][^>]*>`)
	lineEnd        = regexp.MustCompile(`</li>\s*<li[^>]*>|</div><div>|<br>`)
)

// section returns the text of a section's paragraphs and rows.
func (g given) section(t *testing.T, id string) []string {
	t.Helper()
	var b strings.Builder
	if err := landingTemplate.Execute(&b, g.view()); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(b.String(), `<h2 id="`+id+`">`)
	body, _, _ := strings.Cut(rest, "</section>")
	var rows []string
	for _, row := range paragraphOrRow.FindAllString(body, -1) {
		row = lineEnd.ReplaceAllString(cellEnd.ReplaceAllString(row, " | "), " / ")
		rows = append(rows, html.UnescapeString(strings.Join(strings.Fields(tag.ReplaceAllString(row, "")), " ")))
	}
	return rows
}

// TestSections asserts that what is not known, or old, is said to be.
func TestSections(t *testing.T) {
	midnight := -9 * time.Hour
	for _, tc := range []struct {
		name, section string
		given         given
		want          []string
	}{
		{"nothing", "attention", given{}, []string{"Nothing needs attention."}},
		{"starting", "attention", given{starting: true}, []string{"The first fetches have not finished yet."}},
		{"watches", "watches", given{
			watches: []collector.Watched{{Watch: collector.Watch{Name: "europe", Regions: []string{"Europe"}}}, {Watch: cheap}, {Watch: euros}, {Watch: collector.Watch{Name: "none"}}},
			health:  []health{state("locations", 0, errDown)},
			series: []series{
				seriesOf("watch_plans", 2, "cheap"), seriesOf("watch_plans_in_stock", 1, "cheap"), seriesOf("watch_plan_in_stock", 1, "cheap", "epyc"),
				seriesOf("watch_last_hit_timestamp_seconds", unix(-time.Hour), "cheap"),
				seriesOf("watch_plans", 1, "euros"), seriesOf("watch_plans_in_stock", 1, "euros"), seriesOf("watch_plan_in_stock", 1, "euros", "epyc"),
				seriesOf("watch_plans", 0, "none"), seriesOf("watch_plans_in_stock", 0, "none"),
				seriesOf("plan_offered", 1, "epyc", "fra"), seriesOf("plan_price_usd_per_month", 90, "epyc"), seriesOf("plan_price_eur_per_month", 83, "epyc"), seriesOf("plan_in_stock", 1, "epyc"),
			},
		}, []string{
			"Data: 1m old.",
			"europe | unknown: plans: 1m old; locations: failing, no data | – | – | not since the start",
			"cheap | epyc in stock: 90.00 USD; fra / plans with unknown stock: 1 | 1 | 2 | 1h ago",
			"euros | epyc in stock: 83.00 EUR; fra | 1 | 1 | not since the start",
			"none | no plan matches | 0 | 0 | not since the start",
		}},
		{"no watches", "watches", given{}, []string{
			"Data: 1m old.", "This exporter has no watches. They name the plans to wait for: see watches in the configuration file.",
		}},
		{"events", "events", given{events: []collector.Event{
			{Time: sceneTime, Message: "server added", Keys: [][2]string{{"account", "main"}, {"server", "srv_1"}, {"hostname", "a\nb"}}},
			{Time: sceneTime.Add(-time.Minute), Message: "plan in stock", Keys: [][2]string{{"plan", "epyc"}, {"name", ""}, {"usd_per_month", "90"}}},
		}}, []string{
			"2026-03-30 09:00:00 | server added | account: main, server: srv_1, hostname: a\uFFFDb", "2026-03-30 08:59:00 | plan in stock | plan: epyc, name: –, usd_per_month: 90",
		}},
		{"no events", "events", given{}, nil},
		{"saved configurations", "configurations", given{
			health: []health{withAge(state("configurations", time.Minute, nil), time.Minute)},
			series: []series{
				seriesOf("location_info", 1, "fra", "", "Frankfurt"), seriesOf("plan_info", 1, "epyc", "EPYC"),
				seriesOf("configuration_info", 1, "main", "c1", "epyc", "fra", "", "a"), seriesOf("configuration_in_stock", 0, "main", "c1"), seriesOf("configuration_price_usd_per_month", 99, "main", "c1"),
				seriesOf("configuration_info", 1, "main", "c2", "other", "ams", "", "b"), seriesOf("configuration_in_stock", 1, "main", "c2"), seriesOf("configuration_info", 1, "main", "c3"),
			},
		}, []string{
			"Data: 2m old.",
			"other ams | in stock | – | 2m ago | b | main",
			"EPYC Frankfurt | sold out | 99.00 | not since the start | a | main",
			"– – | unknown | – | unknown | c3 | main",
		}},
		{"saved configurations that are not known", "configurations", given{health: []health{state("configurations", 0, errDown)}}, []string{
			"Data: failing, no data (main).", "unknown: see Collectors",
		}},
		{"plans", "plans", given{
			health: []health{withAge(withInvalid(state("plans", time.Minute, nil), "price"), 27*time.Hour)},
			series: []series{
				seriesOf("plan_info", 1, "epyc"), seriesOf("plan_info", 1, "a"), seriesOf("plan_info", 1, "b", "B"), seriesOf("plan_in_stock", 0, "a"), seriesOf("plan_in_stock", 0, "b"),
				seriesOf("plan_price_usd_per_month", 1, "b"), seriesOf("plan_last_sellout_timestamp_seconds", unix(-3*day), "b"), seriesOf("plan_memory_bytes", 3<<29, "b"),
			},
		}, []string{
			"Data: 1d3h1m old, invalid items: 1.",
			"B b | sold out | 1.00 | – | – / – | 1.5 | – | – | – | 3d ago",
			"a | sold out | – | – | – / – | – | – | – | – | not since the start",
			"epyc | unknown | – | – | – / – | – | – | – | – | unknown",
		}},
		{"locations", "locations", given{health: []health{withAge(state("locations", time.Minute, nil), time.Minute)}, series: []series{
			seriesOf("component_state", 1, "fra", "a", "Operational"), seriesOf("component_state", 1, "fra", "b", "Maintenance"), seriesOf("component_state", 1, "fra", "c", "outage"),
			seriesOf("location_info", 1, "ams", "", "Amsterdam"), seriesOf("location_plans", 2, "ams"), seriesOf("location_plans_in_stock", 0, "ams"),
			seriesOf("status_info", 1, "Operational"), seriesOf("status_since_timestamp_seconds", unix(-day)),
		}}, []string{
			"Overall state: Operational since 2026-03-29. Ongoing incidents: –. Scheduled maintenance windows: –.",
			"Data of the status: 1m old. Data of the locations: 2m old.",
			"Amsterdam ams, – | 2 | 0 | unknown",
			"fra | – | – | outage: c / Maintenance: b / Operational: a",
		}},
		{"account", "accounts", given{
			series: []series{
				seriesOf("account_balance_usd", 900, "main"), seriesOf("account_cost_usd_per_month", 50, "main"),
				seriesOf("account_funded_until_timestamp_seconds", float64(sceneTime.AddDate(10, 0, 0).Add(midnight).Unix()), "main"),
				seriesOf("server_info", 1, "main", "s1", "", "", "", "", "node-1"), seriesOf("server_status", 1, "main", "s1", "active"),
				seriesOf("server_price_usd_per_month", 50, "main", "s1"), seriesOf("server_renews_timestamp_seconds", unix(3*day), "main", "s1"),
				seriesOf("server_status", 1, "main", "s2", "expired"), seriesOf("server_renews_timestamp_seconds", unix(3*day), "main", "s2"),
				seriesOf("topup_info", 1, "main", "t1", "Pending", "btc"), seriesOf("topup_confirmations_needed", 2, "main", "t1"), seriesOf("topup_rate_locked_until_timestamp_seconds", unix(0), "main", "t1"),
				seriesOf("topup_info", 1, "main", "t2", "pending", "xmr", "Monero"), seriesOf("topup_rate_locked_until_timestamp_seconds", unix(time.Minute), "main", "t2"),
			},
			health: []health{withAge(state("topups", time.Minute, nil), time.Minute)},
		}, []string{
			"Data of the accounts: 1m old. Data of the servers: 1m old.",
			"main | 10 years or more | 900.00 | 50.00",
			"2026-04-02 (in 3d) | main | node-1 | 50.00",
			"Data of the top-ups: 2m old.",
			"t1 main | Pending | ended | – | btc | – of 2",
			"t2 main | pending | 1m left | – | xmr (Monero) | – of –",
		}},
		{"unknown price and date", "accounts", given{
			health: []health{withInvalid(state("servers", time.Minute, nil), "price")},
			series: []series{
				seriesOf("account_cost_usd_per_month", 50, "main"), seriesOf("account_funded_until_timestamp_seconds", unix(20*day+midnight), "main"),
				seriesOf("server_info", 1, "main", "s1"), seriesOf("server_renews_timestamp_seconds", unix(-3*day), "main", "s1"),
			},
		}, []string{
			"Data of the accounts: 1m old. Data of the servers: 1m old, invalid items: 1 (main).",
			"main | 2026-04-19 (in 20d) | – | 50.00",
			"2026-03-27 (3d ago) | main | s1 | –",
			"Data of the top-ups: 1m old.",
			"none",
		}},
		{"failing and expired", "accounts", given{health: []health{state("servers", 20*time.Minute, errDown)}, enabled: []string{"servers"}}, []string{
			"Data of the accounts: not collected by this exporter; see --collector.account and --shard. Data of the servers: failing, no data (main).",
			"main | – | – | –", "unknown: see Collectors",
			"Data of the top-ups: not collected by this exporter; see --collector.topups and --shard.", "unknown: see Collectors",
		}},
		{"the most urgent date first", "accounts", given{accounts: []string{"a", "b", "c"}, enabled: []string{"account", "servers"}, series: []series{
			seriesOf("account_funded_until_timestamp_seconds", unix(8*day+midnight), "a"), seriesOf("account_funded_until_timestamp_seconds", unix(7*day+midnight), "b"),
			seriesOf("server_status", 1, "a", "s1", "active"), seriesOf("server_renews_timestamp_seconds", unix(7*day), "a", "s1"),
		}}, []string{
			"Data of the accounts: 1m old. Data of the servers: 1m old.",
			"c | – | – | –", "b | 2026-04-06 (in 7d) | – | –", "a | 2026-04-07 (in 8d) | – | –", "2026-04-06 (in 7d) | a | s1 | –",
			"Data of the top-ups: not collected by this exporter; see --collector.topups and --shard.", "unknown: see Collectors",
		}},
		{"nothing known of plans", "plans", given{health: []health{state("plans", 0, errDown)}}, []string{"Data: failing, no data.", "unknown: see Collectors"}},
		{"no plans", "plans", given{}, []string{"Data: 1m old.", "none"}},
		{"old plans", "plans", given{health: []health{state("plans", 7*time.Minute, errDown)}, series: []series{
			seriesOf("plan_info", 1, "epyc"), seriesOf("plan_info", 1, "ryzen"), seriesOf("plan_in_stock", 1, "epyc"), seriesOf("plan_in_stock", 0, "ryzen"),
		}}, []string{
			"Data: 7m old, failing, last data shown.",
			"epyc | was in stock | – | – | – / – | – | – | – | – | 7m ago", "ryzen | was sold out | – | – | – / – | – | – | – | – | not since the start",
		}},
		{"old status", "locations", given{health: []health{state("status", 5*time.Minute, errDown)}, series: []series{seriesOf("status_info", 1, "degraded")}}, []string{
			"Overall state: was degraded. Ongoing incidents: –. Scheduled maintenance windows: –.",
			"Data of the status: 5m old, failing, last data shown. Data of the locations: 1m old.", "none",
		}},
		{"no account", "accounts", given{enabled: []string{"plans"}}, []string{"This exporter has no accounts: see accounts in the configuration file, or --api.token-file."}},
	} {
		simtest.AssertEqual(t, tc.name, tc.given.section(t, tc.section), tc.want)
	}
}

// TestAPI asserts what the page says of the API: one collector that fails does not make it unreachable.
func TestAPI(t *testing.T) {
	refused := &rentalapi.Error{Reason: rentalapi.Unauthorized, Err: errors.New("status 401")}
	timeout := &rentalapi.Error{Reason: rentalapi.Timeout, Err: errors.New("timed out")}
	rare := state("os", 4*time.Minute, nil) // was not due since
	rare.Interval = time.Hour
	for _, tc := range []struct {
		name  string
		given given
		want  words
	}{
		{"answers", given{}, words{"answers, last success: 1m ago", "good"}},
		{"one collector fails", given{health: []health{state("plans", 7*time.Minute, errDown), state("status", 0, failed("status 503"))}}, words{"answers, last success: 1m ago", "good"}},
		{"unreachable", given{enabled: []string{"plans", "os"}, health: []health{state("plans", 5*time.Minute, errDown), rare}}, words{"unreachable, last success: 4m ago", "bad"}},
		{"times out", given{enabled: []string{"plans", "os"}, health: []health{state("plans", 5*time.Minute, timeout), rare}}, words{"unreachable, last success: 4m ago", "bad"}},
		{"errors", given{enabled: []string{"plans", "os"}, health: []health{state("plans", 5*time.Minute, rentalapi.ErrIncomplete), rare}}, words{"answers with errors, last success: 4m ago", "bad"}},
		{"never reached", given{enabled: []string{"plans"}, health: []health{state("plans", 0, errDown)}}, words{"unreachable, last success: not since the start", "bad"}},
		{"not tried", given{enabled: []string{"plans"}, health: []health{state("plans", 0, nil)}}, words{"has not answered yet", "wait"}},
		{"tokens", given{
			accounts: []string{"lab", "main"}, enabled: []string{"plans", "account", "servers"},
			health: []health{state("account", 9*time.Minute, refused), state("servers", 8*time.Minute, refused)},
		}, words{"token rejected or not readable: lab, main", "bad"}},
		{"unreachable with a token that was rejected", given{
			enabled: []string{"plans", "account"}, health: []health{state("account", 0, refused), state("plans", 2*time.Minute, errDown)},
		}, words{"unreachable, last success: 2m ago", "bad"}},
	} {
		simtest.AssertEqual(t, tc.name, tc.given.view().API(), tc.want)
	}
}

// TestCollectors has every state of a collector, on the page without the overview.
func TestCollectors(t *testing.T) {
	older := state("topups", time.Minute, nil) // its fetches succeeded and brought older copies
	older.MadeAt, older.Next = time.Time{}, sceneTime
	older.Failure, older.FailedAt = failed("status 503"), sceneTime.Add(-2*time.Hour) // before it recovered
	g := given{hidden: true, enabled: []string{"plans", "locations", "os", "status", "account", "topups", "transactions"}, health: []health{
		withAge(state("plans", time.Minute, nil), time.Hour), withInvalid(state("locations", time.Minute, nil), "coordinates.lat", "locations.fra.components.network"), state("os", 9*time.Minute, errDown),
		state("status", 0, errDown), state("account", 9*time.Minute-1, errDown), older, state("transactions", 0, nil),
	}}
	simtest.AssertEqual(t, "collectors", g.section(t, "collectors"), []string{
		"The collectors fetch in the background. Neither pages nor scrapes cause a request to the provider.",
		"os | failing, no data | | 2026-03-30 08:51:00 | – | in 8s | connection refused",
		"status | failing, no data | | never | – | in 8s | connection refused",
		"locations | invalid items: 2 | | 2026-03-30 08:59:00 | 1m | in 8s | coordinates.lat: null / locations: null",
		"account | failing, last data shown | main | 2026-03-30 08:51:00 | 8m59s | in 8s | connection refused",
		"topups | fetching | main | 2026-03-30 08:59:00 | – | now | 2h ago: status 503",
		"transactions | fetching | main | never | – | in 8s |",
		"plans | working | | 2026-03-30 08:59:00 | 1h1m | in 8s |",
	})
}

// TestUndefinedMetric asserts that a page which reads a metric that was renamed is an error.
func TestUndefinedMetric(t *testing.T) {
	defer func() { simtest.AssertEqual(t, "panic", recover(), any("undefined metric: plan_stock")) }()
	given{}.view().Find("plan_stock")
}
