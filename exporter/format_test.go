package exporter

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"server_rental_exporter/internal/runner"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

const (
	textFormat  = "text/plain; version=0.0.4; charset=utf-8"
	openFormat  = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	protoFormat = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

// TestFormats asserts that all formats and encodings contain the same.
func TestFormats(t *testing.T) {
	t.Parallel()
	a := simtest.Start(t, simulator.Options{})
	p := startReady(t, "--config.file="+configFile(t, a))
	simtest.Eventually(t, "all requests answered", a.Idle)
	want := comparable(p.scrape())
	const histogram = "server_rental_exporter_api_request_duration_seconds"
	for _, tc := range []struct {
		name, accept, encoding string
		wantType, wantEncoding string
	}{
		{"text", "text/plain;version=0.0.4", "", textFormat, ""},
		{"text for a browser", "text/html,*/*;q=0.8", "", textFormat, ""},
		{"text, gzip", "text/plain;version=0.0.4", "gzip", textFormat, "gzip"},
		{"text, unknown encoding", "text/plain;version=0.0.4", "br, zstd", textFormat, ""},
		{"OpenMetrics", "application/openmetrics-text;version=1.0.0", "", openFormat, ""},
		{"OpenMetrics, gzip", "application/openmetrics-text;version=1.0.0", "gzip", openFormat, "gzip"},
		{"OpenMetrics of Prometheus", "application/openmetrics-text;version=0.0.1,text/plain;version=0.0.4;q=0.5", "gzip", strings.Replace(openFormat, "1.0.0", "0.0.1", 1), "gzip"},
		{"protobuf", strings.ReplaceAll(protoFormat, " ", ""), "", protoFormat, ""},
		{"protobuf, gzip", strings.ReplaceAll(protoFormat, " ", ""), "gzip", protoFormat, "gzip"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := p.get("/metrics", "Accept", tc.accept, "Accept-Encoding", tc.encoding)
			simtest.AssertEqual(t, "content type and encoding", []string{contentType(got), got.Header.Get("Content-Encoding")}, []string{tc.wantType, tc.wantEncoding})
			page := got.Exposition(t)
			for _, name := range []string{"go_memstats_alloc_bytes", "go_memstats_alloc_bytes_total", "process_start_time_seconds", "promhttp_metric_handler_requests_total"} {
				if _, found := page.Families[name]; found != (name != "go_memstats_alloc_bytes") {
					t.Errorf("%s: exposed: %t", name, found)
				}
			}
			page = comparable(page)
			wantFamilies := maps.Clone(want.Families)
			if tc.wantType == protoFormat { // only this format has native histograms
				f := wantFamilies[histogram]
				f.Native = true
				wantFamilies[histogram] = f
			}
			simtest.AssertEqual(t, "families", page.Families, wantFamilies)
			simtest.AssertEqual(t, "values", page.Values, want.Values)
		})
	}
	if !want.Families[histogram].Classic {
		t.Errorf("%s: no classic buckets", histogram)
	}
	r, err := simtest.Do(http.DefaultClient, http.MethodHead, p.url+"/metrics", "Accept", "text/plain;version=0.0.4")
	if err != nil || r.Status != 200 || r.Body != "" || contentType(r) != textFormat {
		t.Errorf("HEAD: got %+v, error %v", r, err)
	}
}

// comparable keeps the metrics of the exporter that neither a scrape nor the format
// changes.
func comparable(e simtest.Exposition) simtest.Exposition {
	drop := func(name string) bool {
		return !strings.HasPrefix(name, "server_rental_") || strings.HasPrefix(name, "server_rental_exporter_exposition_cache_bytes") ||
			regexp.MustCompile(`_created($|\{)`).MatchString(name) && e.Families[strings.Split(name, "{")[0]].Type == "untyped" // samples of counters in OpenMetrics
	}
	page := simtest.Exposition{Families: maps.Clone(e.Families), Values: maps.Clone(e.Values)}
	maps.DeleteFunc(page.Families, func(name string, _ simtest.Family) bool { return drop(name) })
	maps.DeleteFunc(page.Values, func(series string, _ float64) bool { return drop(series) })
	return page
}

