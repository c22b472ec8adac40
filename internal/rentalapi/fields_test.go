package rentalapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
)

// percent is a field type with its own decoding.
type percent float64

func (p *percent) UnmarshalJSON(b []byte) error {
	var v float64
	if err := json.Unmarshal(b, &v); err != nil || v < 0 || v > 100 {
		return Expected("a percentage")
	}
	*p = percent(v)
	return nil
}

// wire has a field of each kind.
type wire struct {
	ID  string
	CPU struct {
		Cores *int
		Load  *percent `json:"load_percent"`
	}
	Price     *struct{ USD, EUR *float64 }
	Active    *bool
	Tags      []string
	Disks     []struct{ Size, Speed *float64 }
	Locations map[string]struct{ Components map[string]*string }
	Tagged    string `json:"other_name"`
	Card      *struct {
		Model string
		Size  *int `api:"optional"`
	} `api:"optional"`

	hidden string
}

const whole = `{"id": "x", "cpu": {"cores": 4, "load_percent": 50}, "price": {"usd": 1.5, "eur": 2}, "active": true,
	"tags": ["a", "b"], "disks": [{"size": 1, "speed": 2}], "locations": {"fra": {"components": {"network": "up", "power": "down"}}},
	"other_name": "y", "card": {"model": "z", "size": 3}, "hidden": 5, "more": [1]}`

// decodeChanged decodes an item of which a part is replaced, and returns the errors, and the
// fields that differ from those of the whole item as encoding/json reads it.
func decodeChanged(t *testing.T, old, replacement string) (errs []FieldError, different string) {
	t.Helper()
	var before, after wire
	if err := json.Unmarshal([]byte(whole), &before); err != nil {
		t.Fatal(err)
	}
	errs = decodeFields(json.RawMessage(strings.Replace(whole, old, replacement, 1)), &after)
	simtest.AssertEqual(t, "field without a name in the API", after.hidden, "")
	for field, value := range reflect.ValueOf(after).Fields() {
		if field.IsExported() && !reflect.DeepEqual(value.Interface(), reflect.ValueOf(before).FieldByIndex(field.Index).Interface()) {
			different += " " + field.Name + "=" + asJSON(t, value.Interface())
		}
	}
	return errs, different
}

func TestGoldenFields(t *testing.T) {
	goldenCases(t, "testdata/fields.txt", func(t *testing.T, input string) string {
		old, replacement, _ := strings.Cut(input, " | ")
		if old == "all" {
			old = whole
		}
		errs, different := decodeChanged(t, old, replacement)
		return fmt.Sprint(errs, different)
	})
}

func TestDecodeFieldsBounds(t *testing.T) {
	many := func(n int, value string) string { return value + strings.Repeat(", "+value, n-1) }
	text := strings.Repeat("é", 1024)
	for _, c := range []struct {
		old, new string
		want     []FieldError
	}{
		{`"b"`, many(999, `"b"`), nil},
		{`"b"`, many(1000, `5`), []FieldError{{"tags", "more than 1000 elements"}}},
		{`"network": "up"`, names(999), nil},
		{`"network": "up"`, names(1000), []FieldError{{"locations.fra.components", "more than 1000 members"}}},
		{`"network"`, `"` + strings.Repeat("n", 2049) + `"`, []FieldError{{"locations.fra.components." + strings.Repeat("n", 64), "name of 2049 bytes, more than 2048"}}},
		{`"y"`, `"` + text + `"`, nil},
		{`"y"`, `"` + text + `y"`, []FieldError{{"other_name", "2049 bytes, more than 2048"}}},
		{`"y"`, `"` + strings.Repeat("\xff", 700) + `"`, []FieldError{{"other_name", "2100 bytes, more than 2048"}}},
	} {
		errs, different := decodeChanged(t, c.old, c.new)
		simtest.AssertEqual(t, fmt.Sprintf("%.20s for %s", c.new, c.old), errs, c.want)
		if different == "" {
			t.Errorf("%.20s for %s: no field differs", c.new, c.old)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// names returns n members of an object.
func names(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"n%d": "up"`, i)
	}
	return strings.Join(members, ", ")
}

// FuzzDecodeFields asserts that everybody reads the same, and that errors contain none
// of the values.
func FuzzDecodeFields(f *testing.F) {
	for _, s := range []string{
		`{"id":"x","cpu":{"cores":4,"load_percent":50},"price":{"usd":1.5},"active":true,"tags":["a",null],"disks":[{"size":1},{}]}`,
		`{"ID":"x","Tags":[],"locations":{"fra":{"components":{"network":"up","power":null}},"ams":null}}`,
		`{"id":5,"cpu":{"cores":"x"},"price":[],"tags":[[]],"disks":{},"locations":{"fra":{"components":{"a":1}}}}`,
		`{"id":null,"cpu":null,"price":null,"active":null,"tags":null,"disks":null,"locations":null,"other_name":"\ud800\u0000"}`,
		"{\"id\":\"\xff\",\"\u017fpeed\":1}", `null`, `[]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		var got, again wire
		errs := decodeFields(raw, &got)
		simtest.AssertEqual(t, "errors", decodeFields(raw, &again), errs)
		simtest.AssertEqual(t, "value", asJSON(t, again), asJSON(t, got))
		for _, e := range errs {
			if len(e.Problem) > 50 || len(e.Field) > 200 {
				t.Errorf("%q: error with a part of the value: %q", raw, e.Error())
			}
		}
	})
}

func TestInvalid(t *testing.T) {
	var v Invalid
	v.Add("good")
	simtest.AssertEqual(t, "nothing", v, Invalid{})
	wrong, errNoID := FieldError{"cpu.cores", "not an integer"}, FieldError{"id", "missing"}
	v.Add("a", wrong, wrong, errNoID)
	v.Add("b", wrong)
	want := Invalid{2, []Cause{{"a", wrong}, {"a", errNoID}}}
	simtest.AssertEqual(t, "distinct causes", v, want)
	var other Invalid
	other.Add("c", wrong)
	for i := range 20 {
		e := FieldError{fmt.Sprintf("tags[%d]", i), "not a string"}
		other.Add("d", e)
		if i < 8 {
			want.Causes = append(want.Causes, Cause{"d", e})
		}
	}
	simtest.AssertEqual(t, "causes of another part", []int{other.Items, len(other.Causes)}, []int{21, 10})
	v.Merge(other)
	want.Items = 23
	simtest.AssertEqual(t, "merged", v, want)
	var texts []string
	for _, c := range []Cause{v.Causes[0], {"data[3]", errNoID}, {"", wrong}} {
		texts = append(texts, c.Error())
	}
	simtest.AssertEqual(t, "texts", texts, []string{"a: cpu.cores: not an integer", "data[3]: id: missing", "cpu.cores: not an integer"})
}

// BenchmarkDecodeFields decodes an item of the usual size.
func BenchmarkDecodeFields(b *testing.B) {
	raw := json.RawMessage(`{"id":"srv-00000001","cpu":{"cores":4,"load_percent":50},"price":{"usd":1.5,"eur":2},"active":true,"tags":["a","b"],"other_name":"y"}`)
	b.ReportAllocs()
	for b.Loop() {
		decodeFields(raw, &wire{})
	}
}
