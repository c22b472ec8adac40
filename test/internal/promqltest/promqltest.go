// Package promqltest checks PromQL expressions in tests: that they parse, that every
// metric and label they name exists, and which labels their result has.
package promqltest

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/apimachinery/pkg/util/sets"

	"server_rental_exporter/exporter"
	"server_rental_exporter/internal/metric"
)

// Labels is a set of label names.
type Labels = sets.Set[string]

// Catalog maps each metric to its labels as Prometheus stores them.
type Catalog map[string]Labels

// Add adds a metric as Prometheus scrapes it: with the labels of its target.
func (c Catalog) Add(name string, labels ...string) {
	c[name] = sets.New(labels...).Insert("job", "instance")
}

// Exported returns the exporter's own metrics.
func Exported() Catalog {
	c := Catalog{}
	for _, d := range exporter.Definitions() {
		c.Add(d.Name, d.Labels...) // of a histogram with native buckets
		if d.Type == metric.HistogramType {
			c.Add(d.Name+"_count", d.Labels...)
			c.Add(d.Name+"_sum", d.Labels...)
			c.Add(d.Name+"_bucket", append([]string{"le"}, d.Labels...)...)
		}
	}
	return c
}

// Parse parses an expression.
func Parse(expr string) (parser.Expr, error) {
	return parser.NewParser(parser.Options{}).ParseExpr(expr)
}

// Selector is a vector selector and where it stands in its expression.
type Selector struct {
	Metric   string // empty where only a pattern is given
	Matchers []*labels.Matcher
	Call     string        // innermost function or aggregation around it
	Range    time.Duration // 0 for an instant selector
}

// HasMatcher reports whether the selector has exactly this matcher.
func (s Selector) HasMatcher(t labels.MatchType, name, value string) bool {
	return slices.ContainsFunc(s.Matchers, func(m *labels.Matcher) bool {
		return m.Type == t && m.Name == name && m.Value == value
	})
}

// Selectors returns the selectors of an expression.
func Selectors(expr parser.Expr) []Selector {
	var all []Selector
	parser.Inspect(expr, func(n parser.Node, path []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		s := Selector{Metric: metricName(v), Matchers: v.LabelMatchers}
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
		all = append(all, s)
		return nil
	})
	return all
}

// Check parses an expression and returns the labels that its result can have. Unknown
// metrics and labels are errors. So are without and ignoring, because they depend on
// labels not named.
func (c Catalog) Check(expr string) (Labels, error) {
	e, err := Parse(expr)
	if err != nil {
		return nil, err
	}
	return c.Labels(e)
}

// Labels is Check for a parsed expression.
func (c Catalog) Labels(expr parser.Expr) (Labels, error) {
	if selector, ok := expr.(*parser.VectorSelector); ok {
		return c.selector(selector)
	}
	all, operands := Labels{}, []Labels{}
	for child := range parser.ChildrenIter(expr) {
		have, err := c.Labels(child.(parser.Expr))
		if err != nil {
			return nil, err
		}
		all, operands = all.Union(have), append(operands, have)
	}
	switch e := expr.(type) {
	case *parser.Call:
		switch e.Func.Name {
		case "absent", "absent_over_time", "scalar":
			return Labels{}, nil
		case "label_replace", "label_join":
			return all.Insert(e.Args[1].(*parser.StringLiteral).Val), nil
		case "histogram_quantile":
			return all.Delete("le"), nil
		}
	case *parser.AggregateExpr:
		return aggregation(e, all)
	case *parser.BinaryExpr:
		return binary(e, operands[0], operands[1])
	}
	return all, nil
}

func (c Catalog) selector(v *parser.VectorSelector) (Labels, error) {
	name := metricName(v)
	have, ok := c[name]
	if !ok {
		return nil, fmt.Errorf("%s: no such metric", name)
	}
	for _, m := range v.LabelMatchers {
		if m.Name != model.MetricNameLabel && !have.Has(m.Name) {
			return nil, fmt.Errorf("%s{%s}: no such label", name, m.Name)
		}
	}
	return have, nil
}

// metricName returns the name that a selector requires, also where it is written as
// {__name__="name"} or {__name__=~"name"}.
func metricName(v *parser.VectorSelector) string {
	for _, m := range v.LabelMatchers {
		if m.Name == model.MetricNameLabel && (m.Type == labels.MatchEqual || m.Type == labels.MatchRegexp) && regexp.QuoteMeta(m.Value) == m.Value {
			return m.Value
		}
	}
	return ""
}

// aggregation returns the labels of an aggregation, from those of its operands.
func aggregation(e *parser.AggregateExpr, have Labels) (Labels, error) {
	by := sets.New(e.Grouping...)
	if e.Without || !have.IsSuperset(by) {
		return nil, fmt.Errorf("%s: by must name labels that the aggregated expression has, of %q", e, sets.List(have))
	}
	switch e.Op {
	case parser.TOPK, parser.BOTTOMK:
		return have, nil
	case parser.COUNT_VALUES:
		by.Insert(e.Param.(*parser.StringLiteral).Val)
	}
	return by, nil
}

// binary returns the labels of an operation, from those of its sides.
func binary(e *parser.BinaryExpr, left, right Labels) (Labels, error) {
	m := e.VectorMatching
	if m == nil || e.Op == parser.LOR { // one side is a scalar, or both are kept
		return left.Union(right), nil
	}
	on := sets.New(m.MatchingLabels...)
	if !m.On {
		on = left.Union(right)
	}
	if !left.Intersection(right).IsSuperset(on) || !m.On && len(m.MatchingLabels) > 0 {
		return nil, fmt.Errorf("%s: the sides have the labels %q and %q: name those to match with on", e.Op, sets.List(left), sets.List(right))
	}
	switch m.Card {
	case parser.CardManyToMany:
		return left, nil
	case parser.CardOneToOne:
		return on, nil
	case parser.CardOneToMany:
		left, right = right, left
	case parser.CardManyToOne:
	}
	if !right.HasAll(m.Include...) {
		return nil, fmt.Errorf("%s %q: the other side has no such label", m.Card, m.Include)
	}
	return left.Union(sets.New(m.Include...)), nil
}
