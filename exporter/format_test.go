package exporter

import (
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/runner"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestFormats asserts that the first scrape has every metric, and that strict parsers read
// it. One account waits, for the metric that exposes it.
func TestFormats(t *testing.T) {
	t.Parallel()
	a := simtest.Start(t, simulator.Options{}) // this provider sends its limits
	a.Inject(simtest.Fault{Path: "/account", Token: simtest.LabToken, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"600"}}})
	p := startReady(t, "--config.file="+configFile(t, a))
	page := p.Scrape()
	got, want := map[string]string{}, map[string]string{}
	for _, d := range runner.Definitions() {
		if !ofChanges.MatchString(d.Name) {
			want[d.Name] = d.Type + ": " + d.Help
		}
	}
	for name, f := range page.Families {
		if strings.HasPrefix(name, "server_rental_") {
			got[name] = f.Type + ": " + f.Help
		}
	}
	simtest.AssertEqual(t, "families of the first scrape (one that is missing: return its field in simulator/resources.go)", got, want)
	for _, name := range []string{"go_goroutines", "process_start_time_seconds", "promhttp_metric_handler_requests_total"} {
		if _, found := page.Families[name]; !found {
			t.Errorf("%s: not exposed", name)
		}
	}
	const protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	duration := p.Get("/metrics", "Accept", protobuf).Exposition(t).Families["server_rental_exporter_api_request_duration_seconds"]
	simtest.AssertEqual(t, "classic and native histogram", []bool{duration.Classic, duration.Native}, []bool{true, true})

	const python = "/usr/bin/python3" // Debian's package python3-prometheus-client is for this one
	if err := exec.Command(python, "-c", "import prometheus_client.openmetrics.parser").Run(); err != nil && os.Getenv("CI") != "true" {
		t.Skipf("python3-prometheus-client: %v", err)
	}
	for parser, accept := range map[string]string{"openmetrics.parser": "application/openmetrics-text; version=1.0.0", "parser": "text/plain; version=0.0.4"} {
		cmd := exec.Command(python, "-c", strictParser, parser)
		cmd.Stdin = strings.NewReader(p.Get("/metrics", "Accept", accept).Body)
		out, err := cmd.CombinedOutput()
		if n, _ := strconv.Atoi(strings.TrimSpace(string(out))); err != nil || n < len(want) {
			t.Errorf("%s: %v: %s", accept, err, out)
		}
	}
}

// ofChanges matches the metrics of a change from one response to the next, which are not
// exposed before.
var ofChanges = regexp.MustCompile("_last_(restock|sellout|hit|added|removed|price_change|failed)_|_keys_changed_|_two_factor_off_|plan_(added|removed)_|_previous_price_")

// strictParser reads a page with the reference implementation of its format, which is strict for
// OpenMetrics, and prints the number of families.
const strictParser = `
import importlib, sys
parser = importlib.import_module("prometheus_client." + sys.argv[1])
print(len(list(parser.text_string_to_metric_families(sys.stdin.read()))))
`
