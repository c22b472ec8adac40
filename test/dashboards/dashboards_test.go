// Package dashboards_test checks the committed dashboards: that their queries can be read,
// name only metrics and labels that exist, and obey the variables; the rules of Grafana's
// dashboard-linter; that links lead somewhere; and that promtool evaluates queries as it should.
package dashboards_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/grafana"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/promqltest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// templated is the data source that the user chooses.
var templated = grafana.Datasource{Type: "prometheus", UID: "${datasource}"}

// TestReadable checks that people can read and change the queries in Grafana's editor.
func TestReadable(t *testing.T) {
	var lengths []int
	banned := regexp.MustCompile(`\$\{?__(to|from)\b|@|count_values`)
	for uid, d := range grafana.Load(t) {
		for _, v := range d.Templating.List {
			if v.Hide == 2 || strings.Contains(v.Query, "query_result") {
				t.Errorf("%s: variable %s is hidden, or a result of a query", uid, v.Name)
			}
		}
		for _, q := range d.Queries() {
			if len(q.Expr) > 400 || banned.MatchString(q.Expr) {
				t.Errorf("%s: got %d characters, want 400 at most, and no times of the range, modifier @ or count_values", q.Key, len(q.Expr))
			}
			lengths = append(lengths, len(q.Expr))
		}
	}
	slices.Sort(lengths)
	if median := lengths[len(lengths)/2]; median > 99 {
		t.Errorf("got a median of %d characters, want 99 at most", median)
	}
}

// TestDashboards checks what the linter and Grafana 10 want of a dashboard and its variables.
func TestDashboards(t *testing.T) {
	titles := map[string]bool{}
	for uid, d := range grafana.Load(t) {
		// Grafana 10.0 has version 38 and does not migrate newer ones.
		if d.Title == "" || titles[d.Title] || d.Description == "" || d.SchemaVersion > 38 || d.ID != nil || !d.Editable {
			t.Errorf("%s: got title %q, description %q, schemaVersion %d, id %v, editable %t", uid, d.Title, d.Description, d.SchemaVersion, d.ID, d.Editable)
		}
		if menu := slices.Contains(d.Tags, "server-rental"); menu == (uid == "server-rental-plan") {
			t.Errorf("%s: got tags %q: all but that of one plan are in the menu", uid, d.Tags)
		}
		titles[d.Title] = true
		for _, m := range regexp.MustCompile(`"uid": "([^"]*)"`).FindAllStringSubmatch(repo.Read(t, "dashboards/"+uid+".json"), -1) {
			if m[1] != templated.UID && m[1] != uid {
				t.Errorf("%s: contains the uid %q", uid, m[1])
			}
		}
		for _, v := range d.Templating.List {
			checkVariable(t, d, v)
		}
	}
}

// checkVariable checks a variable.
func checkVariable(t *testing.T, d grafana.Dashboard, v grafana.Variable) {
	t.Helper()
	where := d.UID + ", variable " + v.Name
	if v.Label == "" || v.Description == "" {
		t.Errorf("%s: has no label or no description", where)
	}
	if v.Type == "datasource" {
		got := []any{v.Query, v.Label, v.Current.Value}
		simtest.AssertEqual(t, where+": query, label and value", got, []any{"prometheus", "Data source", "default"})
		return
	}
	used := regexp.MustCompile(`\$\{?` + v.Name + `\b`)
	if !slices.ContainsFunc(d.Queries(), func(q grafana.Query) bool { return used.MatchString(q.Expr) }) {
		t.Errorf("%s: is unused", where)
	}
	if v.Type != "query" {
		return
	}
	all := map[string]string{"account": ".+", "location": ".*", "plan": ""}
	single := d.UID == "server-rental-plan" && v.Name == "plan"
	if v.Datasource != templated || v.Refresh != 2 || v.AllValue != all[v.Name] || v.Multi == single || v.IncludeAll == single {
		t.Errorf("%s: got %+v", where, v)
	}
}

// unit matches the units that panels may use. Grafana's units for currencies and rates
// abbreviate thousands, and its days become weeks.
var unit = regexp.MustCompile(`^(none|locale|percentunit|bytes|s|dtdurations|reqpm|dateTimeFromNow|time:[-YMDHms: ]+|(prefix|suffix):[a-zA-Z ]+)$`)

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
			if p.Datasource != templated || !strings.HasSuffix(p.Description, ".") || len(p.Targets) == 0 {
				t.Errorf("%s: got data source %v, description %q, %d queries", where, p.Datasource, p.Description, len(p.Targets))
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

// checkTable checks that a table says what is missing if it is empty, that the value and the labels
// of each query have a column or are hidden, and that the column by which it is sorted exists.
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
		for _, name := range []string{tr.Options.ValueField, tr.Options.RowField, tr.Options.ColumnField} { // of a matrix
			placed[name] = true
		}
	}
	// By columns, by the first query, in whose order Grafana puts what is not known last, or both.
	missing := slices.ContainsFunc(p.Options.SortBy, func(s grafana.SortBy) bool { return !shown[s.DisplayName] })
	if byQuery := strings.HasPrefix(p.Targets[0].Expr, "sort("); missing || len(p.Options.SortBy) == 0 && !byQuery {
		t.Errorf("%s: is sorted by %v and %s, want some of %v or a query", where, p.Options.SortBy, p.Targets[0].Expr, slices.Sorted(maps.Keys(shown)))
	}
	for _, q := range p.Targets {
		if by := regexp.MustCompile(`by \((.*?)\)`).FindStringSubmatch(q.Expr); by != nil {
			for _, label := range strings.Split(by[1], ", ") {
				if !placed[label] {
					t.Errorf("%s: the label %s has neither name nor is it hidden", where, label)
				}
			}
		}
		if name := "Value #" + q.RefID; !placed[name] && !placed["Value"] && !placed["state"] {
			t.Errorf("%s: the column %q has no name", where, name)
		}
	}
}

