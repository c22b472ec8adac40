// Package dashboards_test checks the committed dashboards: the rules of Grafana's
// dashboard-linter, that queries name only metrics and labels that exist, and that
// every panel has a title, a description, a unit and a legend. The end-to-end test
// checks that the queries return data.
package dashboards_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/apimachinery/pkg/util/sets"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/grafana"
	"server_rental_exporter/test/internal/markdown"
	"server_rental_exporter/test/internal/promqltest"
	"server_rental_exporter/test/internal/repo"
)

// templated is the data source that the user chooses.
var templated = grafana.Datasource{Type: "prometheus", UID: "${datasource}"}

// knownMetrics returns the metrics that a query may name: those of the exporter, of its
// libraries, and of Prometheus.
func knownMetrics() promqltest.Catalog {
	c := promqltest.Exported()
	for _, name := range []string{
		"up", "scrape_duration_seconds", "go_goroutines", "go_memstats_heap_inuse_bytes",
		"process_cpu_seconds_total", "process_open_fds", "process_resident_memory_bytes", "process_start_time_seconds",
	} {
		c.Add(name)
	}
	c.Add("promhttp_metric_handler_errors_total", "cause")
	// Those of rules have neither job nor instance.
	c["ALERTS"] = sets.New("alertname", "alertstate", "severity", "account", "server", "topup", "watch", "configuration", "plan", "location", "component", "collector")
	c["ALERTS_FOR_STATE"] = c["ALERTS"]
	for _, name := range []string{"in_stock:max", "in_stock:avg30d", "restocks:max1h", "stay_seconds:avg30d", "return_seconds:avg30d"} {
		c["plan:server_rental_plan_"+name] = sets.New("plan")
	}
	for _, name := range []string{"in_stock:avg30d", "restocks:max1h", "stay_seconds:avg30d", "return_seconds:avg30d"} {
		c["account_configuration:server_rental_configuration_"+name] = sets.New("account", "configuration")
	}
	for _, name := range []string{"failing:group", "maintenance:group", "operational:max"} {
		c["location_component:server_rental_component_"+name] = sets.New("location", "component")
	}
	for _, name := range []string{"failing:group", "data_timestamp_seconds:max"} {
		c["collector_account:server_rental_exporter_collector_"+name] = sets.New("collector", "account")
	}
	return c
}

// rateInterval stands for $__rate_interval in parsed queries.
const rateInterval = 61 * time.Second

// parse parses a query as Grafana sends it, once for each currency that it depends on.
func parse(query string) (all []parser.Expr, err error) {
	values := map[string]string{"__rate_interval": rateInterval.String(), "__range": "6h", "__interval_ms": "60000", "__interval": "1m", "__from:date:seconds": "0", "__to:date:seconds": "21600", "__range_s": "21600"}
	for _, name := range []string{"job", "instance", "account", "location", "plan"} {
		values[name] = "$" + name
	}
	for _, values["currency"] = range []string{"usd", "eur"} {
		expr, err := promqltest.Parse(grafana.Interpolate(query, values))
		if err != nil {
			return nil, err
		}
		if all = append(all, expr); !strings.Contains(query, "${currency}") {
			break
		}
	}
	return all, nil
}

func TestDashboards(t *testing.T) {
	titles := map[string]bool{}
	for uid, d := range grafana.Load(t) {
		if !regexp.MustCompile(`^server-rental-[a-z]+$`).MatchString(uid) {
			t.Errorf("%s: want a uid of the form server-rental-NAME", uid)
		}
		if d.Title == "" || titles[d.Title] || d.Description == "" || len(d.Tags) == 0 {
			t.Errorf("%s: got title %q, description %q, tags %v, want non-empty ones and a unique title", uid, d.Title, d.Description, d.Tags)
		}
		titles[d.Title] = true
		// Grafana 10.0 has version 38 and does not migrate newer ones.
		if d.SchemaVersion < 30 || d.SchemaVersion > 38 || d.ID != nil || d.Editable {
			t.Errorf("%s: got schemaVersion %d, id %v, editable %t, want a version that Grafana 10.0 knows, no id, false", uid, d.SchemaVersion, d.ID, d.Editable)
		}
	}
}

