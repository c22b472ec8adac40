package collector

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestInvalidFields gives each field of each documented response, one after another, a
// value of the wrong type or out of range. A field that is read counts as one invalid item. The golden
// files show the values, and items that are not usable at all.
func TestInvalidFields(t *testing.T) {
	for _, r := range Resources() {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			document := documented(t, r)
			snap, err := newBodyTest(t, r, document).fetch()
			if err != nil || snap.Invalid.Items > 0 {
				t.Fatalf("got error %v and invalid items %+v, want none: set each field in testdata/%s/document.golden", err, snap.Invalid, r.Name)
			}
			base := exposed(t, metricsOf(r, snap))
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
					isRead, name := false, strings.Join(f.path, ".")
					for _, bad := range wrongValues(f.value) {
						simulator.Put(target.(map[string]any), bad, f.path...)
						isRead = assertFieldCost(t, r, simtest.Encode(t, body), base, id, name) || isRead
					}
					if isRead {
						assertAbsenceCounts(t, r, body, target.(map[string]any), f.path)
					}
				}
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
		return []any{"12.50", true, json.RawMessage("-1e999"), json.RawMessage("1e308")}
	case bool:
		return []any{"yes", 1}
	case map[string]any:
		return []any{[]int{1}, "x"}
	case []any:
		return []any{map[string]any{}, 5}
	}
	return nil
}

// assertFieldCost returns whether a field that is invalid in a response is read. If it is not, the
// series are those of the documented response.
func assertFieldCost(t *testing.T, r Resource, body []byte, base map[string]float64, id, name string) bool {
	t.Helper()
	what := fmt.Sprintf("%s: %s in %s", id, name, body)
	snap, err := newBodyTest(t, r, body).fetch()
	switch {
	case errors.Is(err, rentalapi.ErrIncomplete) && strings.Contains(err.Error(), "data."+name+":"):
		return true // the response cannot be used without this field
	case err != nil:
		t.Errorf("%s: %v", what, err)
		return false
	case snap.Invalid.Items == 0:
		simtest.AssertEqual(t, what+": series where the field is not read", exposed(t, metricsOf(r, snap)), base)
		return false
	}
	cause := snap.Invalid.Causes[0]
	if snap.Invalid.Items != 1 || len(snap.Invalid.Causes) != 1 || name != "id" && cause.Item != id || cause.Field != name {
		t.Errorf("%s: got invalid items %+v", what, snap.Invalid)
	}
	return true
}

// nullable are the fields that are read and may be null as the provider documents them.
func nullable() []string {
	return []string{
		"plans gpu", "plans cpu.architecture", "plans cpu.l3_cache_mb", "plans availability.alternative", "os license", "account name",
		"topups payment", "topups confirmations", "topups credited", "topups paid_at",
	}
}

// newFields are the fields with the tag api:"new", which revision 1.0 of the API lacks.
func newFields() []string { return []string{"ssh_keys type"} }

// states are the fields that the provider documents as a state, apart from those of components.
func states() []string {
	return []string{"servers status", "topups status", "status overall", "plans availability.delivery"}
}

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
		snap, err := newBodyTest(t, r, simtest.Encode(t, body)).fetch()
		if got := snap.Invalid.Items; got != want && !errors.Is(err, rentalapi.ErrIncomplete) {
			t.Errorf("%s %s: got %d invalid items, want %d: %+v; nullable and newFields list the fields whose tag allows that", field, what, got, want, snap.Invalid)
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
	isName := path[0] == "locations" && len(path)%2 == 0 // a name is no field
	if isName || slices.Contains(newFields(), field) {
		want = 0
	}
	assert("missing")
}

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
		r := Resources()[int(which)%len(Resources())]
		snap, err := newBodyTest(t, r, body).fetch()
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
	})
}

// TestContradictions has plans whose stock contradicts their delivery: each is one invalid item, and the
// stock is exported as it is.
func TestContradictions(t *testing.T) {
	for _, c := range []struct {
		delivery any
		stock    any
		cores    any
		want     int
	}{{"sold_out", true, 8, 1}, {"instant", false, 8, 1}, {"sold_out", true, nil, 1}, {"sold_out", false, 8, 0}, {"instant", true, 8, 0}, {"2 days", true, 8, 0}, {"2 days", false, 8, 0}} {
		body := simtest.Decode(t, documented(t, plans))
		plan := body["data"].([]any)[0].(map[string]any)
		body["data"] = []any{plan}
		simulator.Put(body, 1, "meta", "count")
		simulator.Put(body, map[any]int{true: 1}[c.stock], "meta", "in_stock")
		simulator.Put(plan, c.delivery, "availability", "delivery")
		simulator.Put(plan, c.stock, "availability", "in_stock")
		simulator.Put(plan, c.cores, "cpu", "cores")
		s := newBodyTest(t, plans, simtest.Encode(t, body)).mustFetch()
		got := []any{s.Invalid.Items, exposed(t, s.Metrics)[simtest.Series(planInStock.Name, "plan", plan["id"].(string))] == 1}
		simtest.AssertEqual(t, fmt.Sprint(c), got, []any{c.want, c.stock})
	}
}
