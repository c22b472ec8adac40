package history

import (
	"bytes"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/exporter"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// end is that of most histories of the tests.
var end = time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC)

func options(length time.Duration) Options {
	return Options{End: end, Length: length, Accounts: exporter.DemoTokens(), Watches: exporter.DemoWatches(), Site: exporter.DemoSite}
}

func generate(t *testing.T, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, o); err != nil {
		t.Fatal(err)
	}
	simtest.AssertNoSecrets(t, "history", b.String())
	return b.Bytes()
}

// generatePart generates the part of a history that begins some time before its end.
func generatePart(t *testing.T, o Options, before, length time.Duration) map[string][]point {
	t.Helper()
	var b bytes.Buffer
	begin := o.End.Add(-before)
	if err := newRun(o, &b, begin).run(begin.Add(length)); err != nil {
		t.Fatal(err)
	}
	return parse(t, b.Bytes())
}

// point is a sample of a series.
type point struct {
	at    int64 // Unix seconds
	value float64
}

// target is the labels that all series have, as they are written.
const target = `instance="exporter:10170",job="server_rental"`

// parse reads a history, by series without job and instance. It fails the test if the samples
// of a series are not in order of time.
func parse(t *testing.T, text []byte) map[string][]point {
	t.Helper()
	rest, complete := strings.CutSuffix(string(text), "# EOF\n")
	if !complete {
		t.Error("the end is missing")
	}
	all := map[string][]point{}
	for line := range strings.Lines(rest) {
		line, atText := cutLast(line)
		series, value := parseSample(t, line)
		seconds, err := strconv.ParseFloat(atText, 64)
		at, points := int64(seconds), all[series]
		if err != nil || len(points) > 0 && points[len(points)-1].at >= at {
			t.Fatalf("after %v: %s %s: %v", points, line, atText, err)
		}
		all[series] = append(points, point{at, value})
	}
	return all
}

// parseSample reads a line without a time stamp. The name of the series has braces, and
// neither job nor instance.
func parseSample(t *testing.T, line string) (series string, value float64) {
	t.Helper()
	series, text := cutLast(line)
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	labels = strings.ReplaceAll(labels, `.0"`, `"`) // OpenMetrics has le="1.0"
	return name + "{" + strings.TrimPrefix(strings.TrimPrefix(labels, target), ",") + "}", value
}

// cutLast cuts a line at its last space.
func cutLast(line string) (before, after string) {
	line = strings.TrimSuffix(line, "\n")
	i := strings.LastIndexByte(line, ' ')
	return line[:max(i, 0)], line[i+1:]
}

// comesAndGoes are the series that are not there all the time.
var comesAndGoes = regexp.MustCompile(`topup=|state=|overall=|alternative=|backoff_until`)

// TestHistory generates minutes with an outage and compares them with what is known of them.
func TestHistory(t *testing.T) {
	t.Parallel()
	series := generatePart(t, options(5*time.Hour), 265*time.Minute, 14*time.Minute)
	simtest.AssertEqual(t, "scrapes", len(series["up{}"]), 14*4)
	for name, points := range series {
		for i := range points[1:] {
			if gap := points[i+1].at - points[i].at; gap != 15 && !comesAndGoes.MatchString(name) {
				t.Errorf("%s: no sample for %d s", name, gap)
			}
		}
	}
	for _, name := range []string{
		"server_rental_exporter_collector_success{", "server_rental_exporter_collector_data_timestamp_seconds{",
		"server_rental_exporter_api_requests_total{", "server_rental_exporter_api_request_duration_seconds_bucket{", "process_cpu_seconds_total{",
	} {
		if changes(series, name) == 0 {
			t.Errorf("%s never changes", name)
		}
	}
	for _, name := range []string{"up{", "server_rental_exporter_api_token_rejected{", "server_rental_exporter_collector_invalid_items{", "server_rental_catalog_plans{", "server_rental_servers{"} {
		if n := changes(series, name); n > 0 {
			t.Errorf("%s changes %d times", name, n)
		}
	}
	assertOutage(t, series)
}