func TestVariables(t *testing.T) {
	want := map[string][]string{
		"server-rental-stock":    {"datasource", "job", "instance", "at", "saved", "account", "location", "plan", "currency"},
		"server-rental-accounts": {"datasource", "job", "instance", "at", "account", "location", "plan", "vat"},
		// Neither the provider's status nor the exporter's health depends on plans.
		"server-rental-status": {"datasource", "job", "instance", "at", "provider", "account", "location"},
		"server-rental-plan":   {"datasource", "job", "instance", "at", "saved", "plan", "currency"},
	}
	for uid, d := range grafana.Load(t) {
		var names []string
		for _, v := range d.Templating.List {
			names = append(names, v.Name)
			where := uid + ", variable " + v.Name
			if v.Label == "" || v.Description == "" {
				t.Errorf("%s: has no label or no description", where)
			}
			switch v.Type {
			case "datasource":
				simtest.AssertEqual(t, where+": query, label and value", []any{v.Query, v.Label, v.Current.Value}, []any{"prometheus", "Data source", "default"})
				continue
			case "query":
				checkVariable(t, where, v)
			}
			if !slices.ContainsFunc(d.Queries(), func(q grafana.Query) bool {
				return regexp.MustCompile(`\$\{?` + v.Name + `\b`).MatchString(q.Expr)
			}) {
				t.Errorf("%s: is unused", where)
			}
		}
		slices.Sort(names)
		simtest.AssertEqual(t, uid+": variables", names, slices.Sorted(slices.Values(want[uid])))
	}
}

// checkVariable checks a variable whose values come from Prometheus.
func checkVariable(t *testing.T, where string, v grafana.Variable) {
	t.Helper()
	want := v
	want.Datasource, want.Multi, want.IncludeAll, want.AllValue = templated, true, true, ".+"
	want.Refresh = 2 // on a change of the time range
	want.Label = strings.ToUpper(v.Name[:1]) + v.Name[1:]
	want.Hide = 0
	if slices.Contains([]string{"job", "instance", "at", "provider", "saved"}, v.Name) { // few have more than one exporter, and Grafana cannot hide by count
		want.Hide = 2
	}
	if v.SkipURLSync { // TestLastKnown evaluates it
		want.Multi, want.IncludeAll, want.AllValue, want.SkipURLSync, want.Current.Value = false, false, "", true, "+"
		simtest.AssertEqual(t, where, v, want)
		return
	}
	switch where {
	case "server-rental-stock, variable plan":
		// Of three metrics, one of which exists for plans without a location; all are those
		// of the chosen locations.
		want.AllValue = ""
		want.Query = `label_values({__name__=~"server_rental_(plan_info|plan_offered|configuration_info)", job=~"$job", instance=~"$instance", location=~"$location"}, plan)`
		for _, name := range []string{"plan_info", "plan_offered", "configuration_info"} {
			if !knownMetrics()["server_rental_"+name].Has("plan") {
				t.Errorf("%s: %s has no label plan", where, name)
			}
		}
		simtest.AssertEqual(t, where, v, want)
		return
	case "server-rental-plan, variable plan": // one, not all
		want.Multi, want.IncludeAll, want.AllValue = false, false, ""
	}
	if v.Name == "location" { // matches what has no location, too
		want.AllValue = ".*"
	}
	simtest.AssertEqual(t, where, v, want)
	parts := regexp.MustCompile(`^label_values\((?:(.+), )?([a-z_]+)\)$`).FindStringSubmatch(v.Query)
	if parts == nil {
		t.Errorf("%s: got %q, want label_values(selector, label)", where, v.Query)
		return
	}
	expr, err := promqltest.Parse(parts[1])
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	if have, err := knownMetrics().Labels(expr); err != nil || !have.Has(parts[2]) {
		t.Errorf("%s: %s: no such metric or label: %v", where, v.Query, err)
	}
	for _, s := range promqltest.Selectors(expr) {
		for _, m := range parentVariables(v.Name) {
			if !s.HasMatcher(labels.MatchRegexp, m, "$"+m) {
				t.Errorf("%s: %s has no matcher for %s", where, v.Query, m)
			}
		}
	}
}

