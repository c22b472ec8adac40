//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"

	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// TestServiceDiscovery runs Prometheus with the documented configuration. Tests of package web
// check the list itself.
func TestServiceDiscovery(t *testing.T) {
	t.Parallel()
	api, tokens := startAPI(t, "main")
	api.Change(func(w *simulator.World) {
		a := w.Accounts[tokens["main"]]
		a.Servers = a.Servers[:2]
		a.Servers[1]["hostname"] = nil
	})
	exporter := startExporter(t, api, tokens, "collectors: {servers: {interval: 5s}}\n", "--web.enable-service-discovery")
	p := startPrometheus(t, t.TempDir(), discoveryConfig(t, exporter))
	const (
		one = " account=main server=srv_d699b788091a39c5 plan=ryzen-5-3600 location=nyc os="
		two = " account=main server=srv_0b4978d5aeb1188e plan=ryzen-5-7600 location=fra os="
	)
	want := []string{
		"node address=198.18.100.0:9100 instance=node-1.main.example" + one + "ubuntu-24-04",
		"node address=198.18.100.1:9100 instance=198.18.100.1:9100" + two + "ubuntu-22-04",
		"ping address=icmp 198.18.100.0 instance=node-1.main.example" + one,
		"ping address=icmp 198.18.100.1 instance=198.18.100.1" + two,
		"ssh address=ssh_banner 198.18.100.0:22 instance=node-1.main.example" + one,
		"ssh address=ssh_banner 198.18.100.1:22 instance=198.18.100.1:22" + two,
	}
	eventuallyEqual(t, "servers", p.discovered, func() []string { return want })
	p.checkProblems()
}

// discoveryConfig is the documented configuration, with short intervals. The servers
// and blackbox_exporter are replaced by a proxy.
func discoveryConfig(t *testing.T, exporter *simtest.Process) string {
	t.Helper()
	var config map[string]any
	repo.ReadYAML(t, repo.Path(t, "deploy/prometheus/service-discovery.yml"), &config)
	config["global"] = map[string]any{"scrape_interval": "5s"}
	proxy := httptest.NewServer(http.HandlerFunc(respondAsTarget))
	t.Cleanup(proxy.Close)
	for _, j := range config["scrape_configs"].([]any) {
		job := j.(map[string]any)
		if discovery, found := job["http_sd_configs"].([]any); found {
			discovery[0].(map[string]any)["refresh_interval"] = "1s"
			job["proxy_url"] = proxy.URL
		}
	}
	const address = "localhost:10170"
	text := string(simtest.Encode(t, config))
	simtest.AssertEqual(t, "uses of "+address, strings.Count(text, address), 4)
	return strings.ReplaceAll(text, address, strings.TrimPrefix(exporter.URL, "http://"))
}

// respondAsTarget responds to a proxied scrape with a metric that says what was asked.
func respondAsTarget(w http.ResponseWriter, r *http.Request) {
	address := r.URL.Host
	if address == "localhost:9115" && r.URL.Path == "/probe" {
		address = r.URL.Query().Get("module") + " " + r.URL.Query().Get("target")
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintf(w, "asked{address=%q} 1\n", address)
}

// discovered returns what Prometheus asks, sorted.
func (p *prometheus) discovered() (all []string) {
	p.t.Helper()
	for _, s := range p.query("asked") {
		text := string(s.Metric["job"])
		for _, name := range []model.LabelName{"address", "instance", "account", "server", "plan", "location", "os"} {
			text += fmt.Sprintf(" %s=%s", name, s.Metric[name])
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}
