// Package alerts_test holds the rules to what they promise: they use metrics and
// labels that the exporter has, every alert of the public interface is there, has a
// runbook and is tested on both sides. Where promtool and amtool are installed, they
// have their say too; in CI they have to be.
package alerts_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template/parse"
	"time"
)

const runbooks = "https://github.com/server-rental-exporter/server_rental_exporter/blob/main/alerts/README.md#"

// promised are the alerts of the public interface and their severities.
func promised() map[string][]string {
	return map[string][]string{
		"ServerRentalPlanBackInStock":          {"info"},
		"ServerRentalPlanSoldOut":              {"info"},
		"ServerRentalPlanPriceChanged":         {"info"},
		"ServerRentalLocationSoldOut":          {"info"},
		"ServerRentalConfigurationBackInStock": {"info"},
		"ServerRentalBalanceLow":               {"critical", "warning"},
		"ServerRentalRenewalsUnfunded":         {"critical", "warning"},
		"ServerRentalServerSuspended":          {"critical"},
		"ServerRentalServerCountDropped":       {"warning"},
		"ServerRentalTopupExpiring":            {"info"},
		"ServerRentalTopupStuck":               {"warning"},
		"ServerRentalTopupFailed":              {"warning"},
		"ServerRentalSSHKeysChanged":           {"warning"},
		"ServerRentalTwoFactorDisabled":        {"info"},
		"ServerRentalComponentNotOperational":  {"critical", "warning"},
		"ServerRentalIncidentOngoing":          {"warning"},
		"ServerRentalMaintenanceScheduled":     {"info"},
		"ServerRentalExporterDown":             {"critical"},
		"ServerRentalCollectorFailing":         {"warning"},
		"ServerRentalItemsInvalid":             {"warning"},
		"ServerRentalDataStale":                {"warning"},
		"ServerRentalCatalogFrozen":            {"warning"},
		"ServerRentalTokenRejected":            {"critical"},
		"ServerRentalRateLimited":              {"warning"},
		"ServerRentalConfigReloadFailed":       {"warning"},
	}
}

func TestEveryPromisedAlertIsThere(t *testing.T) {
	got := map[string][]string{}
	for _, a := range alerts(t) {
		if s := a.Labels["severity"]; !slices.Contains(got[a.Alert], s) {
			got[a.Alert] = append(got[a.Alert], s)
		}
	}
	want := promised()
	for name := range got {
		slices.Sort(got[name])
		if want[name] == nil {
			t.Errorf("%s: is in no promise", name)
		}
	}
	for name, severities := range want {
		if !slices.Equal(got[name], severities) {
			t.Errorf("%s: got severities %q, want %q", name, got[name], severities)
		}
	}
}

// TestRulesUseWhatThereIs also proves that each file works by itself: a recorded
// metric has to come from an earlier rule of the same file.
func TestRulesUseWhatThereIs(t *testing.T) {
	for _, f := range ruleFiles(t) {
		known := exported()
		for _, r := range f.all() {
			if first, _, more := strings.Cut(r.Expr, "\nor\n"); more && r.Record != "" { // what follows may be its own past
				if u, err := known.check(first); err == nil {
					known[r.Record] = u.result
				}
			}
			u, err := known.check(r.Expr)
			if err != nil {
				t.Errorf("%s: %s: %v", f.name, r, err)
				continue
			}
			for _, l := range []string{"instance", "job", "pod"} {
				if u.result[l] {
					t.Errorf("%s: %s: has the label %s, so that two exporters make two alerts", f.name, r, l)
				}
			}
			if r.Record != "" {
				known[r.Record] = u.result
				continue
			}
			maps.Copy(u.result, setOf(slices.Collect(maps.Keys(r.Labels))...))
			for name, text := range r.Annotations {
				checkTemplate(t, known, u.result, f.name+": "+r.String()+": "+name, text)
			}
		}
	}
}

func TestRecordedNames(t *testing.T) {
	form := regexp.MustCompile(`^[a-z_]+:server_rental_[a-z0-9_]+:[a-z0-9]+$`)
	readme := string(readFile(t, "README.md"))
	for _, f := range ruleFiles(t) {
		for _, r := range f.all() {
			if r.Record == "" {
				continue
			}
			if !form.MatchString(r.Record) {
				t.Errorf("%s: not of the form level:metric:operation", r.Record)
			}
			operation := r.Record[strings.LastIndex(r.Record, ":"):]
			if !strings.Contains(readme, "`"+r.Record+"`") && !strings.Contains(readme, "`"+operation+"`") {
				t.Errorf("%s: README.md does not tell of it", r.Record)
			}
		}
	}
}

var placeholder = regexp.MustCompile(`%(\[\d\])?q`)

