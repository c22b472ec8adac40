// Package promqltest checks in tests that PromQL expressions name only metrics and labels that
// exist. That labels match, and which of them a result has, shows where expressions are evaluated.
package promqltest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/server-rental-exporter/server_rental_exporter/runner"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/rules"
)

// Catalog maps each metric to its labels as Prometheus stores them.
type Catalog map[string]sets.Set[string]

// Add adds a metric as Prometheus scrapes it: with the labels of its target.
func (c Catalog) Add(name string, labels ...string) {
	c[name] = sets.New(labels...).Insert("job", "instance")
}

// Exported returns the exporter's own metrics.
func Exported() Catalog {
	c := Catalog{}
	for _, d := range runner.Definitions() {
		c.Add(d.Name, d.Labels...) // also if it is a histogram, for its native buckets
		if d.Type == "histogram" {
			c.Add(d.Name+"_count", d.Labels...)
			c.Add(d.Name+"_sum", d.Labels...)
			c.Add(d.Name+"_bucket", append([]string{"le"}, d.Labels...)...)
		}
	}
	return c
}

// AddRecorded adds what rules record. Names begin with the labels, which are joined by underscores.
func (c Catalog) AddRecorded(t testing.TB) {
	for _, r := range rules.All(t) {
		if level, _, isRecord := strings.Cut(r.Record, ":"); isRecord {
			c[r.Record] = sets.New(strings.Split(level, "_")...)
		}
	}
}

// Check parses an expression. Metrics and labels that do not exist are errors. So is without, because its
// result depends on labels not named.
func (c Catalog) Check(expr string) error {
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return err
	}
	known, named := sets.New[string](), sets.New[string]()
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			exist := c.labels(n)
			if exist == nil {
				err = fmt.Errorf("%s: no such metric", n)
			}
			known = known.Union(exist)
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel && !exist.Has(m.Name) {
					err = fmt.Errorf("%s{%s}: no such label", n.Name, m.Name)
				}
			}
		case *parser.AggregateExpr:
			named.Insert(n.Grouping...)
			if n.Without {
				err = fmt.Errorf("%s: names no labels", n)
			}
		case *parser.BinaryExpr:
			if m := n.VectorMatching; m != nil {
				named.Insert(m.MatchingLabels...).Insert(m.Include...)
			}
		}
		return nil
	})
	if unknown := named.Difference(known); err == nil && unknown.Len() > 0 {
		err = fmt.Errorf("%s: no such labels: %q", expr, sets.List(unknown))
	}
	return err
}

// labels returns the labels of the metrics that a selector matches by name, or nil if there is none.
func (c Catalog) labels(v *parser.VectorSelector) (all sets.Set[string]) {
	for _, m := range v.LabelMatchers {
		for name, labels := range c {
			if m.Name == model.MetricNameLabel && m.Matches(name) {
				all = labels.Union(all)
			}
		}
	}
	return all
}
