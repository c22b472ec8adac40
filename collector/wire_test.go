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
}
