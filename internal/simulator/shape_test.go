package simulator_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// addShape records the JSON type of each field of a value by its path. Items of a list and
// of an object with ids as keys are one. Null has the type of other items.
func addShape(shape map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if path == ".data.locations" {
				key = "*"
			}
			addShape(shape, path+"."+key, inner)
		}
	case []any:
		for _, inner := range v {
			addShape(shape, path, inner)
		}
	case string:
		shape[path] = "string"
	case bool:
		shape[path] = "bool"
	case float64:
		shape[path] = "number"
	}
}

// TestShape compares the fields of each endpoint with the documented ones, which the test
// data of the collectors has.
func TestShape(t *testing.T) {
	documents, err := filepath.Glob("../../collector/testdata/*/document.golden")
	if err != nil || len(documents) < 10 {
		t.Fatalf("%v: %v", documents, err)
	}
	a := simtest.Start(t, simulator.Options{})
	for _, path := range documents {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var document any // the metrics follow it
		if err := json.NewDecoder(bytes.NewReader(text)).Decode(&document); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		endpoint := "/" + strings.ReplaceAll(filepath.Base(filepath.Dir(path)), "_", "-")
		got, want := map[string]string{}, map[string]string{}
		addShape(got, "", get(t, a, endpoint).object(t))
		addShape(want, "", document)
		simtest.AssertEqual(t, endpoint, got, want)
	}
}