// parentVariables returns the variables that limit the values of another one.
func parentVariables(name string) []string {
	switch name {
	case "job":
		return nil
	case "instance":
		return []string{"job"}
	default:
		return []string{"job", "instance"}
	}
}

// unit matches the units that panels may use. Grafana's units for currencies and rates
// abbreviate thousands, and its days become weeks.
var unit = regexp.MustCompile(`^(none|percentunit|bytes|s|dtdhms|dtdurations|reqpm|dateTimeAsIso|dateTimeFromNow` +
	`|time:[-\x{2011}YMDdHms:\s\x{a0}]+|suffix:([a-z ]+|USD|EUR))$`)

func TestPanels(t *testing.T) {
	core := []string{"stat", "table", "timeseries", "state-timeline", "barchart", "trend"}
	for uid, d := range grafana.Load(t) {
		ids := map[int]bool{}
		for _, p := range d.AllPanels() {
			where := fmt.Sprintf("%s, panel %d %s", uid, p.ID, p.Title)
			if p.ID <= 0 || ids[p.ID] || p.Title == "" {
				t.Errorf("%s: want a title, and an id that no other panel has", where)
			}
			ids[p.ID] = true
			if p.Type == "row" {
				continue
			}
			if !slices.Contains(core, p.Type) {
				t.Errorf("%s: got type %s, want one of Grafana's core panels", where, p.Type)
			}
			if len(p.Description) < 20 || !strings.HasSuffix(p.Description, ".") {
				t.Errorf("%s: got description %q, want a sentence", where, p.Description)
			}
			simtest.AssertEqual(t, where+": data source", p.Datasource, templated)
			for _, u := range append(overrides[string](t, p, "unit"), p.FieldConfig.Defaults.Unit) {
				if !unit.MatchString(u) {
					t.Errorf("%s: got unit %q, want one that matches %s", where, u, unit)
				}
			}
			checkTargets(t, where, p)
			switch p.Type {
			case "table":
				checkTable(t, where, p)
			case "stat":
				checkNoData(t, where, p)
			}
		}
		checkGrid(t, d)
	}
}

// overrides returns the values of a property that is overridden for some fields.
func overrides[T any](t *testing.T, p grafana.Panel, id string) (all []T) {
	t.Helper()
	for _, o := range p.FieldConfig.Overrides {
		all = append(all, properties[T](t, o.Properties, id)...)
	}
	return all
}

// properties returns the values of one property.
func properties[T any](t *testing.T, of []grafana.Property, id string) (all []T) {
	t.Helper()
	for _, prop := range of {
		if prop.ID != id {
			continue
		}
		var value T
		if err := json.Unmarshal(prop.Value, &value); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		all = append(all, value)
	}
	return all
}

// checkNoData checks that missing data is grey and says so: the threshold colours of a
// number would show it as good or as bad.
func checkNoData(t *testing.T, where string, p grafana.Panel) {
	t.Helper()
	for _, m := range p.FieldConfig.Defaults.Mappings {
		var options struct {
			Match  string
			Result struct{ Text, Color string }
		}
		if m.Type == "special" && json.Unmarshal(m.Options, &options) == nil && options.Match == "null+nan" && options.Result.Text == "No data" && options.Result.Color == "#808080" {
			return
		}
	}
	t.Errorf("%s: has no grey mapping for missing data", where)
}

