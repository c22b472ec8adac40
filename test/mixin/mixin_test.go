// Package mixin_test builds the monitoring mixin: by default it is the committed rules and
// dashboards, and each setting changes what it says and nothing else.
package mixin_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-jsonnet"
	"github.com/google/go-jsonnet/formatter"
	"github.com/google/go-jsonnet/linter"
	"github.com/prometheus/prometheus/model/labels"
	"go.yaml.in/yaml/v3"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/grafana"
	"server_rental_exporter/test/internal/promqltest"
	"server_rental_exporter/test/internal/repo"
)

func TestMain(m *testing.M) { simtest.Main(m) }

// mixin is what the mixin makes.
type mixin struct {
	Alerts, Rules struct{ Groups []group }
	Dashboards    map[string]any
}

type group struct {
	Name     string
	Interval string
	Rules    []rule
}

type rule struct {
	Record, Alert, Expr string
	For                 string
	KeepFiringFor       string `yaml:"keep_firing_for" json:"keep_firing_for"`
	Labels, Annotations map[string]string
}

// build builds the mixin with settings.
func build(t *testing.T, config string) (m mixin) {
	t.Helper()
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{repo.Path(t, "mixin")}})
	text, err := vm.EvaluateAnonymousSnippet("test", "local m = (import 'mixin.libsonnet') + { _config+:: "+config+" };"+
		"{ alerts: m.prometheusAlerts, rules: m.prometheusRules, dashboards: m.grafanaDashboards }")
	if err != nil {
		t.Fatal(err)
	}
	decode(t, text, &m)
	for _, g := range append(m.Alerts.Groups, m.Rules.Groups...) {
		for _, r := range g.Rules {
			if _, err := promqltest.Parse(r.Expr); err != nil {
				t.Errorf("%s%s: %v", r.Record, r.Alert, err)
			}
		}
	}
	return m
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// committed returns the committed rules and dashboards as the mixin should have them.
func committed(t *testing.T) mixin {
	t.Helper()
	m := mixin{Dashboards: map[string]any{}}
	for _, path := range repo.Glob(t, "alerts/*.rules.yml") {
		var file struct{ Groups []group }
		repo.ReadYAML(t, path, &file)
		for _, g := range file.Groups {
			alerts, rules := group{g.Name + "_alerts", g.Interval, nil}, group{g.Name, g.Interval, nil}
			for _, r := range g.Rules {
				if r.Alert != "" {
					alerts.Rules = append(alerts.Rules, r)
				} else {
					rules.Rules = append(rules.Rules, r)
				}
			}
			if alerts.Rules != nil {
				m.Alerts.Groups = append(m.Alerts.Groups, alerts)
			}
			if rules.Rules != nil {
				m.Rules.Groups = append(m.Rules.Groups, rules)
			}
		}
	}
	for _, path := range repo.Glob(t, "dashboards/*.json") {
		var d any
		decode(t, repo.Read(t, "dashboards/"+filepath.Base(path)), &d)
		m.Dashboards[filepath.Base(path)] = d
	}
	return m
}

func TestDefaults(t *testing.T) { simtest.AssertEqual(t, "mixin", build(t, "{}"), committed(t)) }

// TestTexts checks the settings that are texts.
func TestTexts(t *testing.T) {
	got := build(t, `{ runbookURL: 'https://wiki.example/rental', dashboardTags: ['rental', 'x'] }`)
	simtest.AssertEqual(t, "mixin", got, edit(t, committed(t),
		"https://github.com/server-rental-exporter/server_rental_exporter/blob/main/alerts/README.md#", "https://wiki.example/rental#",
		`"tags":["server-rental","prometheus"]`, `"tags":["rental","x"]`,
		`"tags":["prometheus"]`, `"tags":["x"]`, // of the dashboard that the others do not list
		`"tags":["server-rental"]`, `"tags":["rental"]`, // of links
	))
}

