// Package dashboards_test checks the committed dashboards: that their queries can be read,
// name only metrics and labels that exist, and obey the variables; the rules of Grafana's
// dashboard-linter; and that links lead somewhere. The end-to-end test checks that the
// queries return data.
package dashboards_test

import (
	"encoding/json"
	"fmt"
	"maps"
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

// TestReadable checks that people can read and change the queries in Grafana's editor.
func TestReadable(t *testing.T) {
	var lengths []int
	panels, all := 0, 0
	banned := regexp.MustCompile(`\$\{?__(to|from)\b|@|count_values`)
	for uid, d := range grafana.Load(t) {
		for _, v := range d.Templating.List {
			if v.Hide == 2 && v.Name != "job" && v.Name != "instance" || strings.Contains(v.Query, "query_result") {
				t.Errorf("%s: variable %s is hidden, or a result of a query", uid, v.Name)
			}
		}
		for _, p := range d.AllPanels() {
			if p.Type == "row" {
				continue
			}
			panels++
			if len(p.Targets) > 12 || len(p.Transformations) > 4 {
				t.Errorf("%s, %s: got %d queries and %d transformations, want 12 and 4 at most", uid, p.Title, len(p.Targets), len(p.Transformations))
			}
		}
		for _, q := range d.Queries() {
			if len(q.Expr) > 400 || banned.MatchString(q.Expr) {
				t.Errorf("%s: got %d characters, want 400 at most, and no times of the range, modifier @ or count_values", q.Key, len(q.Expr))
			}
			if q.Panel.ID != 0 { // an annotation is not read in a panel
				lengths, all = append(lengths, len(q.Expr)), all+len(q.Expr)
			}
		}
	}
	slices.Sort(lengths)
	if median, most := lengths[len(lengths)/2], lengths[len(lengths)*9/10]; median > 125 || most >= 240 || all > 27_000 || panels > 66 {
		t.Errorf("queries: got a median of %d characters, 90 percent below %d, %d in all, in %d panels; want at most 125, 240, 27,000 and 66", median, most, all, panels)
	}
}

// TestDashboards checks what the linter and Grafana 10 want of a dashboard and its variables.
func TestDashboards(t *testing.T) {
	titles := map[string]bool{}
	for uid, d := range grafana.Load(t) {
		// Grafana 10.0 has version 38 and does not migrate newer ones.
		if d.Title == "" || titles[d.Title] || d.Description == "" || len(d.Tags) == 0 || d.SchemaVersion > 38 || d.ID != nil || d.Editable {
			t.Errorf("%s: got title %q, description %q, tags %v, schemaVersion %d, id %v, editable %t", uid, d.Title, d.Description, d.Tags, d.SchemaVersion, d.ID, d.Editable)
		}
		titles[d.Title] = true
		for _, m := range regexp.MustCompile(`"uid": "([^"]*)"`).FindAllStringSubmatch(repo.Read(t, "dashboards/"+uid+".json"), -1) {
			if m[1] != templated.UID && m[1] != uid {
				t.Errorf("%s: contains the uid %q", uid, m[1])
			}
		}
		for _, v := range d.Templating.List {
			where := uid + ", variable " + v.Name
			if v.Label == "" || v.Description == "" {
				t.Errorf("%s: has no label or no description", where)
			}
			switch v.Type {
			case "datasource":
				simtest.AssertEqual(t, where+": query, label and value", []any{v.Query, v.Label, v.Current.Value}, []any{"prometheus", "Data source", "default"})
			case "query":
				checkVariable(t, where, v)
			}
			if !slices.ContainsFunc(d.Queries(), func(q grafana.Query) bool {
				return v.Type == "datasource" || regexp.MustCompile(`\$\{?`+v.Name+`\b`).MatchString(q.Expr)
			}) {
				t.Errorf("%s: is unused", where)
			}
		}
	}
}

// checkVariable checks a variable whose values come from Prometheus: the linter wants job
// and instance, each with a value for all, and the others obey them.
func checkVariable(t *testing.T, where string, v grafana.Variable) {
	t.Helper()
	all := map[string]string{"job": ".+", "instance": ".+", "account": ".+", "location": ".*", "plan": ""}
	if v.Datasource != templated || v.Refresh != 2 || v.AllValue != all[v.Name] || (!v.Multi || !v.IncludeAll) && where != "server-rental-plan, variable plan" {
		t.Errorf("%s: got %+v", where, v)
	}
	parts := regexp.MustCompile(`^label_values\((.+), ([a-z_]+)\)$`).FindStringSubmatch(v.Query)
	if parts == nil {
		t.Fatalf("%s: got %q, want label_values(selector, label)", where, v.Query)
	}
	// A pattern of names stands for each of them.
	names := regexp.MustCompile(`\{__name__=~"(\w+)\((\w+)\|(\w+)\)", `).FindStringSubmatch(parts[1])
	selectors := []string{parts[1]}
	if names != nil {
		selectors = []string{strings.Replace(parts[1], names[0], names[1]+names[2]+"{", 1), strings.Replace(parts[1], names[0], names[1]+names[3]+"{", 1)}
		selectors[0] = strings.Replace(selectors[0], `, location=~"$location"`, "", 1) // matches what has no location, too
	}
	for _, selector := range selectors {
		expr, err := promqltest.Parse(selector)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if have, err := knownMetrics().Labels(expr); err != nil || !have.Has(parts[2]) {
			t.Errorf("%s: %s: no such metric or label: %v", where, selector, err)
		}
	}
	for _, parent := range []string{"job", "instance"} {
		if v.Name != parent && v.Name != "job" && !strings.Contains(v.Query, parent+`=~"$`+parent+`"`) {
			t.Errorf("%s: %s has no matcher for %s", where, v.Query, parent)
		}
	}
}

// unit matches the units that panels may use. Grafana's units for currencies and rates
// abbreviate thousands, and its days become weeks.
var unit = regexp.MustCompile(`^(none|percentunit|bytes|s|dtdurations|reqpm|dateTimeFromNow|time:[-YMDHms: ]+|suffix:[a-zA-Z ]+)$`)

func TestPanels(t *testing.T) {
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
			if !slices.Contains([]string{"stat", "table", "timeseries", "state-timeline"}, p.Type) || p.Datasource != templated || !strings.HasSuffix(p.Description, ".") || len(p.Targets) == 0 {
				t.Errorf("%s: got type %s, data source %v, description %q, %d queries", where, p.Type, p.Datasource, p.Description, len(p.Targets))
			}
			for _, u := range append(overrides[string](t, p, "unit"), p.FieldConfig.Defaults.Unit) {
				if !unit.MatchString(u) {
					t.Errorf("%s: got unit %q, want one that matches %s", where, u, unit)
				}
			}
			if p.Type == "table" {
				checkTable(t, where, p)
			}
		}
	}
}

