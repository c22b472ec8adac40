package web

import (
	"errors"
	"fmt"
	"html"
	"path/filepath"
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
	watches  []collector.Watch
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

var (
	part     = regexp.MustCompile(`(?s)<p[ >].*?</p>|<li class="\w+">.*?</li>|<tr[^>]*><t[hd] (scope="row"|colspan).*?</tr>`)
	cellEnd  = regexp.MustCompile(`</t[hd]>\s*<t[hd][^>]*>`)
	lineEnd  = regexp.MustCompile(`</li>\s*<li[^>]*>|</div><div>|<br>`)
	severity = regexp.MustCompile(`^<li class="(\w+)">`)
)

// text returns a line for each paragraph, notice and row of a section.
func (g given) text(t *testing.T, id string) string {
	t.Helper()
	var page, lines strings.Builder
	if err := landingTemplate.Execute(&page, g.view()); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(page.String(), `<h2 id="`+id+`">`)
	body, _, _ := strings.Cut(rest, "</section>")
	for _, p := range part.FindAllString(body, -1) {
		p = lineEnd.ReplaceAllString(cellEnd.ReplaceAllString(severity.ReplaceAllString(p, "$1: "), " | "), " / ")
		fmt.Fprintln(&lines, html.UnescapeString(strings.Join(strings.Fields(tag.ReplaceAllString(p, "")), " ")))
	}
	return lines.String()
}

// TestSections compares the text of sections with a golden file. What is not known, or old, is said to be.
func TestSections(t *testing.T) {
	midnight := -9 * time.Hour
	older := state("topups", time.Minute, nil) // its fetches succeeded and brought older copies
	older.MadeAt, older.Next = time.Time{}, sceneTime
	older.Failure, older.FailedAt = failed("status 503"), sceneTime.Add(-2*time.Hour) // before it recovered
	refused := &rentalapi.Error{Reason: rentalapi.Unauthorized, Err: errors.New("status 401")}
	var text strings.Builder
	for _, tc := range []struct {
		name, section string
		given         given
	}{
		{"nothing", "attention", given{series: []series{
			seriesOf("status_info", 1, "Operational"), seriesOf("component_state", 1, "fra", "network", "Operational"),
			seriesOf("incidents_ongoing", 0), seriesOf("maintenances_scheduled", 0), seriesOf("location_info", 1, "tyo"),
			seriesOf("account_balance_usd", 0, "main"), seriesOf("account_funded_until_timestamp_seconds", unix(15*day), "main"),
			seriesOf("server_status", 1, "main", "s1", "active"),
		}}},
		{"provider", "attention", given{series: []series{
			seriesOf("status_info", 1, "degraded"), seriesOf("incidents_ongoing", 2), seriesOf("maintenances_scheduled", 1),
			seriesOf("component_state", 1, "ams", "ipmi", "maintenance"), seriesOf("component_state", 1, "ams", "network", "outage"), seriesOf("component_state", 1, "lon", "network", "outage"),
		}}},
		{"account", "attention", given{series: []series{
			seriesOf("account_balance_usd", -0.005, "main"), seriesOf("account_balance_usd", -0.0049, "lab"), seriesOf("account_two_factor_enabled", 0, "main"), seriesOf("account_two_factor_enabled", 1, "lab"), seriesOf("account_funded_until_timestamp_seconds", unix(-9*time.Hour), "main"),
			seriesOf("server_info", 1, "main", "s1", "", "", "", "", "node-1"), seriesOf("server_status", 1, "main", "s1", "Suspended"), seriesOf("server_status", 1, "main", "s2", "suspended"),
		}}},
		{"accounts", "attention", given{series: []series{
			seriesOf("account_info", 1, "lab", "acc_1"), seriesOf("account_info", 1, "main", "acc_1"), seriesOf("account_info", 1, "other", "acc_2"),
		}}},
		{"renewals of the next 14 days", "attention", given{series: []series{seriesOf("account_funded_until_timestamp_seconds", unix(14*day-9*time.Hour), "main")}}},

		{"collectors", "attention", given{
			health: []health{
				state("plans", time.Minute, errDown), state("status", time.Minute, failed("connection refused")), state("account", 0, errDown),
				state("locations", time.Minute, failed("status 503")), state("transactions", 9*time.Minute, nil), // under way
				withAge(state("os", time.Minute, nil), 27*time.Hour), withInvalid(state("ssh_keys", time.Minute, nil), "name", "type"),
			},
			reload: errors.New("rental.yml:\nline 1: fault"),
		}},
		{"starting", "attention", given{starting: true, enabled: []string{"plans"}, health: []health{state("plans", 0, nil)}}},
		{"tokens", "attention", given{
			accounts: []string{"lab", "main"}, enabled: []string{"plans", "account", "servers"},
			health: []health{state("account", 9*time.Minute, refused), state("servers", 8*time.Minute, refused)},
		}},
		{"watches", "watches", given{
			watches: []collector.Watch{{Name: "europe", Regions: []string{"Europe"}}, cheap, euros, {Name: "none"}},
			health:  []health{state("locations", 0, errDown)},
			series: []series{
				seriesOf("watch_plans", 2, "cheap"), seriesOf("watch_plans_in_stock", 1, "cheap"), seriesOf("watch_plan_in_stock", 1, "cheap", "epyc"),
				seriesOf("watch_last_hit_timestamp_seconds", unix(-time.Hour), "cheap"),
				seriesOf("watch_plans", 1, "euros"), seriesOf("watch_plans_in_stock", 1, "euros"), seriesOf("watch_plan_in_stock", 1, "euros", "epyc"),
				seriesOf("watch_plans", 0, "none"), seriesOf("watch_plans_in_stock", 0, "none"),
				seriesOf("plan_offered", 1, "epyc", "fra"), seriesOf("plan_price_usd_per_month", 90, "epyc"), seriesOf("plan_price_eur_per_month", 83, "epyc"), seriesOf("plan_in_stock", 1, "epyc"),
			},
		}},
		{"no watches", "watches", given{}},
		{"events", "events", given{events: []collector.Event{
			{Time: sceneTime, Message: "server added", Keys: [][2]string{{"account", "main"}, {"server", "srv_1"}, {"hostname", "a\nb"}}},
			{Time: sceneTime.Add(-time.Minute), Message: "plan in stock", Keys: [][2]string{{"plan", "epyc"}, {"name", ""}, {"usd_per_month", "90"}}},
		}}},
		{"no events", "events", given{}},
		{"saved configurations", "configurations", given{
			health: []health{withAge(state("configurations", time.Minute, nil), time.Minute)},
			series: []series{
				seriesOf("location_info", 1, "fra", "", "Frankfurt"), seriesOf("plan_info", 1, "epyc", "EPYC"),
				seriesOf("configuration_info", 1, "main", "c1", "epyc", "fra", "", "a"), seriesOf("configuration_in_stock", 0, "main", "c1"), seriesOf("configuration_price_usd_per_month", 99, "main", "c1"),
				seriesOf("configuration_info", 1, "main", "c2", "other", "ams", "", "b"), seriesOf("configuration_in_stock", 1, "main", "c2"), seriesOf("configuration_info", 1, "main", "c3"),
			},
		}},
		{"plans", "plans", given{
			health: []health{withAge(withInvalid(state("plans", time.Minute, nil), "price"), 27*time.Hour)},
			series: []series{
				seriesOf("plan_info", 1, "epyc"), seriesOf("plan_info", 1, "a"), seriesOf("plan_info", 1, "b", "B"), seriesOf("plan_in_stock", 0, "a"), seriesOf("plan_in_stock", 0, "b"),
				seriesOf("plan_price_usd_per_month", 1, "b"), seriesOf("plan_last_sellout_timestamp_seconds", unix(-3*day), "b"), seriesOf("plan_memory_bytes", 3<<29, "b"),
			},
		}},
		{"locations", "locations", given{health: []health{withAge(state("locations", time.Minute, nil), time.Minute)}, series: []series{
			seriesOf("component_state", 1, "fra", "a", "Operational"), seriesOf("component_state", 1, "fra", "b", "Maintenance"), seriesOf("component_state", 1, "fra", "c", "outage"),
			seriesOf("location_info", 1, "ams", "", "Amsterdam"), seriesOf("location_plans", 2, "ams"), seriesOf("location_plans_in_stock", 0, "ams"),
			seriesOf("status_info", 1, "Operational"), seriesOf("status_since_timestamp_seconds", unix(-day)),
		}}},
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
		}},
		{"unknown price and date", "accounts", given{
			health: []health{withInvalid(state("servers", time.Minute, nil), "price")},
			series: []series{
				seriesOf("account_cost_usd_per_month", 50, "main"), seriesOf("account_funded_until_timestamp_seconds", unix(20*day+midnight), "main"),
				seriesOf("server_info", 1, "main", "s1"), seriesOf("server_renews_timestamp_seconds", unix(-3*day), "main", "s1"),
			},
		}},
		{"the most urgent date first", "accounts", given{accounts: []string{"a", "b", "c"}, enabled: []string{"account", "servers"}, series: []series{
			seriesOf("account_funded_until_timestamp_seconds", unix(8*day+midnight), "a"), seriesOf("account_funded_until_timestamp_seconds", unix(7*day+midnight), "b"),
			seriesOf("server_status", 1, "a", "s1", "active"), seriesOf("server_renews_timestamp_seconds", unix(7*day), "a", "s1"),
		}}},
		{"nothing known of plans", "plans", given{health: []health{state("plans", 0, errDown)}}},
		{"no plans", "plans", given{}},
		{"old plans", "plans", given{health: []health{state("plans", 7*time.Minute, errDown)}, series: []series{
			seriesOf("plan_info", 1, "epyc"), seriesOf("plan_info", 1, "ryzen"), seriesOf("plan_in_stock", 1, "epyc"), seriesOf("plan_in_stock", 0, "ryzen"),
		}}},
		{"old status", "locations", given{health: []health{state("status", 5*time.Minute, errDown)}, series: []series{seriesOf("status_info", 1, "degraded")}}},
		{"no account", "accounts", given{enabled: []string{"plans"}}},
		{"every state of a collector, without the overview", "collectors", given{hidden: true, enabled: []string{"plans", "locations", "os", "status", "account", "topups", "transactions"}, health: []health{
			withAge(state("plans", time.Minute, nil), time.Hour), withInvalid(state("locations", time.Minute, nil), "coordinates.lat", "locations.fra.components.network"), state("os", 9*time.Minute, errDown),
			state("status", 0, errDown), state("account", 9*time.Minute-1, errDown), older, state("transactions", 0, nil),
		}}},
	} {
		fmt.Fprintf(&text, "\n%s (%s):\n%s", tc.name, tc.section, tc.given.text(t, tc.section))
	}
	simtest.Golden(t, filepath.Join("testdata", "sections.txt"), text.String())
}

// TestLongTable has more plans than a table shows.
func TestLongTable(t *testing.T) {
	var plans []series
	for i := range 103 {
		plans = append(plans, seriesOf("plan_info", 1, fmt.Sprint("plan-", i), strings.Repeat("long name ", 20)))
	}
	text := given{series: plans}.text(t, "plans")
	simtest.AssertEqual(t, "rows, and those with a whole name", []int{strings.Count(text, "plan-"), strings.Count(text, strings.Repeat("long name ", 20))}, []int{100, 0})
	simtest.AssertEqual(t, "says how many are missing", strings.Contains(text, "and 3 more"), true)
}

// TestUndefinedMetric asserts that a page which reads a metric that was renamed is an error.
func TestUndefinedMetric(t *testing.T) {
	defer func() { simtest.AssertEqual(t, "panic", recover(), any("undefined metric: plan_stock")) }()
	given{}.view().Find("plan_stock")
}
