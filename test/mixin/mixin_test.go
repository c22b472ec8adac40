// Package mixin_test builds the monitoring mixin: it is the committed rules and dashboards.
package mixin_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-jsonnet"
	"github.com/google/go-jsonnet/formatter"
	"github.com/google/go-jsonnet/linter"

	"server_rental_exporter/internal/simulator/simtest"
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

// build builds the mixin.
func build(t *testing.T) (m mixin) {
	t.Helper()
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{repo.Path(t, "mixin")}})
	text, err := vm.EvaluateAnonymousSnippet("test", "local m = import 'mixin.libsonnet';"+
		"{ alerts: m.prometheusAlerts, rules: m.prometheusRules, dashboards: m.grafanaDashboards }")
	if err != nil {
		t.Fatal(err)
	}
	decode(t, text, &m)
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
			if g.Rules[0].Alert != "" {
				m.Alerts.Groups = append(m.Alerts.Groups, g)
			} else {
				m.Rules.Groups = append(m.Rules.Groups, g)
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

func TestMixin(t *testing.T) { simtest.AssertEqual(t, "mixin", build(t), committed(t)) }

// TestOverride evaluates the example of README.md.
func TestOverride(t *testing.T) {
	block := regexp.MustCompile("(?s)```jsonnet\n(.+?)```").FindStringSubmatch(repo.Read(t, "mixin/README.md"))
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{repo.Path(t, "mixin")}})
	text, err := vm.EvaluateAnonymousSnippet("README.md", strings.ReplaceAll(block[1], "github.com/server-rental-exporter/server_rental_exporter/mixin/", ""))
	if err != nil {
		t.Fatal(err)
	}
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
