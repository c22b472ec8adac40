package exporter

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

const (
	textFormat = "text/plain; version=0.0.4; charset=utf-8"
	openFormat = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)

// TestFormats asserts that the first scrape has every metric, and that strict parsers read
// it. One account waits, for the metric that exposes it.
func TestFormats(t *testing.T) {
	t.Parallel()
	a := simtest.Start(t, simulator.Options{})
	a.Inject(simtest.Fault{Path: "/account", Token: simtest.LabToken, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"600"}}})
	p := startReady(t, "--config.file="+configFile(t, a))
	page := p.scrape()
	assertEveryMetric(t, page)
	for _, name := range []string{"go_memstats_alloc_bytes", "go_memstats_alloc_bytes_total", "process_start_time_seconds", "promhttp_metric_handler_requests_total"} {
		if _, found := page.Families[name]; found != (name != "go_memstats_alloc_bytes") {
			t.Errorf("%s: exposed: %t", name, found)
		}
	}
	r, err := simtest.Do(http.DefaultClient, http.MethodHead, p.url+"/metrics", "Accept", "text/plain;version=0.0.4")
	if err != nil || r.Status != 200 || r.Body != "" || !strings.HasPrefix(r.Header.Get("Content-Type"), textFormat) {
		t.Errorf("HEAD: got %+v, error %v", r, err)
	}
	t.Run("strict parsers", func(t *testing.T) { assertStrict(t, p) })
}

// assertEveryMetric compares the families with the definitions.
func assertEveryMetric(t *testing.T, page simtest.Exposition) {
	t.Helper()
	want := map[string]simtest.Family{}
	for _, d := range initialDefinitions() {
		want[d.Name] = simtest.Family{
			Type: string(d.Type), Help: d.Help, Labels: strings.Join(slices.Sorted(slices.Values(d.Labels)), " "),
			Classic: d.Type == "histogram",
		}
	}
	got := maps.Clone(page.Families)
	maps.DeleteFunc(got, func(name string, _ simtest.Family) bool { return !strings.HasPrefix(name, "server_rental_") })
	simtest.AssertEqual(t, "families of the first scrape", got, want)
}

// strictParser reads pages, given as names of a parser and texts, with the reference
// implementation of their format. It writes type, unit and the numbers of samples without
// and with _created, by family.
const strictParser = `
import importlib, json, sys
pages = []
for parser, text in json.load(sys.stdin):
    families = {}
    for f in importlib.import_module("prometheus_client." + parser).text_string_to_metric_families(text):
        samples = [s for s in f.samples if not s.name.endswith("_created")]
        families[f.name] = [f.type, f.unit, str(len(samples)), str(len(f.samples) - len(samples))]
    pages.append(families)
json.dump(pages, sys.stdout)
`

// assertStrict parses the page with the parsers of the reference implementation. That of
// OpenMetrics is strict; it reads both versions.
func assertStrict(t *testing.T, p *program) {
	python := simtest.Python()
	if python == "" && os.Getenv("CI") != "true" {
		t.Skip("python3 with prometheus_client is not installed (Debian: python3-prometheus-client)")
	}
	accepts := []struct{ accept, parser string }{{openFormat, "openmetrics.parser"}, {textFormat, "parser"}}
	var pages [][2]string
	for _, a := range accepts {
		pages = append(pages, [2]string{a.parser, p.get("/metrics", "Accept", a.accept, "Accept-Encoding", "gzip").Text(t)})
	}
	cmd := exec.Command(python, "-c", strictParser)
	cmd.Stdin = bytes.NewReader(simtest.Encode(t, pages))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	var parsed []map[string][]string
	if err := json.Unmarshal(out, &parsed); err != nil {
		t.Fatal(err)
	}
	for i, a := range accepts {
		open := a.parser == "openmetrics.parser"
		got, want := map[string][]string{}, map[string][]string{}
		for name, f := range parsed[i] {
			if strings.HasPrefix(name, "server_rental_") {
				got[name] = f[:2]
			}
			if open && f[0] == "counter" && f[2] != f[3] && strings.HasPrefix(name, "server_rental_") {
				t.Errorf("%s: %s: %s samples and %s created timestamps", a.accept, name, f[2], f[3])
			}
		}
		for _, d := range initialDefinitions() {
			unit := ""
			if open {
				unit = d.BaseUnit()
			}
			want[strings.TrimSuffix(d.Name, "_total")] = []string{string(d.Type), unit}
		}
		simtest.AssertEqual(t, a.accept+": type and unit by family", got, want)
	}
}

// TestGatheringError asserts that a metric that cannot be collected costs no other
// metric, and is logged and counted.
func TestGatheringError(t *testing.T) {
	t.Parallel()
	var logger simtest.Log
	e := newTestExporter(t, "--demo")
	e.logger = &logger
	e.registry.MustRegister(prometheus.CollectorFunc(func(ch chan<- prometheus.Metric) {
		ch <- prometheus.NewInvalidMetric(prometheus.NewDesc("broken", "A broken metric.", nil, nil), errors.New("broken"))
	}))
	h := e.metrics()
	const failures = `promhttp_metric_handler_errors_total{cause="gathering"}`
	for i, query := range []string{"", "?name[]=promhttp_metric_handler_errors_total"} {
		simtest.ServeGet(h, "/metrics"+query)
		page := simtest.ServeGet(h, "/metrics").Exposition(t)
		simtest.AssertEqual(t, "errors so far", page.WithPrefix(failures), map[string]float64{failures: float64(2*i + 1)})
		const line = `level=error msg="cannot serve metrics" err=*broken`
		logger.Assert(t, line, line)
	}
}