// checkTemplate checks the labels of a template and the queries in it.
func checkTemplate(t *testing.T, known catalogue, labels names, where, text string) {
	t.Helper()
	tree := parse.New(where)
	tree.Mode = parse.SkipFuncCheck
	_, err := tree.Parse(`{{$labels := .}}{{$value := .}}`+text, "", "", map[string]*parse.Tree{})
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	walk(tree.Root, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.VariableNode:
			if n.Ident[0] == "$labels" && len(n.Ident) == 2 && !labels[n.Ident[1]] {
				t.Errorf("%s: the alert has no label %s", where, n.Ident[1])
			}
		case *parse.StringNode:
			if !strings.Contains(n.Text, "server_rental") {
				return
			}
			query := strings.ReplaceAll(placeholder.ReplaceAllString(n.Text, `"x"`), "%s", "x")
			if _, err := known.check(query); err != nil {
				t.Errorf("%s: query %s: %v", where, n.Text, err)
			}
		}
	})
}

// walk visits every node below one.
func walk(n parse.Node, visit func(parse.Node)) {
	visit(n)
	branch := func(b parse.BranchNode) {
		walk(b.Pipe, visit)
		walk(b.List, visit)
		if b.ElseList != nil {
			walk(b.ElseList, visit)
		}
	}
	switch n := n.(type) {
	case *parse.ListNode:
		for _, c := range n.Nodes {
			walk(c, visit)
		}
	case *parse.ActionNode:
		walk(n.Pipe, visit)
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			walk(c, visit)
		}
	case *parse.CommandNode:
		for _, c := range n.Args {
			walk(c, visit)
		}
	case *parse.ChainNode:
		walk(n.Node, visit)
	case *parse.WithNode:
		branch(n.BranchNode)
	case *parse.IfNode:
		branch(n.BranchNode)
	case *parse.RangeNode:
		branch(n.BranchNode)
	}
}

func TestAnnotations(t *testing.T) {
	for _, a := range alerts(t) {
		if got := slices.Sorted(maps.Keys(a.Annotations)); !slices.Equal(got, []string{"description", "runbook_url", "summary"}) {
			t.Errorf("%s: got annotations %q", a, got)
		}
		if s := a.Annotations["summary"]; strings.Contains(s, "{{") || !strings.HasSuffix(s, ".") {
			t.Errorf("%s: the summary is not one fixed sentence: %s", a, s)
		}
		if got, want := a.Annotations["runbook_url"], runbooks+strings.ToLower(a.Alert); got != want {
			t.Errorf("%s: got runbook_url %s, want %s", a, got, want)
		}
	}
}

