package docs_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// questions returns the queries of docs/metrics.md by the question that they answer; " (2)"
// follows a question that has a second query.
func questions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	query := regexp.MustCompile("(?s)```promql\n(.*?)```")
	for _, section := range strings.Split(repo.Read(t, "docs/metrics.md"), "\n**")[1:] {
		question, text, _ := strings.Cut(section, "**")
		for i, q := range query.FindAllStringSubmatch(text, -1) {
			name := question
			if i > 0 {
				name = fmt.Sprintf("%s (%d)", question, i+1)
			}
			all[name] = q[1]
		}
	}
	return all
}

// TestQuestions evaluates each query of docs/metrics.md on the data of testdata/questions.yml.
func TestQuestions(t *testing.T) {
	var tests []struct {
		Name     string
		Interval time.Duration
		Series   map[string]string
		Results  []struct {
			Question string
			At       time.Duration
			Want     []string
		}
	}
	repo.ReadYAML(t, repo.Path(t, "test/docs/testdata/questions.yml"), &tests)
	documented, tested := questions(t), map[string]string{}
	for _, c := range tests {
		t.Run(c.Name, func(t *testing.T) {
			var d data
			for name, values := range c.Series {
				d.load(t, c.Interval, name+" "+values)
			}
			for _, r := range c.Results {
				query := documented[r.Question]
				tested[r.Question] = query
				simtest.AssertEqual(t, r.Question, d.evaluate(t, query, time.UnixMilli(r.At.Milliseconds())), r.Want)
			}
		})
	}
	simtest.AssertEqual(t, "tested questions", tested, documented)
}

// data is what a Prometheus has stored.
type data []storage.Series

// load adds a series in the notation of promtool's unit tests, from 1970 on.
func (d *data) load(t *testing.T, interval time.Duration, description string) {
	t.Helper()
	name, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(description)
	if err != nil {
		t.Fatalf("%s: %v", description, err)
	}
	loaded := promql.Series{Metric: name}
	for i, v := range values {
		if !v.Omitted {
			loaded.Floats = append(loaded.Floats, promql.FPoint{T: int64(i) * interval.Milliseconds(), F: v.Value})
		}
	}
	*d = append(*d, promql.NewStorageSeries(loaded))
}

// Querier implements storage.Queryable.
func (d data) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := slices.DeleteFunc(slices.Clone(d), func(s storage.Series) bool {
			return slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Labels().Get(m.Name)) })
		})
		return &seriesSet{storage.EmptySeriesSet(), append(data{nil}, found...)}
	}}, nil
}

// seriesSet is at the first of its series.
type seriesSet struct {
	storage.SeriesSet // without errors and warnings
	series            data
}

func (s *seriesSet) Next() bool {
	s.series = s.series[1:]
	return len(s.series) > 0
}

func (s *seriesSet) At() storage.Series { return s.series[0] }

// evaluate returns the labels and the value of each series of a result, rounded to a
// millionth, in the order of the result if the query asks for one.
func (d data) evaluate(t *testing.T, query string, at time.Time) (result []string) {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	q, err := engine.NewInstantQuery(t.Context(), d, nil, query, at)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer q.Close()
	vector, err := q.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	for _, sample := range vector {
		names := labels.NewBuilder(sample.Metric).Del(model.MetricNameLabel).Labels()
		result = append(result, fmt.Sprint(names, " ", math.Round(sample.F*1e6)/1e6))
	}
	if !strings.HasPrefix(query, "sort") {
		slices.Sort(result)
	}
	return result
}
