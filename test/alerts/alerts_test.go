// Package alerts_test checks the rules: they are short, they name only metrics and labels that
// exist, every documented alert exists, has a runbook, and is tested while silent and while
// firing. promtool and amtool run where they are installed, and in CI always.
package alerts_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/promqltest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/rules"
)

const runbooks = "https://github.com/server-rental-exporter/server_rental_exporter/blob/main/alerts/README.md#"

// scrapedMetrics returns what the rules read.
func scrapedMetrics() promqltest.Catalog {
	known := promqltest.Exported()
	known.Add("up")
	return known
}

// TestReadable checks that expressions name metrics and labels that exist, and limits their length, that of
// templates, and the number of queries in templates. A rule that needs more becomes a gauge of the exporter.
// Grafana Mimir accepts groups of up to 20 rules without a change of its limits.
func TestReadable(t *testing.T) {
	for path, groups := range rules.Groups(t) {
		for _, g := range groups {
			atMost(t, path+": "+g.Name+": rules", len(g.Rules), 20)
		}
	}
	var lengths []int
	known, recorded := scrapedMetrics(), 0
	known.AddRecorded(t)
	value := regexp.MustCompile(`{{.*?}}`)
	for _, r := range rules.All(t) {
		if err := known.Check(r.Expr); err != nil {
			t.Errorf("%s: %v", r.Alert+r.Record, err)
		}
		if r.Record != "" {
			recorded++
			atMost(t, r.Record+": characters", length(r.Expr), 250)
			continue
		}
		lengths = append(lengths, length(r.Expr))
		atMost(t, r.Alert+": characters", length(r.Expr), 350)
		for name, limit := range map[string]struct{ characters, queries int }{"summary": {110, 1}, "description": {350, 2}, "link": {250, 1}} {
			text := r.Annotations[name]
			atMost(t, r.Alert+": queries of "+name, strings.Count(text, "query"), limit.queries)
			if name == "summary" { // its values do not count
				text = value.ReplaceAllString(text, "")
			}
			atMost(t, r.Alert+": characters of "+name, length(text), limit.characters)
		}
		if regexp.MustCompile(`\w:server_rental_|ALERTS`).MatchString(r.Expr) {
			t.Errorf("%s: reads what a rule made", r.Alert)
		}
	}
	slices.Sort(lengths)
	atMost(t, "median of the characters of expressions", lengths[len(lengths)/2], 124)
	atMost(t, "recording rules", recorded, 10)
}

// length returns the number of characters of a text in which white space counts once.
func length(text string) int { return utf8.RuneCountInString(strings.Join(strings.Fields(text), " ")) }

func atMost(t *testing.T, what string, got, limit int) {
	t.Helper()
	if got > limit {
		t.Errorf("%s: got %d, want at most %d", what, got, limit)
	}
}

// TestAnnotations checks the annotations, and the section of the runbook that they lead to. An
// alert about a plan that is listed, a saved configuration or an open top-up has a link.
func TestAnnotations(t *testing.T) {
	linked := regexp.MustCompile(`\$labels\.(plan|configuration|topup)\b`)
	sections := map[string]int{}
	_, runbook, _ := strings.Cut(repo.Read(t, "alerts/README.md"), "\n## Runbook\n")
	all := rules.Alerts(t)
	for _, section := range strings.Split(runbook, "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		sections[name]++
		if all[name].Alert == "" || !regexp.MustCompile(`(?s)^\n- Check: .+\n- Do: .+`).MatchString(text) {
			t.Errorf("README.md: %s: no such alert, or not Check and Do", name)
		}
	}
	for name, a := range all {
		simtest.AssertEqual(t, name+": headings in README.md", sections[name], 1)
		annotations := []string{"description", "runbook_url", "summary"}
		if linked.MatchString(a.Annotations["summary"]) && name != "ServerRentalPlanRemoved" {
			annotations = slices.Insert(annotations, 1, "link")
		}
		simtest.AssertEqual(t, name+": annotations", slices.Sorted(maps.Keys(a.Annotations)), annotations)
		simtest.AssertEqual(t, name+": runbook_url", a.Annotations["runbook_url"], runbooks+strings.ToLower(name))
	}
}

// TestKinds checks the labels of each alert, and what follows from them: news have no `for` and
// bridge one lost scrape, and states fire on for five minutes.
func TestKinds(t *testing.T) {
	for name, a := range rules.Alerts(t) {
		simtest.AssertEqual(t, name+": labels", slices.Sorted(maps.Keys(a.Labels)), []string{"kind", "severity"})
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s: severity %q", name, a.Labels["severity"])
		}
		keep := map[string]time.Duration{"news": time.Minute, "state": 5 * time.Minute}[a.Labels["kind"]]
		if name == "ServerRentalExporterDown" { // a scrape ends it
			keep = 0
		}
		simtest.AssertEqual(t, name+": keep_firing_for", time.Duration(a.KeepFiringFor), keep)
		if a.Labels["kind"] == "news" {
			simtest.AssertEqual(t, name+": for", time.Duration(a.For), time.Duration(0))
		}
	}
}