// overrides returns the values of a property that is overridden for some fields.
func overrides[T any](t *testing.T, p grafana.Panel, id string) (all []T) {
	t.Helper()
	for _, o := range p.FieldConfig.Overrides {
		for _, prop := range o.Properties {
			var value T
			if prop.ID != id {
				continue
			}
			if err := json.Unmarshal(prop.Value, &value); err != nil {
				t.Errorf("%s: %v", id, err)
			}
			all = append(all, value)
		}
	}
	return all
}

// checkTable checks that a table says what is missing if it is empty, that the value of each
// query has a column or is hidden, and that the column by which it is sorted exists.
func checkTable(t *testing.T, where string, p grafana.Panel) {
	t.Helper()
	if p.FieldConfig.Defaults.NoValue == "" {
		t.Errorf("%s: does not say what is missing", where)
	}
	shown, placed := map[string]bool{}, map[string]bool{}
	for _, tr := range p.Transformations {
		for from, to := range tr.Options.RenameByName {
			shown[to], placed[from] = true, true
		}
		for name := range tr.Options.ExcludeByName {
			placed[name] = true
		}
		placed[tr.Options.ValueField] = true // of a matrix
	}
	if len(p.Options.SortBy) != 1 || !shown[p.Options.SortBy[0].DisplayName] {
		t.Errorf("%s: is sorted by %v, want one of %v", where, p.Options.SortBy, slices.Sorted(maps.Keys(shown)))
	}
	for _, q := range p.Targets {
		if name := "Value #" + q.RefID; !placed[name] && !placed["Value"] && !placed["state"] {
			t.Errorf("%s: the column %q has no name", where, name)
		}
	}
}

