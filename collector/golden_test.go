package collector

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// today is when the golden files are fetched.
var today = time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC)

// responseOf returns the response of testdata/RESOURCE/CASE.golden, which ends before the line ---.
func responseOf(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: write the response as the provider documents it to this file, run go test -run TestGolden -update, and read what it appends", err)
	}
	response, _, _ := bytes.Cut(text, []byte("---\n"))
	return response
}

// documented returns a resource's response as the provider documents it, which each
// resource must have.
func documented(t testing.TB, r Resource) []byte {
	t.Helper()
	return responseOf(t, filepath.Join("testdata", r.Name, "document.golden"))
}

// ofChanges matches metrics that no single response has.
var ofChanges = regexp.MustCompile("_(last|previous|added|removed|changed|two_factor_off)_")

// TestGolden fetches each testdata/RESOURCE/CASE.golden: the response, then the line ---, then
// what is wrong with the response and the metrics.
func TestGolden(t *testing.T) {
	for _, r := range Resources() {
		documented(t, r) // before all cases, which would each say that it is missing
	}
	for _, r := range Resources() {
		files, err := filepath.Glob(filepath.Join("testdata", r.Name, "*.golden"))
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, file := range files {
			t.Run(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".golden"), func(t *testing.T) {
				response := responseOf(t, file)
				metrics := fetchGolden(t, r, response)
				all.WriteString(metrics)
				simtest.Golden(t, file, string(response)+"---\n"+metrics)
			})
		}
		for _, d := range r.Metrics {
			if !ofChanges.MatchString(d.Name) && !strings.Contains(all.String(), d.Name) {
				t.Errorf("%s: in no testdata/%s/*.golden: set its field in the response of one", d.Name, r.Name)
			}
		}
	}
}

// fetchGolden returns what is wrong with the items of a resource, and the metrics that
// follow from it after one fetch.
func fetchGolden(t *testing.T, r Resource, response []byte) string {
	t.Helper()
	var b strings.Builder
	snap, err := newBodyTest(t, r, response).fetch()
	if err != nil {
		fmt.Fprintf(&b, "# error: %v\n", err)
	}
	for _, c := range snap.Invalid.Causes {
		fmt.Fprintf(&b, "# invalid: %v\n", c)
	}
	if n := snap.Invalid.Items; n > 0 {
		fmt.Fprintf(&b, "# invalid items: %d\n", n)
	}
	return b.String() + textOf(t, metricsOf(r, snap))
}

// metricsOf returns the metrics of a snapshot, and those that follow from it today.
func metricsOf(r Resource, s Snapshot) []*metric.Sample {
	return slices.Concat(s.Metrics, AccountData{Name: accountOf(r), Data: s.Data}.Derived(today))
}
