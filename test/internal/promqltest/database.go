package promqltest

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Database holds series by the name of their metric.
type Database map[string][]storage.Series

// Querier returns what evaluates selectors. Like the index of Prometheus, it compares each value of a
// label once.
func (d Database) Querier(int64, int64) (storage.Querier, error) {
	type comparison struct {
		*labels.Matcher
		value string
	}
	find := func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		name := slices.IndexFunc(matchers, func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel })
		results := map[comparison]bool{}
		isOther := func(s storage.Series) bool {
			return slices.ContainsFunc(matchers, func(m *labels.Matcher) bool {
				c := comparison{m, s.Labels().Get(m.Name)}
				if _, known := results[c]; !known {
					results[c] = m.Matches(c.value)
				}
				return !results[c]
			})
		}
		all := slices.DeleteFunc(slices.Clone(d[matchers[name].Value]), isOther)
		return NewSeriesSet(all)
	}
	return &storage.MockQuerier{SelectMockFunction: find}, nil
}

// NewSeriesSet returns an iterator of series.
func NewSeriesSet(all []storage.Series) storage.SeriesSet {
	return &seriesSet{storage.EmptySeriesSet(), all, -1}
}

type seriesSet struct {
	storage.SeriesSet
	all []storage.Series
	at  int
}

func (s *seriesSet) Next() bool {
	s.at++
	return s.at < len(s.all)
}

func (s *seriesSet) At() storage.Series { return s.all[s.at] }

// Prometheus stores and evaluates as Prometheus does.
type Prometheus struct {
	data   Database
	series map[uint64]*promql.Series            // by hash of the labels
	last   map[string]map[uint64]*promql.Series // series of the last samples, by source
	engine *promql.Engine
}

// NewPrometheus returns an empty Prometheus.
func NewPrometheus() *Prometheus {
	return &Prometheus{Database{}, map[uint64]*promql.Series{}, map[string]map[uint64]*promql.Series{}, promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})}
}

// Store adds all samples of a source at a time: a target, or a rule. The series that have none any more end.
func (p *Prometheus) Store(source string, at time.Time, all promql.Vector) {
	ended := p.last[source]
	p.last[source] = map[uint64]*promql.Series{}
	for _, sample := range all {
		id := sample.Metric.Hash()
		s := p.series[id]
		if s == nil {
			s = &promql.Series{Metric: sample.Metric}
			name := s.Metric.Get(model.MetricNameLabel)
			p.series[id], p.data[name] = s, append(p.data[name], &storage.SeriesEntry{Lset: s.Metric, SampleIteratorFn: func(it chunkenc.Iterator) chunkenc.Iterator {
				return promql.NewStorageSeries(*s).Iterator(it)
			}})
		}
		s.Floats = append(s.Floats, promql.FPoint{T: at.UnixMilli(), F: sample.F})
		p.last[source][id] = s
		delete(ended, id)
	}
	for _, s := range ended {
		s.Floats = append(s.Floats, promql.FPoint{T: at.UnixMilli(), F: math.Float64frombits(value.StaleNaN)})
	}
}

// Query returns the result of an expression, under a name unless that is empty.
func (p *Prometheus) Query(t testing.TB, expr string, at time.Time, name string) promql.Vector {
	t.Helper()
	q, err := p.engine.NewInstantQuery(t.Context(), p.data, nil, expr, at)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	defer q.Close()
	all, err := q.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	all = slices.Clone(all)
	for i := range all {
		all[i].Metric = labels.NewBuilder(all[i].Metric).Set(model.MetricNameLabel, name).Labels()
	}
	return all
}
