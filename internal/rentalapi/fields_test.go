package rentalapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// percent is a field type with its own decoding.
type percent float64

// Decode implements Value.
func (p *percent) Decode(value any) string {
	v, ok := Number(value)
	if !ok || v < 0 || v > 100 {
		return "not a percentage"
	}
	*p = percent(v)
	return ""
}

// wire has a field of each kind.
type wire struct {
	ID  string
	CPU struct {
		Cores *Count
		Load  *percent `json:"load_percent"`
	}
	Price     *struct{ USD, EUR *Count }
	Active    *bool
	Tags      []string
	Disks     []struct{ Size, Speed *Count }
	Locations map[string]struct{ Components map[string]*string }
	Tagged    string `json:"other_name"`
	Card      *struct {
		Model string
		Size  *Count `api:"optional"`
	} `api:"optional"`
}

const whole = `{"id": "x", "cpu": {"cores": 4, "load_percent": 50}, "price": {"usd": 15, "eur": 2}, "active": true,
	"tags": ["a", "b"], "disks": [{"size": 1, "speed": 2}], "locations": {"fra": {"components": {"network": "up", "power": "down"}}},
	"other_name": "y", "card": {"model": "z", "size": 3}, "more": [1]}`

// TestGoldenFields decodes an item of which a part is replaced: the errors, and the fields that
// differ from those of the whole item as encoding/json reads it.
func TestGoldenFields(t *testing.T) {
	var before wire
	if err := json.Unmarshal([]byte(whole), &before); err != nil {
		t.Fatal(err)
	}
	var d fieldDecoder
	errs := d.decodeFields([]byte(whole), &wire{})
	simtest.AssertEqual(t, "errors and elements of the whole item", []int{len(errs), d.elements}, []int{0, 6})
	goldenCases(t, "testdata/fields.txt", func(t *testing.T, input string) (outcome string) {
		old, replacement, _ := strings.Cut(input, " | ")
		if old == "all" {
			old = whole
		}
		var after wire
		errs := new(fieldDecoder).decodeFields([]byte(strings.Replace(whole, old, replacement, 1)), &after)
		outcome = fmt.Sprint(errs)
		for field, value := range reflect.ValueOf(after).Fields() {
			was := reflect.ValueOf(before).FieldByIndex(field.Index)
			if !reflect.DeepEqual(value.Interface(), was.Interface()) {
				outcome += " " + field.Name + "=" + string(simtest.Encode(t, value.Interface()))
			}
		}
		return outcome
	})
}

// TestLongTexts has texts and names of 2,048 bytes, and longer ones.
func TestLongTexts(t *testing.T) {
	text := strings.Repeat("é", 1024)
	for _, c := range []struct {
		old, new string
		want     []FieldError
	}{
		{`"y"`, `"` + text + `"`, nil},
		{`"y"`, `"` + text + `y"`, []FieldError{{Field: "other_name", Problem: "more than 2048 bytes"}}},
		{`"y"`, `"` + strings.Repeat("\xff", 700) + `"`, []FieldError{{Field: "other_name", Problem: "more than 2048 bytes"}}},
		{`"network"`, `"` + text + `"`, nil},
		{`"network"`, `"` + text + `y"`, []FieldError{{Field: "locations.fra.components", Problem: "a name that is more than 2048 bytes"}}},
		{`"network"`, `""`, []FieldError{{Field: "locations.fra.components", Problem: "a name that is empty"}}},
	} {
		errs := new(fieldDecoder).decodeFields([]byte(strings.Replace(whole, c.old, c.new, 1)), &wire{})
		simtest.AssertEqual(t, fmt.Sprintf("%.20s for %s", c.new, c.old), errs, c.want)
	}
}
