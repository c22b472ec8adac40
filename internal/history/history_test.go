package history

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	kitlog "github.com/go-kit/log"
	"github.com/prometheus/common/config"

	"server_rental_exporter/exporter"
	"server_rental_exporter/internal/memnet"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// end is that of all histories of the tests.
var end = time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC)

func options(length time.Duration, seed uint64) Options {
	return Options{End: end, Length: length, Servers: simulator.ExampleServers, Seed: seed, Labels: map[string]string{"job": "rental", "instance": "exporter:10170"}}
}

func generate(t *testing.T, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	samples, err := Write(&b, o)
	if err != nil {
		t.Fatal(err)
	}
	simtest.AssertEqual(t, "samples", samples, strings.Count("\n"+b.String(), "\n")-1-strings.Count("\n"+b.String(), "\n#"))
	simtest.AssertNoSecrets(t, "history", b.String())
	return b.Bytes()
}

// point is a sample of a series.
type point struct {
	at    int64 // Unix seconds
	value float64
}

var targetLabel = regexp.MustCompile(`,?(job|instance)="[^"]*"`)

// parse reads what a recorder wrote, by series without job and instance. It fails the
// test where a family is declared twice, or the samples of a series are not in order of
// time.
func parse(t *testing.T, text []byte) map[string][]point {
	t.Helper()
	rest, complete := strings.CutSuffix(string(text), "# EOF\n")
	if !complete {
		t.Error("the end is missing")
	}
	all := map[string][]point{}
	declared := map[string]bool{}
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "# ") {
			if declared[line] {
				t.Errorf("twice: %s", line)
			}
			declared[line] = true
			continue
		}
		line = strings.TrimSuffix(line, "\n")
		series, atText, _ := cutLast(line)
		series, valueText, found := cutLast(series)
		value, err := strconv.ParseFloat(valueText, 64)
		at, atErr := strconv.ParseInt(atText, 10, 64)
		if err := errors.Join(err, atErr); err != nil || !found {
			t.Fatalf("%s: %v", line, err)
		}
		points := all[series]
		if len(points) > 0 && points[len(points)-1].at >= at {
			t.Fatalf("after %d: %s", points[len(points)-1].at, line)
		}
		all[series] = append(points, point{at, value})
	}
	named := map[string][]point{}
	for series, points := range all {
		name, pairs, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		named[name+"{"+strings.TrimPrefix(targetLabel.ReplaceAllString(pairs, ""), ",")+"}"] = points
	}
	return named
}

// cutLast cuts a line at its last space.
func cutLast(line string) (before, after string, found bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 {
		return line, "", false
	}
	return line[:i], line[i+1:], true
}

// comesAndGoes are the series that are not there all the time.
var comesAndGoes = regexp.MustCompile(`topup=|state=|overall=|alternative=|backoff_until`)

// TestHistory generates some hours and compares them with what is known of them.
func TestHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	series := parse(t, generate(t, options(270*time.Minute, 1)))

	up := series["up{}"]
	simtest.AssertEqual(t, "scrapes", len(up), 270*4)
	simtest.AssertEqual(t, "last scrape", up[len(up)-1], point{end.Unix(), 1})
	for name, points := range series {
		for i := range points[1:] {
			if gap := points[i+1].at - points[i].at; gap != 15 && !comesAndGoes.MatchString(name) {
				t.Errorf("%s: no sample for %d s", name, gap)
			}
		}
	}
	changes := func(name string) int { return changes(series, name) }
	for _, name := range []string{
		"server_rental_plan_in_stock{", "server_rental_plan_restocks_total{", "server_rental_component_operational{", "server_rental_incidents_ongoing{",
		"server_rental_exporter_collector_success{", `server_rental_exporter_api_errors_total{endpoint="/topups",reason="unavailable"`, "server_rental_topups{",
		"server_rental_exporter_api_requests_total{", "server_rental_exporter_api_request_duration_seconds_bucket{", "process_cpu_seconds_total{",
	} {
		if changes(name) == 0 {
			t.Errorf("%s never changes", name)
		}
	}
	for _, name := range []string{"up{", "server_rental_exporter_api_token_rejected{", "server_rental_exporter_collector_invalid_items{", "server_rental_catalog_plans{", "server_rental_servers{"} {
		if n := changes(name); n > 0 {
			t.Errorf("%s changes %d times", name, n)
		}
	}
	assertDemoContinues(t, series)
}

