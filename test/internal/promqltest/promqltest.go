// Package promqltest checks in tests that PromQL expressions name only metrics and labels that
// exist. That labels match, and which of them a result has, shows where expressions are evaluated.
package promqltest

import (
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/server-rental-exporter/server_rental_exporter/exporter"
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
	for _, d := range exporter.Definitions() {
		c.Add(d.Name, d.Labels...) // also if it is a histogram, for its native buckets
		if d.Type == "histogram" {
			c.Add(d.Name+"_count", d.Labels...)
			c.Add(d.Name+"_sum", d.Labels...)
			c.Add(d.Name+"_bucket", append([]string{"le"}, d.Labels...)...)
		}
	}
	return c
}

// Selector is a vector selector and where it stands in its expression.
type Selector struct {
	Metric   string
	Matchers []*labels.Matcher
	Call     string        // innermost function or aggregation around it
	Range    time.Duration // 0 for an instant selector
}

// Check parses an expression and returns its selectors. Metrics and labels that do not exist are
// errors. So is without, because its result depends on labels not named.
func (c Catalog) Check(expr string) ([]Selector, error) {
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return nil, err
	}
	var all []Selector
	known, named := sets.New[string](), sets.New[string]()
	parser.Inspect(e, func(n parser.Node, path []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			s := selector(n, path)
			exist := c.labels(n)
			if all = append(all, s); exist == nil {
				err = fmt.Errorf("%s: no such metric", n)
			}
			known = known.Union(exist)
			for _, m := range s.Matchers {
				if m.Name != model.MetricNameLabel && !exist.Has(m.Name) {
					err = fmt.Errorf("%s{%s}: no such label", s.Metric, m.Name)
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
	return all, err
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

func selector(v *parser.VectorSelector, path []parser.Node) Selector {
	s := Selector{Metric: v.Name, Matchers: v.LabelMatchers}
	for _, parent := range path { // the outermost first
		switch p := parent.(type) {
		case *parser.Call:
			s.Call = p.Func.Name
		case *parser.AggregateExpr:
			s.Call = p.Op.String()
		case *parser.MatrixSelector:
			s.Range = p.Range
		}
	}
	return s
}
