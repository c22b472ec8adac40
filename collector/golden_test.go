package collector

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator/simtest"
)

// today is when the golden files are fetched.
var today = time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC)

// goldenDir is the test data of a resource.
func goldenDir(r Resource) string { return filepath.Join("testdata", r.Name) }

// documented returns a resource's answer as the provider documents it, which each
// resource must have.
func documented(t testing.TB, r Resource) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(goldenDir(r), "document.json"))
	if err != nil {
		t.Fatalf("%v: write the answer of %s as the provider documents it to this file, run go test -run TestGolden -update, and read the .prom files that it writes", err, r.Endpoint)
	}
	return body
}

// TestGolden answers with each testdata/RESOURCE/CASE.json and compares the log and
// the metrics with CASE.prom. Further pages are in CASE.2.json and so on. The other
// inputs of derived metrics are answered as documented.
func TestGolden(t *testing.T) {
	furtherPage := regexp.MustCompile(`\.\d+\.json$`)
	for _, r := range Resources() {
		documented(t, r)
		files, err := filepath.Glob(filepath.Join(goldenDir(r), "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !furtherPage.MatchString(file) {
				testCase := strings.TrimSuffix(file, ".json")
				subtest(t, strings.TrimPrefix(testCase, "testdata/"), func(t *testing.T, h *harness) {
					simtest.Golden(t, testCase+".prom", h.fetchGolden(r, testCase))
				})
			}
		}
	}
}

// fetchGolden returns the log and the metrics of a resource, and of what is derived
// from it, after one fetch.
func (h *harness) fetchGolden(r Resource, testCase string) string {
	h.t.Helper()
	names, wanted := []string{r.Name}, families(r)
	for _, d := range derivations() {
		if slices.Contains(d.inputs, r.Name) {
			names = append(names, d.inputs...)
		}
	}
	for _, input := range Resources() {
		path := filepath.Join(goldenDir(input), "document")
		if input.Name == r.Name {
			path = testCase
		}
		h.Override(input.Endpoint, func(w http.ResponseWriter, req *http.Request) {
			file := path + ".json"
			if page := req.FormValue("page"); page != "" && page != "1" {
				file = path + "." + page + ".json"
			}
			http.ServeFile(w, req, file)
		})
	}
	time.Sleep(time.Until(today))
	c := configure(time.Minute, time.Hour, names...)
	c.Watches = exampleWatches()
	err := h.set.Once(h.t.Context(), c)
	var b strings.Builder
	for _, line := range h.log.Take(h.t) {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	if failed := strings.Contains(b.String(), "level=error"); failed != (err != nil) {
		h.t.Errorf("Once: got error %v, and the log %s", err, b.String())
	}
	text := h.exposition(func(name string) bool { return slices.Contains(wanted, name+"{") })
	lint(h.t, text)
	return b.String() + text
}

func exampleWatches() []Watch {
	return []Watch{
		{Name: "europe", Regions: []string{"Europe"}, MaxUSDPerMonth: ptr(500.0)},
		{Name: "gpu", GPU: ptr(true)},
	}
}

func lint(t *testing.T, exposition string) {
	t.Helper()
	problems, err := promlint.New(bytes.NewBufferString(exposition)).Lint()
	if err != nil {
		t.Errorf("promlint: %v", err)
	}
	for _, p := range problems {
		t.Errorf("promlint: %s: %s", p.Metric, p.Text)
	}
}

// TestGoldenComplete finds metrics that no golden file contains. Two need a change from
// one answer to the next.
func TestGoldenComplete(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.prom")
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
	changes := []*metric.Definition{planStockChanged, watchLastHit}
	for _, d := range Definitions() {
		if slices.Contains(changes, d) {
			continue
		}
		if !strings.Contains(all.String(), fmt.Sprintf("# HELP %s %s\n# TYPE %s %s\n", d.Name, d.Help, d.Name, d.Type)) {
			t.Errorf("no golden file contains the %s %s: add its field to a document.json", d.Type, d.Name)
		}
	}
}

// TestLint checks all metrics of a running set with promlint, and that each
// definition is exposed.
func TestLint(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		c := configure(time.Minute, time.Hour)
		c.Watches = exampleWatches()
		h.run(c)
		h.settle()
		for _, in := range []bool{false, true} {
			h.setPlan("gpu-rtx-4000-ada", in, "availability", "in_stock")
			h.runFor(2 * time.Minute)
		}
		h.Inject(simtest.Fault{Path: "/plans", Kind: simtest.Respond, Status: 503, Header: http.Header{"Retry-After": {"3600"}}})
		h.runFor(2 * time.Minute)
		lint(t, h.exposition(all))
		got := h.scrape().Families
		for _, d := range slices.Concat(Definitions(), HealthDefinitions(), rentalapi.Definitions()) {
			if got[d.Name].Type != string(d.Type) {
				t.Errorf("%s: got type %q, want %q", d.Name, got[d.Name].Type, d.Type)
			}
		}
	})
}