func checkTargets(t *testing.T, where string, p grafana.Panel) {
	t.Helper()
	if len(p.Targets) == 0 {
		t.Errorf("%s: has no query", where)
	}
	refs := map[string]bool{}
	for _, q := range p.Targets {
		if q.RefID == "" || refs[q.RefID] || q.Datasource != templated || q.Instant == q.Range {
			t.Errorf("%s: got query %+v, want one with an id of its own, the data source of the variable, and either instant or range", where, q)
		}
		refs[q.RefID] = true
		if q.Format != "table" && (q.LegendFormat == "" || q.LegendFormat == "__auto") {
			t.Errorf("%s: query %s has no legend", where, q.RefID)
		}
	}
	if (p.Type == "timeseries" || p.Type == "state-timeline") && !p.Options.Legend.ShowLegend {
		t.Errorf("%s: hides its legend", where)
	}
	// With thresholds, the legend would show their bounds instead of the texts of mappings.
	if p.Type == "state-timeline" && (len(p.FieldConfig.Defaults.Mappings) == 0 || p.FieldConfig.Defaults.Color.Mode != "palette-classic") {
		t.Errorf("%s: got colour mode %q, want value mappings and palette-classic", where, p.FieldConfig.Defaults.Color.Mode)
	}
}

// checkTable checks that the time and each value of a query are a named column or hidden,
// and that the table is sorted by a column.
func checkTable(t *testing.T, where string, p grafana.Panel) {
	t.Helper()
	shown, hidden := map[string]string{}, map[string]bool{}
	for _, tr := range p.Transformations {
		for from, to := range tr.Options.RenameByName {
			shown[from] = to
		}
		for name, on := range tr.Options.ExcludeByName {
			hidden[name] = on
		}
	}
	if !hidden["Time"] && shown["Time"] == "" {
		t.Errorf("%s: the column Time has no name", where)
	}
	for _, q := range p.Targets {
		value := "Value #" + q.RefID
		if len(p.Targets) == 1 {
			value = "Value"
		}
		if shown[value] == "" && !hidden[value] {
			t.Errorf("%s: the column %q has no name", where, value)
		}
		if q.Format != "table" {
			t.Errorf("%s: query %s is not formatted as a table", where, q.RefID)
		}
	}
	// A price has a column for each currency, of which one has data.
	currency := regexp.MustCompile(`(usd|eur)$`)
	names := map[string]string{}
	for from, name := range shown {
		from = currency.ReplaceAllString(from, "")
		if other, taken := names[name]; taken && other != from {
			t.Errorf("%s: two columns have the name %s", where, name)
		}
		names[name] = from
	}
	if len(p.Options.SortBy) != 1 || names[p.Options.SortBy[0].DisplayName] == "" {
		t.Errorf("%s: is sorted by %v, want one of %v", where, p.Options.SortBy, slices.Sorted(maps.Keys(names)))
	}
}

