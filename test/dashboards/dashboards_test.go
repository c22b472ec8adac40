// Package dashboards_test checks the committed dashboards: the rules of Grafana's
// dashboard-linter, that queries name only metrics and labels that exist, and that
// every panel has a title, a description, a unit and a legend. The end-to-end test
// checks that the queries return data.
package dashboards_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/markdown"
	"server_rental_exporter/test/internal/promqltest"
	"server_rental_exporter/test/internal/repo"
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

// allPanels returns the rows and all panels, those of collapsed rows too.
func (d dashboard) allPanels() []panel {
	var all []panel
	for _, p := range d.Panels {
		all = append(append(all, p), p.Panels...)
	}
	return all
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type link struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	URL         string   `json:"url"`
	Tags        []string `json:"tags"`
	AsDropdown  bool     `json:"asDropdown"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
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
	Hide        int        `json:"hide"`
}

type annotation struct {
	Name            string     `json:"name"`
	Enable          bool       `json:"enable"`
	Datasource      datasource `json:"datasource"`
	Expr            string     `json:"expr"`
	Step            string     `json:"step"`
	UseValueForTime bool       `json:"useValueForTime"`
	TitleFormat     string     `json:"titleFormat"`
	Target          struct {
		Expr     string `json:"expr"`
		Interval string `json:"interval"`
	} `json:"target"`
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
	Collapsed   bool    `json:"collapsed"`
	Panels      []panel `json:"panels"` // of a collapsed row
	FieldConfig struct {
		Defaults struct {
			Unit  string `json:"unit"`
			Color struct {
				Mode string `json:"mode"`
			} `json:"color"`
			Mappings []struct {
				Type    string          `json:"type"`
				Options json.RawMessage `json:"options"`
			} `json:"mappings"`
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
	all := map[string]dashboard{}
	for _, file := range repo.Glob(t, "dashboards/*.json") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d.UID+".json" != filepath.Base(file) {
			t.Errorf("%s: got uid %q, want the file's name", file, d.UID)
		}
		all[d.UID] = d
	}
	simtest.AssertEqual(t, "number of dashboards", len(all), 3)
	return all
}

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
	return c
}

// rateInterval stands for $__rate_interval in parsed queries.
const rateInterval = 61 * time.Second

// parse parses a query as Grafana sends it, once for each currency that it depends on.
func parse(query string) ([]parser.Expr, error) {
	query = strings.NewReplacer("$__rate_interval", rateInterval.String(), "$__range", "6h", "$__interval_ms", "60000", "$__interval", "1m").Replace(query)
	queries := []string{query}
	if strings.Contains(query, "${currency}") {
		queries = []string{strings.ReplaceAll(query, "${currency}", "usd"), strings.ReplaceAll(query, "${currency}", "eur")}
	}
	var all []parser.Expr
	for _, q := range queries {
		expr, err := promqltest.Parse(q)
		if err != nil {
			return nil, err
		}
		all = append(all, expr)
	}
	return all, nil
}

// query is one query of a dashboard and where it stands.
type query struct {
	where  string
	panel  string // its title; empty for annotations
	index  int
	expr   string
	legend string
}

func (d dashboard) queries() []query {
	var all []query
	for _, p := range d.allPanels() {
		for i, q := range p.Targets {
			all = append(all, query{fmt.Sprintf("%s, panel %d %s, query %s", d.UID, p.ID, p.Title, q.RefID), p.Title, i, q.Expr, q.Legend})
		}
	}
	for _, a := range d.Annotations.List {
		all = append(all, query{fmt.Sprintf("%s, annotation %s", d.UID, a.Name), "", 0, a.Expr, a.TitleFormat})
	}
	return all
}

func TestDashboards(t *testing.T) {
	titles := map[string]bool{}
	for uid, d := range load(t) {
		if !regexp.MustCompile(`^server-rental-[a-z]+$`).MatchString(uid) {
			t.Errorf("%s: want a uid of the form server-rental-NAME", uid)
		}
		if d.Title == "" || titles[d.Title] || d.Description == "" || len(d.Tags) == 0 {
			t.Errorf("%s: got title %q, description %q, tags %v, want non-empty ones and a unique title", uid, d.Title, d.Description, d.Tags)
		}
		titles[d.Title] = true
		// Grafana 10.0 has version 38 and does not migrate newer ones.
		if d.SchemaVersion < 30 || d.SchemaVersion > 38 {
			t.Errorf("%s: got schemaVersion %d, want one that Grafana 10.0 knows", uid, d.SchemaVersion)
		}
		if d.ID != nil {
			t.Errorf("%s: got the id %v, want none", uid, d.ID)
		}
		if d.Editable {
			t.Errorf("%s: is editable, want a generated dashboard to be read-only", uid)
		}
	}
}

func TestVariables(t *testing.T) {
	call := regexp.MustCompile(`^label_values\((?:(.+), )?([a-z_]+)\)$`)
	want := map[string][]string{
		"server-rental-stock":    {"datasource", "job", "instance", "account", "location", "plan", "currency"},
		"server-rental-accounts": {"datasource", "job", "instance", "account", "location", "plan"},
		// Neither the provider's status nor the exporter's health depends on plans.
		"server-rental-status": {"datasource", "job", "instance", "account", "location"},
	}
	metrics := knownMetrics()
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
			// Few have more than one exporter, and Grafana cannot hide by count.
			if hidden := v.Name == "job" || v.Name == "instance"; hidden != (v.Hide == 2) {
				t.Errorf("%s: got hide %d, want only job and instance hidden", where, v.Hide)
			}
			if v.Refresh != 2 {
				t.Errorf("%s: got refresh %d, want 2: on a change of the time range", where, v.Refresh)
			}
			parts := call.FindStringSubmatch(v.Query)
			if parts == nil {
				t.Errorf("%s: got %q, want label_values(selector, label)", where, v.Query)
				continue
			}
			expr, err := promqltest.Parse(parts[1])
			if err != nil {
				t.Errorf("%s: %v", where, err)
				continue
			}
			if have, err := metrics.Labels(expr); err != nil || !have[parts[2]] {
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
		for _, name := range want[uid] {
			if _, there := names[name]; !there {
				t.Errorf("%s: has no variable %s", uid, name)
			}
			if name != "datasource" && !usesVariable(d, name) {
				t.Errorf("%s: the variable %s is unused", uid, name)
			}
		}
		if len(names) != len(want[uid]) {
			t.Errorf("%s: got %d variables, want %v", uid, len(names), want[uid])
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

func usesVariable(d dashboard, name string) bool {
	return slices.ContainsFunc(d.queries(), func(q query) bool {
		return regexp.MustCompile(`\$\{?` + name + `\b`).MatchString(q.expr)
	})
}

// units returns the units of Grafana that panels may use. Grafana's units for currencies
// and rates abbreviate thousands, and its days become weeks.
func units() []string {
	return []string{"none", "suffix:USD", "suffix:EUR", "percentunit", "bytes", "s", "dtdhms", "dtdurations", "reqpm", "dateTimeAsIso", "dateTimeFromNow"}
}

// ownUnit matches the formats that Grafana has no name for.
var ownUnit = regexp.MustCompile(`^(time:[-\x{2011}YMDHms:\s\x{a0}]+|suffix:[a-z ]+)$`)

func TestPanels(t *testing.T) {
	core := []string{"stat", "table", "timeseries", "state-timeline", "bargauge", "barchart", "geomap"}
	for uid, d := range load(t) {
		ids := map[int]string{}
		for _, p := range d.allPanels() {
			where := fmt.Sprintf("%s, panel %d %s", uid, p.ID, p.Title)
			if p.ID <= 0 || ids[p.ID] != "" {
				t.Errorf("%s: has no id, or the same as %q", where, ids[p.ID])
			}
			ids[p.ID] = p.Title + " "
			if p.Title == "" {
				t.Errorf("%s: has no title", where)
			}
			if p.Type == "row" {
				continue
			}
			if !slices.Contains(core, p.Type) {
				t.Errorf("%s: got type %s, want one of Grafana's core panels", where, p.Type)
			}
			if len(p.Description) < 20 || !strings.HasSuffix(p.Description, ".") {
				t.Errorf("%s: got description %q, want a sentence", where, p.Description)
			}
			if p.Datasource != (datasource{"prometheus", templated}) {
				t.Errorf("%s: got data source %v, want the variable", where, p.Datasource)
			}
			checkUnits(t, where, p)
			checkTargets(t, where, p)
			switch p.Type {
			case "table":
				checkTable(t, where, p)
			case "stat":
				checkNoData(t, where, p)
			case "state-timeline":
				checkTimeline(t, where, p)
			}
		}
		checkGrid(t, d)
	}
}

// checkNoData checks that missing data is grey and says so: the threshold colours of a
// number would show it as good or as bad.
func checkNoData(t *testing.T, where string, p panel) {
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

// checkTimeline checks that the legend shows the texts of value mappings: with thresholds
// it would show their bounds.
func checkTimeline(t *testing.T, where string, p panel) {
	t.Helper()
	if len(p.FieldConfig.Defaults.Mappings) == 0 || p.FieldConfig.Defaults.Color.Mode != "palette-classic" {
		t.Errorf("%s: got colour mode %q, want value mappings and palette-classic", where, p.FieldConfig.Defaults.Color.Mode)
	}
}

func checkUnits(t *testing.T, where string, p panel) {
	t.Helper()
	if unit := p.FieldConfig.Defaults.Unit; !slices.Contains(units(), unit) && !ownUnit.MatchString(unit) {
		t.Errorf("%s: got unit %q, want one of %v", where, p.FieldConfig.Defaults.Unit, units())
	}
	for _, o := range p.FieldConfig.Overrides {
		for _, prop := range o.Properties {
			var unit string
			if prop.ID != "unit" {
				continue
			}
			if err := json.Unmarshal(prop.Value, &unit); err != nil || !slices.Contains(units(), unit) && !ownUnit.MatchString(unit) {
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
			t.Errorf("%s: query %s is not either instant or range", where, q.RefID)
		}
		if q.Format != "table" && (q.Legend == "" || q.Legend == "__auto") {
			t.Errorf("%s: query %s has no legend", where, q.RefID)
		}
	}
	if (p.Type == "timeseries" || p.Type == "state-timeline") && !p.Options.Legend.ShowLegend {
		t.Errorf("%s: hides its legend", where)
	}
}

// checkTable checks that each value of a query is a named column or hidden, that the time
// is hidden, and that the table is sorted by a column.
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
		t.Errorf("%s: the column Time is not hidden", where)
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
func checkGrid(t *testing.T, d dashboard) {
	t.Helper()
	groups := [][]panel{d.Panels}
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
	for _, d := range load(t) {
		for _, q := range d.queries() {
			exprs, err := parse(q.expr)
			if err != nil {
				t.Errorf("%s: %v", q.where, err)
			}
			for _, expr := range exprs {
				checkQuery(t, metrics, q, expr)
			}
		}
	}
}

// checkQuery checks that a query names only metrics and labels that exist, in its legend
// too, matches the chosen job and instance, and looks back 90 days at most.
func checkQuery(t *testing.T, metrics promqltest.Catalog, q query, expr parser.Expr) {
	t.Helper()
	have, err := metrics.Labels(expr)
	if err != nil {
		t.Errorf("%s: %v", q.where, err)
		return
	}
	for _, m := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(q.legend, -1) {
		if !have[m[1]] {
			t.Errorf("%s: the legend names the label %s, but the result has only %q", q.where, m[1], have.Sorted())
		}
	}
	for _, s := range promqltest.Selectors(expr) {
		for _, l := range []string{"job", "instance"} {
			if !s.HasMatcher(labels.MatchRegexp, l, "$"+l) {
				t.Errorf("%s: %s has no matcher %s=~\"$%s\"", q.where, s.Metric, l, l)
			}
		}
	}
	for _, r := range promqltest.Ranges(expr) {
		if r > 90*24*time.Hour {
			t.Errorf("%s: looks back %s, want 90 days at most", q.where, r)
		}
	}
}

// TestCounters checks the linter's target-rate-interval-rule and target-counter-agg-rule:
// rates are over $__rate_interval, and counters are read through rate, irate or increase.
func TestCounters(t *testing.T) {
	excluded := exclusions(t)
	used := map[exclusion]bool{}
	for _, d := range load(t) {
		for _, q := range d.queries() {
			exprs, err := parse(q.expr)
			if err != nil || q.panel == "" { // reported by TestQueries, or an annotation
				continue
			}
			for _, s := range promqltest.Selectors(exprs[0]) {
				isRate := s.Call == "rate" || s.Call == "irate"
				if isRate && s.Range != rateInterval {
					t.Errorf("%s: %s over %s, want $__rate_interval", q.where, s.Call, s.Range)
				}
				isCounter := strings.HasSuffix(s.Metric, "_total") || strings.HasSuffix(s.Metric, "_bucket")
				if isRate || s.Call == "increase" || !isCounter {
					continue
				}
				e := exclusion{"target-counter-agg-rule", d.Title, q.panel, q.index}
				if used[e] = true; !excluded[e] {
					t.Errorf("%s: %s is neither a rate nor an increase", q.where, s.Metric)
				}
			}
		}
	}
	for e := range excluded {
		if !used[e] {
			t.Errorf(".lint: nothing needs the exclusion %+v", e)
		}
	}
}

type exclusion struct {
	rule, dashboard, panel string
	target                 int
}

// exclusions reads dashboard-linter's file of exclusions.
func exclusions(t *testing.T) map[exclusion]bool {
	t.Helper()
	var file struct {
		Exclusions map[string]struct {
			Reason  string
			Entries []struct {
				Dashboard, Panel string
				TargetIdx        int `yaml:"targetIdx"`
			}
		}
	}
	repo.ReadYAML(t, repo.Path(t, "dashboards/.lint"), &file)
	all := map[exclusion]bool{}
	for rule, x := range file.Exclusions {
		if x.Reason == "" || len(x.Entries) == 0 {
			t.Errorf(".lint: %s has no reason or no entries", rule)
		}
		for _, e := range x.Entries {
			all[exclusion{rule, e.Dashboard, e.Panel, e.TargetIdx}] = true
		}
	}
	return all
}

func TestNoFixedDatasource(t *testing.T) {
	uid := regexp.MustCompile(`"uid": "([^"]*)"`)
	for _, file := range repo.Glob(t, "dashboards/*.json") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		own := strings.TrimSuffix(filepath.Base(file), ".json")
		for _, m := range uid.FindAllStringSubmatch(string(text), -1) {
			if m[1] != templated && m[1] != own {
				t.Errorf("%s: contains the uid %q", file, m[1])
			}
		}
		for _, name := range []string{"__inputs", "DS_PROMETHEUS", "grafana.net"} {
			if strings.Contains(string(text), name) {
				t.Errorf("%s: contains %s", file, name)
			}
		}
	}
}

