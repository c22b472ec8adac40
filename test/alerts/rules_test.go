package alerts_test

import (
	"os"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"server_rental_exporter/test/internal/repo"
)

// ruleFile is a rule file of Prometheus.
type ruleFile struct {
	name   string
	Groups []struct {
		Name     string
		Interval string
		Rules    []rule
	}
}

// rule is a recording rule or an alert.
type rule struct {
	Record, Alert string
	Expr          string
	For           string
	Labels        map[string]string
	Annotations   map[string]string
}

func (r rule) String() string {
	if r.Alert != "" {
		return r.Alert + " (" + r.Labels["severity"] + ")"
	}
	return r.Record
}

// rules returns the rules of a file in the order of their evaluation.
func (f ruleFile) rules() []rule {
	var all []rule
	for _, g := range f.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func ruleFiles(t *testing.T) []ruleFile {
	t.Helper()
	return read(t, "alerts/*.rules.yml", func(f *ruleFile, name string) { f.name = name })
}

// alerts returns every alert of every file.
func alerts(t *testing.T) []rule {
	t.Helper()
	var all []rule
	for _, f := range ruleFiles(t) {
		for _, r := range f.rules() {
			if r.Alert != "" {
				all = append(all, r)
			}
		}
	}
	return all
}

// testFile is a file of unit tests for promtool.
type testFile struct {
	name  string
	Rules []string   `yaml:"rule_files"`
	Every string     `yaml:"evaluation_interval"`
	Order []string   `yaml:"group_eval_order"`
	Tests []testCase `yaml:"tests"`
}

type testCase struct {
	Name     string
	Interval string
	Input    []inputSeries `yaml:"input_series"`
	Alerts   []alertCase   `yaml:"alert_rule_test"`
	Exprs    []any         `yaml:"promql_expr_test"`
}

type inputSeries struct{ Series, Values string }

// alertCase says which alerts of a name fire at a time.
type alertCase struct {
	Alertname string
	Time      string           `yaml:"eval_time"`
	Expected  *[]expectedAlert `yaml:"exp_alerts"` // nil where it is not given
}

type expectedAlert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func (c alertCase) time(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(c.Time)
	if err != nil {
		t.Fatalf("%s: eval_time: %v", c.Alertname, err)
	}
	return d
}

func testFiles(t *testing.T) []testFile {
	t.Helper()
	return read(t, "alerts/tests/*.test.yml", func(f *testFile, name string) { f.name = name })
}

// read decodes every file of a pattern; unknown keys are errors.
func read[T any](t *testing.T, pattern string, setName func(*T, string)) []T {
	t.Helper()
	var all []T
	for _, name := range repo.Glob(t, pattern) {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		d := yaml.NewDecoder(f)
		d.KnownFields(true)
		var v T
		err = d.Decode(&v)
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		setName(&v, name)
		all = append(all, v)
	}
	return all
}
