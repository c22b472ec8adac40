//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"server_rental_exporter/test/internal/grafana"
)

// BenchmarkDashboards runs all queries of a dashboard, one after the other, as Grafana
// sends them for a window of 1440 pixels: all panels, those of collapsed rows too, and
// the annotations that are on or off. DASHBOARD_HISTORY is a directory with blocks of
// Prometheus' data (see dashboards/README.md). Prometheus works on a copy.
func BenchmarkDashboards(b *testing.B) {
	history := os.Getenv("DASHBOARD_HISTORY")
	if history == "" {
		b.Skip("DASHBOARD_HISTORY names no directory with Prometheus' data")
	}
	dir := b.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "data"), os.DirFS(history)); err != nil {
		b.Fatal(err)
	}
	p := startPrometheusIn(b, dir, "global: {}\n", "--storage.tsdb.retention.time=10y")
	end := newestSample(b, history)
	for _, d := range grafana.Load(b) {
		for _, span := range []string{"6h", "7d", "30d"} {
			b.Run(d.UID+"/"+span, func(b *testing.B) {
				p.t = b
				length, err := model.ParseDuration(span)
				if err != nil {
					b.Fatal(err)
				}
				var slowest time.Duration
				began := p.cpuSeconds()
				for b.Loop() {
					for _, q := range d.Queries() {
						sent := time.Now()
						p.runAsGrafana(q, end, time.Duration(length))
						slowest = max(slowest, time.Since(sent))
					}
				}
				b.ReportMetric((p.cpuSeconds()-began)/float64(b.N), "cpu-s/op")
				b.ReportMetric(slowest.Seconds()*1000, "ms-slowest")
				b.ReportMetric(float64(len(d.Queries())), "queries")
			})
		}
	}
}

// cpuSeconds returns the processor time of Prometheus, which does not depend on what else
// the machine does.
func (p *prometheus) cpuSeconds() float64 {
	p.t.Helper()
	metrics := regexp.MustCompile(`(?m)^process_cpu_seconds_total (\S+)$`).FindStringSubmatch(p.Get("/metrics").Body)
	if metrics == nil {
		p.t.Fatal("Prometheus does not expose its processor time")
	}
	seconds, err := strconv.ParseFloat(metrics[1], 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return seconds
}

// newestSample returns the end of the newest block.
func newestSample(b *testing.B, history string) time.Time {
	b.Helper()
	files, err := filepath.Glob(filepath.Join(history, "*", "meta.json"))
	if err != nil || len(files) == 0 {
		b.Fatalf("%s: got no blocks, %v", history, err)
	}
	var newest int64
	for _, file := range files {
		var block struct{ MaxTime int64 }
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		if err := json.Unmarshal(text, &block); err != nil {
			b.Fatalf("%s: %v", file, err)
		}
		newest = max(newest, block.MaxTime)
	}
	return time.UnixMilli(newest)
}

// runAsGrafana runs a query with the step that Grafana chooses: a point for each pixel, but
// at least 15 seconds, which is its default for the interval of scrapes, and the interval
// of the panel.
func (p *prometheus) runAsGrafana(q grafana.Query, end time.Time, length time.Duration) {
	p.t.Helper()
	points := q.Panel.MaxDataPoints
	if points == 0 {
		points = float64(q.Panel.GridPos.W) * 1440 / 24
	}
	step := max(15*time.Second, time.Duration(float64(length)/points).Round(time.Second))
	if least, err := model.ParseDuration(q.Panel.Interval); err == nil {
		step = max(step, time.Duration(least))
	}
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
	expr := grafana.Interpolate(q.Expr, map[string]string{
		"__rate_interval": seconds(max(step+15*time.Second, time.Minute)) + "s", "__interval": seconds(step) + "s",
		"__interval_ms": strconv.FormatInt(step.Milliseconds(), 10), "__range": seconds(length) + "s", "currency": "usd",
	})
	var answer json.RawMessage
	if q.Instant {
		p.api("query", url.Values{"query": {expr}, "time": {fmt.Sprint(end.Unix())}}, &answer)
		return
	}
	p.api("query_range", url.Values{
		"query": {expr}, "start": {fmt.Sprint(end.Add(-length).Unix())}, "end": {fmt.Sprint(end.Unix())}, "step": {seconds(step)},
	}, &answer)
}
