package collector

import (
	"cmp"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// TestOmittedFields: docs/metrics.md lists each field of an item that no metric shows, and no
// other field.
func TestOmittedFields(t *testing.T) {
	documented := omittedFields(t)
	for _, r := range Resources() {
		for name, shown := range shownFields(t, r) {
			listed := slices.ContainsFunc(documented[r.Name], func(pattern string) bool {
				matches, err := path.Match(pattern, name)
				return err == nil && (matches || strings.HasPrefix(name, pattern+"."))
			})
			if listed == shown {
				t.Errorf("%s %s: shown %t, listed in docs/metrics.md as omitted %t", r.Name, name, shown, listed)
			}
		}
	}
}

// omittedFields returns the patterns of the table in docs/metrics.md by resource.
func omittedFields(t *testing.T) map[string][]string {
	t.Helper()
	document, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(document), "\n## Omitted fields\n")
	table, _, _ = strings.Cut(table, "\n## ")
	irregular := map[string]string{ // others are plurals, as Server of servers
		"Account": "account", "Top-up": "topups", "Saved configuration": "configurations", "SSH key": "ssh_keys", "Status": "status", "OS image": "os",
	}
	found := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| ([A-Z][^`|]*) (`[^|]*) \\|").FindAllStringSubmatch(table, -1) {
		resource := cmp.Or(irregular[row[1]], strings.ToLower(row[1])+"s")
		for _, field := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			found[resource] = append(found[resource], field[1])
		}
	}
	return found
}

// shownFields returns for each field of the documented items, but for ids and those that hold
// fields, whether another value changes a metric.
func shownFields(t *testing.T, r Resource) map[string]bool {
	t.Helper()
	document := documented(t, r)
	snap, err := fetchBody(t, r, document)
	if err != nil {
		t.Fatal(err)
	}
	base, shown := exposed(t, snap), map[string]bool{}
	items, isList := simtest.Decode(t, document)["data"].([]any)
	if !isList {
		items = []any{simtest.Decode(t, document)["data"]}
	}
	for i, item := range items {
		for _, f := range fieldsOf(item, nil) {
			name := strings.Join(f.path, ".")
			if _, isObject := f.value.(map[string]any); isObject || name == "id" {
				continue
			}
			for _, other := range wrongValues(f.value) {
				body := simtest.Decode(t, document)
				target := body["data"]
				if isList {
					target = target.([]any)[i]
				}
				simulator.Put(target.(map[string]any), other, f.path...)
				snap, err := fetchBody(t, r, simtest.Encode(t, body))
				shown[name] = shown[name] || err != nil || !maps.Equal(exposed(t, snap), base)
			}
		}
	}
	return shown
}
