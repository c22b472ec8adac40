package exporter

import (
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/server-rental-exporter/server_rental_exporter/runner"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestStable asserts that everything which testdata/stable.txt lists exists, with this type,
// these labels and this severity.
func TestStable(t *testing.T) {
	exists := map[string]bool{} // lines like those of the list
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
	rules, err := fs.Glob(os.DirFS("../alerts"), "*.rules.yml")
	simtest.AssertEqual(t, "error", err, nil)
	for _, file := range rules {
		var content struct {
			Groups []struct {
				Rules []struct {
					Record, Alert string
					Labels        map[string]string
				}
			}
		}
		simtest.AssertEqual(t, file, yaml.Unmarshal(read(t, "../alerts/"+file), &content), nil)
		for _, g := range content.Groups {
			for _, r := range g.Rules {
				exists["record "+r.Record] = true
				exists["alert "+r.Alert+" "+r.Labels["severity"]] = true
			}
		}
	}
	for line := range strings.Lines(string(read(t, "testdata/stable.txt"))) {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" && line[0] != '#' && !exists[line] {
			t.Errorf("%s: missing or changed; if this is intended, change the list and add it to CHANGELOG.md", line)
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
