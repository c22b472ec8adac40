package alerts_test

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// TestMatching: where "and", "or" and "unless" combine an exported metric with a result,
// labels to match on are named. Otherwise nothing matches as soon as Prometheus adds labels to
// exported metrics that results lack, as with the feature type-and-unit-labels.
func TestMatching(t *testing.T) {
	for _, f := range ruleFiles(t) {
		for _, r := range f.rules() {
			if got := unmatched(t, r.Expr); got != "" {
				t.Errorf("%s: no labels to match on: %s", r, got)
			}
		}
	}
	if unmatched(t, "a - b or a") == "" || unmatched(t, "a - b or on (x) a") != "" || unmatched(t, "a or b") != "" {
		t.Error("the check itself is wrong")
	}
}

// unmatched returns a set operation of an expression that may not match; empty if there is none.
func unmatched(t *testing.T, expr string) (found string) {
	t.Helper()
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		b, ok := n.(*parser.BinaryExpr)
		if ok && b.Op.IsSetOperator() && !b.VectorMatching.On && isExported(b.LHS) != isExported(b.RHS) {
			found = b.String()
		}
		return nil
	})
	return found
}

// isExported returns whether an expression has the labels of a metric that no rule recorded.
func isExported(e parser.Expr) bool {
	switch e := e.(type) {
	case *parser.VectorSelector:
		return !strings.Contains(e.Name, ":")
	case *parser.MatrixSelector:
		return isExported(e.VectorSelector)
	case *parser.ParenExpr:
		return isExported(e.Expr)
	case *parser.Call:
		return e.Func.Name == "last_over_time" && isExported(e.Args[0])
	case *parser.BinaryExpr:
		return (e.Op.IsSetOperator() || e.Op.IsComparisonOperator() && !e.ReturnBool) && isExported(e.LHS)
	}
	return false
}