// changes returns how often the series whose names have a prefix change.
func changes(series map[string][]point, prefix string) int {
	n := 0
	for name, points := range series {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		for i := range points[1:] {
			if points[i].value != points[i+1].value {
				n++
			}
		}
	}
	return n
}

// assertDemoContinues compares the last samples with the first ones of a demo that is
// started then.
func assertDemoContinues(t *testing.T, series map[string][]point) {
	t.Helper()
	last := map[string]float64{}
	for name, points := range series {
		if p := points[len(points)-1]; p.at == end.Unix() {
			last[name] = p.value
		}
	}
	got, want := provided(last), provided(demoAt(t, end))
	if len(want) < 400 {
		t.Errorf("a demo has only %d series", len(want))
	}
	simtest.AssertEqual(t, "data of the provider", got, want)
}

// provided returns the data of the provider, without what depends on when the exporter
// started or fetched, or on the incidents before.
func provided(all map[string]float64) map[string]float64 {
	data := map[string]float64{}
	for name, value := range all {
		own := !strings.HasPrefix(name, "server_rental_") || strings.HasPrefix(name, "server_rental_exporter_")
		for _, changing := range []string{"plan_restocks_total", "plan_sellouts_total", "plan_last_in_stock", "plan_stock_changed", "watch_hits_total", "watch_last_hit", "catalog_generated", "status_updated", "status_since"} {
			own = own || strings.HasPrefix(name, "server_rental_"+changing)
		}
		if !own {
			data[name] = value
		}
	}
	return data
}

// demoAt returns the metrics of a demo that fetched everything once at a time.
func demoAt(t *testing.T, at time.Time) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	simulate(func() {
		time.Sleep(time.Until(at))
		net := memnet.Listen()
		sim := simulator.New(simulator.Options{})
		sim.Change(func(w *simulator.World) {
			for token, name := range exporter.DemoTokens() {
				w.Accounts[token] = simulator.ExampleAccount(name, time.Now())
			}
		})
		server := &http.Server{Handler: sim, ReadHeaderTimeout: time.Minute}
		defer server.Close()                  //nolint:errcheck // its listener is in memory
		go func() { _ = server.Serve(net) }() // ends with Close
		transport, err := rentalapi.NewTransport(config.HTTPClientConfig{}, config.WithDialContextFunc(net.Dial))
		if err != nil {
			t.Error(err)
		}
		p, c, err := exporter.NewDemoPipeline(kitlog.NewNopLogger(), transport)
		if err != nil {
			t.Error(err)
		}
		if err := p.Set.Once(context.Background(), c); err != nil {
			t.Error(err)
		}
		p.Publisher.Publish()
		r := &run{Options: Options{End: at, Servers: simulator.ExampleServers}, recorder: newRecorder(nil)}
		if err := r.scrape(p, at); err != nil {
			t.Error(err)
		}
		var b bytes.Buffer
		if _, err := write(&b, []*recorder{r.recorder}); err != nil {
			t.Error(err)
		}
		for name, points := range parse(t, b.Bytes()) {
			all[name] = points[0].value
		}
		synctest.Wait()
	})
	return all
}

