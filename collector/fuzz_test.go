package collector

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/simulator/simtest"
)

// FuzzItems gives each resource arbitrary bytes. A fetch ends with an error
// or with metrics of the resource that can be gathered.
func FuzzItems(f *testing.F) {
	index := map[string]uint8{}
	for i, r := range Resources() {
		index[r.Name] = uint8(i)
		f.Add(uint8(i), []byte(`{"data":[{"id":"a"},{"id":"a"},{"id":1}],"meta":{"total":3,"pages":2}}`))
		f.Add(uint8(i), []byte(`{"data":{"id":"a","locations":{"a":{"components":{"b":"c"}}}},"meta":null}`))
	}
	files, err := filepath.Glob("testdata/*/*.golden")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		f.Add(index[filepath.Base(filepath.Dir(file))], responseOf(f, file))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		testBody(t, Resources()[int(which)%len(Resources())], body)
	})
}

func testBody(t *testing.T, r Resource, body []byte) {
	snap, err := fetchBody(t, r, body)
	if err != nil {
		simtest.AssertNoSecrets(t, "error", err.Error())
		if len(snap.Metrics) > 0 || snap.Data != (Data{}) {
			t.Errorf("%s: data and the error %v", r.Name, err)
		}
	}
	for series := range exposed(t, snap.Metrics) {
		name, _, _ := strings.Cut(series, "{")
		if !slices.ContainsFunc(r.Metrics, func(d *metric.Definition) bool { return d.Name == name }) {
			t.Errorf("%s: unexpected %s", r.Name, series)
		}
	}
	if len(snap.Invalid.Causes) > 10 || (snap.Invalid.Items > 0) != (len(snap.Invalid.Causes) > 0) {
		t.Errorf("%s: invalid %+v", r.Name, snap.Invalid)
	}
	if snap.Data.Servers != nil {
		fundedUntil(100, renewalsDue(snap.Data.Servers.renewals, day(t, "2026-03-15")), day(t, "2026-03-15"))
	}
}
