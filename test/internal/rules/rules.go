// Package rules reads the rules of the repository as Prometheus does.
package rules

import (
	"errors"
	"os"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// Parse returns the groups of a file of rules. Unknown fields are errors.
func Parse(t testing.TB, content []byte) []rulefmt.RuleGroup {
	t.Helper()
	file, errs := rulefmt.Parse(content, false, model.UTF8Validation, parser.NewParser(parser.Options{}))
	if len(errs) > 0 {
		t.Fatal(errors.Join(errs...))
	}
	return file.Groups
}

// Groups returns the groups of each file, by its path.
func Groups(t testing.TB) map[string][]rulefmt.RuleGroup {
	t.Helper()
	all := map[string][]rulefmt.RuleGroup{}
	for _, path := range repo.Glob(t, "alerts/*.rules.yml") {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[path] = Parse(t, content)
	}
	return all
}

// All returns the rules of all files.
func All(t testing.TB) (all []rulefmt.Rule) {
	t.Helper()
	for _, groups := range Groups(t) {
		for _, g := range groups {
			all = append(all, g.Rules...)
		}
	}
	return all
}

// Alerts returns all alerts by name. No two have one name: Alertmanager could hide one behind the
// other.
func Alerts(t testing.TB) map[string]rulefmt.Rule {
	t.Helper()
	alerts := map[string]rulefmt.Rule{}
	for _, r := range All(t) {
		if r.Alert == "" {
			continue
		}
		if _, twice := alerts[r.Alert]; twice {
			t.Errorf("%s: two alerts of this name", r.Alert)
		}
		alerts[r.Alert] = r
	}
	return alerts
}