// TestNumbers compares the lines of the rules that the settings which are numbers change
// with a golden file.
func TestNumbers(t *testing.T) {
	write := func(name, config string) string {
		m := build(t, config)
		simtest.AssertEqual(t, "dashboards", m.Dashboards, committed(t).Dashboards)
		text, err := yaml.Marshal([]any{m.Alerts, m.Rules})
		if err != nil {
			t.Fatal(err)
		}
		return simtest.WriteFile(t, filepath.Join(t.TempDir(), name), string(text))
	}
	changed := write("changed.yml", `{ balanceRatio: 0.07, renewalsDays: 14, renewalsCriticalDays: 7 }`)
	diff, _ := exec.Command("diff", "--unified=0", write("default.yml", "{}"), changed).Output() // status 1: they differ
	lines := regexp.MustCompile(`(?m)^[-+] .*\n`).FindAllString(string(diff), -1)
	simtest.Golden(t, "testdata/numbers.diff", strings.Join(lines, ""))
}

// edit returns a mixin with other texts in its JSON: old, new, old, new.
func edit(t *testing.T, m mixin, texts ...string) (edited mixin) {
	t.Helper()
	decode(t, strings.NewReplacer(texts...).Replace(string(simtest.Encode(t, m))), &edited)
	return edited
}

// TestSelector checks that every selector of a scraped metric has the matcher, in rules and in
// dashboards, and that nothing else changes.
func TestSelector(t *testing.T) {
	got := build(t, `{ selector: @'cluster=~"a\\..+"' }`)
	for _, g := range append(got.Alerts.Groups, got.Rules.Groups...) {
		for _, r := range g.Rules {
			checkMatchers(t, r.Record+r.Alert, r.Expr)
		}
	}
	values := map[string]string{"currency": "usd", "__interval": "1m", "__rate_interval": "1m", "__interval_ms": "60000", "__range": "1d", "__range_s": "86400", "__from:date:seconds": "0"}
	for _, dashboard := range got.Dashboards {
		var d grafana.Dashboard
		decode(t, string(simtest.Encode(t, dashboard)), &d)
		for _, q := range d.Queries() {
			checkMatchers(t, q.Key, grafana.Interpolate(q.Expr, values))
		}
	}
	query := `cluster=~\"a\\\\..+\"`              // in JSON
	annotation := `cluster=~\\\"a\\\\\\\\..+\\\"` // in a string of a template
	got = edit(t, got, query+", ", "", "{"+query+"}", "", annotation+", ", "", "{"+annotation+"}", "")
	simtest.AssertEqual(t, "mixin without the matcher", got, committed(t))
}

// checkMatchers checks that the selectors of scraped metrics, and no others, have the matcher.
func checkMatchers(t *testing.T, where, query string) {
	t.Helper()
	expr, err := promqltest.Parse(query)
	if err != nil {
		t.Fatalf("%s: %v\n%s", where, err, query)
	}
	for _, s := range promqltest.Selectors(expr) {
		recorded := strings.Contains(s.Metric, ":") || strings.HasPrefix(s.Metric, "ALERTS")
		if recorded == s.HasMatcher(labels.MatchRegexp, "cluster", `a\..+`) {
			t.Errorf("%s: got %v, want the matcher in selectors of scraped metrics only\n%s", where, s.Matchers, query)
		}
	}
}

// TestFormat runs what jsonnetfmt and jsonnet-lint run.
func TestFormat(t *testing.T) {
	for _, path := range repo.Glob(t, "mixin/*.libsonnet") {
		text := repo.Read(t, "mixin/"+filepath.Base(path))
		formatted, err := formatter.Format(path, text, formatter.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		simtest.AssertEqual(t, path, text, formatted)
		var findings strings.Builder
		if linter.LintSnippet(jsonnet.MakeVM(), &findings, []linter.Snippet{{FileName: path, Code: text}}) {
			t.Error(findings.String())
		}
	}
}
