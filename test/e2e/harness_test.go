//go:build e2e

// Package e2e tests the exporter's binary with the programs it is made for.
package e2e

import (
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

func TestMain(m *testing.M) { simtest.Main(m) }

// start runs a program that serves on an address, until it is ready.
func start(t testing.TB, address, path string, args ...string) *simtest.Process {
	t.Helper()
	return simtest.StartServing(t, exec.Command(path, append(args, "--web.listen-address="+address)...), address, "/-/ready")
}

// startAPI serves a simulated provider with an account for each name, and returns the
// tokens by name.
func startAPI(t *testing.T, names ...string) (*simtest.API, map[string]string) {
	t.Helper()
	accounts, tokens := map[string]string{}, map[string]string{}
	for _, name := range names {
		tokens[name] = "secret-token-of-" + name
		accounts[tokens[name]] = name
	}
	return simtest.Start(t, simulator.Options{Accounts: accounts}), tokens
}

// startExporter runs the exporter, with more settings and flags, until it is ready.
func startExporter(t *testing.T, api *simtest.API, tokens map[string]string, settings string, flags ...string) *simtest.Process {
	t.Helper()
	p := simtest.StartProcess(t, append(flags, "--config.file="+api.ConfigFile(t.TempDir(), tokens, settings))...)
	p.WaitReady()
	return p
}

// prometheus is a running Prometheus.
type prometheus struct {
	*simtest.Process
	v1.API
	t testing.TB
}

// startPrometheus starts Prometheus with a configuration and the data of a directory.
func startPrometheus(t testing.TB, dir, config string) *prometheus {
	t.Helper()
	file := simtest.WriteFile(t, filepath.Join(dir, "prometheus.yml"), config)
	return newPrometheus(t, start(t, simtest.FreeAddress(t), repo.Program(t, "prometheus"), "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--storage.tsdb.retention.time=100y", "--log.level=debug"))
}

func newPrometheus(t testing.TB, p *simtest.Process) *prometheus {
	t.Helper()
	client, err := api.NewClient(api.Config{Address: p.URL})
	if err != nil {
		t.Fatal(err)
	}
	return &prometheus{p, v1.NewAPI(client), t}
}

// query evaluates an expression now.
func (p *prometheus) query(expr string) model.Vector {
	p.t.Helper()
	return p.queryAt(time.Now(), expr)
}

// queryAt evaluates an expression at a time.
func (p *prometheus) queryAt(at time.Time, expr string) model.Vector {
	p.t.Helper()
	result, warnings, _, err := p.Query(p.t.Context(), expr, at)
	if err != nil || len(warnings) > 0 {
		p.t.Fatalf("%v %v\n%s", err, warnings, expr)
	}
	return result.(model.Vector)
}

// value returns the value of the first series of a result; 0 if there is none.
func (p *prometheus) value(expr string) float64 {
	p.t.Helper()
	for _, s := range p.query(expr) {
		return float64(s.Value)
	}
	return 0
}

// logProblem matches a line of Prometheus' log at level debug that reports a problem.
var logProblem = regexp.MustCompile(`(?i)level=(warn|error)|scrape failed|append failed|\berr(or)?=`)

// checkProblems checks Prometheus' log, which has each scrape that fails, and its counters of failures.
func (p *prometheus) checkProblems() {
	p.t.Helper()
	for line := range strings.Lines(p.Log.String()) {
		if logProblem.MatchString(line) {
			p.t.Errorf("Prometheus logs: %s", line)
		}
	}
	for line := range strings.Lines(p.Get("/metrics").Body) {
		failures := strings.HasPrefix(line, "prometheus_target_scrapes_") || strings.HasPrefix(line, "prometheus_sd_http_failures_total")
		if failures && !strings.HasSuffix(line, " 0\n") {
			p.t.Errorf("Prometheus counts: %s", line)
		}
	}
}

// eventuallyEqual waits until two functions return the same, and else shows how they differ.
func eventuallyEqual[T any](t testing.TB, what string, got, want func() T) {
	t.Helper()
	var last [2]T
	defer func() { simtest.AssertEqual(t, what, last[0], last[1]) }()
	simtest.Eventually(t, what, func() bool {
		last = [2]T{got(), want()}
		return reflect.DeepEqual(last[0], last[1])
	})
}
