package exporter

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/server-rental-exporter/server_rental_exporter/runner"
)

// TestStable asserts that everything which testdata/stable.txt lists exists, with this type,
// these labels and this severity.
func TestStable(t *testing.T) {
	exists := map[string]bool{}
	addNames(exists)
	addRules(t, exists)
	for line := range strings.Lines(string(read(t, "testdata/stable.txt"))) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if line = strings.Join(fields, " "); !exists[line] {
			t.Errorf("%s: missing or changed; if this is intended, change the list and add it to CHANGELOG.md", line)
		}
	}
}

// addNames adds lines like those of the list for all metrics, flags and variables.
func addNames(exists map[string]bool) {
	for _, d := range runner.Definitions() {
		exists[strings.Join(append([]string{"metric", d.Name, d.Type}, d.Labels...), " ")] = true
	}
	app, _ := newApplication(io.Discard)
	for _, f := range app.Model().Flags {
		exists[strings.TrimSpace("flag "+f.Name+" "+f.Envar)] = true
		exists["default "+f.Name+" "+strings.Join(f.Default, " ")] = true
		for _, word := range strings.Fields(f.Help) {
			exists["variable "+strings.TrimPrefix(word, "$")] = true
		}
	}
}

// addRules adds lines like those of the list for all alerts and recording rules.
func addRules(t *testing.T, exists map[string]bool) {
	t.Helper()
	files, err := filepath.Glob("../alerts/*.rules.yml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		var content struct {
			Groups []struct {
				Rules []struct {
					Record, Alert string
					Labels        map[string]string
				}
			}
		}
		if err := yaml.Unmarshal(read(t, file), &content); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, g := range content.Groups {
			for _, r := range g.Rules {
				exists["record "+r.Record] = true
				exists["alert "+r.Alert+" "+r.Labels["severity"]] = true
			}
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
