package docs_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"server_rental_exporter/test/internal/repo"
)

// database contains generated samples and evaluates queries as Prometheus does.
type database struct {
	t   *testing.T
	all []*series
}

type series struct {
	labels   labels.Labels
	samples  *chunkenc.XORChunk
	appender chunkenc.Appender
	last     float64
}

// series returns a new series of an exporter, from names and values of labels.
func (d *database) series(instance, name string, pairs ...string) *series {
	all := append([]string{model.MetricNameLabel, name, "job", "rental", "instance", instance}, pairs...)
	return d.add(labels.NewBuilder(labels.FromStrings(all...)).Labels()) // without empty labels
}

func (d *database) add(l labels.Labels) *series {
	d.t.Helper()
	s := &series{labels: l, samples: chunkenc.NewXORChunk(), last: stale}
	var err error
	if s.appender, err = s.samples.Appender(); err != nil {
		d.t.Fatal(err)
	}
	d.all = append(d.all, s)
	return s
}

// stale marks the end of a series.
var stale = math.Float64frombits(value.StaleNaN)

func (s *series) add(at time.Time, v float64) {
	s.appender.Append(0, at.UnixMilli(), v)
	s.last = v
}

// missing adds that a scrape at a time did not contain the series.
func (s *series) missing(at time.Time) {
	if !value.IsStaleNaN(s.last) {
		s.add(at, stale)
	}
}

func (s *series) Labels() labels.Labels { return s.labels }

func (s *series) Iterator(i chunkenc.Iterator) chunkenc.Iterator { return s.samples.Iterator(i) }

func (d *database) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		set := &seriesSet{SeriesSet: storage.EmptySeriesSet()}
		for _, s := range d.all {
			fails := func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }
			if !slices.ContainsFunc(matchers, fails) {
				set.rest = append(set.rest, s)
			}
		}
		return set
	}}, nil
}

type seriesSet struct {
	storage.SeriesSet // without errors and warnings
	rest              []*series
	at                *series
}

func (s *seriesSet) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.at, s.rest = s.rest[0], s.rest[1:]
	return true
}

func (s *seriesSet) At() storage.Series { return s.at }

// vector returns the result of a query in its order.
func (d *database) vector(query string, at time.Time) promql.Vector {
	d.t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
		Parser: parser.NewParser(parser.Options{}),
	})
	q, err := engine.NewInstantQuery(context.Background(), d, nil, query, at)
	if err != nil {
		d.t.Fatalf("%s: %v", query, err)
	}
	defer q.Close()
	v, err := q.Exec(context.Background()).Vector()
	if err != nil {
		d.t.Fatalf("%s: %v", query, err)
	}
	return slices.Clone(v)
}

// values returns the result of a query by the labels that do not name the target, rounded
// to a millionth, because sums of floats are not exact.
func (d *database) values(query string, at time.Time) map[string]float64 {
	d.t.Helper()
	all := map[string]float64{}
	for _, sample := range d.vector(query, at) {
		key := key(sample.Metric)
		if _, ok := all[key]; ok {
			d.t.Errorf("%s: several series %s", query, key)
		}
		all[key] = millionths(sample.F)
	}
	return all
}

// key formats the labels of a series that do not name the metric or the target.
func key(of labels.Labels) string {
	return labels.NewBuilder(of).Del(model.MetricNameLabel, "job", "instance").Labels().String()
}

func millionths(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// rule is a recording rule, or an alert without a name of a record.
type rule struct{ Record, Expr string }

// recordingRules returns those of a file in alerts.
func recordingRules(t *testing.T, file string) (all []rule) {
	t.Helper()
	var content struct{ Groups []struct{ Rules []rule } }
	repo.ReadYAML(t, repo.Path(t, "alerts/"+file), &content)
	for _, group := range content.Groups {
		for _, r := range group.Rules {
			if r.Record != "" {
				all = append(all, r)
			}
		}
	}
	return all
}

// record evaluates the recording rules of a file in alerts at a time.
func (d *database) record(file string, at time.Time) {
	d.t.Helper()
	for _, r := range recordingRules(d.t, file) {
		for _, sample := range d.vector(r.Expr, at) {
			recorded := labels.NewBuilder(sample.Metric).Set(model.MetricNameLabel, r.Record).Labels()
			d.add(recorded).add(at, sample.F)
		}
	}
}