// TestLinks checks that links between dashboards have a target with the linked variables,
// and that links to runbooks have a heading.
func TestLinks(t *testing.T) {
	const runbooks = "https://github.com/server-rental-exporter/server_rental_exporter/blob/main/alerts/README.md"
	all := load(t)
	documents, err := markdown.Read(repo.Path(t, "alerts"))
	if err != nil {
		t.Fatal(err)
	}
	headings := documents["README.md"].Anchor
	local := regexp.MustCompile(`^/d/([^/?]+)(?:\?(.*))?$`)
	for uid, d := range all {
		linked := map[string]bool{}
		for _, l := range d.allLinks(t) {
			if rest, is := strings.CutPrefix(l.URL, runbooks); is {
				if rest != "" && !headings[strings.TrimPrefix(rest, "#")] {
					t.Errorf("%s: %s: no such heading in the runbooks", uid, l.URL)
				}
				continue
			}
			if l.Type == "dashboards" { // the menu of all dashboards with a tag
				for other, to := range all {
					linked[other] = l.AsDropdown && l.IncludeVars && l.KeepTime && slices.Equal(l.Tags, to.Tags[:1])
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
				t.Errorf("%s: %s: no such dashboard", uid, l.URL)
			}
			checkKept(t, uid+": "+l.URL, parts[2], d, to)
		}
		for other := range all {
			if other != uid && !linked[other] {
				t.Errorf("%s: no link leads to %s", uid, other)
			}
		}
	}
}

// checkKept checks that a link keeps the time range and every variable that both dashboards
// have, or sets it, and no other one.
func checkKept(t *testing.T, where, query string, from, to dashboard) {
	t.Helper()
	if !strings.Contains(query, "${__url_time_range}") {
		t.Errorf("%s: does not keep the time range", where)
	}
	passed := map[string]int{}
	for _, m := range regexp.MustCompile(`\$\{(\w+):queryparam\}|var-(\w+)=`).FindAllStringSubmatch(query, -1) {
		passed[m[1]+m[2]]++
	}
	for _, v := range to.Templating.List {
		known := slices.ContainsFunc(from.Templating.List, func(other variable) bool { return other.Name == v.Name })
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
// began, are the same for old and new versions of Grafana, and are on where they are few.
func TestAnnotations(t *testing.T) {
	want := map[string]map[string]bool{ // by dashboard and name, whether it is on
		"server-rental-stock":    {"Restocks": false, "Outages": true},
		"server-rental-accounts": {},
		"server-rental-status":   {"Outages": true, "Incidents": true, "Maintenance": false},
	}
	metrics := knownMetrics()
	for uid, d := range load(t) {
		got := map[string]bool{}
		for _, a := range d.Annotations.List {
			where := uid + ", annotation " + a.Name
			got[a.Name] = a.Enable
			if a.Datasource.UID != templated || !a.UseValueForTime || a.Target.Expr != a.Expr || a.Target.Interval != a.Step || a.Step != "2m" {
				t.Errorf("%s: got %+v, want the time as value, and the same target with a step of 2m", where, a)
			}
			exprs, err := parse(a.Expr)
			if err != nil {
				t.Errorf("%s: %v", where, err)
				continue
			}
			for _, s := range promqltest.Selectors(exprs[0]) {
				for _, v := range d.Templating.List {
					// The display names of plans are those of the plans chosen.
					if metrics[s.Metric][v.Name] && !s.HasMatcher(labels.MatchRegexp, v.Name, "$"+v.Name) && s.Metric != "server_rental_plan_offered" {
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

// allLinks returns the links of the dashboard, its panels and their cells.
func (d dashboard) allLinks(t *testing.T) []link {
	t.Helper()
	links := slices.Clone(d.Links)
	for _, p := range d.allPanels() {
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
