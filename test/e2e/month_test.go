//go:build e2e

package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"

	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/rules"
)

// step is the interval of the simulated history.
const step = 3 * time.Minute

// TestMonth counts the messages of a simulated month of 15 plans and 10 servers. Prometheus evaluates the
// expressions; how long an alert fires, and when it is sent, follows from its rule and the routes. That an
// outage of the API is one message is what TestOutage shows.
func TestMonth(t *testing.T) {
	t.Parallel()
	repo.Program(t, "promtool")
	end := time.Now().Add(-time.Hour).Truncate(step)
	begin := end.AddDate(0, 0, -30)
	dir := t.TempDir()
	alerts := rules.Alerts(t)
	writeHistory(t, dir, alerts, end)
	p := startPrometheus(t, dir, "global: {}\n")
	total, counts := 0, map[string]int{}
	for _, r := range alerts {
		if r.Labels["severity"] == "info" {
			continue
		}
		n := messages(r, p.results(r.Expr, begin, end), end.Sub(begin))
		if n > 0 {
			counts[r.Alert] = n
		}
		if r.Alert != "ServerRentalWatchHit" && r.Alert != "ServerRentalConfigurationBackInStock" {
			total += n
		}
	}
	t.Logf("messages: %v, %d beside hits", counts, total)
	const limit = 60 - 3 // three outages
	if total > limit {
		t.Errorf("got %d messages beside hits and outages, want at most %d: %v", total, limit, counts)
	}
	if counts["ServerRentalWatchHit"] == 0 || counts["ServerRentalConfigurationBackInStock"] == 0 {
		t.Errorf("got no messages of hits: %v", counts)
	}
}

// metrics matches the metrics that an expression names.
var metrics = regexp.MustCompile(`\b(up|server_rental_\w+)\b`)

// writeHistory makes Prometheus' data of the metrics that rules name.
func writeHistory(t *testing.T, dir string, alerts map[string]rulefmt.Rule, end time.Time) {
	t.Helper()
	var used []string
	for _, r := range alerts {
		used = append(used, metrics.FindAllString(r.Expr, -1)...)
	}
	repo.Run(t, repo.Path(t, "."), "go", "build", "-o", dir+"/simulator", "./cmd/simulator")
	repo.Run(t, dir, "bash", "-euo", "pipefail", "-c", `./simulator history --days=30 --end="$0" | grep -E "^(($1)\{|# EOF)" >history.om`,
		fmt.Sprint(end.Unix()), strings.Join(used, "|"))
	repo.Run(t, dir, repo.Program(t, "promtool"), "tsdb", "create-blocks-from", "openmetrics", "--quiet", "--max-block-duration=486h", "history.om", "data")
}

// results returns at which steps, from the begin of the month, an expression has a result, by its
// labels.
func (p *prometheus) results(expr string, begin, end time.Time) map[string]map[time.Duration]bool {
	p.t.Helper()
	all := map[string]map[time.Duration]bool{}
	for from := begin; from.Before(end); from = from.AddDate(0, 0, 10) { // a range has at most 11,000 steps
		result, _, _, err := p.QueryRange(p.t.Context(), expr, v1.Range{Start: from, End: from.AddDate(0, 0, 10).Add(-step), Step: step})
		if err != nil {
			p.t.Fatalf("%v\n%s", err, expr)
		}
		for _, one := range result.(model.Matrix) {
			labels := one.Metric.String()
			if all[labels] == nil {
				all[labels] = map[time.Duration]bool{}
			}
			for _, sample := range one.Values {
				all[labels][sample.Timestamp.Time().Sub(begin)] = true
			}
		}
	}
	return all
}

// messages returns how many messages the routes of alerts/alertmanager.yml make of the results of a
// rule.
func messages(r rulefmt.Rule, results map[string]map[time.Duration]bool, length time.Duration) (n int) {
	if r.Labels["kind"] == "news" {
		r.Labels = nil
		for labels, steps := range results {
			n += messages(r, map[string]map[time.Duration]bool{labels: steps}, length)
		}
		return n
	}
	interval := 5 * time.Minute
	if r.Labels["severity"] == "critical" {
		interval = step
	}
	since, fired := map[string]time.Duration{}, map[string]time.Duration{} // when alerts became pending, and last fired
	told, sent := map[string]bool{}, -interval
	for at := time.Duration(0); at < length; at += step {
		now, isNew := map[string]bool{}, false
		for labels, steps := range results {
			if !steps[at] {
				delete(since, labels)
			} else if _, pending := since[labels]; !pending {
				since[labels] = at
			}
			if from, pending := since[labels]; pending && at-from >= time.Duration(r.For) {
				fired[labels] = at
			}
			if last, known := fired[labels]; known && at-last <= time.Duration(r.KeepFiringFor) {
				now[labels] = true
				isNew = isNew || !told[labels]
			}
		}
		switch {
		case len(now) == 0:
			told = now
		case isNew && at-sent >= interval, at-sent >= 24*time.Hour:
			n, told, sent = n+1, now, at
		}
	}
	return n
}