// knownMetrics returns the metrics that a query may name: those of the exporter, of its
// libraries, of Prometheus and of the recording rules.
func knownMetrics() promqltest.Catalog {
	c := promqltest.Exported()
	for _, name := range []string{"up", "process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds"} {
		c.Add(name)
	}
	// Those of rules have neither job nor instance.
	for _, name := range []string{"in_stock:max", "in_stock:avg1d", "in_stock:avg7d", "in_stock:avg30d", "in_stock:avg90d", "stay_seconds:avg30d", "return_seconds:avg30d"} {
		c["plan:server_rental_plan_"+name] = sets.New("plan")
	}
	c["account_configuration:server_rental_configuration_in_stock:avg30d"] = sets.New("account", "configuration")
	c["ALERTS"] = sets.New("alertname", "alertstate", "severity")
	c["ALERTS_FOR_STATE"] = sets.New("alertname", "severity")
	return c
}

// rateInterval stands for $__rate_interval in parsed queries.
const rateInterval = 61 * time.Second

// parse parses a query as Grafana sends it, in a currency.
func parse(query, currency string) (parser.Expr, error) {
	values := map[string]string{"__rate_interval": rateInterval.String(), "__interval": "1m", "currency": currency}
	for _, name := range []string{"job", "instance", "account", "location", "plan"} {
		values[name] = "$" + name
	}
	return promqltest.Parse(grafana.Interpolate(query, values))
}

func TestQueries(t *testing.T) {
	metrics := knownMetrics()
	for _, d := range grafana.Load(t) {
		for _, q := range d.Queries() {
			if annotation := q.Panel.ID == 0; !annotation && (q.RefID == "" || q.Datasource != templated || q.Instant == q.Range || q.Format != "table" && q.LegendFormat == "") {
				t.Errorf("%s: got %+v, want an id, the data source of the variable, either instant or range, and a legend", q.Key, q.Target)
			}
			for _, currency := range []string{"usd", "eur"} {
				expr, err := parse(q.Expr, currency)
				if err != nil {
					t.Errorf("%s: %v", q.Key, err)
					continue
				}
				checkQuery(t, metrics, q, expr)
			}
		}
	}
}

// checkQuery checks that a query names only metrics and labels that exist, in its legend
// too, matches the chosen job and instance, and reads counters through a rate over
// $__rate_interval or an increase.
func checkQuery(t *testing.T, metrics promqltest.Catalog, q grafana.Query, expr parser.Expr) {
	t.Helper()
	for _, s := range promqltest.Selectors(expr) {
		if metrics[s.Metric] == nil {
			t.Errorf("%s: no metric %s", q.Key, s.Metric)
		}
		for _, l := range []string{"job", "instance"} {
			if metrics[s.Metric].Has(l) && !s.HasMatcher(labels.MatchRegexp, l, "$"+l) {
				t.Errorf("%s: %s has no matcher %s=~\"$%s\"", q.Key, s.Metric, l, l)
			}
		}
		isCounter := strings.HasSuffix(s.Metric, "_total") || strings.HasSuffix(s.Metric, "_bucket")
		if (s.Call == "rate" || s.Call == "irate") && s.Range != rateInterval || isCounter && s.Call != "rate" && s.Call != "increase" {
			t.Errorf("%s: %s of %s over %s", q.Key, s.Call, s.Metric, s.Range)
		}
	}
	if strings.Contains(q.Expr, "ignoring (alertstate)") { // an alert has the labels of its rule
		return
	}
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
}

