package exporter

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestStable asserts that everything which testdata/stable.txt lists exists, with this type,
// these labels and this severity.
func TestStable(t *testing.T) {
	list := string(read(t, "testdata/stable.txt"))
	existing := map[string]bool{}
	for _, line := range slices.Concat(definedNames(t), servedPaths(t, list)) {
		existing[normalized(line)] = true
	}
	for line := range strings.Lines(list) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' && !existing[normalized(line)] {
			t.Errorf("%s: missing or changed; if this is intended, change the list and add it to CHANGELOG.md", line)
		}
	}
}

// normalized sorts the labels of a metric.
func normalized(line string) string {
	fields := strings.Fields(line)
	if fields[0] == "metric" && len(fields) > 3 {
		slices.Sort(fields[3:])
	}
	return strings.Join(fields, " ")
}

// definedNames returns lines like those of the list for all metrics, flags, variables and
// rules.
func definedNames(t *testing.T) (lines []string) {
	t.Helper()
	add := func(fields ...string) { lines = append(lines, strings.TrimSpace(strings.Join(fields, " "))) }
	for _, d := range Definitions() {
		add(append([]string{"metric", d.Name, d.Type}, d.Labels...)...)
	}
	app, _ := newApplication(io.Discard)
	for _, f := range app.Model().Flags {
		add("flag", f.Name, f.Envar)
		add("default", f.Name, strings.Join(f.Default, " "))
		for _, word := range strings.Fields(f.Help) {
			if variable, ok := strings.CutPrefix(word, "$"); ok {
				add("variable", variable)
			}
		}
	}
	for _, r := range rulesOf(t) {
		if r.Record != "" {
			add("record", r.Record)
		} else {
			add("alert", r.Alert, r.Labels["severity"])
		}
	}
	return lines
}

// rule is a rule of Prometheus.
type rule struct {
	Record, Alert string
	Labels        map[string]string
}

func rulesOf(t *testing.T) (rules []rule) {
	t.Helper()
	files, err := filepath.Glob("../alerts/*.rules.yml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		var content struct{ Groups []struct{ Rules []rule } }
		if err := yaml.Unmarshal(read(t, file), &content); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, g := range content.Groups {
			rules = append(rules, g.Rules...)
		}
	}
	return rules
}

// servedPaths returns the paths of the list that a program with everything enabled serves,
// and the labels of its service discovery.
func servedPaths(t *testing.T, list string) (lines []string) {
	t.Helper()
	_, p := startProvider(t, "--web.enable-lifecycle", "--web.enable-service-discovery")
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "path" {
			continue
		}
		r, err := simtest.Do(fields[1], p.url+fields[2])
		if err != nil {
			t.Fatal(err)
		}
		if r.Status == http.StatusOK {
			lines = append(lines, strings.Join(fields, " "))
		}
	}
	var groups []struct{ Labels map[string]string }
	if err := json.Unmarshal([]byte(p.get("/sd/servers").Body), &groups); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		for label := range g.Labels {
			lines = append(lines, "target "+label)
		}
	}
	return lines
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