// checkGrid checks that panels are within the width and do not overlap, neither while rows
// are collapsed nor within one that is opened.
func checkGrid(t *testing.T, d grafana.Dashboard) {
	t.Helper()
	groups := [][]grafana.Panel{d.Panels}
	for _, p := range d.Panels {
		groups = append(groups, p.Panels)
	}
	for _, group := range groups {
		taken := map[[2]int]string{}
		for _, p := range group {
			g := p.GridPos
			if g.W <= 0 || g.H <= 0 || g.X < 0 || g.Y < 0 || g.X+g.W > 24 {
				t.Errorf("%s, panel %d: got position %+v, want one within 24 columns", d.UID, p.ID, g)
			}
			for x := g.X; x < g.X+g.W; x++ {
				for y := g.Y; y < g.Y+g.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" {
						t.Fatalf("%s: %s and %s overlap", d.UID, other, p.Title)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}

func TestQueries(t *testing.T) {
	metrics := knownMetrics()
	for _, d := range grafana.Load(t) {
		for _, q := range d.Queries() {
			exprs, err := parse(q.Expr)
			if err != nil {
				t.Errorf("%s: %v", q.Key, err)
			}
			for _, expr := range exprs {
				checkQuery(t, metrics, q, expr)
			}
		}
	}
}

// checkQuery checks that a query names only metrics and labels that exist, in its legend
// too, matches the chosen job and instance, and looks back 90 days at most.
func checkQuery(t *testing.T, metrics promqltest.Catalog, q grafana.Query, expr parser.Expr) {
	t.Helper()
	have, err := metrics.Labels(expr)
	if err != nil {
		t.Errorf("%s: %v", q.Key, err)
		return
	}
	for _, m := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(q.LegendFormat, -1) {
		if !have.Has(m[1]) {
			t.Errorf("%s: the legend names the label %s, but the result has only %q", q.Key, m[1], sets.List(have))
		}
	}
	for _, s := range promqltest.Selectors(expr) {
		for _, l := range []string{"job", "instance"} {
			if metrics[s.Metric].Has(l) && !s.HasMatcher(labels.MatchRegexp, l, "$"+l) {
				t.Errorf("%s: %s has no matcher %s=~\"$%s\"", q.Key, s.Metric, l, l)
			}
		}
	}
	for _, r := range ranges(expr) {
		if r > 90*24*time.Hour {
			t.Errorf("%s: looks back %s, want 90 days at most", q.Key, r)
		}
	}
}

// ranges returns the ranges of all range selectors and subqueries.
func ranges(expr parser.Expr) []time.Duration {
	var all []time.Duration
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.MatrixSelector:
			all = append(all, n.Range)
		case *parser.SubqueryExpr:
			all = append(all, n.Range)
		}
		return nil
	})
	return all
}

// TestCounters checks the linter's target-rate-interval-rule and target-counter-agg-rule:
// rates are over $__rate_interval, and counters are read through rate, irate or increase.
func TestCounters(t *testing.T) {
	for _, d := range grafana.Load(t) {
		for _, q := range d.Queries() {
			exprs, err := parse(q.Expr)
			if err != nil || q.Panel.ID == 0 { // reported by TestQueries, or an annotation
				continue
			}
			for _, s := range promqltest.Selectors(exprs[0]) {
				isRate := s.Call == "rate" || s.Call == "irate"
				if isRate && s.Range != rateInterval {
					t.Errorf("%s: %s over %s, want $__rate_interval", q.Key, s.Call, s.Range)
				}
				isCounter := strings.HasSuffix(s.Metric, "_total") || strings.HasSuffix(s.Metric, "_bucket")
				if isCounter && !isRate && s.Call != "increase" {
					t.Errorf("%s: %s is neither a rate nor an increase", q.Key, s.Metric)
				}
			}
		}
	}
}

func TestNoFixedDatasource(t *testing.T) {
	for own := range grafana.Load(t) {
		text := repo.Read(t, "dashboards/"+own+".json")
		for _, m := range regexp.MustCompile(`"uid": "([^"]*)"`).FindAllStringSubmatch(text, -1) {
			if m[1] != templated.UID && m[1] != own {
				t.Errorf("%s: contains the uid %q", own, m[1])
			}
		}
		for _, name := range []string{"__inputs", "DS_PROMETHEUS", "grafana.net"} {
			if strings.Contains(text, name) {
				t.Errorf("%s: contains %s", own, name)
			}
		}
	}
}

