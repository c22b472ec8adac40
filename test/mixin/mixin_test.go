// Package mixin_test builds the monitoring mixin: by default it is the committed rules and
// dashboards, and each setting changes what it says and nothing else.
package mixin_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-jsonnet"
	"github.com/google/go-jsonnet/formatter"
	"github.com/google/go-jsonnet/linter"
	"github.com/prometheus/prometheus/model/labels"

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

// build builds the mixin with settings, and has promtool check its rules.
func build(t *testing.T, config string) mixin {
	t.Helper()
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{repo.Path(t, "mixin")}})
	text, err := vm.EvaluateAnonymousSnippet("test", "local m = (import 'mixin.libsonnet') + { _config+:: "+config+" };"+
		"{ alerts: m.prometheusAlerts, rules: m.prometheusRules, dashboards: m.grafanaDashboards }")
	if err != nil {
		t.Fatal(err)
	}
	var m mixin
	var files map[string]json.RawMessage
	for _, into := range []any{&m, &files} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	if promtool, err := exec.LookPath("promtool"); err == nil || os.Getenv("CI") == "true" {
		for _, name := range []string{"alerts", "rules"} {
			file := simtest.WriteFile(t, filepath.Join(t.TempDir(), name+".json"), string(files[name]))
			if out, err := exec.Command(promtool, "check", "rules", "--lint=all", "--lint-fatal", file).CombinedOutput(); err != nil {
				t.Errorf("promtool: %v\n%s", err, out)
			}
		}
	}
	return m
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
		if err := json.Unmarshal([]byte(repo.Read(t, "dashboards/"+filepath.Base(path))), &d); err != nil {
			t.Fatal(err)
		}
		m.Dashboards[filepath.Base(path)] = d
	}
	return m
}

func TestDefaults(t *testing.T) { simtest.AssertEqual(t, "mixin", build(t, "{}"), committed(t)) }

// TestSettings checks everything but the selector.
func TestSettings(t *testing.T) {
	got := build(t, `{
		balanceRatio: 0.07, renewalsDays: 14, renewalsCriticalDays: 7,
		runbookURL: 'https://wiki.example/rental', dashboardTags: ['rental', 'x'],
	}`)
	want := committed(t)
	edit(t, &want, func(s string) string {
		return strings.ReplaceAll(s, "https://github.com/server-rental-exporter/server_rental_exporter/blob/main/alerts/README.md#", "https://wiki.example/rental#")
	})
	for _, d := range want.Dashboards {
		d := d.(map[string]any)
		d["tags"] = []any{"rental", "x"}
		for _, link := range d["links"].([]any) {
			link.(map[string]any)["tags"] = []any{"rental"}
		}
	}
	billing := want.Rules.Groups[0].Rules
	const due7, due14 = "account:server_rental_account_renewals_due_usd:sum7d", "account:server_rental_account_renewals_due_usd:sum14d"
	for i, r := range billing {
		if r.Record == due7 {
			r.Record, r.Expr = due14, strings.ReplaceAll(r.Expr, "7 * 86400", "14 * 86400")
			want.Rules.Groups[0].Rules = append(billing[:i+1:i+1], append([]rule{r}, billing[i+1:]...)...)
		}
	}
	for i := range want.Alerts.Groups[0].Rules {
		r := &want.Alerts.Groups[0].Rules[i]
		description := r.Annotations["description"]
		switch r.Alert + " " + r.Labels["severity"] {
		case "ServerRentalBalanceLow warning":
			r.Expr = strings.Replace(r.Expr, "< 0.1 * account", "< 0.07 * account", 1)
			description = strings.Replace(description, "less than 10 percent of", "less than 7 percent of", 1)
		case "ServerRentalRenewalsUnfunded critical":
			r.Expr = due14 + " - account:server_rental_account_balance_usd:max > 0\nand on (account)\n" +
				"account:server_rental_account_funded_until_timestamp_seconds:max <= time() + 7 * 86400\n"
			description = strings.ReplaceAll(strings.Replace(description, "the next 7 days", "the next 14 days", 1), due7, due14)
		case "ServerRentalRenewalsUnfunded warning":
			r.Expr = strings.Replace(strings.Replace(r.Expr, due7, due14, 1), "> time() + 7 * 86400", "> time() + 14 * 86400", 1)
			description = strings.ReplaceAll(strings.Replace(description, "the next 7 days", "the next 14 days", 1), due7, due14)
		}
		r.Annotations["description"] = description
	}
	simtest.AssertEqual(t, "mixin", got, want)
}

// edit changes all strings of a mixin.
func edit(t *testing.T, m *mixin, change func(string) string) {
	t.Helper()
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return change(v)
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for name := range v {
				v[name] = walk(v[name])
			}
		}
		return v
	}
	var all any
	transcode(t, m, &all)
	*m = mixin{}
	transcode(t, walk(all), m)
}

func transcode(t *testing.T, from, into any) {
	t.Helper()
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var (
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	verb   = regexp.MustCompile(`%(\[\d\])?q`)
	offers = regexp.MustCompile(`^label_values\((.+), \w+\)$`)
)

// TestSelector checks that every selector of a scraped metric has the matcher, in rules, in
// the queries of annotations and in dashboards, and that nothing else changes.
func TestSelector(t *testing.T) {
	got := build(t, `{ selector: @'cluster=~"a\\..+"' }`)
	check := func(where, query string) {
		t.Helper()
		expr, err := promqltest.Parse(query)
		if err != nil {
			t.Errorf("%s: %v\n%s", where, err, query)
			return
		}
		for _, s := range promqltest.Selectors(expr) {
			recorded := strings.Contains(s.Metric, ":") || s.Metric == "ALERTS"
			if recorded == s.HasMatcher(labels.MatchRegexp, "cluster", `a\..+`) {
				t.Errorf("%s: got %v, want the matcher in selectors of scraped metrics only\n%s", where, s.Matchers, query)
			}
		}
	}
	for _, g := range append(got.Alerts.Groups, got.Rules.Groups...) {
		for _, r := range g.Rules {
			check(r.Record+r.Alert, r.Expr)
			for _, text := range r.Annotations {
				for _, literal := range quoted.FindAllString(text, -1) {
					if query, err := strconv.Unquote(literal); err == nil && strings.Contains(query, "server_rental_") {
						check(r.Alert, strings.ReplaceAll(verb.ReplaceAllString(query, `"x"`), "%s", "x"))
					}
				}
			}
		}
	}
	for name, dashboard := range got.Dashboards {
		var d grafana.Dashboard
		transcode(t, dashboard, &d)
		values := map[string]string{"currency": "usd", "__interval": "1m", "__rate_interval": "1m", "__interval_ms": "60000", "__range": "1d"}
		for _, q := range d.Queries() {
			check(q.Key, grafana.Interpolate(q.Expr, values))
		}
		for _, v := range d.Templating.List {
			if query := offers.FindStringSubmatch(v.Query); query != nil {
				check(name+" "+v.Name, grafana.Interpolate(query[1], values))
			}
		}
	}
	edit(t, &got, func(s string) string {
		for _, matcher := range []string{`cluster=~"a\\..+"`, `cluster=~\"a\\\\..+\"`} {
			s = strings.ReplaceAll(strings.ReplaceAll(s, matcher+", ", ""), "{"+matcher+"}", "")
		}
		return s
	})
	simtest.AssertEqual(t, "mixin without the matcher", got, committed(t))
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
