// Package mixin_test builds the monitoring mixin: it is the committed rules and dashboards.
package mixin_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-jsonnet"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
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

// TestMixin adds the mixin to another one, and another one to it.
func TestMixin(t *testing.T) {
	alerts, rules, dashboards := []any{"before"}, []any{"before"}, map[string]any{}
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
	got := evaluate(t, `
		local other(name) = { prometheusAlerts+:: { groups+: [name] }, prometheusRules+:: { groups+: [name] } };
		local m = other('before') + (import 'mixin.libsonnet') + other('after');
		{ alerts: m.prometheusAlerts, rules: m.prometheusRules, dashboards: m.grafanaDashboards }`)
	simtest.AssertEqual(t, "mixin", simtest.Decode(t, []byte(got)), map[string]any{
		"alerts": map[string]any{"groups": append(alerts, "after")}, "rules": map[string]any{"groups": append(rules, "after")}, "dashboards": dashboards,
	})
}

// TestOverride evaluates the example of README.md.
func TestOverride(t *testing.T) {
	block := regexp.MustCompile("(?s)```jsonnet\n(.+?)```").FindStringSubmatch(repo.Read(t, "mixin/README.md"))
	text := evaluate(t, strings.ReplaceAll(block[1], "github.com/server-rental-exporter/server_rental_exporter/mixin/", ""))
	if !strings.Contains(text, `"for": "2h"`) || strings.Contains(text, `"alert": "ServerRentalPlanSoldOut"`) {
		t.Error("the rules are not changed")
	}
}
