// Package alerts_test checks the rules: they name only metrics and labels that exist,
// every documented alert exists, has a runbook, and is tested while silent and while
// firing. promtool and amtool run where they are installed, and in CI always.
package alerts_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/apimachinery/pkg/util/sets"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/promqltest"
	"server_rental_exporter/test/internal/repo"
)

const runbooks = "https://github.com/server-rental-exporter/server_rental_exporter/blob/main/alerts/README.md#"

// TestRulesUseKnownMetrics checks the metrics and labels of rules. A recorded metric has to
// come from an earlier rule of the same file, so that each file works alone. Unit tests
// compare annotations, so that what a query in one lacks shows there. Grafana Mimir accepts
// groups of up to 20 rules without a change of its limits.
func TestRulesUseKnownMetrics(t *testing.T) {
	for _, f := range ruleFiles(t) {
		for _, g := range f.Groups {
			if len(g.Rules) > 20 {
				t.Errorf("%s: group %s: got %d rules, want at most 20", f.path, g.Name, len(g.Rules))
			}
		}
		known := scrapedMetrics()
		for _, r := range f.rules() {
			where := filepath.Base(f.path) + ": " + r.String()
			labels, err := addRule(known, r)
			if err != nil {
				t.Errorf("%s: %v", where, err)
				continue
			}
			for _, l := range targetLabels {
				if labels.Has(l) {
					t.Errorf("%s: has the label %s, so that two exporters make two alerts", where, l)
				}
			}
			if r.Record != "" {
				checkRecordedName(t, r.Record, labels)
			}
		}
	}
}

// targetLabels say where a series was scraped. No rule may depend on them.
var targetLabels = []string{"instance", "job", "pod"}

// scrapedMetrics returns the exporter's metrics as Kubernetes service discovery labels them.
func scrapedMetrics() promqltest.Catalog {
	known := promqltest.Exported()
	known["up"] = sets.New(targetLabels...)
	for _, labels := range known {
		labels.Insert("pod")
	}
	return known
}

// addRule returns the labels of a rule's result and adds what the rule makes, a metric
// or series of ALERTS, to the known metrics.
func addRule(known promqltest.Catalog, r rule) (promqltest.Labels, error) {
	expr, err := promqltest.Parse(r.Expr)
	if err != nil {
		return nil, err
	}
	for _, s := range promqltest.Selectors(expr) {
		for _, m := range s.Matchers {
			if slices.Contains(targetLabels, m.Name) {
				return nil, fmt.Errorf("%s: matches %s", s.Metric, m)
			}
		}
	}
	// The right side of an or may read what the rule itself recorded before.
	if b, ok := expr.(*parser.BinaryExpr); ok && b.Op == parser.LOR && r.Record != "" {
		if known[r.Record], err = known.Labels(b.LHS); err != nil {
			return nil, err
		}
	}
	labels, err := known.Labels(expr)
	if err != nil {
		return nil, err
	}
	if r.Record != "" {
		known[r.Record] = labels
		return labels, nil
	}
	labels = sets.KeySet(r.Labels).Union(labels)
	known["ALERTS"] = labels.Union(known["ALERTS"]).Insert("alertname", "alertstate")
	return labels, nil
}

// checkRecordedName asks for level:metric:operation, where the level is made of labels
// of the result, or is total where it has none.
func checkRecordedName(t *testing.T, name string, labels promqltest.Labels) {
	t.Helper()
	label := "(" + strings.Join(sets.List(labels), "|") + ")"
	if len(labels) == 0 {
		label = "total"
	}
	form := regexp.MustCompile("^" + label + "(_" + label + ")*:server_rental_[a-z0-9_]+:[a-z]+([0-9]+[hd])?$")
	if !form.MatchString(name) {
		t.Errorf("%s: got a name that is not level:metric:operation with a level of %q", name, sets.List(labels))
	}
}

