package collector

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestNumbers has numbers of each kind. Money is rounded to a millionth, and nothing is 0; sums and
// products are never infinite.
func TestNumbers(t *testing.T) {
	const noCount, noQuantity, noAmount = "not a whole number of 0 or more", "not a plausible number of 0 or more", "not a plausible amount"
	for _, c := range []struct {
		into   rentalapi.Value
		number json.Number
		want   float64
		wrong  string
	}{
		{new(amount), "-5.5e-17", 0, ""},
		{new(amount), "-0.0000004", 0, ""},
		{new(amount), "-0.0000006", -0.000001, ""},
		{new(amount), "0.30000000000000004", 0.3, ""},
		{new(amount), "99999999.9999999", 1e8, ""},
		{new(amount), "-12.5", -12.5, ""},
		{new(amount), "-1e308", 0, noAmount},
		{new(quantity), "189.98999999999998", 189.99, ""},
		{new(quantity), "-0.0000001", 0, noQuantity},
		{new(quantity), "1.1e12", 0, noQuantity},
		{new(latitude), "50.1109221", 50.1109221, ""},
		{new(quantity), "3.5", 3.5, ""},
		{new(quantity), "-0.1", 0, noQuantity},
		{new(quantity), "1e308", 0, noQuantity},
		{new(count), "8.0", 8, ""},
		{new(count), "1e3", 1000, ""},
		{new(count), "3.5", 0, noCount},
		{new(count), "9007199254740994", 0, noCount},
		{new(count), "-1", 0, noCount},
	} {
		what := fmt.Sprintf("%T %s", c.into, c.number)
		problem, got := c.into.Decode(c.number), reflect.ValueOf(c.into).Elem().Float()
		simtest.AssertEqual(t, what+": problem", problem, c.wrong)
		if problem == "" && (got != c.want || math.Signbit(got) != (c.want < 0)) {
			t.Errorf("%s: got %v, want %v", what, got, c.want)
		}
	}
}

// TestTimestamp reads the forms of ISO 8601, and nothing else.
func TestTimestamp(t *testing.T) {
	const noon, none = 1773576000, -1
	for text, want := range map[string]float64{
		"2026-03-15": noon - 12*3600, "2026-03-15T12:00:00Z": noon, "2026-03-15t12:00:00z": noon, "2026-03-15 12:00": noon, "2026-03-15T12:00": noon,
		"2026-03-15T12:00:00": noon, "2026-03-15T12:00:00.25Z": noon + 0.25, "2026-03-15T14:00:00+02:00": noon, "2026-03-15T14:00+0200": noon,
		"2026-03-15T07:00:00-05": noon, "1970-01-01": 0, "9999-12-31T23:59:59Z": 253402300799,
		"": none, "soon": none, "1969-12-31T23:59:59Z": none, "0001-01-01": none, "2026-02-30": none, "2026-3-15": none,
		"15.03.2026": none, "1773576000": none, "2026-03-15T25:00:00Z": none,
	} {
		var got timestamp
		if problem := got.Decode(text); problem != "" {
			simtest.AssertEqual(t, text+": problem", problem, "not an ISO 8601 time from 1970 on")
			got = none
		}
		simtest.AssertEqual(t, text, float64(got), want)
	}
}

// TestLink asserts which addresses people may be sent to.
func TestLink(t *testing.T) {
	for text, want := range map[string]bool{
		"https://rental.example/order?plan=a&x=%22#top": true, "HTTPS://shop.other.example:8443": true, "https://[2001:db8::1]/": true,
		"http://127.0.0.1:10171/order": true, "http://[::1]/": true, "http://LOCALHOST/": true,
		"http://rental.example/": false, "http://127.0.0.1.rental.example/": false, "http://localhost@rental.example/": false,
		"https://rental.example@evil.example/": false, "https://@evil.example/": false, "https://user:secret@rental.example/": false,
		"javascript:alert(1)": false, "data:text/html,x": false, "ftp://rental.example/": false, "https:rental.example": false,
		"//rental.example/": false, "/order": false, "https:///order": false, "https://:443/": false, "": false,
		"https://rental.example\\@evil.example/": false, "https://rental.example/a\\b": false, "https://rental.ex\u0430mple/": false,
		"https://rental.example/\u202e": false, "https://rental.example/a b": false, "https://rental.example/\n": false,
		"https://rental.example/\"onclick": false, "https://rental.example/<b>": false, "https://rental.example/a|b": false, " https://rental.example/": false,
	} {
		var l link
		simtest.AssertEqual(t, text+": accepted", l.Decode(text) == "", want)
	}
}
