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
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/runner"
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

// given holds the data of a view. Its account is main.
type given struct {
	series   []series
	health   []health // instead of fresh ones
	enabled  []string // collectors; all if it is nil
	reload   error    // why it was refused
	watches  []collector.Watched
	events   []runner.Event
	starting bool // not ready yet
	hidden   bool // --no-web.overview
}

// view returns the view at sceneTime.
func (g given) view() *view {
	b := &metric.Builder{}
	definitions := slices.Concat(collector.Definitions(), runner.HealthDefinitions(), rentalapi.Definitions())
	for _, s := range g.series {
		i := slices.IndexFunc(definitions, func(d *metric.Definition) bool { return d.Name == metric.Namespace+s.name })
		labels := make([]string, len(definitions[i].Labels)) // those that are not given are empty
		copy(labels, s.labels)
		b.Add(definitions[i], s.value, labels...)
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
		if r.Account {
			h.Account = "main"
		}
		h.AddMetrics(b)
		source.health = append(source.health, h)
	}
	o := allEnabled()
	o.Configured = func() Configured { return Configured{ReloadError: g.reload} }
	if !g.hidden {
		p := exposition.NewPublisher(&exposition.Group{Definitions: definitions, Collect: func(time.Time) ([]*metric.Sample, time.Time) { return b.Metrics(), time.Time{} }})
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
			seriesOf("exporter_api_token_rejected", 0, "main"), seriesOf("server_status", 1, "main", "s1", "active"),
		}}},
		{name: "provider", given: given{series: []series{
			seriesOf("status_info", 1, "degraded"), seriesOf("incidents_ongoing", 2), seriesOf("maintenances_scheduled", 1),
			seriesOf("component_state", 1, "ams", "ipmi", "maintenance"), seriesOf("component_state", 1, "ams", "network", "outage"), seriesOf("component_state", 1, "lon", "network", "outage"),
		}}, want: []notice{
			{"bad", "Overall state: degraded.", []string{"Provider"}},
			{"bad", "Component state outage: network.", []string{"Location ams", "Location lon"}},
			{"warn", "Ongoing incidents: 2.", []string{"Provider"}},
			{"info", "Scheduled maintenance windows: 1.", []string{"Provider"}},
			{"info", "Component state maintenance: ipmi.", []string{"Location ams"}},
		}},
		{name: "account", given: given{series: []series{
			seriesOf("exporter_api_token_rejected", 1, "main"), seriesOf("account_balance_usd", -1, "main"), seriesOf("account_funded_until_timestamp_seconds", unix(-9*time.Hour), "main"),
			seriesOf("server_info", 1, "main", "s1", "", "", "", "", "node-1"), seriesOf("server_status", 1, "main", "s1", "Suspended"), seriesOf("server_status", 1, "main", "s2", "suspended"),
		}}, want: []notice{
			{"bad", "The API token was rejected, or cannot be read.", []string{"Account main"}},
			{"bad", "Suspended.", []string{"Server node-1 of main", "Server s2 of main"}},
			{"bad", "The balance is negative: -1.00 USD.", []string{"Account main"}},
			{"bad", "The balance cannot pay all renewals. Funded until: 2026-03-30 (today).", []string{"Account main"}},
		}},
		{name: "accounts", given: given{series: []series{
			seriesOf("account_info", 1, "lab", "acc_1"), seriesOf("account_info", 1, "main", "acc_1"), seriesOf("account_info", 1, "other", "acc_2"),
		}}, want: []notice{
			{"warn", "It is the same provider account as lab: sums over accounts count it twice.", []string{"Account main"}},
		}},
		{name: "renewals of the next 14 days", given: given{series: []series{seriesOf("account_funded_until_timestamp_seconds", unix(14*day-9*time.Hour), "main")}}, want: []notice{
			{"warn", "The balance cannot pay all renewals. Funded until: 2026-04-13 (in 2w).", []string{"Account main"}},
		}},
		{name: "collectors", given: given{
			health: []health{
				state("plans", time.Minute, errDown), state("status", time.Minute, failed("connection refused")), state("account", 0, errDown),
				state("locations", time.Minute, failed("status 503")), state("transactions", 9*time.Minute, nil), // fetched slowly
				withAge(state("os", time.Minute, nil), 27*time.Hour), withInvalid(state("ssh_keys", time.Minute, nil), "name", "type"),
			},
			reload: errors.New("rental.yml:\nline 1: fault"),
		}, want: []notice{
			{"bad", "Failing: connection refused.", []string{"Collector account of main"}},
			{"warn", "Failing: connection refused.", []string{"Collector plans", "Collector status"}},
			{"warn", "Failing: status 503.", []string{"Collector locations"}},
			{"warn", "Invalid items in the last response: 2 (epyc: name: null, epyc: type: null).", []string{"Collector ssh_keys of main"}},
			{"warn", "The last reload was refused, and the former configuration is in force: rental.yml:; line 1: fault.", []string{"Configuration"}},
		}},
	} {
		simtest.AssertEqual(t, tc.name, tc.given.view().Attention(), tc.want)
	}
}