// TestLinks checks that links between dashboards have a target with the linked variables,
// and that links to runbooks have a heading.
func TestLinks(t *testing.T) {
	const runbooks = "https://github.com/server-rental-exporter/server_rental_exporter/blob/main/alerts/README.md#"
	all := grafana.Load(t)
	documents, err := markdown.Read(repo.Path(t, "alerts"))
	if err != nil {
		t.Fatal(err)
	}
	local := regexp.MustCompile(`^/d/([^/?]+)\?(.*)$`)
	for uid, d := range all {
		linked := map[string]bool{}
		links := slices.Clone(d.Links)
		for _, p := range d.AllPanels() {
			links = slices.Concat(links, p.Links, slices.Concat(overrides[[]grafana.Link](t, p, "links")...))
		}
		for _, l := range links {
			heading, isRunbook := strings.CutPrefix(l.URL, runbooks)
			parts := local.FindStringSubmatch(l.URL)
			switch {
			case isRunbook:
				// GitHub finds the heading of an alert in any case of letters.
				if heading != "${__value.raw}" && !documents["README.md"].Anchor[heading] {
					t.Errorf("%s: %s: no such heading in the runbooks", uid, l.URL)
				}
			case l.Type == "dashboards": // the menu of all dashboards with a tag
				for other, to := range all {
					linked[other] = linked[other] || l.IncludeVars && l.KeepTime && slices.Contains(to.Tags, l.Tags[0])
				}
			case l.URL == "${__value.raw}": // the provider's page
			case parts != nil && all[parts[1]].UID != "":
				checkKept(t, uid+": "+l.URL, parts[2], d, all[parts[1]])
				linked[parts[1]] = true
			default:
				t.Errorf("%s: %s: leads to no dashboard or runbook", uid, l.URL)
			}
		}
		for other := range all {
			if other != uid && !linked[other] && (uid != "server-rental-status" || other != "server-rental-plan") {
				t.Errorf("%s: no link leads to %s", uid, other)
			}
		}
	}
}

// checkKept checks that a link keeps the time range and every variable that both dashboards
// have, or sets it to the value of the cell, and no other one.
func checkKept(t *testing.T, where, query string, from, to grafana.Dashboard) {
	t.Helper()
	passed := map[string]int{}
	for _, part := range strings.Split(query, "&") {
		name := regexp.MustCompile(`^(?:\$\{(\w+):queryparam\}|var-(\w+)=\$\{__value\.raw\}|\$\{(__url_time_range)\})$`).FindStringSubmatch(part)
		if name == nil {
			t.Fatalf("%s: got %q, want a variable, the value of the cell or the time range", where, part)
		}
		passed[name[1]+name[2]+name[3]]++
	}
	want := map[string]int{"__url_time_range": 1}
	for _, v := range to.Templating.List {
		set := strings.Contains(query, "var-"+v.Name+"=")
		if set || slices.ContainsFunc(from.Templating.List, func(other grafana.Variable) bool { return other.Name == v.Name }) {
			want[v.Name] = 1
		}
	}
	simtest.AssertEqual(t, where+": what it passes", passed, want)
}

// TestAnnotations checks that annotations are on, and the same for old and new versions of Grafana.
func TestAnnotations(t *testing.T) {
	for uid, d := range grafana.Load(t) {
		var names []string
		for _, a := range d.Annotations.List {
			names = append(names, a.Name)
			if !a.Enable || a.Datasource != templated || a.Target.Expr != a.Expr || a.Target.Interval != a.Step {
				t.Errorf("%s, annotation %s: got %+v", uid, a.Name, a)
			}
		}
		if want := uid == "server-rental-stock" || uid == "server-rental-status"; slices.Contains(names, "Outages") != want {
			t.Errorf("%s: got annotations %q", uid, names)
		}
	}
}
