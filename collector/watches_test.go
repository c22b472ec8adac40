package collector

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator"
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
			`["nyc","fra"]`: "yes", `["nyc","FRA"]`: "yes", `["new"]`: "yes", `["nyc"]`: "no", `[]`: "no", `null`: "unknown", absent: "unknown", `"fra"`: "unknown", `[5,"fra"]`: "yes", `[5]`: "unknown", `["nyc",5]`: "unknown",
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
		{Watch{ECC: ptr(true)}, fields{`true`: "yes", `false`: "no", `null`: "unknown", `"yes"`: "unknown", absent: "unknown"}, "memory.ecc"},
		{Watch{ECC: ptr(false)}, fields{`true`: "no", `false`: "yes"}, "memory.ecc"},
		{Watch{CPUModels: []string{"Ryzen", "epyc 9"}}, fields{`"AMD EPYC 9654"`: "yes", `"AMD RYZEN 5"`: "yes", `"AMD EPYC 7443P"`: "no", `""`: "unknown", `5`: "unknown"}, "cpu.model"},
		{Watch{GPUModels: []string{"l40s"}}, fields{`{"model":"NVIDIA L40S"}`: "yes", `{"model":"RTX"}`: "no", `null`: "no", absent: "no", `{}`: "unknown", `{"memory":"48 GB"}`: "unknown", `"m"`: "unknown"}, "gpu"},
		{Watch{Storage: []string{"nvme"}}, fields{`"2x 1 TB NVMe"`: "yes", `"4x 16 TB HDD"`: "no", `null`: "unknown"}, "storage"},
		{Watch{Ports: []string{"10 gbps", "25"}}, fields{`"10 Gbps"`: "yes", `"25 Gbps"`: "yes", `"1 Gbps"`: "no", `null`: "unknown"}, "network.port"},
		{Watch{MinThreads: ptr(16.0)}, fields{`16`: "yes", `15`: "no", `null`: "unknown"}, "cpu.threads"},
		{Watch{MinBaseGHz: ptr(3.5)}, fields{`3.5`: "yes", `3.4`: "no", `"3.5"`: "unknown"}, "cpu.base_ghz"},
		{Watch{ExcludePlans: []string{"b", "A"}}, fields{`"a"`: "no", `"b"`: "no", `"c"`: "yes"}, "id"},
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
					simulator.Put(body, json.RawMessage(v), strings.Split(path, ".")...)
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
			got := map[truth]string{mismatch: "no", unknown: "unknown", match: "yes"}[matches(c.watch.criteria(), snap.Data.Plans.Items[0], places)]
			simtest.AssertEqual(t, fmt.Sprintf("%+v: %s: %s", c.watch, c.field, value), got, want)
		}
	}
}

// TestWatchUnmet has values that no plan of the documented catalog has, each beside one that
// some have. What is not known of one plan may be any value.
func TestWatchUnmet(t *testing.T) {
	snap, err := fetchBody(t, plans(), documented(t, plans()))
	if err != nil {
		t.Fatal(err)
	}
	public := Known{Data: Data{Plans: snap.Data.Plans, Locations: &LocationData{
		"ams": {Region: "Europe", CountryCode: "NL"}, "fra": {Region: "Europe", CountryCode: "DE"}, "nyc": {Region: "North America", CountryCode: "US"}, "sin": {Region: "Asia", CountryCode: "SG"},
	}}}
	w := Watch{
		Plans: []string{"gpu-l40s", "epyc9654"}, ExcludePlans: []string{"gpu-l40s", "gpul40s"}, Families: []string{"GPU", "gpus"},
		Locations: []string{"fra", "frankfurt"}, Regions: []string{"Europe", "EU"}, Countries: []string{"DE", "FR"},
		CPUModels: []string{"EPYC", "Xeno"}, Storage: []string{"NVMe", "tape"}, Ports: []string{"40 Gbps"}, MinCores: ptr(1e6), MaxUSDPerMonth: ptr(1e6),
	}
	want := []Unmet{
		{"plans", "epyc9654"},
		{"families", "gpus"},
		{"locations", "frankfurt"},
		{"regions", "EU"},
		{"countries", "FR"},
		{"cpu_models", "Xeno"},
		{"storage", "tape"},
		{"ports", "40 Gbps"},
		{"exclude_plans", "gpul40s"},
		{"min_cores", "1000000"},
	}
	watched := NewWatched(w).Step(public, today)
	simtest.AssertEqual(t, "values", watched.Unmet, want)
	simtest.AssertEqual(t, "after expired data", watched.Step(Known{}, today).Unmet, want)
	public.Data.Plans = &plansPage{}
	simtest.AssertEqual(t, "without plans", watched.Step(public, today).Unmet, want)
	unknown := snap.Data.Plans.Items[0]
	unknown.Network.Port, unknown.CPU.Cores, unknown.Availability.Locations = "", nil, []locationID{"new"}
	public.Data.Plans = snap.Data.Plans
	got := watched.Step(public, today).Unmet
	for _, v := range got {
		if v.Criterion == "ports" || v.Criterion == "min_cores" || v.Criterion == "regions" || v.Criterion == "countries" {
			t.Errorf("%v is not met, want that it is not known", v)
		}
	}
}
