// Package dashboards_test checks the committed dashboards: what Grafana's
// dashboard-linter asks, that queries name only metrics and labels that the
// exporter has, and that a reader finds a title, a description, a unit and a
// legend everywhere. That the queries return data is the end-to-end test's part.
package dashboards_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

type dashboard struct {
	UID           string   `json:"uid"`
	Title         string   `json:"title"`
	Description   string   `json:"description"`
	Tags          []string `json:"tags"`
	SchemaVersion int      `json:"schemaVersion"`
	Editable      bool     `json:"editable"`
	ID            any      `json:"id"`
	Panels        []panel  `json:"panels"`
	Links         []link   `json:"links"`
	Templating    struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []annotation `json:"list"`
	} `json:"annotations"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type link struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

type variable struct {
	Name        string     `json:"name"`
	Type        string     `json:"type"`
	Label       string     `json:"label"`
	Description string     `json:"description"`
	Query       string     `json:"query"`
	Datasource  datasource `json:"datasource"`
	Multi       bool       `json:"multi"`
	IncludeAll  bool       `json:"includeAll"`
	AllValue    string     `json:"allValue"`
	Refresh     int        `json:"refresh"`
}

type annotation struct {
	Name        string     `json:"name"`
	Datasource  datasource `json:"datasource"`
	Expr        string     `json:"expr"`
	TitleFormat string     `json:"titleFormat"`
}

type panel struct {
	ID          int        `json:"id"`
	Type        string     `json:"type"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Datasource  datasource `json:"datasource"`
	Targets     []target   `json:"targets"`
	Links       []link     `json:"links"`
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
		Overrides []struct {
			Matcher    struct{ ID, Options any }
			Properties []property `json:"properties"`
		} `json:"overrides"`
	} `json:"fieldConfig"`
	Transformations []struct {
		ID      string `json:"id"`
		Options struct {
			ExcludeByName map[string]bool   `json:"excludeByName"`
			RenameByName  map[string]string `json:"renameByName"`
		} `json:"options"`
	} `json:"transformations"`
	Options struct {
		Legend struct {
			ShowLegend bool `json:"showLegend"`
		} `json:"legend"`
		SortBy []struct {
			DisplayName string `json:"displayName"`
		} `json:"sortBy"`
	} `json:"options"`
}

type property struct {
	ID    string          `json:"id"`
	Value json.RawMessage `json:"value"`
}

type target struct {
	RefID      string     `json:"refId"`
	Expr       string     `json:"expr"`
	Legend     string     `json:"legendFormat"`
	Format     string     `json:"format"`
	Instant    bool       `json:"instant"`
	Range      bool       `json:"range"`
	Datasource datasource `json:"datasource"`
}

const templated = "${datasource}"

// load returns the committed dashboards by uid.
func load(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob("*.json")
	if err != nil || len(files) != 3 {
		t.Fatalf("got dashboards %v, %v, want three", files, err)
	}
	all := map[string]dashboard{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d.UID+".json" != file {
			t.Errorf("%s: got uid %q, want the file's name", file, d.UID)
		}
		all[d.UID] = d
	}
	return all
}

// catalogue returns the labels of every metric that a query may name.
func catalogue() map[string][]string {
	all := map[string][]string{
		// Defined by the main package, which cannot be imported.
		"server_rental_exporter_build_info":                                   {"version", "revision", "branch", "goversion", "goos", "goarch", "tags"},
		"server_rental_exporter_config_last_reload_successful":                nil,
		"server_rental_exporter_config_last_reload_success_timestamp_seconds": nil,
		// Prometheus' own, and those of the client library.
		"up":                                   nil,
		"scrape_duration_seconds":              nil,
		"go_goroutines":                        nil,
		"go_memstats_heap_inuse_bytes":         nil,
		"process_cpu_seconds_total":            nil,
		"process_open_fds":                     nil,
		"process_resident_memory_bytes":        nil,
		"process_start_time_seconds":           nil,
		"promhttp_metric_handler_errors_total": {"cause"},
	}
	add := func(definitions []*metric.Definition) {
		for _, d := range definitions {
			if d.Type == metric.HistogramType {
				all[d.Name+"_bucket"] = append([]string{"le"}, d.Labels...)
				all[d.Name+"_sum"], all[d.Name+"_count"] = d.Labels, d.Labels
				continue
			}
			all[d.Name] = d.Labels
		}
	}
	for _, r := range collector.Resources() {
		add(r.Metrics)
	}
	add(collector.Definitions())
	add(rentalapi.Definitions())
	return all
}

