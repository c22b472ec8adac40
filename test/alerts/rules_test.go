package alerts_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// file is a file of rules of Prometheus, or one of unit tests for promtool.
type file struct {
	path   string
	Groups []struct {
		Name  string
		Rules []rule
	}
	Rules []string `yaml:"rule_files"`
	Tests []testCase
}

// rule is a recording rule or an alert.
type rule struct {
	Record, Alert string
	Expr          string
	For           string
	KeepFiringFor string `yaml:"keep_firing_for"`
	Labels        map[string]string
	Annotations   map[string]string
}

func (r rule) String() string { return cmp.Or(r.Alert, r.Record) }

// rules returns the rules of a file in the order of their evaluation.
func (f file) rules() []rule {
	var all []rule
	for _, g := range f.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func ruleFiles(t *testing.T) []file { return files(t, "alerts/*.rules.yml") }

func testFiles(t *testing.T) []file { return files(t, "alerts/tests/*.test.yml") }

func files(t *testing.T, pattern string) (all []file) {
	t.Helper()
	for _, path := range repo.Glob(t, pattern) {
		f := file{path: path}
		repo.ReadYAML(t, path, &f)
		all = append(all, f)
	}
	return all
}

// alerts returns every alert of every file by name. No two have one name: Alertmanager could hide
// one behind the other.
func alerts(t *testing.T) map[string]rule {
	t.Helper()
	all := map[string]rule{}
	for _, f := range ruleFiles(t) {
		for _, r := range f.rules() {
			if all[r.Alert].Alert != "" {
				t.Errorf("%s: two alerts of this name", r.Alert)
			}
			if r.Alert != "" {
				all[r.Alert] = r
			}
		}
	}
	return all
}

type testCase struct {
	Name   string
	Input  []struct{ Series string } `yaml:"input_series"`
	Alerts []alertCase               `yaml:"alert_rule_test"`
	Exprs  []any                     `yaml:"promql_expr_test"`
}

// alertCase says which alerts of a name fire at a time.
type alertCase struct {
	Alertname string
	Time      time.Duration    `yaml:"eval_time"`
	Expected  *[]expectedAlert `yaml:"exp_alerts"` // nil if it is not given
}

type expectedAlert struct {
	Labels map[string]string `yaml:"exp_labels"`
}
