package collector

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator/simtest"
)

// TestInvalidItems adds an unusable item to each documented list. It counts as an item
// and is dropped.
func TestInvalidItems(t *testing.T) {
	id := func(v any) map[string]any { return map[string]any{"id": v} }
	for _, r := range Resources() {
		document := simtest.Decode(t, documented(t, r))
		list, isList := document["data"].([]any)
		if !isList {
			continue
		}
		stopClock(t, r.Name, func(t *testing.T) {
			want := exposed(t, mustFetch(t, r, simtest.Encode(t, document)))
			for _, d := range r.Metrics {
				if !strings.HasPrefix(d.Source, "number of ") || strings.Contains(d.Source, ".") {
					continue // does not count all items
				}
				for series := range want {
					if strings.HasPrefix(series, d.Name+"{") {
						want[series]++
					}
				}
			}
			first := list[0].(map[string]any)
			for name, item := range map[string]any{
				"null": nil, "array": []int{}, "text": "item", "number": 5, "empty object": map[string]any{}, "null as id": id(nil), "empty id": id(""),
				"object as id": id(id(1)), "fraction as id": id(1.5), "long id": id(strings.Repeat("x", 300<<10)),
				"known id": first, "known id alone": id(first["id"]),
			} {
				body := maps.Clone(document)
				body["data"] = slices.Insert(slices.Clone(list), 1, item)
				got, err := fetchBody(t, r, simtest.Encode(t, body))
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				simtest.AssertEqual(t, name+": series", exposed(t, got), want)
				simtest.AssertEqual(t, name+": invalid items and causes", []int{got.Invalid.Items, len(got.Invalid.Causes)}, []int{1, 1})
				cause, wantItem, wantField := got.Invalid.Causes[0], "data[1]", "id"
				if _, isObject := item.(map[string]any); !isObject {
					wantField = ""
				} else if strings.HasPrefix(name, "known id") {
					wantItem = fmt.Sprint(first["id"])
				}
				simtest.AssertEqual(t, name+": item and field", cause.Item+" "+cause.Field, wantItem+" "+wantField)
			}
		})
	}
}

// stopClock runs a parallel subtest during which no time passes.
func stopClock(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	})
}

func mustFetch(t *testing.T, r Resource, body []byte) Snapshot {
	t.Helper()
	snap, err := fetchBody(t, r, body)
	if err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	if snap.Invalid.Items > 0 {
		t.Fatalf("%s: documented response is not understood: %v", r.Name, snap.Invalid)
	}
	return snap
}

