package collector

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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

// TestGolden answers with each testdata/RESOURCE/CASE.json and compares what is
// wrong with it and the metrics with CASE.prom. Further pages are in CASE.2.json and so on. The other
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
				t.Run(strings.TrimPrefix(testCase, "testdata/"), func(t *testing.T) {
					simtest.Golden(t, testCase+".prom", fetchGolden(t, r, testCase))
				})
			}
		}
	}
}

// fetchGolden returns what is wrong with the items of a resource, and the metrics that
// follow from it after one fetch.
func fetchGolden(t *testing.T, r Resource, testCase string) string {
	t.Helper()
	var b strings.Builder
	scope := Scope{Account: accountOf(r)}
	var metrics []prometheus.Metric
	for _, input := range Resources() {
		path := filepath.Join(goldenDir(input), "document")
		if input.Name == r.Name {
			path = testCase
		} else if input.Account != r.Account {
			continue
		}
		api := &fakeAPI{response: rentalapi.Response{Received: today}, body: func(query url.Values) []byte {
			file := path + ".json"
			if page := query.Get("page"); page != "" && page != "1" {
				file = path + "." + page + ".json"
			}
			body, err := os.ReadFile(file)
			if err != nil {
				t.Error(err)
			}
			return body
		}}
		snap, err := input.NewFetcher(scope.Account)(t.Context(), api)
		scope.Add(snap.Facts, today.Add(time.Hour))
		if input.Name != r.Name {
			continue
		}
		if err != nil {
			fmt.Fprintf(&b, "# error: %v\n", err)
		}
		for _, c := range snap.Invalid.Causes {
			fmt.Fprintf(&b, "# invalid: %v\n", c)
		}
		if n := snap.Invalid.Items; n > 0 {
			fmt.Fprintf(&b, "# invalid items: %d\n", n)
		}
		metrics = snap.Metrics
	}
	switch r.Name {
	case "plans", "locations":
		var watched []Watched
		for _, w := range exampleWatches() {
			watched = append(watched, NewWatched(w, today).Step(scope, today))
		}
		metrics = append(metrics, WatchMetrics(watched)...)
	case "account", "servers":
		follow, _ := FundingMetrics([]Scope{scope}, today)
		metrics = append(metrics, follow...)
	}
	text := exposition(t, metrics)
	lint(t, text)
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