// asked is one expression of a dashboard and where it stands.
type asked struct {
	where  string
	panel  string // its title; empty for annotations
	index  int
	expr   string
	legend string
}

func (d dashboard) asks() []asked {
	var all []asked
	for _, p := range d.Panels {
		for i, q := range p.Targets {
			all = append(all, asked{fmt.Sprintf("%s, panel %d %s, query %s", d.UID, p.ID, p.Title, q.RefID), p.Title, i, q.Expr, q.Legend})
		}
	}
	for _, a := range d.Annotations.List {
		all = append(all, asked{fmt.Sprintf("%s, annotation %s", d.UID, a.Name), "", 0, a.Expr, a.TitleFormat})
	}
	return all
}

func TestDashboards(t *testing.T) {
	titles := map[string]bool{}
	for uid, d := range load(t) {
		if !regexp.MustCompile(`^server-rental-[a-z]+$`).MatchString(uid) {
			t.Errorf("%s: is no uid of the family", uid)
		}
		if d.Title == "" || titles[d.Title] || d.Description == "" || len(d.Tags) == 0 {
			t.Errorf("%s: got title %q, description %q, tags %v, want each of its own", uid, d.Title, d.Description, d.Tags)
		}
		titles[d.Title] = true
		// Grafana 10.0 has 38: anything newer it would not bring into its own form.
		if d.SchemaVersion < 30 || d.SchemaVersion > 38 {
			t.Errorf("%s: got schemaVersion %d, want one that Grafana 10.0 knows", uid, d.SchemaVersion)
		}
		if d.ID != nil {
			t.Errorf("%s: has the id %v of one Grafana", uid, d.ID)
		}
		if d.Editable {
			t.Errorf("%s: is editable, although it is generated", uid)
		}
		if got := len(d.Annotations.List); got < 2 {
			t.Errorf("%s: got %d annotations, want those for restocks and incidents", uid, got)
		}
	}
}

func TestVariables(t *testing.T) {
	call := regexp.MustCompile(`^label_values\((?:(.+), )?([a-z_]+)\)$`)
	want := map[string][]string{
		"server-rental-stock":    {"datasource", "job", "instance", "account", "location", "plan", "currency"},
		"server-rental-accounts": {"datasource", "job", "instance", "account", "location", "plan"},
		// Neither the provider's status nor the exporter's health knows plans.
		"server-rental-status": {"datasource", "job", "instance", "account", "location"},
	}
	metrics := catalogue()
	for uid, d := range load(t) {
		names := map[string]variable{}
		for _, v := range d.Templating.List {
			names[v.Name] = v
			where := uid + ", variable " + v.Name
			if v.Label == "" || v.Description == "" {
				t.Errorf("%s: has no label or no description", where)
			}
			if v.Type == "datasource" && (v.Query != "prometheus" || v.Label != "Data source") {
				t.Errorf("%s: got %q labelled %q, want prometheus labelled Data source", where, v.Query, v.Label)
			}
			if v.Type != "query" {
				continue
			}
			if v.Datasource.UID != templated || !v.Multi || !v.IncludeAll || v.AllValue != ".+" {
				t.Errorf("%s: got data source %q, multi %t, all %t as %q, want %q, true, true, .+", where, v.Datasource.UID, v.Multi, v.IncludeAll, v.AllValue, templated)
			}
			if got := strings.ToUpper(v.Name[:1]) + v.Name[1:]; v.Label != got {
				t.Errorf("%s: got label %q, want %q", where, v.Label, got)
			}
			if v.Refresh != 2 {
				t.Errorf("%s: got refresh %d, want 2: on a change of the time range", where, v.Refresh)
			}
			parts := call.FindStringSubmatch(v.Query)
			if parts == nil {
				t.Errorf("%s: got %q, want label_values(selector, label)", where, v.Query)
				continue
			}
			selected := parts[1]
			if !strings.Contains(selected, "{") {
				selected += "{}"
			}
			q, err := parse(selected)
			if err != nil || len(q.selectors) != 1 {
				t.Errorf("%s: %s: %v", where, v.Query, err)
				continue
			}
			labels, known := metrics[q.selectors[0].metric]
			if !known || !slices.Contains(append(labels, "job", "instance"), parts[2]) {
				t.Errorf("%s: no metric %s with the label %s", where, q.selectors[0].metric, parts[2])
			}
			for _, m := range chosenBefore(v.Name) {
				if !slices.Contains(q.selectors[0].matchers, matcher{m, "=~", "$" + m}) {
					t.Errorf("%s: %s has no matcher for %s", where, v.Query, m)
				}
			}
		}
		for _, name := range want[uid] {
			if _, there := names[name]; !there {
				t.Errorf("%s: has no variable %s", uid, name)
			}
			if name != "datasource" && !usesVariable(d, name) {
				t.Errorf("%s: nothing uses the variable %s", uid, name)
			}
		}
		if len(names) != len(want[uid]) {
			t.Errorf("%s: got %d variables, want %v", uid, len(names), want[uid])
		}
	}
}

