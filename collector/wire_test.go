package collector

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
)

// TestMoney asserts that money is rounded to a millionth, and that nothing is 0.
func TestMoney(t *testing.T) {
	for number, want := range map[json.Number]float64{
		`-5.5e-17`: 0, `-0.0000004`: 0, `-0`: 0, `0.30000000000000004`: 0.3, `1234.56`: 1234.56, `-0.0000006`: -0.000001, `99999999.9999999`: 1e8,
	} {
		var a amount
		simtest.AssertEqual(t, string(number)+": problem", a.Decode(number), "")
		simtest.AssertEqual(t, string(number), float64(a), want)
		simtest.AssertEqual(t, string(number)+": sign", math.Signbit(float64(a)), want < 0)
	}
	var p price
	simtest.AssertEqual(t, "price: problem", p.Decode(json.Number(`189.98999999999998`)), "")
	simtest.AssertEqual(t, "price", float64(p), 189.99)
	simtest.AssertEqual(t, "negative price", p.Decode(json.Number(`-0.0000001`)), "not a plausible price of 0 or more")
	var l latitude // and all that is no money is exact
	simtest.AssertEqual(t, "latitude: problem", l.Decode(json.Number(`50.1109221`)), "")
	simtest.AssertEqual(t, "latitude", float64(l), 50.1109221)
}

// TestImpossibleNumbers has numbers whose sums or products would be infinite, and fractions of what is
// counted.
func TestImpossibleNumbers(t *testing.T) {
	for _, c := range []struct {
		value    rentalapi.Value
		good     []json.Number
		problem  string
		problems []json.Number
	}{
		{new(count), []json.Number{"0", "8", "8.0", "1e3"}, "not a whole number of 0 or more", []json.Number{"3.5", "1e308", "9007199254740994", "-1"}},
		{new(quantity), []json.Number{"0", "3.5"}, "not a plausible number of 0 or more", []json.Number{"1e308", "-0.1"}},
		{new(price), []json.Number{"0", "899.9"}, "not a plausible price of 0 or more", []json.Number{"1e308", "1.1e12"}},
		{new(amount), []json.Number{"-12.5", "1e6"}, "not a plausible amount", []json.Number{"1e308", "-1e308"}},
	} {
		for _, number := range c.good {
			simtest.AssertEqual(t, fmt.Sprintf("%T %s", c.value, number), c.value.Decode(number), "")
		}
		for _, number := range c.problems {
			simtest.AssertEqual(t, fmt.Sprintf("%T %s", c.value, number), c.value.Decode(number), c.problem)
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
