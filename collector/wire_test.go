package collector

import (
	"encoding/json"
	"math"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestMoney asserts that money is rounded to a millionth, and that nothing is 0.
func TestMoney(t *testing.T) {
	for body, want := range map[string]float64{
		`-5.5e-17`: 0, `-0.0000004`: 0, `-0`: 0, `0.30000000000000004`: 0.3, `1234.56`: 1234.56, `-0.0000006`: -0.000001, `99999999.9999999`: 1e8,
	} {
		var a amount
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		simtest.AssertEqual(t, body, float64(a), want)
		simtest.AssertEqual(t, body+": sign", math.Signbit(float64(a)), want < 0)
	}
	var p price
	simtest.AssertEqual(t, "price: error", json.Unmarshal([]byte(`189.98999999999998`), &p), error(nil))
	simtest.AssertEqual(t, "price", float64(p), 189.99)
	if err := json.Unmarshal([]byte(`-0.0000001`), &p); err == nil {
		t.Error("price: a negative one is accepted")
	}
	var l latitude // and all that is no money is exact
	simtest.AssertEqual(t, "latitude: error", json.Unmarshal([]byte(`50.1109221`), &l), error(nil))
	simtest.AssertEqual(t, "latitude", float64(l), 50.1109221)
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
		err := json.Unmarshal(simtest.Encode(t, text), &l)
		simtest.AssertEqual(t, text+": accepted", err == nil, want)
		simtest.AssertEqual(t, text, l != "", want)
	}
}
