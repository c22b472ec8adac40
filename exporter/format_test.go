package exporter

import (
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

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
	a := simtest.Start(t, simulator.Options{}) // which tells its limits
	a.Inject(simtest.Fault{Path: "/account", Token: simtest.LabToken, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"600"}}})
	p := startReady(t, "--config.file="+configFile(t, a))
	page := p.scrape()
	assertEveryMetric(t, page)
	for _, name := range []string{"go_goroutines", "process_start_time_seconds", "promhttp_metric_handler_requests_total"} {
		if _, found := page.Families[name]; !found {
			t.Errorf("%s: not exposed", name)
		}
	}
	const protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	duration := p.get("/metrics", "Accept", protobuf).Exposition(t).Families["server_rental_exporter_api_request_duration_seconds"]
	simtest.AssertEqual(t, "classic and native histogram", []bool{duration.Classic, duration.Native}, []bool{true, true})
	assertStrict(t, p)
}

// assertEveryMetric compares the families with the definitions.
func assertEveryMetric(t *testing.T, page simtest.Exposition) {
	t.Helper()
	got, want := map[string]string{}, map[string]string{}
	for _, d := range initialDefinitions() {
		want[d.Name] = d.Type + ": " + d.Help
	}
	for name, f := range page.Families {
		if strings.HasPrefix(name, "server_rental_") {
			got[name] = f.Type + ": " + f.Help
		}
	}
	simtest.AssertEqual(t, "families of the first scrape", got, want)
}

// strictParser reads a page with the reference implementation of its format, and prints the
// number of families.
const strictParser = `
import importlib, sys
parser = importlib.import_module("prometheus_client." + sys.argv[1])
print(len(list(parser.text_string_to_metric_families(sys.stdin.read()))))
`

// assertStrict parses the page with the parsers of the reference implementation. That of
// OpenMetrics is strict.
func assertStrict(t *testing.T, p *program) {
	python := pythonWithClient()
	if python == "" && os.Getenv("CI") != "true" {
		t.Skip("python3 with prometheus_client is not installed (Debian: python3-prometheus-client)")
	}
	for parser, accept := range map[string]string{"openmetrics.parser": openFormat, "parser": textFormat} {
		cmd := exec.Command(python, "-c", strictParser, parser)
		cmd.Stdin = strings.NewReader(p.get("/metrics", "Accept", accept).Body)
		out, err := cmd.CombinedOutput()
		if n, _ := strconv.Atoi(strings.TrimSpace(string(out))); err != nil || n < len(initialDefinitions()) {
			t.Errorf("%s: %v: %s", accept, err, out)
		}
	}
}

// pythonWithClient returns an interpreter that has prometheus_client: that of the PATH, or that
// of the system, which Debian's package python3-prometheus-client is for; empty for
// none.
func pythonWithClient() string {
	for _, interpreter := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(interpreter, "-c", "import prometheus_client.openmetrics.parser").Run() == nil {
			return interpreter
		}
	}
	return ""
}
