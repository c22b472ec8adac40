package promqltest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

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

// Ranges returns the ranges of all range selectors and subqueries.
func Ranges(expr parser.Expr) []time.Duration {
	var all []time.Duration
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.MatrixSelector:
			all = append(all, n.Range)
		case *parser.SubqueryExpr:
			all = append(all, n.Range)
		}
		return nil
	})
	return all
}

// Check parses an expression and returns the labels that its result can have. Unknown
// metrics and labels are errors. So are without and ignoring, and an operation without
// on between sides with different labels, because they depend on labels not named.
func (c Catalog) Check(expr string) (Labels, error) {
	e, err := Parse(expr)
	if err != nil {
		return nil, err
	}
	return c.Labels(e)
}

// Labels is Check for a parsed expression.
func (c Catalog) Labels(expr parser.Expr) (Labels, error) {
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return c.selector(e)
	case *parser.MatrixSelector:
		return c.Labels(e.VectorSelector)
	case *parser.SubqueryExpr:
		return c.Labels(e.Expr)
	case *parser.ParenExpr:
		return c.Labels(e.Expr)
	case *parser.UnaryExpr:
		return c.Labels(e.Expr)
	case *parser.Call:
		return c.call(e)
	case *parser.AggregateExpr:
		return c.aggregation(e)
	case *parser.BinaryExpr:
		return c.binary(e)
	case *parser.NumberLiteral, *parser.StringLiteral:
		return Labels{}, nil
	}
	return nil, fmt.Errorf("%s: unsupported expression %T", expr, expr)
}

func (c Catalog) selector(v *parser.VectorSelector) (Labels, error) {
	name := metricName(v)
	have, ok := c[name]
	if !ok {
		return nil, fmt.Errorf("%s: no such metric", name)
	}
	for _, m := range v.LabelMatchers {
		if m.Name != model.MetricNameLabel && !have[m.Name] {
			return nil, fmt.Errorf("%s{%s}: no such label", name, m.Name)
		}
	}
	return have, nil
}

// metricName returns the name that a selector requires, also where it is written as
// {__name__="name"} or {__name__=~"name"}.
func metricName(v *parser.VectorSelector) string {
	name := ""
	for _, m := range v.LabelMatchers {
		switch {
		case m.Name != model.MetricNameLabel:
		case m.Type == labels.MatchEqual:
			return m.Value
		case m.Type == labels.MatchRegexp && regexp.QuoteMeta(m.Value) == m.Value:
			name = m.Value
		}
	}
	return name
}

func (c Catalog) call(e *parser.Call) (Labels, error) {
	all := Labels{}
	for _, arg := range e.Args {
		have, err := c.Labels(arg)
		if err != nil {
			return nil, err
		}
		all = union(all, have)
	}
	switch e.Func.Name {
	case "resets":
		return nil, fmt.Errorf("resets: always 0 in Thanos")
	case "absent", "absent_over_time", "scalar":
		return Labels{}, nil
	case "histogram_quantile":
		delete(all, "le")
	case "label_replace", "label_join":
		if dst, ok := e.Args[1].(*parser.StringLiteral); ok {
			all = union(all, LabelSet(dst.Val))
		}
	}
	return all, nil
}

func (c Catalog) aggregation(e *parser.AggregateExpr) (Labels, error) {
	if e.Without {
		return nil, fmt.Errorf("without: name the labels with by")
	}
	have, err := c.Labels(e.Expr)
	if err != nil {
		return nil, err
	}
	if e.Param != nil {
		if _, err := c.Labels(e.Param); err != nil {
			return nil, err
		}
	}
	for _, l := range e.Grouping {
		if !have[l] {
			return nil, fmt.Errorf("by (%s): the aggregated expression has no such label", l)
		}
	}
	switch e.Op {
	case parser.TOPK, parser.BOTTOMK:
		return have, nil
	}
	return LabelSet(e.Grouping...), nil
}

func (c Catalog) binary(e *parser.BinaryExpr) (Labels, error) {
	left, err := c.Labels(e.LHS)
	if err != nil {
		return nil, err
	}
	right, err := c.Labels(e.RHS)
	if err != nil {
		return nil, err
	}
	m := e.VectorMatching
	if m == nil { // one side is a scalar
		return union(left, right), nil
	}
	for _, l := range m.MatchingLabels {
		if !left[l] || !right[l] {
			return nil, fmt.Errorf("on (%s): not both sides have this label", l)
		}
	}
	switch {
	case e.Op == parser.LOR:
		return union(left, right), nil
	case !m.On && (len(m.MatchingLabels) > 0 || !maps.Equal(left, right)):
		return nil, fmt.Errorf("%s: the sides have the labels %q and %q: name those to match with on", e.Op, left.Sorted(), right.Sorted())
	case !m.On || m.Card == parser.CardManyToMany:
		return left, nil
	case m.Card == parser.CardOneToOne:
		return LabelSet(m.MatchingLabels...), nil
	case m.Card == parser.CardOneToMany:
		left, right = right, left
	}
	for _, l := range m.Include {
		if !right[l] {
			return nil, fmt.Errorf("%s (%s): the other side has no such label", m.Card, l)
		}
	}
	return union(left, LabelSet(m.Include...)), nil
}
