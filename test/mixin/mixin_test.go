// Package mixin_test builds the monitoring mixin: it is the committed rules and dashboards.
package mixin_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-jsonnet"
	"github.com/google/go-jsonnet/formatter"
	"github.com/google/go-jsonnet/linter"

	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// evaluate returns the JSON that a snippet makes which imports the mixin.
func evaluate(t *testing.T, snippet string) string {
	t.Helper()
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{repo.Path(t, "mixin")}})
	text, err := vm.EvaluateAnonymousSnippet("test", snippet)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestMixin(t *testing.T) {
	alerts, rules, dashboards := []any{}, []any{}, map[string]any{}
	for _, path := range repo.Glob(t, "alerts/*.rules.yml") {
		var file struct{ Groups []map[string]any }
		repo.ReadYAML(t, path, &file)
		for _, g := range file.Groups {
			if first := g["rules"].([]any)[0].(map[string]any); first["alert"] != nil {
				alerts = append(alerts, g)
			} else {
				rules = append(rules, g)
			}
		}
	}
	for _, path := range repo.Glob(t, "dashboards/*.json") {
		name := filepath.Base(path)
		dashboards[name] = simtest.Decode(t, []byte(repo.Read(t, "dashboards/"+name)))
	}
	got := evaluate(t, "local m = import 'mixin.libsonnet'; { alerts: m.prometheusAlerts, rules: m.prometheusRules, dashboards: m.grafanaDashboards }")
	simtest.AssertEqual(t, "mixin", simtest.Decode(t, []byte(got)), map[string]any{
		"alerts": map[string]any{"groups": alerts}, "rules": map[string]any{"groups": rules}, "dashboards": dashboards,
	})
}

// TestOthers adds the mixin to another one, and another one to it.
func TestOthers(t *testing.T) {
	const other = "{ prometheusAlerts+:: { groups+: [{ name: 'other' }] }, prometheusRules+:: { groups+: [{ name: 'other' }] } }"
	for _, sum := range []string{"ours + other", "other + ours"} {
		got := evaluate(t, "local ours = import 'mixin.libsonnet'; local other = "+other+"; local all = "+sum+`;
			{ [kind]: std.sort([g.name for g in all[kind].groups]) for kind in ['prometheusAlerts', 'prometheusRules'] }`)
		simtest.AssertEqual(t, sum, simtest.Decode(t, []byte(got)), map[string]any{
			"prometheusAlerts": []any{"other", "server_rental_billing", "server_rental_exporter", "server_rental_status", "server_rental_stock"},
			"prometheusRules":  []any{"other", "server_rental_stock_history"},
		})
	}
}

// TestOverride evaluates the example of README.md.
func TestOverride(t *testing.T) {
	block := regexp.MustCompile("(?s)```jsonnet\n(.+?)```").FindStringSubmatch(repo.Read(t, "mixin/README.md"))
	text := evaluate(t, strings.ReplaceAll(block[1], "github.com/server-rental-exporter/server_rental_exporter/mixin/", ""))
	if !strings.Contains(text, `"for": "2h"`) || strings.Contains(text, `"alert": "ServerRentalPlanSoldOut"`) {
		t.Error("the rules are not changed")
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