// assertOutage asserts what an outage of six minutes, in which the provider asks for pauses
// of a minute, does to the collector that it concerns: it fails, and its data stays.
func assertOutage(t *testing.T, series map[string][]point) {
	t.Helper()
	for _, account := range []string{"lab", "main"} {
		failing := 0
		for _, p := range series[`server_rental_exporter_collector_success{account="`+account+`",collector="topups"}`] {
			if p.value == 0 {
				failing++
			}
		}
		if minutes := float64(failing) / 4; minutes < 5 || minutes > 7 {
			t.Errorf("%s: top-ups fail for %v minutes", account, minutes)
		}
		simtest.AssertEqual(t, "samples of top-ups", len(series[`server_rental_topups{account="`+account+`",status="paid"}`]), len(series["up{}"]))
		simtest.AssertEqual(t, "changes of success of the servers", changes(series, `server_rental_exporter_collector_success{account="`+account+`",collector="servers"`), 0)
	}
	for _, reason := range []string{"unavailable", "timeout"} {
		points := series[`server_rental_exporter_api_errors_total{path="/topups",reason="`+reason+`"}`]
		if got, want := points[len(points)-1].value > 0, reason == "unavailable"; got != want {
			t.Errorf("errors with reason %s: %v", reason, points[len(points)-1].value)
		}
	}
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

// TestDemoContinues compares the last samples of a history with the metrics of a demo that
// is started then.
func TestDemoContinues(t *testing.T) {
	demo := map[string]float64{}
	synctest.Test(t, func(t *testing.T) { // stops the clock
		time.Sleep(time.Until(end))
		var out, log bytes.Buffer
		if status := exporter.Run(t.Context(), exporter.Environment{
			Args: []string{"--demo", "--once"}, LookupEnv: func(string) (string, bool) { return "", false }, Stdout: &out, Stderr: &log,
		}); status != 0 {
			t.Fatalf("exit status %d: %s", status, log.String())
		}
		for line := range strings.Lines(out.String()) {
			if !strings.HasPrefix(line, "#") {
				series, value := parseSample(t, line)
				demo[series] = value
			}
		}
	})
	last := map[string]float64{}
	for series, points := range parse(t, generate(t, options(6*time.Minute))) {
		if p := points[len(points)-1]; p.at == end.Unix() {
			last[series] = p.value
		}
	}
	if n := len(provided(demo)); n < 400 {
		t.Errorf("a demo has only %d series", n)
	}
	simtest.AssertEqual(t, "data of the provider", provided(last), provided(demo))
	simtest.AssertEqual(t, "series of the exporter", own(last), own(demo))
}

// provided returns the data of the provider, without what depends on when the exporter
// started or fetched, or on the incidents before.
func provided(all map[string]float64) map[string]float64 {
	data := map[string]float64{}
	for name, value := range all {
		own := !strings.HasPrefix(name, "server_rental_") || strings.HasPrefix(name, "server_rental_exporter_")
		for _, changing := range []string{"_restocks_total", "_sellouts_total", "_last_restock", "_last_sellout", "watch_hits_total", "watch_last_hit", "catalog_generated", "status_updated", "status_since"} {
			own = own || strings.Contains(name, changing)
		}
		if !own {
			data[name] = value
		}
	}
	return data
}

// own returns the names of the exporter's own series.
func own(all map[string]float64) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool {
		return !strings.HasPrefix(name, "server_rental_exporter_")
	})
}

func TestSameHistory(t *testing.T) {
	t.Parallel()
	o := options(2 * time.Minute)
	o.End = end.Add(7 * time.Second) // between two scrapes
	if !bytes.Equal(generate(t, o), generate(t, o)) {
		t.Error("two histories with the same options differ")
	}
}

// TestResolution generates the beginning of a long history, whose scrapes are rare.
func TestResolution(t *testing.T) {
	t.Parallel()
	series := generatePart(t, options(20*24*time.Hour), 10*24*time.Hour, 20*time.Minute)
	var up []point
	for i := range 5 {
		up = append(up, point{end.AddDate(0, 0, -10).Unix() + int64(i+1)*240, 1})
	}
	simtest.AssertEqual(t, "up", series["up{}"], up)
	for age, want := range map[time.Duration]time.Duration{7: 30 * time.Second, 13: time.Minute, 25: 2 * time.Minute} {
		simtest.AssertEqual(t, "resolution", resolution(age*time.Hour), want)
	}
}

func TestWriteRejects(t *testing.T) {
	for length, want := range map[time.Duration]string{0: "length 0s:", -time.Hour: "length -1h0m0s:", simulator.MaxPast + 1: "at most 2160h"} {
		if err := Write(io.Discard, options(length)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