// TestAnnotations checks the annotations, and the section of the runbook that they lead to.
func TestAnnotations(t *testing.T) {
	linked := []string{ // to an order form or a top-up's page
		"ServerRentalWatchHit", "ServerRentalPlanBackInStock", "ServerRentalPlanSoldOut", "ServerRentalPlanAdded", "ServerRentalPlanPriceChanged",
		"ServerRentalConfigurationBackInStock", "ServerRentalTopupExpiring", "ServerRentalTopupStuck",
	}
	sections := map[string]int{}
	_, runbook, _ := strings.Cut(repo.Read(t, "alerts/README.md"), "\n## Runbook\n")
	all := alerts(t)
	for _, section := range strings.Split(runbook, "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		sections[name]++
		if all[name] == nil || !strings.Contains(text, "- Check: ") || !strings.Contains(text, "- Do: ") {
			t.Errorf("README.md: %s: no such alert, or no Check, or no Do", name)
		}
	}
	for name, rules := range all {
		simtest.AssertEqual(t, name+": headings in README.md", sections[name], 1)
		for _, a := range rules {
			annotations := []string{"description", "runbook_url", "summary"}
			if slices.Contains(linked, name) {
				annotations = slices.Insert(annotations, 1, "link")
			}
			simtest.AssertEqual(t, a.String()+": annotations", slices.Sorted(maps.Keys(a.Annotations)), annotations)
			simtest.AssertEqual(t, a.String()+": runbook_url", a.Annotations["runbook_url"], runbooks+strings.ToLower(name))
			if s := a.Annotations["summary"]; strings.Contains(s, "{{") || !strings.HasSuffix(s, ".") {
				t.Errorf("%s: got summary %q, want one fixed sentence", a, s)
			}
		}
	}
}

// TestEveryAlertIsTested asks for a unit test of each alert and severity in which it is
// silent and fires at most two minutes later, from series of an instance whose labels
// are not in the result.
func TestEveryAlertIsTested(t *testing.T) {
	files := testFiles(t)
	for _, rules := range alerts(t) {
		for _, a := range rules {
			tested := slices.ContainsFunc(files, func(f file) bool {
				return slices.ContainsFunc(f.Tests, func(c testCase) bool { return c.showsStart(a) })
			})
			if !tested {
				t.Errorf("%s: no test in which it is silent and fires at most two minutes later", a)
			}
		}
	}
}

// showsStart reports whether a case shows the two minutes in which an alert begins to fire.
func (c testCase) showsStart(a rule) bool {
	var silent, firing []time.Duration
	for _, ac := range c.Alerts {
		switch {
		case ac.Alertname != a.Alert || ac.Expected == nil:
		case slices.ContainsFunc(*ac.Expected, func(e expectedAlert) bool { return includes(e.Labels, a.Labels) }):
			firing = append(firing, ac.Time)
		default:
			silent = append(silent, ac.Time)
		}
	}
	starts := slices.ContainsFunc(silent, func(before time.Duration) bool {
		return slices.ContainsFunc(firing, func(after time.Duration) bool { return after > before && after-before <= 2*time.Minute })
	})
	return starts && slices.ContainsFunc(c.Input, func(in struct{ Series string }) bool {
		return strings.Contains(in.Series, "instance=") && strings.Contains(in.Series, "job=")
	})
}

// includes reports whether labels include others.
func includes(labels, others map[string]string) bool {
	for name, value := range others {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// TestUnitTestsProveSomething refuses what promtool accepts: a case that names an unknown
// alert, series or label or expects nothing, two cases of one name, an untested rule file.
func TestUnitTestsProveSomething(t *testing.T) {
	tested, seen := map[string]bool{}, map[string]bool{}
	known, all := scrapedMetrics(), alerts(t)
	for _, f := range testFiles(t) {
		for _, r := range f.Rules {
			tested[filepath.Base(r)] = true
		}
		for _, c := range f.Tests {
			where := filepath.Base(f.path) + ": " + c.Name
			if c.Name == "" || seen[c.Name] || len(c.Alerts)+len(c.Exprs) == 0 {
				t.Errorf("%s: want a name that no other case has, and something that is expected", where)
			}
			seen[c.Name] = true
			for _, a := range c.Alerts {
				if all[a.Alertname] == nil || a.Expected == nil {
					t.Errorf("%s: %q at %s: no such alert, or no exp_alerts", where, a.Alertname, a.Time)
				}
			}
			for _, in := range c.Input {
				if _, err := known.Check(in.Series); err != nil {
					t.Errorf("%s: %v", where, err)
				}
			}
		}
	}
	for _, f := range ruleFiles(t) {
		if !tested[filepath.Base(f.path)] {
			t.Errorf("%s: no test loads it", f.path)
		}
	}
}

func TestPromtool(t *testing.T) {
	promtool := repo.Program(t, "promtool")
	t.Run("check", func(t *testing.T) {
		for _, f := range ruleFiles(t) {
			run(t, promtool, "check", "rules", "--lint=all", "--lint-fatal", f.path)
		}
	})
	if testing.Short() {
		t.Skip("unit tests of rules are slow")
	}
	for _, f := range testFiles(t) {
		name := filepath.Base(f.path)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.HasPrefix(name, "false_alarms_") && os.Getenv("CHAOS_LONG") == "" {
				t.Skip("hours at a resolution of a minute: set CHAOS_LONG=1")
			}
			run(t, promtool, "test", "rules", f.path)
		})
	}
}