// unitTests is a file of unit tests for promtool.
type unitTests struct {
	Rules []string `yaml:"rule_files"`
	Tests []struct {
		Name   string
		Input  []struct{ Series string } `yaml:"input_series"`
		Alerts []struct {
			Alertname string
			Time      time.Duration `yaml:"eval_time"`
			Expected  *[]any        `yaml:"exp_alerts"` // nil if it is not given
		} `yaml:"alert_rule_test"`
		Exprs []any `yaml:"promql_expr_test"`
	}
}

// TestUnitTests checks that unit tests load each file of rules, and that each alert fires in one of
// them and is silent in one. It refuses what promtool accepts: a case that names an unknown alert,
// series or label or expects nothing, and two cases of one name.
func TestUnitTests(t *testing.T) {
	fires, silent, loaded, seen := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	known, all := scrapedMetrics(), rules.Alerts(t)
	for _, path := range repo.Glob(t, "alerts/tests/*.test.yml") {
		var f unitTests
		repo.ReadYAML(t, path, &f)
		for _, r := range f.Rules {
			loaded[filepath.Base(r)] = true
		}
		for _, c := range f.Tests {
			where := filepath.Base(path) + ": " + c.Name
			if c.Name == "" || seen[c.Name] || len(c.Alerts)+len(c.Exprs) == 0 {
				t.Errorf("%s: want a name that no other case has, and something that is expected", where)
			}
			seen[c.Name] = true
			for _, a := range c.Alerts {
				if all[a.Alertname].Alert == "" || a.Expected == nil {
					t.Errorf("%s: %q at %s: no such alert, or no exp_alerts", where, a.Alertname, a.Time)
					continue
				}
				silent[a.Alertname] = silent[a.Alertname] || len(*a.Expected) == 0
				fires[a.Alertname] = fires[a.Alertname] || len(*a.Expected) > 0
			}
			for _, in := range c.Input { // a series without instance would hide that an alert has that label
				if err := known.Check(in.Series); err != nil || !strings.Contains(in.Series, "instance=") {
					t.Errorf("%s: %s: unknown, or no instance: %v", where, in.Series, err)
				}
			}
		}
	}
	for name := range all {
		if !fires[name] || !silent[name] {
			t.Errorf("%s: no test in which it fires, or none in which it is silent", name)
		}
	}
	for path := range rules.Groups(t) {
		if !loaded[filepath.Base(path)] {
			t.Errorf("%s: no test loads it", path)
		}
	}
}

func TestPromtool(t *testing.T) {
	promtool := repo.Program(t, "promtool")
	t.Setenv("GOGC", "400") // makes it a fifth faster
	t.Run("check", func(t *testing.T) {
		// compose.yaml mounts the rules at that path of the container.
		config := strings.ReplaceAll(repo.Read(t, "deploy/compose/prometheus.yml"), "/etc/prometheus/alerts", repo.Path(t, "alerts"))
		repo.Run(t, ".", promtool, "check", "config", simtest.WriteFile(t, filepath.Join(t.TempDir(), "prometheus.yml"), config))
		for path := range rules.Groups(t) {
			repo.Run(t, ".", promtool, "check", "rules", "--lint=all", "--lint-fatal", path)
		}
	})
	if testing.Short() {
		t.Skip("unit tests of rules are slow")
	}
	for _, path := range repo.Glob(t, "alerts/tests/*.test.yml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			repo.Run(t, ".", promtool, "test", "rules", path)
		})
	}
}

// TestAmtool compares the receiver of each alert with its severity: info goes to nobody.
func TestAmtool(t *testing.T) {
	config, amtool := repo.Path(t, "alerts/alertmanager.yml"), repo.Program(t, "amtool")
	repo.Run(t, ".", amtool, "check-config", config)
	for name, a := range rules.Alerts(t) {
		want := map[string]string{"critical": "phone", "warning": "phone", "info": "nobody"}[a.Labels["severity"]]
		got := repo.Run(t, ".", amtool, "config", "routes", "test", "--config.file="+config,
			"alertname="+name, "severity="+a.Labels["severity"], "kind="+a.Labels["kind"])
		simtest.AssertEqual(t, name+": receiver", got, want)
	}
}
