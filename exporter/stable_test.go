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

// TestStable: everything that testdata/stable.txt lists exists, with this type, these labels
// and this severity; what it lists as removed does not, and CHANGELOG.md names it.
func TestStable(t *testing.T) {
	list := string(read(t, "testdata/stable.txt"))
	for _, problem := range unstable(list, slices.Concat(definedNames(t), servedPaths(t, list)), string(read(t, "../CHANGELOG.md"))) {
		t.Error(problem)
	}
	checkSettings(t, list)
}

// unstable returns what is wrong with the lines of the list, except for settings.
func unstable(list string, have []string, changelog string) (problems []string) {
	existing := map[string]bool{}
	for _, line := range have {
		existing[normalized(line)] = true
	}
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		rest, removed := strings.CutPrefix(line, "removed ")
		kind, _, _ := strings.Cut(rest, " ")
		switch {
		case line == "" || line[0] == '#' || kind == "setting" && !removed:
		case !removed && !existing[normalized(rest)]:
			problems = append(problems, line+": missing or changed; if this is intended, begin the line with \"removed\" and add it to CHANGELOG.md")
		case removed && existing[normalized(rest)]:
			problems = append(problems, line+": still exists")
		case removed && !strings.Contains(changelog, "`"+strings.Fields(rest)[1]+"`"):
			problems = append(problems, line+": CHANGELOG.md does not name it")
		}
	}
	return problems
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
		add(append([]string{"metric", d.Name, string(d.Type)}, d.Labels...)...)
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
		fields := strings.Fields(strings.TrimPrefix(line, "removed "))
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

// checkSettings checks a configuration file with all settings of the list.
func checkSettings(t *testing.T, list string) {
	t.Helper()
	dir, file := t.TempDir(), map[string]any{}
	values := strings.NewReplacer(
		"TOKEN_FILES", simtest.WriteFile(t, filepath.Join(dir, "lab"), "token-of-lab"),
		"TOKEN_FILE", simtest.WriteFile(t, filepath.Join(dir, "main"), "token-of-main"),
	)
	for line := range strings.Lines(list) {
		setting, ok := strings.CutPrefix(line, "setting ")
		if !ok {
			continue
		}
		path, text, _ := strings.Cut(setting, " ")
		var value any
		if err := yaml.Unmarshal([]byte(values.Replace(text)), &value); err != nil {
			t.Fatalf("%s: %v", setting, err)
		}
		put(file, strings.Split(path, "."), value)
	}
	content, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	config := simtest.WriteFile(t, filepath.Join(dir, "all.yml"), string(content))
	if o := finish(t, "--config.check", "--config.file="+config).outcome(); o.Code != 0 {
		t.Errorf("settings of testdata/stable.txt:\n%s", o.Log)
	}
}

// put sets a value of nested mappings. A key that ends in [] is a list with one item.
func put(m map[string]any, path []string, value any) {
	key, isList := strings.CutSuffix(path[0], "[]")
	if len(path) == 1 {
		m[key] = value
		return
	}
	child, _ := m[key].(map[string]any)
	if items, ok := m[key].([]any); ok {
		child = items[0].(map[string]any)
	}
	if child == nil {
		child = map[string]any{}
	}
	put(child, path[1:], value)
	m[key] = child
	if isList {
		m[key] = []any{child}
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