// contentType returns the type without the escaping scheme: no name needs escaping,
// so all schemes are the same.
func contentType(r simtest.Response) string {
	return regexp.MustCompile(`; *escaping=[a-z0-9-]+`).ReplaceAllString(r.Header.Get("Content-Type"), "")
}

// strictParser reads a page with the reference implementation of its format and writes
// type, unit and the number of samples, without those of _created, by family.
const strictParser = `
import importlib, json, sys
parser = importlib.import_module("prometheus_client." + sys.argv[1])
families = {}
for f in parser.text_string_to_metric_families(sys.stdin.read()):
    samples = [s for s in f.samples if not s.name.endswith("_created")]
    families[f.name] = [f.type, f.unit, str(len(samples)), str(len(f.samples) - len(samples))]
json.dump(families, sys.stdout)
`

// python returns an interpreter that has prometheus_client. The test is skipped if
// there is none, except in CI.
func python(t *testing.T) string {
	t.Helper()
	if interpreter := simtest.Python(); interpreter != "" {
		return interpreter
	}
	const missing = "python3 with prometheus_client is not installed (Debian: python3-prometheus-client)"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// TestStrictParsers parses the page, with one account that is paused, with the parsers of
// the reference implementation. That of OpenMetrics is strict; it reads both versions.
func TestStrictParsers(t *testing.T) {
	t.Parallel()
	a := simtest.Start(t, simulator.Options{})
	a.Inject(simtest.Fault{Path: "/account", Token: simtest.LabToken, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"60"}}})
	p := startReady(t, "--config.file="+configFile(t, a))
	simtest.Eventually(t, "all requests answered", a.Idle)
	for _, tc := range []struct {
		name, accept, parser string
		open                 bool
	}{
		{"OpenMetrics 1.0.0", openFormat, "openmetrics.parser", true},
		{"OpenMetrics 0.0.1", "application/openmetrics-text;version=0.0.1", "openmetrics.parser", true},
		{"text 0.0.4", textFormat, "parser", false},
		{"text 1.0.0", "text/plain;version=1.0.0;escaping=allow-utf-8", "parser", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			families := parseStrictly(t, tc.parser, p.get("/metrics", "Accept", tc.accept, "Accept-Encoding", "gzip"))
			got, want := map[string][]string{}, map[string][]string{}
			for name, f := range families {
				if strings.HasPrefix(name, "server_rental_") {
					got[name] = f[:2]
				}
				if tc.open && f[0] == "counter" && f[2] != f[3] && strings.HasPrefix(name, "server_rental_plan") {
					t.Errorf("%s: %s samples and %s created timestamps", name, f[2], f[3])
				}
			}
			for _, d := range initialDefinitions() {
				unit := ""
				if tc.open {
					unit = d.BaseUnit()
				}
				want[strings.TrimSuffix(d.Name, "_total")] = []string{string(d.Type), unit}
			}
			simtest.AssertEqual(t, "type and unit by family", got, want)
		})
	}
}

// parseStrictly returns the families that a parser of prometheus_client reads, as
// strictParser writes them.
func parseStrictly(t *testing.T, parser string, page simtest.Response) map[string][]string {
	t.Helper()
	cmd := exec.Command(python(t), "-c", strictParser, parser)
	cmd.Stdin = strings.NewReader(page.Text(t))
	out, err := cmd.Output()
	if err != nil {
		var failed *exec.ExitError
		errors.As(err, &failed)
		t.Fatalf("%v: %s", err, failed.Stderr)
	}
	var families map[string][]string
	if err := json.Unmarshal(out, &families); err != nil {
		t.Fatal(err)
	}
	return families
}