// TestInvalidFields gives each field of each documented answer, one after another, a
// value of the wrong type or out of range. A field that is read costs only the
// series whose definition names it as the source, and its label in an _info metric.
func TestInvalidFields(t *testing.T) {
	for _, r := range Resources() {
		stopClock(t, r.Name, func(t *testing.T) {
			document := documented(t, r)
			base := exposed(t, mustFetch(t, r, document))
			var read int // fields
			items, isList := simtest.Decode(t, document)["data"].([]any)
			if !isList {
				items = []any{simtest.Decode(t, document)["data"]}
			}
			for i, item := range items {
				for _, f := range fieldsOf(item, nil) {
					body := simtest.Decode(t, document)
					target, id := body["data"], strings.TrimPrefix(r.Endpoint, "/")
					if isList {
						target = body["data"].([]any)[i]
						id = fmt.Sprint(target.(map[string]any)["id"])
					}
					isRead := false
					for _, bad := range wrongValues(f.value) {
						simtest.Put(target.(map[string]any), bad, f.path...)
						if assertFieldCost(t, r, simtest.Encode(t, body), base, id, strings.Join(f.path, "."), fmt.Sprintf("%.40s", simtest.Encode(t, bad))) {
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

// wrongValues returns values that cannot stand in place of one. Short tests are without
// the large ones.
func wrongValues(value any) []any {
	var small, large []any
	switch value.(type) {
	case string:
		small, large = []any{map[string]any{}, true}, []any{strings.Repeat("x", 300<<10)}
	case float64:
		small, large = []any{"12.50", true, json.RawMessage("1e999"), json.RawMessage("-1e999")}, []any{json.RawMessage(strings.Repeat("9", 10_000))}
	case bool:
		small = []any{"yes", 1}
	case map[string]any:
		deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
		small, large = []any{[]int{1}, "x"}, []any{json.RawMessage(deep)}
	case []any:
		small = []any{map[string]any{}, 5}
	}
	if testing.Short() {
		return small
	}
	return slices.Concat(small, large)
}

// assertFieldCost compares the series of an answer with an invalid field with those
// of the documented answer, and returns whether the field is read.
func assertFieldCost(t *testing.T, r Resource, body []byte, base map[string]float64, id, path, bad string) bool {
	t.Helper()
	what := fmt.Sprintf("%s: %s = %s", id, path, bad)
	snap, err := fetchBody(t, r, body)
	switch {
	case errors.Is(err, rentalapi.ErrIncomplete) && strings.Contains(err.Error(), "data."+path+":"):
		return true // the answer cannot be used without this field
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
		return true // TestInvalidItems compares the series
	}
	for series, v := range base {
		if now, found := got[series]; (!found || now != v) && !mayChange(r, series, path, got) {
			t.Errorf("%s: lost %s %v", what, series, v)
		}
	}
	return true
}

// nullable are the fields that are read and may be null as the provider documents them,
// and the one that its revision 1.0 lacks.
func nullable() []string {
	return []string{
		"plans gpu", "plans cpu.architecture", "plans cpu.l3_cache_mb", "plans availability.alternative", "os license", "account name",
		"topups payment", "topups confirmations", "topups paid_at", "ssh_keys type",
	}
}

// assertAbsenceCounts asserts that a field which is null or missing counts as one invalid
// item, or makes the fetch fail, unless it is nullable.
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
	simtest.Put(target, nil, path...)
	assert("null")
	for _, key := range path[:len(path)-1] {
		target = target[key].(map[string]any)
	}
	delete(target, path[len(path)-1])
	if path[0] == "locations" && len(path)%2 == 0 { // a name, not a field
		want = 0
	}
	assert("missing")
}

// mayChange returns whether a series may depend on a field: its definition names the
// field, or something in it, as the source, or it is an _info metric that is still
// there with an empty label.
func mayChange(r Resource, series, path string, got map[string]float64) bool {
	name, _, _ := strings.Cut(series, "{")
	d := r.Metrics[slices.IndexFunc(r.Metrics, func(d *metric.Definition) bool { return d.Name == name })]
	switch {
	case d == planLastInStock && (path == "availability" || path == "availability.in_stock"):
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
	if !strings.HasSuffix(name, "_info") {
		return false
	}
	for candidate := range got {
		if strings.HasPrefix(candidate, name+"{") && onlyLabelsEmptied(d, series, candidate) {
			return true
		}
	}
	return false
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

func onlyLabelsEmptied(d *metric.Definition, before, after string) bool {
	emptied := 0
	for _, l := range d.Labels {
		switch simtest.Label(after, l) {
		case simtest.Label(before, l):
		case "":
			emptied++
		default:
			return false
		}
	}
	return emptied > 0
}

// TestTooManySamples has few items, each of which makes many samples.
func TestTooManySamples(t *testing.T) {
	places := ""
	for i := range 1000 {
		places += fmt.Sprintf(`"%d",`, i)
	}
	var items []string
	for i := range 160 {
		items = append(items, fmt.Sprintf(`{"id":"%d","availability":{"locations":[%s]}}`, i, strings.TrimSuffix(places, ",")))
	}
	_, err := fetchBody(t, plans(), []byte(`{"data":[`+strings.Join(items, ",")+`]}`))
	if !errors.Is(err, rentalapi.ErrTooLarge) {
		t.Errorf("got error %v, want %v", err, rentalapi.ErrTooLarge)
	}
}