// chosenBefore returns the variables that narrow another one's values.
func chosenBefore(name string) []string {
	switch name {
	case "job":
		return nil
	case "instance":
		return []string{"job"}
	default:
		return []string{"job", "instance"}
	}
}

func usesVariable(d dashboard, name string) bool {
	return slices.ContainsFunc(d.asks(), func(a asked) bool {
		return regexp.MustCompile(`\$\{?` + name + `\b`).MatchString(a.expr)
	})
}

// units are those that the panels use, of the ones that Grafana has.
func units() []string {
	return []string{"none", "currencyUSD", "currencyEUR", "percentunit", "bytes", "s", "d", "cpm", "dateTimeAsIso", "dateTimeFromNow"}
}

func TestPanels(t *testing.T) {
	core := []string{"stat", "table", "timeseries", "state-timeline", "bargauge", "barchart", "geomap"}
	for uid, d := range load(t) {
		ids := map[int]string{}
		for _, p := range d.Panels {
			where := fmt.Sprintf("%s, panel %d %s", uid, p.ID, p.Title)
			if p.ID <= 0 || ids[p.ID] != "" {
				t.Errorf("%s: has the id of %q, or none", where, ids[p.ID])
			}
			ids[p.ID] = p.Title + " "
			if p.Title == "" {
				t.Errorf("%s: has no title", where)
			}
			if p.Type == "row" {
				continue
			}
			if !slices.Contains(core, p.Type) {
				t.Errorf("%s: got type %s, want one of Grafana's core", where, p.Type)
			}
			if len(p.Description) < 20 || !strings.HasSuffix(p.Description, ".") {
				t.Errorf("%s: got description %q, want a sentence", where, p.Description)
			}
			if p.Datasource != (datasource{"prometheus", templated}) {
				t.Errorf("%s: got data source %v, want the variable", where, p.Datasource)
			}
			checkUnits(t, where, p)
			checkTargets(t, where, p)
			if p.Type == "table" {
				checkTable(t, where, p)
			}
		}
		checkGrid(t, d)
	}
}

func checkUnits(t *testing.T, where string, p panel) {
	t.Helper()
	if !slices.Contains(units(), p.FieldConfig.Defaults.Unit) {
		t.Errorf("%s: got unit %q, want one of %v", where, p.FieldConfig.Defaults.Unit, units())
	}
	for _, o := range p.FieldConfig.Overrides {
		for _, prop := range o.Properties {
			var unit string
			if prop.ID != "unit" {
				continue
			}
			if err := json.Unmarshal(prop.Value, &unit); err != nil || !slices.Contains(units(), unit) && !strings.HasPrefix(unit, "time:") {
				t.Errorf("%s: got unit %s for %v", where, prop.Value, o.Matcher.Options)
			}
		}
	}
}

func checkTargets(t *testing.T, where string, p panel) {
	t.Helper()
	if len(p.Targets) == 0 {
		t.Errorf("%s: has no query", where)
	}
	refs := map[string]bool{}
	for _, q := range p.Targets {
		if q.RefID == "" || refs[q.RefID] {
			t.Errorf("%s: has two queries %q", where, q.RefID)
		}
		refs[q.RefID] = true
		if q.Datasource != (datasource{"prometheus", templated}) {
			t.Errorf("%s: query %s has data source %v, want the variable", where, q.RefID, q.Datasource)
		}
		if q.Instant == q.Range {
			t.Errorf("%s: query %s is both or neither of instant and range", where, q.RefID)
		}
		if q.Format != "table" && (q.Legend == "" || q.Legend == "__auto") {
			t.Errorf("%s: query %s has no legend", where, q.RefID)
		}
	}
	if (p.Type == "timeseries" || p.Type == "state-timeline") && !p.Options.Legend.ShowLegend {
		t.Errorf("%s: hides its legend", where)
	}
}

