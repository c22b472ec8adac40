package alerts_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/server-rental-exporter/server_rental_exporter/runner"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/promqltest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/rules"
)

// BenchmarkRules reports how many passes over the servers one evaluation of all rules takes, for 1,000
// accounts of 20 servers. The shortest time of each counts, because other programs slow them down.
func BenchmarkRules(b *testing.B) {
	now := time.Unix(1_800_000_000, 0)
	data := newDatabase(b, now)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute})
	const pass = "count(server_rental_server_info)"
	shortest := map[string]time.Duration{pass: time.Hour}
	for _, r := range rules.All(b) {
		shortest[r.Expr] = time.Hour
	}
	for b.Loop() {
		for expr := range shortest {
			began := time.Now()
			q, err := engine.NewInstantQuery(b.Context(), data, nil, expr, now)
			if err != nil {
				b.Fatal(err)
			}
			if r := q.Exec(b.Context()); r.Err != nil {
				b.Errorf("%s: %v", expr, r.Err)
			}
			q.Close()
			shortest[expr] = min(shortest[expr], time.Since(began))
		}
	}
	var all time.Duration
	for _, d := range shortest {
		all += d
	}
	b.ReportMetric(all.Seconds()/shortest[pass].Seconds()-1, "passes")
}

// newDatabase returns a day of stock, and 15 minutes of all other metrics but those that are absent
// while nothing changes.
func newDatabase(b *testing.B, now time.Time) promqltest.Database {
	b.Helper()
	recent, day := chunkenc.NewXORChunk(), chunkenc.NewXORChunk()
	add(b, day, now.Add(-24*time.Hour), now.Add(-15*time.Minute), 5*time.Minute)
	for _, c := range []chunkenc.Chunk{recent, day} {
		add(b, c, now.Add(-15*time.Minute), now.Add(time.Second), 15*time.Second)
	}
	absent := regexp.MustCompile(`_(last|previous|added|removed|changed)_|_topup_`)
	counts := map[string]int{"server": 20_000, "configuration": 3_000, "collector": 6_000, "account": 1_000, "location": 20}
	constant := map[string]string{"status": "active", "state": "operational", "overall": "operational", "instance": "exporter:10170", "job": "server_rental"}
	data := promqltest.Database{}
	for _, d := range runner.Definitions() {
		if absent.MatchString(d.Name) {
			continue
		}
		items := 1
		for _, name := range d.Labels {
			if constant[name] == "" {
				items = max(items, cmp.Or(counts[name], 20))
			}
		}
		chunk := recent
		if strings.HasSuffix(d.Name, "in_stock") {
			chunk = day
		}
		for i := range items {
			series := map[string]string{model.MetricNameLabel: d.Name}
			for _, name := range slices.Concat(d.Labels, []string{"instance", "job"}) {
				series[name] = cmp.Or(constant[name], fmt.Sprint(name, i%cmp.Or(counts[name], items)))
			}
			data[d.Name] = append(data[d.Name], &storage.SeriesEntry{Lset: labels.FromMap(series), SampleIteratorFn: chunk.Iterator})
		}
	}
	return data
}

// add adds a sample for each step of a range of time, without its end.
func add(b *testing.B, c chunkenc.Chunk, from, to time.Time, step time.Duration) {
	b.Helper()
	appender, err := c.Appender()
	if err != nil {
		b.Fatal(err)
	}
	for at := from; at.Before(to); at = at.Add(step) {
		appender.Append(0, at.UnixMilli(), 1)
	}
}
