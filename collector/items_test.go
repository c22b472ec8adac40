package collector

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// TestInvalidFields gives each field of each documented response, one after another, a
// value of the wrong type or out of range. A field that is read costs only the
// series whose definition names it as the source, and its label in an _info metric. The
// golden files show the values, and items that are not usable at all.
func TestInvalidFields(t *testing.T) {
	for _, r := range Resources() {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			document := documented(t, r)
			snap, err := fetchBody(t, r, document)
			simtest.AssertEqual(t, "documented response: error and invalid items", []any{err, snap.Invalid.Items}, []any{nil, 0})
			base := exposed(t, snap)
			var read int // fields
			items, isList := simtest.Decode(t, document)["data"].([]any)
			if !isList {
				items = []any{simtest.Decode(t, document)["data"]}
			}
			for i, item := range items {
				for _, f := range fieldsOf(item, nil) {
					body := simtest.Decode(t, document)
					target, id := body["data"], strings.TrimPrefix(r.Path, "/")
					if isList {
						target = body["data"].([]any)[i]
						id = fmt.Sprint(target.(map[string]any)["id"])
					}
					isRead := false
					for _, bad := range wrongValues(f.value) {
						simulator.Put(target.(map[string]any), bad, f.path...)
						if assertFieldCost(t, r, simtest.Encode(t, body), base, id, strings.Join(f.path, ".")) {
							isRead = true
						}
					}
					if isRead {
						read++
						assertAbsenceCounts(t, r, body, target.(map[string]any), f.path)
					}
				}
			}
			if read == 0 {
				t.Error("no field is read")
			}
		})
	}
}

// field is a value in a JSON object.
type field struct {
	path  []string
	value any
}

// fieldsOf returns all fields in an object, those of inner objects included.
func fieldsOf(v any, path []string) []field {
	var found []field
	for key, inner := range v.(map[string]any) {
		p := append(slices.Clone(path), key)
		found = append(found, field{p, inner})
		if _, isObject := inner.(map[string]any); isObject {
			found = append(found, fieldsOf(inner, p)...)
		}
	}
	return found
}

// wrongValues returns values that cannot stand in place of one.
func wrongValues(value any) []any {
	switch value.(type) {
	case string:
		return []any{map[string]any{}, true}
	case float64:
		return []any{"12.50", true, json.RawMessage("-1e999")}
	case bool:
		return []any{"yes", 1}
	case map[string]any:
		return []any{[]int{1}, "x"}
	case []any:
		return []any{map[string]any{}, 5}
	}
	return nil
}

// assertFieldCost compares the series of a response with an invalid field with those
// of the documented response, and returns whether the field is read.
func assertFieldCost(t *testing.T, r Resource, body []byte, base map[string]float64, id, path string) bool {
	t.Helper()
	what := fmt.Sprintf("%s: %s in %s", id, path, body)
	snap, err := fetchBody(t, r, body)
	switch {
	case errors.Is(err, rentalapi.ErrIncomplete) && strings.Contains(err.Error(), "data."+path+":"):
		return true // the response cannot be used without this field
	case err != nil:
		t.Errorf("%s: %v", what, err)
		return false
	}
	got := exposed(t, snap)
	if snap.Invalid.Items == 0 {
		simtest.AssertEqual(t, what+": series where the field is not read", got, base)
		return false
	}
	cause := snap.Invalid.Causes[0]
	if snap.Invalid.Items != 1 || len(snap.Invalid.Causes) != 1 || path != "id" && cause.Item != id || cause.Field != path {
		t.Errorf("%s: got invalid items %+v", what, snap.Invalid)
	}
	if path == "id" {
		return true
	}
	for series, v := range base {
		if now, found := got[series]; (!found || now != v) && !mayChange(r, series, path, base, got) {
			t.Errorf("%s: lost %s %v", what, series, v)
		}
	}
	return true
}

// nullable are the fields that are read and may be null as the provider documents them.
func nullable() []string {
	return []string{
		"plans gpu", "plans cpu.architecture", "plans cpu.l3_cache_mb", "plans availability.alternative", "os license", "account name",
		"topups payment", "topups confirmations", "topups paid_at",
	}
}

// states are the fields that the provider documents as a state, apart from those of components.
func states() []string { return []string{"servers status", "topups status", "status overall"} }

// assertAbsenceCounts asserts that a field which is null or missing, or a state which is
// blank, counts as one invalid item, or makes the fetch fail, unless it is nullable.
func assertAbsenceCounts(t *testing.T, r Resource, body, target map[string]any, path []string) {
	t.Helper()
	field := r.Name + " " + strings.Join(path, ".")
	want := 1
	if slices.Contains(nullable(), field) {
		want = 0
	}
	assert := func(what string) {
		t.Helper()
		snap, err := fetchBody(t, r, simtest.Encode(t, body))
		if got := snap.Invalid.Items; got != want && !errors.Is(err, rentalapi.ErrIncomplete) {
			t.Errorf("%s %s: got %d invalid items, want %d: %+v", field, what, got, want, snap.Invalid)
		}
	}
	simulator.Put(target, nil, path...)
	assert("null")
	if slices.Contains(states(), field) || r.Name == "status" && len(path) == 4 {
		for _, blank := range []string{"", " \t"} {
			simulator.Put(target, blank, path...)
			assert("blank")
		}
	}
	for _, key := range path[:len(path)-1] {
		target = target[key].(map[string]any)
	}
	delete(target, path[len(path)-1])
	// A name, which is no field, or a field that revision 1.0 lacks.
	if path[0] == "locations" && len(path)%2 == 0 || field == "ssh_keys type" {
		want = 0
	}
	assert("missing")
}

// mayChange returns whether a series may depend on a field: its definition names the
// field, or something in it, as the source, or it is an _info metric, of which it may be a
// label and which is still there.
func mayChange(r Resource, series, path string, base, got map[string]float64) bool {
	name, _, _ := strings.Cut(series, "{")
	d := r.Metrics[slices.IndexFunc(r.Metrics, func(d *metric.Definition) bool { return d.Name == name })]
	switch {
	case (d == planStock.lastInStock || d == configurationStock.lastInStock) && slices.Contains([]string{"availability", "availability.in_stock", "in_stock"}, path):
		return true // its source is the exporter
	case r.Name == "topups" && path == "status":
		return true // decides whether the top-up is exposed
	case r.Name == "transactions":
		return true // a label of what is added up
	}
	for _, source := range strings.FieldsFunc(d.Source, func(c rune) bool { return c == ' ' || c == ',' }) {
		if madeFrom(series, strings.Split(source, "."), strings.Split(path, ".")) {
			return true
		}
	}
	return strings.HasSuffix(name, "_info") && countOf(got, name) == countOf(base, name)
}

// countOf returns the number of series of a family.
func countOf(all map[string]float64, name string) (n int) {
	for series := range all {
		if strings.HasPrefix(series, name+"{") {
			n++
		}
	}
	return n
}

// madeFrom returns whether a source of a series is a field, in it, or around it. The
// keys of a map, which the source does not name, are label values of the series.
func madeFrom(series string, source, path []string) bool {
	for i, key := range path {
		switch {
		case i >= len(source) || source[i] == "*":
			if !strings.Contains(series, strconv.Quote(key)) {
				return false
			}
		case source[i] != key:
			return false
		}
	}
	return true
}