// counter matches a counter, and counted one that is read through a rate or an increase.
var (
	counter = regexp.MustCompile(`_(total|bucket)\b`)
	counted = regexp.MustCompile(`(?:\brate\([^[(]*_(?:total|bucket)\b[^[(]*\[\$__rate_interval|\bincrease\([^[(]*_total\b[^[(]*\[[^]]*)\]`)
)

// TestQueries checks that queries name only metrics and labels that exist, also for a legend, and read counters through a rate
// over $__rate_interval or an increase.
func TestQueries(t *testing.T) {
	known := promqltest.Exported()
	for _, name := range []string{"up", "process_cpu_seconds_total", "process_resident_memory_bytes"} {
		known.Add(name)
	}
	// Those of rules have neither job nor instance.
	for _, name := range []string{
		"in_stock:max", "in_stock:avg30d", "in_stock:avg90d", "stay_seconds:avg30d", "return_seconds:avg30d",
	} {
		known["plan:server_rental_plan_"+name] = sets.New("plan")
	}
	for _, name := range []string{"max", "avg30d"} {
		known["account_configuration:server_rental_configuration_in_stock:"+name] = sets.New("account", "configuration")
	}
	known["ALERTS"] = sets.New("alertname", "alertstate", "severity", "kind", "account", "server", "what") // the last is joined of others
	known["ALERTS_FOR_STATE"] = sets.New("alertname", "severity")
	values := map[string]string{"__rate_interval": "1m", "__interval": "1m", "currency": "usd"}
	for _, name := range []string{"account", "location", "plan"} {
		values[name] = "$" + name
	}
	for _, d := range grafana.Load(t) {
		for _, q := range d.Queries() {
			invalid := q.RefID == "" || q.Datasource != templated || q.Instant == q.Range || q.Format != "table" && q.LegendFormat == ""
			if invalid {
				t.Errorf("%s: got %+v, want an id, the data source of the variable, either instant or range, and a legend", q.Key, q.Target)
			}
			if err := known.Check(grafana.Interpolate(q.Expr, values)); err != nil {
				t.Errorf("%s: %v", q.Key, err)
			}
			if len(counter.FindAllString(q.Expr, -1)) != len(counted.FindAllString(q.Expr, -1)) {
				t.Errorf("%s: got %s, want counters in rates over $__rate_interval or increases", q.Key, q.Expr)
			}
			for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(q.LegendFormat, -1) {
				if by := regexp.MustCompile(`\bby \([^)]*\b` + label[1] + `\b`); !by.MatchString(q.Expr) && label[1] != "instance" {
					t.Errorf("%s: the legend names %s, which the result does not have", q.Key, label[1])
				}
			}
		}
	}
}

// TestLinks checks that links between dashboards have a target with the linked variables,
// and that links to documents have a heading.
func TestLinks(t *testing.T) {
	const main = "https://github.com/server-rental-exporter/server_rental_exporter/blob/main/"
	all, documents := grafana.Load(t), repo.Documents(t)
	for uid, d := range all {
		for _, l := range d.Links { // the menu
			if l.Type != "dashboards" || !slices.Equal(l.Tags, []string{"server-rental"}) || !l.IncludeVars || !l.KeepTime {
				t.Errorf("%s: got %+v", uid, l)
			}
		}
		var links []grafana.Link
		for _, p := range d.AllPanels() {
			links = slices.Concat(links, p.Links, slices.Concat(overrides[[]grafana.Link](t, p, "links")...))
		}
		for _, l := range links {
			path, query, _ := strings.Cut(l.URL, "?")
			to, isDashboard := all[strings.TrimPrefix(path, "/d/")]
			document, heading, _ := strings.Cut(strings.TrimPrefix(l.URL, main), "#")
			heading, _, _ = strings.Cut(heading, ":~:") // the text to which browsers scroll from there
			switch {
			case isDashboard:
				checkKept(t, uid+": "+l.URL, strings.Split(query, "&"), d, to)
			case l.URL == "${__value.raw}", l.URL == "${__field.labels.order}": // the provider's page
			case !documents[document].Anchor[heading]:
				t.Errorf("%s: %s: leads to no dashboard and no heading of a document", uid, l.URL)
			}
		}
	}
}

// checkKept checks that a link keeps the time range and every variable that both dashboards
// have, or sets it to the value of the cell, and no other one.
func checkKept(t *testing.T, where string, got []string, from, to grafana.Dashboard) {
	t.Helper()
	want := []string{"${__url_time_range}"}
	for _, v := range to.Templating.List {
		set := "var-" + v.Name + "=${__value.raw}"
		inBoth := slices.ContainsFunc(from.Templating.List, func(other grafana.Variable) bool { return other.Name == v.Name })
		if slices.Contains(got, set) {
			want = append(want, set)
		} else if inBoth {
			want = append(want, "${"+v.Name+":queryparam}")
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	simtest.AssertEqual(t, where+": what it passes", got, want)
}