// TestUnitsAndCreatedTimestamps decodes the formats that have them.
func TestUnitsAndCreatedTimestamps(t *testing.T) {
	t.Parallel()
	a := simtest.Start(t, simulator.Options{})
	p := startReady(t, "--config.file="+configFile(t, a))
	simtest.Eventually(t, "all requests answered", a.Idle)
	wantUnits := map[string]string{}
	for _, d := range initialDefinitions() {
		if d.BaseUnit() != "" {
			wantUnits[d.Name] = d.BaseUnit()
		}
	}
	delete(wantUnits, "server_rental_exporter_api_backoff_until_timestamp_seconds") // nothing is waited for
	created := []string{
		"server_rental_plan_restocks_total", "server_rental_plan_sellouts_total",
		"server_rental_exporter_api_requests_total", "server_rental_exporter_api_errors_total",
	}

	units := map[string]string{}
	decoder := expfmt.NewDecoder(strings.NewReader(p.get("/metrics", "Accept", protoFormat).Body), expfmt.FmtProtoDelim)
	for {
		var f dto.MetricFamily
		err := decoder.Decode(&f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(f.GetName(), "server_rental_") && f.GetUnit() != "" {
			units[f.GetName()] = f.GetUnit()
		}
		for _, m := range f.GetMetric() {
			if slices.Contains(created, f.GetName()) && m.GetCounter().GetCreatedTimestamp().GetSeconds() == 0 {
				t.Errorf("protobuf: no created timestamp: %v", m)
			}
		}
	}
	simtest.AssertEqual(t, "units in protobuf", units, wantUnits)

	open := p.get("/metrics", "Accept", openFormat).Body
	units = map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# UNIT (server_rental_\S+) (\S+)$`).FindAllStringSubmatch(open, -1) {
		units[m[1]] = m[2]
	}
	simtest.AssertEqual(t, "units in OpenMetrics", units, wantUnits)
	for _, name := range created {
		name = strings.TrimSuffix(name, "_total")
		series := strings.Count(open, "\n"+name+"_total{")
		if got := strings.Count(open, "\n"+name+"_created{"); got != series || series == 0 {
			t.Errorf("%s: %d series, %d created timestamps", name, series, got)
		}
	}
}

func TestSelectedMetrics(t *testing.T) {
	t.Parallel()
	p := startReady(t, "--demo")
	whole := p.scrape()
	got := p.get("/metrics?name[]=server_rental_plan_in_stock&name[]=server_rental_exporter_build_info").Exposition(t)
	want := map[string]simtest.Family{}
	for _, name := range []string{"server_rental_plan_in_stock", "server_rental_exporter_build_info"} {
		want[name] = whole.Families[name]
	}
	simtest.AssertEqual(t, "families", got.Families, want)
	open := p.get("/metrics?name[]=server_rental_plan_memory_bytes", "Accept", "application/openmetrics-text").Body
	if !strings.Contains(open, "\n# UNIT server_rental_plan_memory_bytes bytes\n") {
		t.Errorf("OpenMetrics without the unit:\n%s", open)
	}
}

// TestGatheringError asserts that a metric that cannot be collected costs no other
// metric, and is logged and counted.
func TestGatheringError(t *testing.T) {
	t.Parallel()
	var logger simtest.Log
	m := newMetrics(runner.New(runner.Options{Logger: &logger}))
	m.registry.MustRegister(prometheus.CollectorFunc(func(ch chan<- prometheus.Metric) {
		ch <- prometheus.NewInvalidMetric(prometheus.NewDesc("broken", "A broken metric.", nil, nil), errors.New("broken"))
	}))
	h := m.handler(&logger)
	const failures = `promhttp_metric_handler_errors_total{cause="gathering"}`
	for i, query := range []string{"", "?name[]=promhttp_metric_handler_errors_total"} {
		simtest.ServeGet(h, "/metrics"+query)
		page := simtest.ServeGet(h, "/metrics").Exposition(t)
		simtest.AssertEqual(t, "errors so far", page.WithPrefix(failures), map[string]float64{failures: float64(2*i + 1)})
		lines := logger.Take(t)
		simtest.AssertEqual(t, "number of log lines", len(lines), 2)
		for _, line := range lines {
			if !strings.HasPrefix(line, `level=error msg="cannot serve metrics" err=`) || !strings.Contains(line, "broken") {
				t.Errorf("logged: %s", line)
			}
		}
	}
}