var (
	paragraphOrRow = regexp.MustCompile(`(?s)<p[ >].*?</p>|<tr><t[hd] (scope="row"|colspan).*?</tr>`)
	cellEnd        = regexp.MustCompile(`</t[hd]>\s*<t[hd][^>]*>`)
	lineEnd        = regexp.MustCompile(`</li>\s*<li[^>]*>|<br>`)
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
			"europe | unknown: plans: 1m old; locations: failing, no data | – | – | –",
			"cheap | epyc in stock: 90.00 USD; fra / plans with unknown stock: 1 | 1 | 2 | 1h ago",
			"euros | epyc in stock: 83.00 EUR; fra | 1 | 1 | –",
			"none | no plan matches | 0 | 0 | –",
		}},
		{"no watches", "watches", given{}, nil},
		{"events", "events", given{events: []runner.Event{
			{Event: collector.Event{Message: "server added", Keys: [][2]string{{"account", "main"}, {"server", "srv_1"}, {"hostname", "a\nb"}}}, Time: sceneTime},
			{Event: collector.Event{Message: "plan in stock", Keys: [][2]string{{"plan", "epyc"}, {"name", ""}, {"usd_per_month", "90"}}}, Time: sceneTime.Add(-time.Minute)},
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
			"other ams | in stock | – | now | b | main",
			"EPYC Frankfurt | sold out | 99.00 | not since the start | a | main",
			"– – | unknown | – | unknown | c3 | main",
		}},
		{"saved configurations that are not known", "configurations", given{health: []health{state("configurations", 0, errDown)}}, []string{
			"Data: failing, no data (main).", "unknown",
		}},
		{"plans", "plans", given{
			health: []health{withAge(withInvalid(state("plans", time.Minute, nil), "price"), 27*time.Hour)},
			series: []series{
				seriesOf("plan_info", 1, "epyc"), seriesOf("plan_info", 1, "a"), seriesOf("plan_info", 1, "b", "B"), seriesOf("plan_in_stock", 0, "a"), seriesOf("plan_in_stock", 0, "b"),
				seriesOf("plan_price_usd_per_month", 1, "b"), seriesOf("plan_last_sellout_timestamp_seconds", unix(-3*day), "b"), seriesOf("plan_memory_bytes", 3<<29, "b"),
			},
		}, []string{
			"Data: 1d3h1m old, invalid items.",
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
			"Amsterdam ams, – | 0 | 2 | unknown",
			"fra | – | – | outage: c / Maintenance: b / Operational: a",
		}},
		{"account", "accounts", given{
			series: []series{
				seriesOf("account_balance_usd", 900, "main"), seriesOf("account_cost_usd_per_month", 50, "main"), seriesOf("servers", 1, "main", "active"), seriesOf("transactions_month_debit_usd", 40, "main", "renewal", "current"), seriesOf("transactions_month_debit_usd", 2, "main", "tax", "current"), seriesOf("transactions_month_debit_usd", 0, "main", "renewal", "previous"), seriesOf("servers", 2, "main", "expired"),
				seriesOf("account_funded_until_timestamp_seconds", float64(sceneTime.AddDate(10, 0, 0).Add(midnight).Unix()), "main"),
				seriesOf("server_info", 1, "main", "s1", "", "", "", "", "node-1"), seriesOf("server_status", 1, "main", "s1", "active"),
				seriesOf("server_price_usd_per_month", 50, "main", "s1"), seriesOf("server_renews_timestamp_seconds", unix(3*day), "main", "s1"),
				seriesOf("server_status", 1, "main", "s2", "expired"), seriesOf("server_renews_timestamp_seconds", unix(3*day), "main", "s2"),
				seriesOf("topup_info", 1, "main", "t1", "Pending", "btc"), seriesOf("topup_confirmations_needed", 2, "main", "t1"), seriesOf("topup_rate_locked_until_timestamp_seconds", unix(0), "main", "t1"),
				seriesOf("topup_info", 1, "main", "t2", "pending", "xmr", "Monero"), seriesOf("topup_rate_locked_until_timestamp_seconds", unix(time.Minute), "main", "t2"),
			},
			health: []health{withAge(state("topups", time.Minute, nil), time.Minute)},
		}, []string{
			"Data of the accounts: 1m old. Data of the servers: 1m old. Data of the transactions: 1m old.",
			"main | 10 years or more | 900.00 | 50.00 | 42.00 | 0.00 | 1 active, 2 expired",
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
			"Data of the accounts: 1m old. Data of the servers: 1m old, invalid items (main). Data of the transactions: 1m old.",
			"main | at most 2026-04-19 (in 20d) | – | at least 50.00 | – | – | –",
			"2026-03-27 (3d ago) | main | s1 | –",
			"Data of the top-ups: 1m old.",
			"none",
		}},
		{"failing and expired", "accounts", given{health: []health{state("servers", 20*time.Minute, errDown)}, enabled: []string{"servers"}}, []string{
			"Data of the accounts: not collected by this exporter. Data of the servers: failing, no data (main). Data of the transactions: not collected by this exporter.",
			"main | – | – | – | – | – | –", "unknown",
			"Data of the top-ups: not collected by this exporter.", "unknown",
		}},
		{"no account", "accounts", given{enabled: []string{"plans"}}, []string{"This exporter has no collectors of accounts."}},
	} {
		simtest.AssertEqual(t, tc.name, tc.given.section(t, tc.section), tc.want)
	}
}