func TestEveryAlertHasARunbook(t *testing.T) {
	got := map[string]int{}
	_, runbook, _ := strings.Cut(string(readFile(t, "README.md")), "\n## Runbook\n")
	for _, section := range strings.Split(runbook, "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		got[name]++
		if !strings.Contains(text, "- Check: ") || !strings.Contains(text, "- Do: ") {
			t.Errorf("README.md: %s: says not what to check or what to do", name)
		}
	}
	for name := range promised() {
		if got[name] != 1 {
			t.Errorf("README.md: %s: got %d headings, want 1", name, got[name])
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("README.md: %s: there is no such alert", name)
	}
}

// TestEveryAlertIsTested asks for unit tests on both sides of each alert and
// severity: it does not fire, and at most two minutes later it does, from series of
// an instance whose labels are not in the result.
func TestEveryAlertIsTested(t *testing.T) {
	files := testFiles(t)
	for _, a := range alerts(t) {
		found := false
		for _, f := range files {
			for _, c := range f.Tests {
				found = found || c.provesBoth(t, a)
			}
		}
		if !found {
			t.Errorf("%s: no test in which it does not fire and does at most two minutes later", a)
		}
	}
}

// provesBoth tells whether a case shows when an alert begins to fire.
func (c testCase) provesBoth(t *testing.T, a rule) bool {
	t.Helper()
	labeled := slices.ContainsFunc(c.Input, func(s struct{ Series, Values string }) bool {
		return strings.Contains(s.Series, "instance=") && strings.Contains(s.Series, "job=")
	})
	if !labeled {
		return false
	}
	var silent, firing []time.Duration
	for _, ac := range c.Alerts {
		if ac.Alertname != a.Alert || ac.Expected == nil {
			continue
		}
		has := slices.ContainsFunc(*ac.Expected, func(e expected) bool {
			for l, v := range a.Labels {
				if e.Labels[l] != v {
					return false
				}
			}
			return true
		})
		if has {
			firing = append(firing, ac.at(t))
		} else {
			silent = append(silent, ac.at(t))
		}
	}
	for _, before := range silent {
		for _, after := range firing {
			if after > before && after-before <= 2*time.Minute {
				return true
			}
		}
	}
	return false
}

// TestTestsAreSound refuses what promtool lets pass: a case that names no alert or
// expects nothing in words, names that two tests share, a rule file that is not tested.
func TestTestsAreSound(t *testing.T) {
	tested := names{}
	seen := names{}
	for _, f := range testFiles(t) {
		for _, r := range f.Rules {
			tested[filepath.Base(r)] = true
		}
		for _, c := range f.Tests {
			if c.Name == "" || seen[c.Name] {
				t.Errorf("%s: %q: tests need names of their own", f.name, c.Name)
			}
			seen[c.Name] = true
			if len(c.Alerts)+len(c.Exprs) == 0 {
				t.Errorf("%s: %s: expects nothing", f.name, c.Name)
			}
			for _, a := range c.Alerts {
				if promised()[a.Alertname] == nil {
					t.Errorf("%s: %s: %q is no alert", f.name, c.Name, a.Alertname)
				}
				if a.Expected == nil {
					t.Errorf("%s: %s: %s at %s: has no exp_alerts", f.name, c.Name, a.Alertname, a.Time)
				}
			}
		}
	}
	for _, f := range ruleFiles(t) {
		if !tested[f.name] {
			t.Errorf("%s: no test loads it", f.name)
		}
	}
}

// TestNothingOfTheTestsIsUnknown keeps the input of the unit tests to metrics and
// labels that exist; a test with a misspelt series would prove nothing.
func TestNothingOfTheTestsIsUnknown(t *testing.T) {
	known := exported()
	for _, labels := range known {
		maps.Copy(labels, setOf("instance", "job", "pod"))
	}
	for _, f := range testFiles(t) {
		for _, c := range f.Tests {
			for _, in := range c.Input {
				if _, err := known.check(in.Series); err != nil {
					t.Errorf("%s: %s: %v", f.name, c.Name, err)
				}
			}
		}
	}
}

func TestPromtool(t *testing.T) {
	promtool := tool(t, "promtool")
	rules, err := filepath.Glob("*.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("check", func(t *testing.T) {
		run(t, promtool, append([]string{"check", "rules", "--lint=all", "--lint-fatal"}, rules...)...)
	})
	if testing.Short() {
		t.Skip("the unit tests of the rules take half a minute")
	}
	for _, f := range testFiles(t) {
		t.Run(filepath.Base(f.name), func(t *testing.T) {
			t.Parallel()
			run(t, promtool, "test", "rules", f.name)
		})
	}
}

func TestAmtool(t *testing.T) {
	const example = "alertmanager.example.yml"
	amtool := tool(t, "amtool")
	run(t, amtool, "check-config", example)
	for _, c := range []struct{ labels, receiver string }{
		{"alertname=ServerRentalPlanBackInStock severity=info plan=gpu-l40s family=gpu", "chat"},
		{"alertname=ServerRentalPlanSoldOut severity=info plan=gpu-l40s", "chat"},
		{"alertname=ServerRentalPlanPriceChanged severity=info plan=gpu-l40s", "chat"},
		{"alertname=ServerRentalLocationSoldOut severity=info location=fra", "chat"},
		{"alertname=ServerRentalConfigurationBackInStock severity=info account=main plan=gpu-l40s", "chat"},
		{"alertname=ServerRentalBalanceLow severity=warning account=main", "pager"},
		{"alertname=ServerRentalBalanceLow severity=critical account=main", "pager"},
		{"alertname=ServerRentalRenewalsUnfunded severity=warning account=main", "pager"},
		{"alertname=ServerRentalRenewalsUnfunded severity=critical account=main", "pager"},
		{"alertname=ServerRentalServerSuspended severity=critical account=main server=srv_1", "pager"},
		{"alertname=ServerRentalTopupFailed severity=warning account=main", "pager"},
		{"alertname=ServerRentalExporterDown severity=critical", "pager"},
		{"alertname=ServerRentalTokenRejected severity=critical account=main", "pager"},
		{"alertname=ServerRentalComponentNotOperational severity=critical location=fra", "pager"},
		{"alertname=ServerRentalComponentNotOperational severity=warning location=fra", "operators"},
		{"alertname=ServerRentalTopupExpiring severity=info account=main", "operators"},
		{"alertname=ServerRentalSSHKeysChanged severity=warning account=main", "operators"},
		{"alertname=ServerRentalDataStale severity=warning collector=plans", "operators"},
		{"alertname=SomebodyElses severity=critical", "operators"},
	} {
		args := []string{"config", "routes", "test", "--config.file=" + example, "--verify.receivers=" + c.receiver}
		run(t, amtool, append(args, strings.Fields(c.labels)...)...)
	}
}

// tool finds a program. Without it there is nothing to test, except in CI.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed", name)
	}
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
