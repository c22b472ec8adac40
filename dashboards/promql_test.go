package dashboards_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

// query is what the tests have to know of a PromQL expression: what it selects,
// within which calls, over which time, and which labels it names. The parser of
// Prometheus is no dependency of this module; that every expression parses is
// asked of a real Prometheus by the end-to-end test.
type query struct {
	selectors []selector
	grouping  []string        // labels in by, without, on, ignoring and group_*
	ranges    []time.Duration // of selectors and subqueries
}

type selector struct {
	metric   string
	matchers []matcher
	within   []string // the calls around it, the outermost first
	ranged   string   // the range as written; empty where there is none
}

type matcher struct{ label, op, value string }

func (m matcher) String() string { return fmt.Sprintf("%s%s%q", m.label, m.op, m.value) }

var (
	token = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[A-Za-z_:][A-Za-z0-9_:]*|\$[A-Za-z_]+|[0-9][0-9a-z.]*|=~|!~|!=|==|>=|<=|\S`)
	word  = regexp.MustCompile(`^[A-Za-z_:]`)
)

func parse(expr string) (query, error) {
	p := &parser{tokens: token.FindAllString(expr, -1)}
	for p.at < len(p.tokens) {
		if err := p.next(); err != nil {
			return query{}, fmt.Errorf("%w near %q", err, strings.Join(p.tokens[max(0, p.at-5):p.at], " "))
		}
	}
	if len(p.calls) != 0 {
		return query{}, fmt.Errorf("%d brackets are not closed", len(p.calls))
	}
	return p.query, nil
}

type parser struct {
	tokens []string
	at     int
	calls  []string // one for each open bracket; empty where it is no call's
	query
}

func (p *parser) peek() string {
	if p.at < len(p.tokens) {
		return p.tokens[p.at]
	}
	return ""
}

func (p *parser) take() string {
	t := p.peek()
	p.at++
	return t
}

func (p *parser) next() error {
	t := p.take()
	switch {
	case t == "(":
		p.calls = append(p.calls, "")
	case t == ")":
		if len(p.calls) == 0 {
			return fmt.Errorf("a bracket too many")
		}
		p.calls = p.calls[:len(p.calls)-1]
	case t == "{":
		return p.selector("")
	case t == "[":
		return p.rangeOf(nil)
	case slices.Contains([]string{"by", "without", "on", "ignoring", "group_left", "group_right"}, t):
		return p.labels()
	case slices.Contains([]string{"and", "or", "unless", "bool", "offset"}, t) || !word.MatchString(t):
	case p.peek() == "(" || p.peek() == "by" || p.peek() == "without":
		return p.call(t)
	case p.peek() == "{":
		p.at++
		return p.selector(t)
	default:
		return fmt.Errorf("%s has no matchers", t)
	}
	return nil
}

// call opens the bracket of a function or of an aggregation, whose labels come first.
func (p *parser) call(name string) error {
	if t := p.peek(); t == "by" || t == "without" {
		p.at++
		if err := p.labels(); err != nil {
			return err
		}
	}
	if p.take() != "(" {
		return fmt.Errorf("%s is no call", name)
	}
	p.calls = append(p.calls, name)
	return nil
}

func (p *parser) labels() error {
	if p.take() != "(" {
		return fmt.Errorf("no list of labels")
	}
	for {
		switch t := p.take(); t {
		case ")":
			return nil
		case ",":
		case "":
			return fmt.Errorf("a list of labels without end")
		default:
			p.grouping = append(p.grouping, t)
		}
	}
}

func (p *parser) selector(metric string) error {
	s := selector{metric: metric, within: slices.Clone(p.calls)}
	for p.peek() != "}" {
		m := matcher{label: p.take(), op: p.take(), value: strings.Trim(p.take(), `"`)}
		if !slices.Contains([]string{"=", "!=", "=~", "!~"}, m.op) {
			return fmt.Errorf("no matcher")
		}
		s.matchers = append(s.matchers, m)
		if p.peek() == "," {
			p.at++
		}
	}
	p.at++
	if p.peek() == "[" {
		p.at++
		if err := p.rangeOf(&s); err != nil {
			return err
		}
	}
	p.selectors = append(p.selectors, s)
	return nil
}

// rangeOf reads what stands in square brackets: the range of s, or a subquery's where s is nil.
func (p *parser) rangeOf(s *selector) error {
	written := p.take()
	if s != nil {
		s.ranged = written
	}
	if !strings.HasPrefix(written, "$") {
		d, err := model.ParseDuration(written)
		if err != nil {
			return err
		}
		p.ranges = append(p.ranges, time.Duration(d))
	}
	for p.peek() != "]" {
		if p.take() == "" {
			return fmt.Errorf("a range without end")
		}
	}
	p.at++
	return nil
}

// names returns the metrics that a selector may mean: one, but for prices, whose
// name hangs on the currency that is chosen.
func (s selector) names() []string {
	if s.metric != "" {
		return []string{s.metric}
	}
	for _, m := range s.matchers {
		switch {
		case m.label == "__name__" && m.op == "=":
			return []string{m.value}
		case m.label == "__name__" && strings.HasPrefix(m.value, "server_rental_"):
			return []string{strings.ReplaceAll(m.value, "${currency}", "usd"), strings.ReplaceAll(m.value, "${currency}", "eur")}
		}
	}
	return nil
}

func TestParse(t *testing.T) {
	got, err := parse(`max by (plan) (rate(a_total{job=~"$job", plan!="x,}"}[$__rate_interval])) * on (plan) group_left (name) topk by (plan) (1, {__name__="b"}) > avg_over_time(max(c{})[90d:5m])`)
	if err != nil {
		t.Fatal(err)
	}
	want := query{
		selectors: []selector{
			{metric: "a_total", matchers: []matcher{{"job", "=~", "$job"}, {"plan", "!=", "x,}"}}, within: []string{"max", "rate"}, ranged: "$__rate_interval"},
			{matchers: []matcher{{"__name__", "=", "b"}}, within: []string{"topk"}},
			{metric: "c", within: []string{"avg_over_time", "max"}},
		},
		grouping: []string{"plan", "plan", "name", "plan"},
		ranges:   []time.Duration{90 * 24 * time.Hour},
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, bad := range []string{`up`, `sum(up{})) `, `sum(up{}`, `up{job="x"}[5x]`, `sum by plan (up{})`, `up{job}`} {
		if q, err := parse(bad); err == nil {
			t.Errorf("%s: got %+v, want an error", bad, q)
		}
	}
}