// checkTable asks that no column has a technical name: every value of a query is
// renamed or left out, the time is left out, and the order named is that of a column.
func checkTable(t *testing.T, where string, p panel) {
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
	if !hidden["Time"] {
		t.Errorf("%s: shows the time of the query", where)
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
	var names []string
	for _, name := range shown {
		if name != "plan" && slices.Contains(names, name) {
			t.Errorf("%s: two columns are called %s", where, name)
		}
		names = append(names, name)
	}
	if len(p.Options.SortBy) != 1 || !slices.Contains(names, p.Options.SortBy[0].DisplayName) {
		t.Errorf("%s: is sorted by %v, want one of %v", where, p.Options.SortBy, names)
	}
}

// checkGrid asks that panels lie within the width and do not overlap.
func checkGrid(t *testing.T, d dashboard) {
	t.Helper()
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
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

func TestQueries(t *testing.T) {
	metrics := catalogue()
	for _, d := range load(t) {
		for _, a := range d.asks() {
			q, err := parse(a.expr)
			if err != nil {
				t.Errorf("%s: %v", a.where, err)
				continue
			}
			known := []string{"job", "instance"}
			for _, s := range q.selectors {
				names := s.names()
				if len(names) == 0 {
					t.Errorf("%s: a selector without a metric", a.where)
				}
				for _, name := range names {
					labels, there := metrics[name]
					if !there {
						t.Errorf("%s: the exporter has no metric %s", a.where, name)
					}
					known = append(known, labels...)
					for _, m := range s.matchers {
						if !slices.Contains(append([]string{"__name__", "job", "instance"}, labels...), m.label) {
							t.Errorf("%s: %s has no label %s", a.where, name, m.label)
						}
					}
				}
				for _, m := range []string{"job", "instance"} {
					if !slices.Contains(s.matchers, matcher{m, "=~", "$" + m}) {
						t.Errorf("%s: %v has no matcher %s=~\"$%s\"", a.where, names, m, m)
					}
				}
			}
			for _, label := range q.grouping {
				if !slices.Contains(known, label) {
					t.Errorf("%s: no metric of it has the label %s", a.where, label)
				}
			}
			for _, part := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(a.legend, -1) {
				if !slices.Contains(known, part[1]) {
					t.Errorf("%s: the legend names the label %s, which no metric of it has", a.where, part[1])
				}
			}
			for _, d := range q.ranges {
				if d > 90*24*time.Hour {
					t.Errorf("%s: looks back %s, further than 90 days", a.where, d)
				}
			}
		}
	}
}

// TestCounters asks for what the linter calls target-rate-interval-rule and
// target-counter-agg-rule: rates are over $__rate_interval, and a counter shows
// nothing before it went through rate, irate or increase.
func TestCounters(t *testing.T) {
	excluded := exclusions(t)
	used := map[exclusion]bool{}
	for _, d := range load(t) {
		for _, a := range d.asks() {
			q, err := parse(a.expr)
			if err != nil {
				continue // another test's finding
			}
			for _, s := range q.selectors {
				inner := ""
				if len(s.within) > 0 {
					inner = s.within[len(s.within)-1]
				}
				if (inner == "rate" || inner == "irate") && s.ranged != "$__rate_interval" {
					t.Errorf("%s: %s over %s, want $__rate_interval", a.where, inner, s.ranged)
				}
				counted := slices.Contains([]string{"rate", "irate", "increase"}, inner)
				if name := s.names()[0]; counted || !strings.HasSuffix(name, "_total") && !strings.HasSuffix(name, "_bucket") {
					continue
				}
				e := exclusion{"target-counter-agg-rule", d.Title, a.panel, a.index}
				if used[e] = true; !excluded[e] {
					t.Errorf("%s: %s is neither a rate nor an increase", a.where, s.names()[0])
				}
			}
		}
	}
	for e := range excluded {
		if !used[e] {
			t.Errorf(".lint excludes %+v, which is not there", e)
		}
	}
}

type exclusion struct {
	rule, dashboard, panel string
	target                 int
}

// exclusions reads the linter's own file of exceptions.
func exclusions(t *testing.T) map[exclusion]bool {
	t.Helper()
	text, err := os.ReadFile(".lint")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Exclusions map[string]struct {
			Reason  string
			Entries []struct {
				Dashboard, Panel string
				TargetIdx        int `yaml:"targetIdx"`
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	all := map[exclusion]bool{}
	for rule, x := range file.Exclusions {
		if x.Reason == "" || len(x.Entries) == 0 {
			t.Errorf(".lint: %s without a reason, or for everything", rule)
		}
		for _, e := range x.Entries {
			all[exclusion{rule, e.Dashboard, e.Panel, e.TargetIdx}] = true
		}
	}
	return all
}

func TestNoFixedDatasource(t *testing.T) {
	files, _ := filepath.Glob("*.json")
	uid := regexp.MustCompile(`"uid": "([^"]*)"`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		own := strings.TrimSuffix(file, ".json")
		for _, m := range uid.FindAllStringSubmatch(string(text), -1) {
			if m[1] != templated && m[1] != own {
				t.Errorf("%s: names the uid %q", file, m[1])
			}
		}
		for _, name := range []string{"__inputs", "DS_PROMETHEUS", "grafana.net"} {
			if strings.Contains(string(text), name) {
				t.Errorf("%s: names %s", file, name)
			}
		}
	}
}

// TestLinks asks that links between dashboards lead to one of the family, with
// variables that it has, and that links to runbooks lead to a heading.
func TestLinks(t *testing.T) {
	const runbooks = "https://github.com/server-rental-exporter/server_rental_exporter/blob/main/alerts/README.md"
	all := load(t)
	headings := runbookHeadings(t)
	local := regexp.MustCompile(`^/d/([^/?]+)(?:\?(.*))?$`)
	for uid, d := range all {
		linked := map[string]bool{}
		for _, l := range d.everyLink(t) {
			if rest, is := strings.CutPrefix(l.URL, runbooks); is {
				if rest != "" && !headings[strings.TrimPrefix(rest, "#")] {
					t.Errorf("%s: %s leads to no heading of the runbooks", uid, l.URL)
				}
				continue
			}
			parts := local.FindStringSubmatch(l.URL)
			if parts == nil {
				t.Errorf("%s: got link %q, want one to a dashboard or a runbook", uid, l.URL)
				continue
			}
			to, there := all[parts[1]]
			if !there {
				t.Errorf("%s: %s leads to no dashboard of the family", uid, l.URL)
			}
			linked[parts[1]] = true
			for _, m := range regexp.MustCompile(`\$\{(\w+):queryparam\}|var-(\w+)=`).FindAllStringSubmatch(parts[2], -1) {
				if !slices.ContainsFunc(to.Templating.List, func(v variable) bool { return v.Name == m[1]+m[2] }) {
					t.Errorf("%s: %s sets %s, which %s does not have", uid, l.URL, m[1]+m[2], parts[1])
				}
			}
		}
		for other := range all {
			if other != uid && !linked[other] {
				t.Errorf("%s: no link leads to %s", uid, other)
			}
		}
	}
}

// everyLink returns the links of the dashboard, its panels and their cells.
func (d dashboard) everyLink(t *testing.T) []link {
	t.Helper()
	links := slices.Clone(d.Links)
	for _, p := range d.Panels {
		links = append(links, p.Links...)
		for _, o := range p.FieldConfig.Overrides {
			for _, prop := range o.Properties {
				var cell []link
				if prop.ID != "links" {
					continue
				}
				if err := json.Unmarshal(prop.Value, &cell); err != nil {
					t.Fatal(err)
				}
				links = append(links, cell...)
			}
		}
	}
	return links
}

// runbookHeadings returns the anchors of the headings of the alerts' runbooks.
func runbookHeadings(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../alerts/README.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ +(.+?) *$`).FindAllStringSubmatch(string(text), -1) {
		all[strings.ToLower(strings.NewReplacer("`", "", " ", "-").Replace(m[1]))] = true
	}
	return all
}
