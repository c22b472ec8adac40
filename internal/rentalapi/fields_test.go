package rentalapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
)

// percent is a field type with its own decoding.
type percent float64

func (p *percent) UnmarshalJSON(b []byte) error {
	var v float64
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	if v < 0 || v > 100 {
		return errors.New("value " + string(b))
	}
	*p = percent(v)
	return nil
}

func (*percent) Expected() string { return "a percentage" }

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

func TestDecodeFields(t *testing.T) {
	const whole = `{"id": "x", "cpu": {"cores": 4, "load_percent": 50}, "price": {"usd": 1.5, "eur": 2}, "active": true,
		"tags": ["a", "b"], "disks": [{"size": 1, "speed": 2}], "locations": {"fra": {"components": {"network": "up", "power": "down"}}},
		"other_name": "y", "card": {"model": "z", "size": 3}, "hidden": 5, "more": [1]}`
	many := func(n int, value string) string { return value + strings.Repeat(", "+value, n-1) }
	for _, c := range []struct {
		old, new string // of the whole
		change   func(w *wire)
		errs     []FieldError
	}{
		{`"x"`, `"x"`, func(*wire) {}, nil},
		{`"x"`, `5`, func(w *wire) { w.ID = "" }, []FieldError{{"id", "not a string"}}},
		{`"x"`, `null`, func(w *wire) { w.ID = "" }, []FieldError{{"id", "null"}}},
		{`"id"`, `"ID"`, func(w *wire) { w.ID = "" }, []FieldError{{"id", "missing"}}},
		{`"x"`, `"w", "ID": "other", "id": "x", "iD": 7`, func(*wire) {}, nil},
		{`"cpu"`, `"none"`, func(w *wire) { w.CPU.Cores, w.CPU.Load = nil, nil }, []FieldError{{"cpu", "missing"}}},
		{`{"usd": 1.5, "eur": 2}`, `{}`, func(w *wire) { w.Price = &struct{ USD, EUR *float64 }{} }, []FieldError{{"price.usd", "missing"}, {"price.eur", "missing"}}},
		{`{"usd": 1.5, "eur": 2}`, `null`, func(w *wire) { w.Price = nil }, []FieldError{{"price", "null"}}},
		{`"card"`, `"none"`, func(w *wire) { w.Card = nil }, nil},
		{`{"model": "z", "size": 3}`, `null`, func(w *wire) { w.Card = nil }, nil},
		{`{"model": "z", "size": 3}`, `5`, func(w *wire) { w.Card = nil }, []FieldError{{"card", "not an object"}}},
		{`{"model": "z", "size": 3}`, `{"model": null, "size": null}`, func(w *wire) { w.Card.Model, w.Card.Size = "", nil }, []FieldError{{"card.model", "null"}}},
		{`4`, `4.5`, func(w *wire) { w.CPU.Cores = nil }, []FieldError{{"cpu.cores", "not an integer"}}},
		{`4`, `"4"`, func(w *wire) { w.CPU.Cores = nil }, []FieldError{{"cpu.cores", "not an integer"}}},
		{`4`, `null`, func(w *wire) { w.CPU.Cores = nil }, []FieldError{{"cpu.cores", "null"}}},
		{`50`, `500`, func(w *wire) { w.CPU.Load = nil }, []FieldError{{"cpu.load_percent", "not a percentage"}}},
		{`50`, `null`, func(w *wire) { w.CPU.Load = nil }, []FieldError{{"cpu.load_percent", "null"}}},
		{`{"cores": 4, "load_percent": 50}`, `[]`, func(w *wire) { w.CPU.Cores, w.CPU.Load = nil, nil }, []FieldError{{"cpu", "not an object"}}},
		{
			`{"cores": 4, "load_percent": 50}`, `{"cores": {}, "load_percent": {}}`, func(w *wire) { w.CPU.Cores, w.CPU.Load = nil, nil },
			[]FieldError{{"cpu.cores", "not an integer"}, {"cpu.load_percent", "not a percentage"}},
		},
		{`1.5`, `"1.5"`, func(w *wire) { w.Price = &struct{ USD, EUR *float64 }{nil, w.Price.EUR} }, []FieldError{{"price.usd", "not a number"}}},
		{`1.5`, `1e999`, func(w *wire) { w.Price = &struct{ USD, EUR *float64 }{nil, w.Price.EUR} }, []FieldError{{"price.usd", "not a number"}}},
		{`{"usd": 1.5, "eur": 2}`, `1.5`, func(w *wire) { w.Price = nil }, []FieldError{{"price", "not an object"}}},
		{`true`, `"true"`, func(w *wire) { w.Active = nil }, []FieldError{{"active", "not true or false"}}},
		{`"b"`, `7`, func(w *wire) { w.Tags = []string{"a"} }, []FieldError{{"tags[1]", "not a string"}}},
		{`"b"`, `null`, func(w *wire) { w.Tags = []string{"a"} }, []FieldError{{"tags[1]", "null"}}},
		{`"b"`, many(999, `"b"`), func(w *wire) { w.Tags = append(w.Tags[:1], slices.Repeat(w.Tags[1:], 999)...) }, nil},
		{`"b"`, many(1000, `5`), func(w *wire) { w.Tags = nil }, []FieldError{{"tags", "more than 1000 elements"}}},
		{`["a", "b"]`, `[]`, func(w *wire) { w.Tags = []string{} }, nil},
		{`["a", "b"]`, `{}`, func(w *wire) { w.Tags = nil }, []FieldError{{"tags", "not an array"}}},
		{`"speed": 2`, `"speed": false`, func(w *wire) { w.Disks = []struct{ Size, Speed *float64 }{{w.Disks[0].Size, nil}} }, []FieldError{{"disks[0].speed", "not a number"}}},
		{`"up"`, `1`, func(w *wire) { delete(w.Locations["fra"].Components, "network") }, []FieldError{{"locations.fra.components.network", "not a string"}}},
		{`"up"`, `null`, func(w *wire) { delete(w.Locations["fra"].Components, "network") }, []FieldError{{"locations.fra.components.network", "null"}}},
		{`{"components": {"network": "up", "power": "down"}}`, `{}`, func(w *wire) { w.Locations["fra"] = struct{ Components map[string]*string }{} }, []FieldError{{"locations.fra.components", "missing"}}},
		{`{"components": {"network": "up", "power": "down"}}`, `{"components": {` + names(1001) + `}}`, func(w *wire) { w.Locations["fra"] = struct{ Components map[string]*string }{} }, []FieldError{{"locations.fra.components", "more than 1000 members"}}},
		{
			`{"network": "up", "power": "down"}`, `5`, func(w *wire) { w.Locations = map[string]struct{ Components map[string]*string }{"fra": {}} },
			[]FieldError{{"locations.fra.components", "not an object"}},
		},
		{`{"components": {"network": "up", "power": "down"}}`, `5`, func(w *wire) { clear(w.Locations) }, []FieldError{{"locations.fra", "not an object"}}},
		{
			`{"network": "up", "power": "down"}`, `{"b": 1, "a": 2, "power": "down"}`, func(w *wire) { delete(w.Locations["fra"].Components, "network") },
			[]FieldError{{"locations.fra.components.a", "not a string"}, {"locations.fra.components.b", "not a string"}},
		},
		{
			`"network"`, `"` + strings.Repeat("n", 2049) + `"`, func(w *wire) { delete(w.Locations["fra"].Components, "network") },
			[]FieldError{{"locations.fra.components." + strings.Repeat("n", 64), "name of 2049 bytes, more than 2048"}},
		},
		{`"y"`, `"` + strings.Repeat("é", 1024) + `"`, func(w *wire) { w.Tagged = strings.Repeat("é", 1024) }, nil},
		{`"y"`, `"` + strings.Repeat("é", 1024) + `y"`, func(w *wire) { w.Tagged = "" }, []FieldError{{"other_name", "2049 bytes, more than 2048"}}},
		{`"y"`, `"` + strings.Repeat("\xff", 700) + `"`, func(w *wire) { w.Tagged = "" }, []FieldError{{"other_name", "2100 bytes, more than 2048"}}},
		{`"y"`, `false`, func(w *wire) { w.Tagged = "" }, []FieldError{{"other_name", "not a string"}}},
		{whole, `null`, func(w *wire) { *w = wire{} }, []FieldError{{"", "null"}}},
		{whole, `[1]`, func(w *wire) { *w = wire{} }, []FieldError{{"", "not an object"}}},
		{whole, `"secret"`, func(w *wire) { *w = wire{} }, []FieldError{{"", "not an object"}}},
	} {
		name := fmt.Sprintf("%.40s for %.40s", c.new, c.old)
		raw := json.RawMessage(strings.Replace(whole, c.old, c.new, 1))
		var got, want wire
		if err := json.Unmarshal([]byte(whole), &want); err != nil {
			t.Fatal(err)
		}
		c.change(&want)
		simtest.AssertEqual(t, name+": errors", decodeFields(raw, &got), c.errs)
		if got.hidden != "" || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", name, asJSON(t, got), asJSON(t, want))
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
	wrong := FieldError{"cpu.cores", "not an integer"}
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

// TestReadItems has items without and with a usable id, and a check that changes them.
func TestReadItems(t *testing.T) {
	long := strings.Repeat("i", 63) + "é" + strings.Repeat("i", 1900)
	l := testList("/servers")
	l.MaxItems = 11
	l.Check = func(i *testItem, errs []FieldError) []FieldError {
		if len(errs) > 0 || i.Size == nil || *i.Size < 10 {
			return nil
		}
		*i.Size = 10
		return []FieldError{{"size", "too large"}}
	}
	body := `{"data":[` + strings.Join([]string{
		`{"id":"a","size":5}`, `{"id":"a"}`, `"a"`, `null`, `{}`, `{"id":7}`, `{"id":"","size":"x"}`, `{"id":"b","size":50}`,
		`{"id":"c","size":{}}`, `{"id":"` + long + `","size":20}`, `{"id":"` + long + long + `"}`,
	}, ",") + `]}`
	var got Page[testItem, struct{}]
	_, err := readEnvelope(strings.NewReader(body), maxListBytes, maxItemBytes, func(e *envelope) error { return got.readItems(e, l) })
	simtest.AssertEqual(t, "error", err, error(nil))
	five, ten := 5.0, 10.0
	tooLarge := FieldError{"size", "too large"}
	simtest.AssertEqual(t, "page", got, Page[testItem, struct{}]{
		Items: []*testItem{{"a", &five}, {"b", &ten}, {"c", nil}, {long, &ten}}, Count: 11, WithoutID: 6,
		Invalid: Invalid{10, []Cause{
			{"a", errSeenID},
			{"data[2]", FieldError{"", "not an object"}},
			{"data[3]", FieldError{"", "null"}},
			{"data[4]", errNoID},
			{"data[5]", FieldError{"id", "not a string"}},
			{"b", tooLarge},
			{"c", FieldError{"size", "not a number"}},
			{"data[10]", FieldError{"id", fmt.Sprintf("%d bytes, more than 2048", 2*len(long))}},
		}},
	})
	simtest.AssertEqual(t, "shortened id", shorten(long), strings.Repeat("i", 63)+"...")
}

// BenchmarkDecodeFields decodes an item of the usual size.
func BenchmarkDecodeFields(b *testing.B) {
	raw := json.RawMessage(`{"id":"srv-00000001","cpu":{"cores":4,"load_percent":50},"price":{"usd":1.5,"eur":2},"active":true,"tags":["a","b"],"other_name":"y"}`)
	b.ReportAllocs()
	for b.Loop() {
		decodeFields(raw, &wire{})
	}
}
