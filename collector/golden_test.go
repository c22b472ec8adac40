package collector

import (
	"bytes"
	"context"
	commandline "flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/config"

	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
)

var update = commandline.Bool("update", false, "rewrite the golden files")

// today is when all golden files were fetched.
var today = time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC)

// TestGolden answers each testdata/RESOURCE/CASE.json and compares what is shown
// of it with CASE.prom. Further pages are in CASE.2.json and so on. Servers also
// have the balance of testdata/account/document.json, which tells until when
// they are paid.
func TestGolden(t *testing.T) {
	further := regexp.MustCompile(`\.\d+\.json$`)
	for _, r := range Resources() {
		files, err := filepath.Glob(filepath.Join("testdata", r.Name, "*.json"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no golden files (%v)", r.Name, err)
		}
		for _, file := range files {
			if further.MatchString(file) {
				continue
			}
			t.Run(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".json"), func(t *testing.T) {
				golden(t, r, strings.TrimSuffix(file, ".json"))
			})
		}
	}
}

func golden(t *testing.T, r Resource, file string) {
	answers := map[string]string{r.Endpoint: file}
	if r.Name == "servers" {
		answers["/account"] = "testdata/account/document"
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		path := strings.TrimPrefix(req.URL.Path, prefix)
		name := answers[path] + ".json"
		if page := req.FormValue("page"); page != "" && page != "1" {
			name = answers[path] + "." + page + ".json"
		}
		http.ServeFile(w, req, name)
	}))
	defer server.Close()

	var got string
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(today))
		got = fetched(t, r, server.URL)
	})
	if *update {
		if err := os.WriteFile(file+".prom", []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file + ".prom")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s.prom: (- want, + got)\n%s", file, diff(string(want), got))
	}
}

// fetched is the exposition of one resource after one fetch over the network.
func fetched(t *testing.T, r Resource, server string) string {
	base, err := url.Parse(server + prefix)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rentalapi.NewTransport(config.HTTPClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	client := rentalapi.New("test/1", rentalapi.Settings{
		BaseURL: base, Transport: transport, Timeout: 10 * time.Second, Limits: rentalapi.Limits{Public: 30, Account: 60, AccountBulk: 40},
	})
	log := &journalLines{}
	rig := &rig{t: t, set: New(log.logger(), client), registry: prometheus.NewPedanticRegistry()}
	rig.registry.MustRegister(rig.set, rig.set.State())
	c := every(time.Minute, time.Hour, r.Name)
	if r.Name == "servers" {
		c.Collectors["account"] = refresh.Settings{Interval: time.Minute, MaxAge: time.Hour}
	}
	if err := rig.set.Once(context.Background(), c); err != nil {
		t.Errorf("Once: %v", err)
	}
	var invalid int64
	for _, s := range rig.set.Status() {
		invalid += s.Invalid
	}
	own := map[string]bool{}
	for _, d := range r.Metrics {
		own[d.Name] = true
	}
	out := fmt.Sprintf("# items left out: %d\n", invalid) + rig.expose(func(name string) bool { return own[name] })
	lint(t, out)
	return out
}

// Names that INTERFACE.md promises although promlint would have others: none.
var lintExceptions = []string{}

func lint(t *testing.T, exposition string) {
	t.Helper()
	problems, err := promlint.New(bytes.NewBufferString(exposition)).Lint()
	if err != nil {
		t.Errorf("promlint: %v", err)
	}
	for _, p := range problems {
		if !slices.Contains(lintExceptions, p.Metric) {
			t.Errorf("promlint: %s: %s", p.Metric, p.Text)
		}
	}
}

// TestGoldenShowsEverything finds metrics that no golden file has.
func TestGoldenShowsEverything(t *testing.T) {
	for _, r := range Resources() {
		files, err := filepath.Glob(filepath.Join("testdata", r.Name, "*.prom"))
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		for _, d := range r.Metrics {
			if !strings.Contains(all.String(), "# TYPE "+d.Name+" "+string(d.Type)+"\n") {
				t.Errorf("%s: no golden file has the %s %s", r.Name, d.Type, d.Name)
			}
		}
	}
}

// TestLint holds every metric of a running set against promlint, the exporter's own included.
func TestLint(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.sim.Inject(simulator.Fault{Path: "/plans", Kind: simulator.Respond, Status: 429, Header: http.Header{"Retry-After": {"3600"}}})
		r.run(every(time.Minute, time.Hour))
		r.settle()
		out := r.expose(func(string) bool { return true })
		lint(t, out)
		for _, d := range append(Definitions(), rentalapi.Definitions()...) {
			if !strings.Contains(out, "# TYPE "+d.Name+" "+string(d.Type)+"\n") {
				t.Errorf("%s %s is not shown", d.Type, d.Name)
			}
		}
	})
}