// TestAmtool compares the receiver of each alert with a golden file, and checks the receivers
// that only newer versions have with an amtool of such a version.
func TestAmtool(t *testing.T) {
	example := repo.Path(t, "alerts/alertmanager.example.yml")
	amtool := repo.Program(t, "amtool")
	run(t, amtool, "check-config", example)
	version, err := exec.Command(amtool, "--version").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	if newer := repo.Path(t, "alerts/alertmanager-0.34.example.yml"); !regexp.MustCompile(`^amtool, version 0\.([0-9]|[12][0-9]|3[0-3])\.`).Match(version) {
		run(t, amtool, "check-config", newer)
	}
	labels := map[string]bool{
		"SomebodyElses severity=critical":                                   true,
		"ServerRentalServerSuspended severity=critical account=acme-web":    true,
		"ServerRentalServerSuspended severity=critical account=my-acme-web": true,
	}
	for name, rules := range alerts(t) {
		for _, a := range rules {
			labels[name+" severity="+a.Labels["severity"]] = true
		}
	}
	var text strings.Builder
	for _, alert := range slices.Sorted(maps.Keys(labels)) {
		args := append([]string{"config", "routes", "test", "--config.file=" + example}, strings.Fields("alertname="+alert)...)
		out, err := exec.Command(amtool, args...).Output()
		if err != nil {
			t.Errorf("%s: %v", alert, err)
		}
		fmt.Fprintf(&text, "%s: %s", alert, out)
	}
	simtest.Golden(t, repo.Path(t, "test/alerts/testdata/receivers.txt"), text.String())
}

// TestRoutes asks each route to the pager for groups of one severity: Alertmanager passes on
// a label only if all alerts of the group share its value.
func TestRoutes(t *testing.T) {
	var config struct {
		Route struct {
			Routes []struct {
				Receiver string
				Matchers []string
				GroupBy  []string `yaml:"group_by"`
			}
		}
	}
	repo.ReadYAML(t, repo.Path(t, "alerts/alertmanager.example.yml"), &config)
	for i, r := range config.Route.Routes {
		if r.Receiver == "pager" && !slices.Contains(r.GroupBy, "severity") && !slices.Contains(r.Matchers, `severity="critical"`) {
			t.Errorf("route %d: its groups can hold alerts of several severities", i)
		}
	}
}

// TestDashboardOfNtfy checks that the address of ntfy names all alerts that the other
// notifications match by a regular expression, which ntfy cannot.
func TestDashboardOfNtfy(t *testing.T) {
	match := regexp.MustCompile(`match "(.+)" .CommonLabels.alertname`).FindStringSubmatch(repo.Read(t, "alerts/templates/server_rental.tmpl"))
	names := slices.Sorted(maps.Keys(alerts(t)))
	want := slices.DeleteFunc(names, func(name string) bool { return !regexp.MustCompile(match[1]).MatchString(name) })
	example := regexp.MustCompile(`\\\n +`).ReplaceAllString(repo.Read(t, "alerts/alertmanager.example.yml"), "")
	var got []string
	for _, name := range regexp.MustCompile(`%22(ServerRental\w+)%22`).FindAllStringSubmatch(example, -1) {
		got = append(got, name[1])
	}
	simtest.AssertEqual(t, "alerts", got, want)
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "GOGC=400") // makes promtool a fifth faster
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
}