// TestCollectors has every state of a collector, on the page without the overview.
func TestCollectors(t *testing.T) {
	older := state("topups", time.Minute, nil) // its fetches succeeded and brought older copies
	older.MadeAt, older.Next = time.Time{}, sceneTime
	g := given{hidden: true, enabled: []string{"plans", "locations", "os", "status", "account", "topups", "transactions"}, health: []health{
		withAge(state("plans", time.Minute, nil), time.Hour), withInvalid(state("locations", time.Minute, nil), "coordinates.lat", "locations.fra.components.network"), state("os", 9*time.Minute, errDown),
		state("status", 0, errDown), state("account", 9*time.Minute-1, errDown), older, state("transactions", 0, nil),
	}}
	simtest.AssertEqual(t, "collectors", g.section(t, "collectors"), []string{
		"The collectors fetch in the background. Neither pages nor scrapes cause a request to the provider.",
		"os | failing, no data | | 2026-03-30T08:51:00Z | – | in 8s | 1m | | connection refused",
		"status | failing, no data | | never | – | in 8s | 1m | | connection refused",
		"locations | invalid items | | 2026-03-30T08:59:00Z | 1m | in 8s | 1m | 2 | coordinates.lat: null / locations: null",
		"account | failing, last data shown | main | 2026-03-30T08:51:00Z | 8m59s | in 8s | 1m | | connection refused",
		"topups | fetching | main | 2026-03-30T08:59:00Z | – | now | 1m | |",
		"transactions | fetching | main | never | – | in 8s | 1m | |",
		"plans | working | | 2026-03-30T08:59:00Z | 1h1m | in 8s | 1m | |",
	})
}

// TestUndefinedMetric asserts that a page which reads a metric that was renamed is an error.
func TestUndefinedMetric(t *testing.T) {
	defer func() { simtest.AssertEqual(t, "panic", recover(), any("undefined metric: plan_stock")) }()
	given{}.view().Find("plan_stock")
}