// TestLinks checks that links between dashboards have a target with the linked variables,
// and that links to runbooks have a heading.
func TestLinks(t *testing.T) {
	const runbooks = "https://github.com/server-rental-exporter/server_rental_exporter/blob/main/alerts/README.md"
	all := grafana.Load(t)
	documents, err := markdown.Read(repo.Path(t, "alerts"))
	if err != nil {
		t.Fatal(err)
	}
	headings := documents["README.md"].Anchor
	local := regexp.MustCompile(`^/d/([^/?]+)(?:\?(.*))?$`)
	for uid, d := range all {
		linked := map[string]bool{}
		for _, l := range allLinks(t, d) {
			if rest, is := strings.CutPrefix(l.URL, runbooks); is {
				if rest == "#"+rawValue("Anchor") { // TestAnchors
					continue
				}
				if rest != "" && !headings[strings.TrimPrefix(rest, "#")] {
					t.Errorf("%s: %s: no such heading in the runbooks", uid, l.URL)
				}
				continue
			}
			if l.Type == "dashboards" { // the menu of all dashboards with a tag
				for other, to := range all {
					if l.AsDropdown && l.IncludeVars && l.KeepTime && slices.Equal(l.Tags, to.Tags[:1]) {
						linked[other] = true
						checkPlan(t, uid+": the list of dashboards", to)
					}
				}
				continue
			}
			if l.URL == rawValue("Order") { // the provider's order form
				continue
			}
			parts := local.FindStringSubmatch(l.URL)
			if parts == nil {
				t.Errorf("%s: got link %q, want one to a dashboard or a runbook", uid, l.URL)
				continue
			}
			to, there := all[parts[1]]
			if !there {
				t.Errorf("%s: %s: no such dashboard", uid, l.URL)
			}
			checkKept(t, uid+": "+l.URL, parts[2], d, to)
			linked[parts[1]] = true
		}
		for other := range all {
			if other != uid && !linked[other] && (uid != "server-rental-status" || other != "server-rental-plan") {
				t.Errorf("%s: no link leads to %s", uid, other)
			}
		}
	}
}

