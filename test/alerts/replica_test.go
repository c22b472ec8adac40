package alerts_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/server-rental-exporter/server_rental_exporter/test/internal/grafana"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/promqltest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/rules"
)

// TestReplicaLabel evaluates all rules, and the queries of dashboards and documents, in a store that has
// each series twice, with another value of one more label: that of two Prometheus servers. None fails, and
// no alert fires more often than in a store without that label.
func TestReplicaLabel(t *testing.T) {
	exprs, isAlert := map[string]string{}, map[string]bool{}
	for _, r := range rules.All(t) {
		exprs[r.Alert+r.Record], isAlert[r.Alert] = r.Expr, true
	}
	for _, d := range grafana.Load(t) {
		for _, q := range d.Queries() {
			exprs[q.Key] = grafana.Interpolate(q.Expr, map[string]string{"__rate_interval": "5m", "__interval": "5m", "currency": "usd"})
		}
	}
	for _, q := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(repo.Read(t, "docs/metrics.md"), -1) {
		exprs[q[1]] = q[1]
	}
	now := time.Unix(1_800_000_000, 0)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true})
	known := scrapedMetrics()
	for _, value := range []float64{-1, 0, 1, 2, float64(now.Unix() - 60), float64(now.Unix() + 300), float64(now.Unix() + 4*86_400)} {
		chunk := chunkenc.NewXORChunk()
		appender, err := chunk.Appender()
		if err != nil {
			t.Fatal(err)
		}
		for at := now.AddDate(0, 0, -1); !at.After(now); at = at.Add(time.Minute) {
			appender.Append(0, at.UnixMilli(), value)
		}
		for where, expr := range exprs {
			results := func(replicas ...string) int {
				q, err := engine.NewInstantQuery(t.Context(), &replicated{chunk, replicas, known}, nil, expr, now)
				if err != nil {
					t.Fatalf("%s: %v", where, err)
				}
				defer q.Close()
				r := q.Exec(t.Context())
				if r.Err != nil {
					t.Errorf("%s: with values %v: %v", where, value, r.Err)
				}
				v, _ := r.Vector()
				return len(v)
			}
			one, two := results("a"), results("a", "b")
			if isAlert[where] && one != two {
				t.Errorf("%s: with values %v: got %d results, %d without replicas", where, value, two, one)
			}
		}
	}
}

// replicated has one series of each selector for each replica, with the values that the selector asks for.
type replicated struct {
	chunk    *chunkenc.XORChunk
	replicas []string
	known    promqltest.Catalog
}

func (s *replicated) Querier(int64, int64) (storage.Querier, error) {
	find := func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		var all []storage.Series
		for _, replica := range s.replicas {
			series := map[string]string{"replica": replica, "instance": "i", "job": "j"}
			for _, m := range matchers {
				level, _, isRecorded := strings.Cut(m.Value, ":")
				names := s.known[m.Value]
				if isRecorded {
					names = sets.New(strings.Split(level, "_")...)
				}
				for name := range names {
					series[name] = "x"
				}
			}
			for _, m := range matchers {
				if m.Type == labels.MatchEqual && m.Value != "" {
					series[m.Name] = m.Value
				}
			}
			all = append(all, &storage.SeriesEntry{Lset: labels.FromMap(series), SampleIteratorFn: s.chunk.Iterator})
		}
		return promqltest.NewSeriesSet(all)
	}
	return &storage.MockQuerier{SelectMockFunction: find}, nil
}