// strictParser reads OpenMetrics with the reference implementation. Of the histogram it
// reads the first point of each series only, because it loses the buckets of later ones.
const strictParser = `
import sys
from prometheus_client.openmetrics.parser import text_fd_to_metric_families as parse
def lines():
    seen = set()
    for line in sys.stdin:
        series = line.rsplit(" ", 2)[0]
        if "_duration_seconds_" not in line or line.startswith("#") or series not in seen:
            seen.add(series)
            yield line
print(sum(len(f.samples) for f in parse(lines())))
`

func assertStrict(t *testing.T, text []byte) {
	t.Helper()
	interpreter := simtest.Python()
	if interpreter == "" {
		missing(t, "python3 with prometheus_client (Debian: python3-prometheus-client)")
		return
	}
	cmd := exec.Command(interpreter, "-c", strictParser)
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("strict parser: %v: %s", err, out)
	}
}

func assertLoads(t *testing.T, text []byte) {
	t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		missing(t, "promtool")
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "history.om")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(promtool, "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=486h", file, filepath.Join(dir, "tsdb")).CombinedOutput()
	if err != nil {
		t.Errorf("promtool: %v: %s", err, out)
	}
	blocks, err := filepath.Glob(filepath.Join(dir, "tsdb", "0*"))
	if err != nil || len(blocks) == 0 {
		t.Errorf("promtool created no blocks: %v: %s", err, out)
	}
}

// missing reports a tool that is needed for a part of the test.
func missing(t *testing.T, tool string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed", tool)
	}
	t.Logf("%s is not installed", tool)
}

func TestSameSeedSameHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	first := generate(t, options(time.Hour, 7))
	if !bytes.Equal(first, generate(t, options(time.Hour, 7))) {
		t.Error("two histories of one seed differ")
	}
	if bytes.Equal(first, generate(t, options(time.Hour, 8))) {
		t.Error("the seed changes nothing")
	}
}

// TestRestart simulates the beginning of a run ten days ago, and reads it with the
// programs that it is made for.
func TestRestart(t *testing.T) {
	t.Parallel()
	r := &run{Options: options(20*24*time.Hour, 1), start: end.AddDate(0, 0, -10), end: end.AddDate(0, 0, -10).Add(20 * time.Minute), restarted: true, recorder: newRecorder(nil)}
	var err error
	simulate(func() { err = r.run() })
	var b bytes.Buffer
	_, writeErr := write(&b, []*recorder{r.recorder})
	if err := errors.Join(err, writeErr); err != nil {
		t.Fatal(err)
	}
	series := parse(t, b.Bytes())
	var up []float64
	for _, p := range series["up{}"] {
		up = append(up, p.value)
	}
	// Recorded when it changes, and every four minutes.
	simtest.AssertEqual(t, "up", up, []float64{0, 1, 1, 1, 1, 1})
	assertStrict(t, b.Bytes())
	assertLoads(t, b.Bytes())
	simtest.AssertEqual(t, "interval", series[`server_rental_exporter_collector_interval_seconds{account="",collector="plans"}`][0].value, 120.0)
}

func TestWriteRejects(t *testing.T) {
	for want, change := range map[string]func(o *Options){
		"length 0s:":     func(o *Options) { o.Length = 0 },
		"length -1h0m0s": func(o *Options) { o.Length = -time.Hour },
		"at most 2160h":  func(o *Options) { o.Length = simulator.MaxPast + 1 },
		"servers 0:":     func(o *Options) { o.Servers = 0 },
		// A date without separators is read as seconds.
		"would begin at 1970-08-23T10:48": func(o *Options) { o.End = time.Unix(20260131, 0) },
	} {
		o := options(time.Hour, 1)
		change(&o)
		if _, err := Write(io.Discard, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// TestManyServers has more series than any buffer of the exporter.
func TestManyServers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	o := options(time.Minute, 1)
	o.Servers = 500
	if got := bytes.Count(generate(t, o), []byte("server_rental_server_info{")); got < 2*o.Servers {
		t.Errorf("got %d samples of servers, want at least one of each of %d", got, 2*o.Servers)
	}
}