// TestAnchors checks that each alert in the list of those that fire has the anchor of its
// runbook: Grafana puts the text of a mapping into the address.
func TestAnchors(t *testing.T) {
	type result struct{ Text string }
	got, want := map[string]result{}, map[string]result{}
	for _, file := range repo.Glob(t, "alerts/*.rules.yml") {
		for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(repo.Read(t, "alerts/"+filepath.Base(file)), -1) {
			want[m[1]] = result{strings.ToLower(m[1])}
		}
	}
	for _, p := range grafana.Load(t)["server-rental-status"].AllPanels() {
		for _, o := range p.FieldConfig.Overrides {
			for _, m := range slices.Concat(properties[[]grafana.Mapping](t, o.Properties, "mappings")...) {
				if o.Matcher.Options == "Anchor" && m.Type == "value" {
					if err := json.Unmarshal(m.Options, &got); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	simtest.AssertEqual(t, "anchors of alerts", got, want)
}

// checkPlan checks that a link that keeps all variables leads to no dashboard of one plan.
func checkPlan(t *testing.T, where string, to grafana.Dashboard) {
	t.Helper()
	for _, v := range to.Templating.List {
		if v.Name == "plan" && !v.Multi {
			t.Errorf("%s: leads to %s, which shows one plan only", where, to.UID)
		}
	}
}

// checkKept checks that a link keeps the time range and every variable that both dashboards
// have and addresses contain, or sets it, and no other one.
func checkKept(t *testing.T, where, query string, from, to grafana.Dashboard) {
	t.Helper()
	if !strings.Contains(query, "${__url_time_range}") {
		t.Errorf("%s: does not keep the time range", where)
	}
	passed := map[string]int{}
	for _, m := range regexp.MustCompile(`\$\{(\w+):queryparam\}|var-(\w+)=([^&]*)`).FindAllStringSubmatch(query, -1) {
		passed[m[1]+m[2]]++
		if m[2] != "" && !strings.HasPrefix(m[3], rawValue("")) {
			t.Errorf("%s: sets %s to %q, want the value of a column", where, m[2], m[3])
		}
	}
	for _, v := range to.Templating.List {
		known := slices.ContainsFunc(from.Templating.List, func(other grafana.Variable) bool { return other.Name == v.Name && !v.SkipURLSync })
		if got := passed[v.Name]; got > 1 || known && got == 0 {
			t.Errorf("%s: passes %s %d times, want once", where, v.Name, got)
		}
		delete(passed, v.Name)
	}
	if len(passed) > 0 {
		t.Errorf("%s: sets %v, which %s does not have", where, passed, to.UID)
	}
}

// TestAnnotations checks that annotations obey the variables, mark only when an event
// began, are the same for old and new versions of Grafana, and are on.
func TestAnnotations(t *testing.T) {
	want := map[string]map[string]bool{ // by dashboard and name, whether it is on
		"server-rental-stock":  {"Outages": true},
		"server-rental-status": {"Outages": true, "Incidents": true},
	}
	metrics := knownMetrics()
	for uid, d := range grafana.Load(t) {
		got := map[string]bool{}
		for _, a := range d.Annotations.List {
			where := uid + ", annotation " + a.Name
			got[a.Name] = a.Enable
			if a.Datasource != templated || !a.UseValueForTime || a.Target.Expr != a.Expr || a.Target.Interval != a.Step || a.Step != "2m" {
				t.Errorf("%s: got %+v, want the time as value, and the same target with a step of 2m", where, a)
			}
			exprs, err := parse(a.Expr)
			if err != nil {
				t.Errorf("%s: %v", where, err)
				continue
			}
			for _, s := range promqltest.Selectors(exprs[0]) {
				for _, v := range d.Templating.List {
					if metrics[s.Metric].Has(v.Name) && !s.HasMatcher(labels.MatchRegexp, v.Name, "$"+v.Name) {
						t.Errorf("%s: %s does not obey %s", where, s.Metric, v.Name)
					}
				}
			}
		}
		if !maps.Equal(got, want[uid]) {
			t.Errorf("%s: got annotations %v, want %v", uid, got, want[uid])
		}
	}
}

// allLinks returns the links of a dashboard and its panels, and those of cells as Grafana
// opens them in a row that has rawValue in each column.
func allLinks(t *testing.T, d grafana.Dashboard) []grafana.Link {
	t.Helper()
	links := slices.Clone(d.Links)
	for _, p := range d.AllPanels() {
		links = append(links, p.Links...)
		for _, o := range p.FieldConfig.Overrides {
			column := fmt.Sprint(o.Matcher.Options)
			for _, l := range properties[[]grafana.Link](t, o.Properties, "links") {
				for _, cell := range l {
					cell.URL = openCell(t, p, cell.URL, column)
					links = append(links, cell)
				}
			}
		}
	}
	return links
}

// rawValue is what a column of a test's row has.
func rawValue(column string) string { return "https://rental.example/" + column }

// openCell returns the address of a cell's link. ${__value.raw} is the cell's value, and
// ${__data.fields.NAME} the text that the column NAME shows, after value mappings.
func openCell(t *testing.T, p grafana.Panel, url, column string) string {
	t.Helper()
	return regexp.MustCompile(`\$\{__(value\.raw|data\.fields\.(\w+))\}`).ReplaceAllStringFunc(url, func(variable string) string {
		name, isField := strings.CutPrefix(strings.Trim(variable, "${}"), "__data.fields.")
		if !isField {
			return rawValue(column)
		}
		if !slices.ContainsFunc(p.Transformations, func(tr grafana.Transformation) bool {
			return slices.Contains(slices.Collect(maps.Values(tr.Options.RenameByName)), name)
		}) {
			t.Errorf("%s, panel %d: link %s: no such column", p.Title, p.ID, url)
		}
		for _, o := range p.FieldConfig.Overrides {
			for _, mappings := range properties[[]grafana.Mapping](t, o.Properties, "mappings") {
				if o.Matcher.Options == name {
					return mapped(t, mappings, rawValue(name))
				}
			}
		}
		return rawValue(name)
	})
}

// mapped returns the text that the first mapping of a value gives it.
func mapped(t *testing.T, mappings []grafana.Mapping, value string) string {
	t.Helper()
	for _, m := range mappings {
		var options struct {
			Pattern string
			Result  struct{ Text string }
		}
		if m.Type != "regex" {
			continue
		}
		if err := json.Unmarshal(m.Options, &options); err != nil {
			t.Fatal(err)
		}
		if pattern := regexp.MustCompile(options.Pattern); pattern.MatchString(value) {
			return pattern.ReplaceAllString(value, options.Result.Text)
		}
	}
	return value
}
