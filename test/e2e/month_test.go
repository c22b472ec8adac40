//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// step is the interval of the simulated history.
const step = 3 * time.Minute

// alertRule is a rule of alerts/, as far as it decides when a message is sent.
type alertRule struct {
	Alert, Expr   string
	For           model.Duration
	KeepFiringFor model.Duration `yaml:"keep_firing_for"`
	Labels        map[string]string
}

func alertRules(t *testing.T) (all []alertRule) {
	t.Helper()
	for _, file := range repo.Glob(t, "alerts/*.rules.yml") {
		var rules struct{ Groups []struct{ Rules []alertRule } }
		repo.ReadYAML(t, file, &rules)
		for _, g := range rules.Groups {
			all = append(all, slices.DeleteFunc(g.Rules, func(r alertRule) bool { return r.Alert == "" })...)
		}
	}
	return all
}

// TestMonth counts the messages of a simulated month: 15 plans, 10 servers, three outages of the API
// with three accounts. Prometheus evaluates the expressions; how long an alert fires, and when it is
// sent, follows from its rule and the routes.
func TestMonth(t *testing.T) {
	t.Parallel()
	repo.Program(t, "promtool")
	end := time.Now().Add(-time.Hour).Truncate(step)
	begin := end.AddDate(0, 0, -30)
	dir := t.TempDir()
	rules := alertRules(t)
	writeHistory(t, dir, rules, begin, end)
	address := simtest.FreeAddress(t)
	p := &prometheus{start(t, address, repo.Program(t, "prometheus"), "--config.file="+simtest.WriteFile(t, filepath.Join(dir, "prometheus.yml"), "global: {}\n"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--storage.tsdb.retention.time=100y"), t, address}

	total, counts := 0, map[string]int{}
	for _, r := range rules {
		if r.Labels["severity"] == "info" {
			continue
		}
		n := messages(r, p.firing(r, begin, end), end.Sub(begin))
		if n > 0 {
			counts[r.Alert] = n
		}
		if r.Alert != "ServerRentalWatchHit" && r.Alert != "ServerRentalConfigurationBackInStock" {
			total += n
		}
	}
	t.Logf("messages: %v, %d beside hits", counts, total)
	if total > 60 {
		t.Errorf("got %d messages beside hits, want at most 60: %v", total, counts)
	}
	simtest.AssertEqual(t, "messages of outages", counts["ServerRentalCollectorFailing"], 3)
	if counts["ServerRentalWatchHit"] == 0 || counts["ServerRentalConfigurationBackInStock"] == 0 {
		t.Errorf("got no messages of hits: %v", counts)
	}
}

// writeHistory makes Prometheus' data of the metrics that rules name.
func writeHistory(t *testing.T, dir string, rules []alertRule, begin, end time.Time) {
	t.Helper()
	run := func(program string, args ...string) {
		cmd := exec.Command(program, args...)
		cmd.Dir = repo.Path(t, ".")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", program, err, out)
		}
	}
	run("go", "build", "-o", dir+"/simulator", "./cmd/simulator")
	history, err := os.Create(filepath.Join(dir, "history.om"))
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(history)
	cmd := exec.Command(dir+"/simulator", "history", "--days=30", fmt.Sprint("--end=", end.Unix()))
	in, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{} // whether rules name a metric
	for lines := bufio.NewScanner(in); lines.Scan(); {
		name := lines.Text()[:max(0, strings.IndexAny(lines.Text(), "{ "))]
		if _, known := used[name]; !known {
			used[name] = slices.ContainsFunc(rules, func(r alertRule) bool { return strings.Contains(r.Expr, name) })
		}
		if name != "#" && used[name] {
			fmt.Fprintln(out, lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	writeOutages(out, begin, end)
	fmt.Fprintln(out, "# EOF")
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	run(repo.Program(t, "promtool"), "tsdb", "create-blocks-from", "openmetrics", "--quiet", "--max-block-duration=486h", history.Name(), filepath.Join(dir, "data"))
}

// writeOutages lets the collectors of three accounts fail for 40 minutes, three hours and 20 minutes,
// beginning within five minutes.
func writeOutages(out *bufio.Writer, begin, end time.Time) {
	var successes, times strings.Builder
	i := 0
	for _, account := range []string{"", "main", "lab", "web"} {
		collectors := []string{"account", "servers", "configurations", "topups"}
		if account == "" {
			collectors = []string{"plans", "locations", "os", "status"}
		}
		for _, collector := range collectors {
			i++
			delay := time.Duration(i%6) * time.Minute
			for at := begin; at.Before(end); at = at.Add(step) {
				success := 1
				for day, length := range map[int]time.Duration{5: 40 * time.Minute, 14: 3 * time.Hour, 22: 20 * time.Minute} {
					if down := at.Sub(begin.AddDate(0, 0, day).Add(delay)); down >= 0 && down < length {
						success = 0
					}
				}
				labels := fmt.Sprintf(`{job="server_rental",instance="exporter:10170",collector=%q,account=%q}`, collector, account)
				fmt.Fprintf(&successes, "server_rental_exporter_collector_success%s %d %d\n", labels, success, at.Unix())
				fmt.Fprintf(&times, "server_rental_exporter_collector_data_timestamp_seconds%s %d %d\n", labels, at.Unix(), at.Unix())
			}
		}
	}
	fmt.Fprint(out, successes.String(), times.String())
}

// span is when an alert fires, from the begin of the month.
type span struct{ from, to time.Duration }

// firing returns when each alert of a rule fires, by its labels.
func (p *prometheus) firing(r alertRule, begin, end time.Time) map[string][]span {
	p.t.Helper()
	all := map[string][]span{}
	active := map[string][]time.Duration{}
	for from := begin; from.Before(end); from = from.AddDate(0, 0, 10) { // a range has at most 11,000 steps
		query := url.Values{"query": {r.Expr}, "step": {step.String()}, "start": {fmt.Sprint(from.Unix())}, "end": {fmt.Sprint(from.AddDate(0, 0, 10).Add(-step).Unix())}}
		var response struct {
			Error string
			Data  struct {
				Result []struct {
					Metric map[string]string
					Values [][2]any
				}
			}
		}
		if err := json.Unmarshal([]byte(p.Get("/api/v1/query_range?"+query.Encode()).Body), &response); err != nil || response.Error != "" {
			p.t.Fatalf("%s: %v %s", r.Alert, err, response.Error)
		}
		for _, one := range response.Data.Result {
			labels := fmt.Sprint(one.Metric)
			for _, v := range one.Values {
				seconds, _ := strconv.ParseFloat(fmt.Sprintf("%f", v[0]), 64)
				active[labels] = append(active[labels], time.Unix(int64(seconds), 0).Sub(begin))
			}
		}
	}
	for labels, steps := range active {
		since := steps[0]
		for i, at := range steps {
			if last := i == len(steps)-1 || steps[i+1] > at+step; !last {
				continue
			}
			if at-since >= time.Duration(r.For) {
				all[labels] = append(all[labels], span{since + time.Duration(r.For), at + time.Duration(r.KeepFiringFor)})
			}
			if i < len(steps)-1 {
				since = steps[i+1]
			}
		}
	}
	return all
}

// messages returns how many messages the routes of alerts/alertmanager.yml make of a rule's alerts.
func messages(r alertRule, firing map[string][]span, length time.Duration) (n int) {
	if r.Labels["kind"] == "news" {
		for labels, spans := range firing {
			n += messages(alertRule{}, map[string][]span{labels: spans}, length)
		}
		return n
	}
	wait, interval := time.Duration(0), 5*time.Minute
	if r.Alert == "ServerRentalCollectorFailing" {
		wait, interval = 5*time.Minute, time.Hour
	}
	told, sent, began := map[string]bool{}, -interval, time.Duration(0)
	for at := time.Duration(0); at < length; at += step {
		now, isNew := map[string]bool{}, false
		for labels, spans := range firing {
			if slices.ContainsFunc(spans, func(s span) bool { return s.from <= at && at <= s.to }) {
				now[labels] = true
				isNew = isNew || !told[labels]
			}
		}
		switch {
		case len(now) == 0:
			told, began = now, at+step
		case at-began < wait:
		case isNew && at-sent >= interval, at-sent >= 24*time.Hour:
			n, told, sent = n+1, now, at
		}
	}
	return n
}
