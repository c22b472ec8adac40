package collector

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestWatchMatches tests each criterion with a plan that differs in one field.
func TestWatchMatches(t *testing.T) {
	t.Parallel()
	const absent = "-"
	type fields map[string]string // JSON by path
	places := LocationData{
		"fra": {Region: "Europe", CountryCode: "DE"},
		"nyc": {Region: "North America", CountryCode: "us"},
		"xxx": {CountryCode: "DE"},
	}
	for _, c := range []struct {
		watch Watch
		plans fields // JSON of one field, and whether the plan matches
		field string
	}{
		{Watch{Plans: []string{"a", "b"}}, fields{`"a"`: "yes", `"b"`: "yes", `"c"`: "no"}, "id"},
		{Watch{Families: []string{"gpu", "Entry"}}, fields{`"gpu"`: "yes", `"entry"`: "yes", `"gp"`: "no", `""`: "unknown", `null`: "unknown", `5`: "unknown", absent: "unknown"}, "family"},
		{Watch{GPU: ptr(true)}, fields{`{"model":"m"}`: "yes", `{}`: "unknown", `{"model":5}`: "unknown", `null`: "no", absent: "no", `"m"`: "unknown", `[]`: "unknown"}, "gpu"},
		{Watch{GPU: ptr(false)}, fields{`{"model":"m"}`: "no", `{}`: "unknown", `null`: "yes", absent: "yes", `"m"`: "unknown", `false`: "unknown"}, "gpu"},
		{Watch{MinCores: ptr(8.0)}, fields{`8`: "yes", `9`: "yes", `7`: "no", `7.9`: "no", `0`: "no", `null`: "unknown", `"8"`: "unknown", `-8`: "unknown", absent: "unknown"}, "cpu.cores"},
		{Watch{MinMemoryGiB: ptr(64.0)}, fields{`64`: "yes", `63`: "no", `null`: "unknown"}, "memory.size_gb"},
		{Watch{MaxUSDPerMonth: ptr(99.9)}, fields{`99.90`: "yes", `99.91`: "no", `0`: "yes", `null`: "unknown", `"1"`: "unknown", `-1`: "unknown", absent: "unknown"}, "price.monthly.usd"},
		{Watch{MaxEURPerMonth: ptr(0.0)}, fields{`0`: "yes", `0.01`: "no", `null`: "unknown"}, "price.monthly.eur"},
		{Watch{Locations: []string{"fra", "new"}}, fields{
			`["nyc","fra"]`: "yes", `["nyc","FRA"]`: "yes", `["new"]`: "yes", `["nyc"]`: "no", `[]`: "no", `null`: "unknown", absent: "unknown", `"fra"`: "unknown", `[5,"fra"]`: "yes",
		}, "availability.locations"},
		{Watch{Regions: []string{"europe", "Asia"}}, fields{
			`["nyc","fra"]`: "yes", `["nyc"]`: "no", `["new"]`: "unknown", `["nyc","new"]`: "unknown", `["fra","new"]`: "yes", `["xxx"]`: "unknown",
		}, "availability.locations"},
		{Watch{Countries: []string{"de"}}, fields{`["fra"]`: "yes", `["xxx"]`: "yes", `["nyc"]`: "no", `["new"]`: "unknown"}, "availability.locations"},
		{Watch{Countries: []string{"US"}}, fields{`["nyc"]`: "yes", `["fra"]`: "no"}, "availability.locations"},
		// One location has to meet all criteria.
		{Watch{Regions: []string{"Europe"}, Countries: []string{"US"}}, fields{`["fra","nyc"]`: "no", `["xxx"]`: "no"}, "availability.locations"},
		{Watch{Locations: []string{"fra"}, Regions: []string{"North America"}}, fields{`["fra","nyc"]`: "no"}, "availability.locations"},
		{Watch{Locations: []string{"fra"}, Regions: []string{"Europe"}, Countries: []string{"DE"}}, fields{`["fra","nyc"]`: "yes"}, "availability.locations"},
		// All criteria have to be met, and one that is not met decides.
		{Watch{MinCores: ptr(8.0), MinMemoryGiB: ptr(64.0)}, fields{`8`: "yes", `7`: "no", `null`: "unknown"}, "cpu.cores"},
		{Watch{MinCores: ptr(8.0), MinMemoryGiB: ptr(65.0)}, fields{`8`: "no", `null`: "no"}, "cpu.cores"},
		// The stock is no criterion.
		{Watch{MinMemoryGiB: ptr(64.0)}, fields{`true`: "yes", `false`: "yes", `null`: "yes"}, "availability.in_stock"},
	} {
		for value, want := range c.plans {
			body := map[string]any{}
			for path, v := range map[string]string{"id": `"a"`, "memory.size_gb": "64", "cpu.model": `"c"`, "price.setup_fee": "0", "availability.in_stock": "true", c.field: value} {
				if v != absent {
					simtest.Put(body, json.RawMessage(v), strings.Split(path, ".")...)
				}
			}
			response, err := json.Marshal(map[string]any{"data": []any{body}})
			if err != nil {
				t.Fatal(err)
			}
			snap, err := fetchBody(t, plans(), response)
			if err != nil || len(snap.Data.Plans.Items) != 1 {
				t.Fatalf("%s: got %d plans and error %v", response, len(snap.Data.Plans.Items), err)
			}
			got := map[truth]string{mismatch: "no", unknown: "unknown", match: "yes"}[c.watch.matches(snap.Data.Plans.Items[0], places)]
			simtest.AssertEqual(t, fmt.Sprintf("%+v: %s: %s", c.watch, c.field, value), got, want)
		}
	}
}

func TestWatchDescription(t *testing.T) {
	w := Watch{
		Plans: []string{"epyc-7443p", "7"}, Families: []string{"performance"},
		Locations: []string{"fra", "ams"}, Regions: []string{"Europe", "North America"}, Countries: []string{"DE", "no"},
		GPU: ptr(true), MinCores: ptr(0.5), MinMemoryGiB: ptr(1e6), MaxUSDPerMonth: ptr(99.9), MaxEURPerMonth: ptr(0.0),
	}
	simtest.AssertEqual(t, "all criteria", w.Description(), "plan epyc-7443p or 7 of family performance offered in fra or ams and in Europe or North America and in DE or no, "+
		"with a GPU, 0.5 cores or more, 1000000 GiB or more, up to 99.90 USD a month, up to 0.00 EUR a month")
	simtest.AssertEqual(t, "one", Watch{GPU: ptr(false)}.Description(), "any plan, without a GPU")
}
