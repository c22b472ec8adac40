package collector

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestWatchMatches tests each criterion with plans that differ in one field. A value that is not
// known does not match.
func TestWatchMatches(t *testing.T) {
	places := LocationData{
		"fra": {Region: "Europe", CountryCode: "DE"},
		"nyc": {Region: "North America", CountryCode: "us"},
		"xxx": {CountryCode: "DE"},
	}
	const absent = "-"
	type values []string // JSON of the field
	tested := map[string]bool{"Name": true}
	for _, c := range []struct {
		watch            Watch
		field            string
		matching, others values
	}{
		{Watch{Plans: []string{"a", "b"}}, "id", values{`"a"`, `"b"`}, values{`"c"`}},
		{Watch{ExcludePlans: []string{"b", "A"}}, "id", values{`"c"`}, values{`"a"`, `"b"`}},
		{Watch{Families: []string{"gpu", "Entry"}}, "family", values{`"gpu"`, `"entry"`}, values{`"gp"`, `""`, `null`, `5`, absent}},
		{Watch{GPU: ptr(true)}, "gpu", values{`{"model":"m"}`}, values{`{}`, `{"model":5}`, `null`, absent, `"m"`, `[]`}},
		{Watch{GPU: ptr(false)}, "gpu", values{`null`, absent}, values{`{"model":"m"}`, `{}`, `"m"`, `false`}},
		{Watch{GPUModels: []string{"l40s"}}, "gpu", values{`{"model":"NVIDIA L40S"}`}, values{`{"model":"RTX"}`, `null`, absent, `{}`, `{"memory":"48 GB"}`, `"m"`}},
		{Watch{MinCores: ptr(8.0)}, "cpu.cores", values{`8`, `9`}, values{`7`, `7.9`, `0`, `null`, `"8"`, `-8`, absent}},
		{Watch{MinThreads: ptr(16.0)}, "cpu.threads", values{`16`}, values{`15`, `null`}},
		{Watch{MinBaseGHz: ptr(3.5)}, "cpu.base_ghz", values{`3.5`}, values{`3.4`, `"3.5"`}},
		{Watch{CPUModels: []string{"Ryzen", "epyc 9"}}, "cpu.model", values{`"AMD EPYC 9654"`, `"AMD RYZEN 5"`}, values{`"AMD EPYC 7443P"`, `""`, `5`}},
		{Watch{ECC: ptr(true)}, "memory.ecc", values{`true`}, values{`false`, `null`, `"yes"`, absent}},
		{Watch{ECC: ptr(false)}, "memory.ecc", values{`false`}, values{`true`, `null`}},
		{Watch{MinMemoryGiB: ptr(64.0)}, "memory.size_gb", values{`64`}, values{`63`, `null`}},
		{Watch{Storage: []string{"nvme"}}, "storage", values{`"2x 1 TB NVMe"`}, values{`"4x 16 TB HDD"`, `null`}},
		{Watch{Ports: []string{"10 gbps", "25"}}, "network.port", values{`"10 Gbps"`, `"25 Gbps"`}, values{`"1 Gbps"`, `null`}},
		{Watch{MaxUSDPerMonth: ptr(99.9)}, "price.monthly.usd", values{`99.90`, `0`}, values{`99.91`, `null`, `"1"`, `-1`, absent}},
		{Watch{MaxEURPerMonth: ptr(0.0)}, "price.monthly.eur", values{`0`}, values{`0.01`, `null`}},
		{Watch{Locations: []string{"fra", "new"}}, "availability.locations", values{`["nyc","FRA"]`, `["new"]`, `[5,"fra"]`}, values{`["nyc"]`, `[]`, `null`, absent, `"fra"`, `[5]`}},
		{Watch{Regions: []string{"europe", "Asia"}}, "availability.locations", values{`["nyc","fra"]`, `["fra","new"]`}, values{`["nyc"]`, `["new"]`, `["xxx"]`}},
		{Watch{Countries: []string{"de"}}, "availability.locations", values{`["fra"]`, `["xxx"]`}, values{`["nyc"]`, `["new"]`}},
		{Watch{Countries: []string{"US"}}, "availability.locations", values{`["nyc"]`}, values{`["fra"]`}},
		// One location has to meet all criteria.
		{Watch{Regions: []string{"Europe"}, Countries: []string{"US"}}, "availability.locations", nil, values{`["fra","nyc"]`, `["xxx"]`}},
		{Watch{Locations: []string{"fra"}, Regions: []string{"North America"}}, "availability.locations", nil, values{`["fra","nyc"]`}},
		{Watch{Locations: []string{"fra"}, Regions: []string{"Europe"}, Countries: []string{"DE"}}, "availability.locations", values{`["fra","nyc"]`}, nil},
		// All criteria have to be met.
		{Watch{MinCores: ptr(8.0), MinMemoryGiB: ptr(64.0)}, "cpu.cores", values{`8`}, values{`7`, `null`}},
		{Watch{MinCores: ptr(8.0), MinMemoryGiB: ptr(65.0)}, "cpu.cores", nil, values{`8`, `null`}},
		// The stock is no criterion.
		{Watch{MinMemoryGiB: ptr(64.0)}, "availability.in_stock", values{`true`, `false`, `null`}, nil},
	} {
		for field, criterion := range reflect.ValueOf(c.watch).Fields() {
			if !criterion.IsZero() && len(c.matching) > 0 && len(c.others) > 0 {
				tested[field.Name] = true
			}
		}
		for _, value := range slices.Concat(c.matching, c.others) {
			body := map[string]any{}
			for path, v := range map[string]string{"id": `"a"`, "memory.size_gb": "64", c.field: value} {
				if v != absent {
					simulator.Put(body, json.RawMessage(v), strings.Split(path, ".")...)
				}
			}
			snap := newBodyTest(t, plans, simtest.Encode(t, map[string]any{"data": []any{body}})).mustFetch()
			got := c.watch.match(snap.Data.Plans.Items[0], places) == isMet
			simtest.AssertEqual(t, fmt.Sprintf("%+v: %s: %s", c.watch, c.field, value), got, slices.Contains(c.matching, value))
		}
	}
	for field := range reflect.ValueOf(Watch{}).Fields() {
		if !tested[field.Name] {
			t.Errorf("%s: no case: add a watch with it, the field of the API that it reads, and values that match and do not", field.Name)
		}
	}
}

// step is the data of a watch, and the hits after it; negative without series.
type step struct {
	plans     catalog
	hits      float64
	wait      time.Duration // time since the step before; a minute by default
	locations *LocationData // nil: fra is in Europe, nyc in North America
	unknown   string        // data that has expired
}

// step is StepWatches for one watch.
func (w *Watched) step(public Data, now time.Time) []Event {
	events, _ := StepWatches([]*Watched{w}, public, now)
	return events
}

// TestWatchSteps changes plans and locations from one response to the next.
func TestWatchSteps(t *testing.T) {
	cheapInEurope := Watch{Name: "w", Regions: []string{"Europe"}, MaxUSDPerMonth: ptr(100.0)}
	cheap := Watch{Name: "w", MaxUSDPerMonth: ptr(100.0)}
	a, sold, unknown, none := catalog{inStock("a")}, catalog{soldOut()}, catalog{listed("a", nil, 50)}, catalog{}
	at := func(usd any) catalog { return catalog{listed("a", true, usd)} }
	broken := catalog{inStock("a")}
	broken[0] = simtest.Decode(t, simtest.Encode(t, broken[0]))
	simulator.Put(broken[0], "none", "availability")
	offered := func(locations, usd any) catalog {
		plan := listed("a", true, usd)
		simulator.Put(plan, locations, "availability", "locations")
		return catalog{plan}
	}
	american := offered([]string{"nyc"}, 50)
	nowhere := func(usd any) catalog { return offered(nil, usd) }
	dutch := &LocationData{"fra": {Region: "Europe", CountryCode: "NL"}}
	german := &LocationData{"fra": {CountryCode: "DE"}}
	european := &LocationData{"fra": {Region: "Europe"}, "nyc": {Region: "Europe"}}
	for _, c := range []struct {
		name  string
		watch Watch
		steps []step
	}{
		{"restocks", cheapInEurope, []step{{plans: a}, {plans: sold}, {plans: a, hits: 1}, {plans: sold, hits: 1}, {plans: a, hits: 2}}},
		{"prices", cheapInEurope, []step{{plans: at(100.01)}, {plans: at(100), hits: 1}, {plans: at(101), hits: 1}, {plans: at(99), hits: 2}, {plans: at(1), hits: 2}}},
		{"another location", cheapInEurope, []step{{plans: a}, {plans: american}, {plans: a, hits: 1}}},
		{"another region", cheapInEurope, []step{{plans: american}, {plans: american, locations: european, hits: 1}}},
		{"added", cheapInEurope, []step{{plans: none}, {plans: a, hits: 1}}},

		// A plan that returns as it was less than an hour ago is no hit.
		{"returns within an hour", cheapInEurope, []step{{plans: a}, {plans: none}, {plans: a, wait: 58 * time.Minute}}},
		{"returns after an hour", cheapInEurope, []step{{plans: a}, {plans: none}, {plans: a, wait: 59 * time.Minute, hits: 1}}},
		{"no data for hours", cheapInEurope, []step{{plans: a}, {plans: a, wait: 90 * time.Minute}}},

		// Unknown values neither begin nor end a match.
		{"price", cheapInEurope, []step{{plans: a}, {plans: at("50")}, {plans: a}}},
		{"availability", cheapInEurope, []step{{plans: a}, {plans: broken}, {plans: a}}},
		{"region", cheapInEurope, []step{{plans: a}, {plans: a, locations: &LocationData{"fra": {}}}, {plans: a}}},
		{"country", Watch{Name: "w", Countries: []string{"DE"}}, []step{{plans: a, locations: german}, {plans: a, locations: &LocationData{}}, {plans: a, locations: german}}},
		{"locations, and the price is too high", cheapInEurope, []step{{plans: a}, {plans: nowhere(101)}, {plans: a, hits: 1}}},
		{"locations, and the price is within the bound", cheapInEurope, []step{{plans: a}, {plans: nowhere(100)}, {plans: a}}},
		{"one of the locations", cheapInEurope, []step{{plans: a}, {plans: offered([]any{"nyc", 5}, 50)}, {plans: a}}},
		{"region, but another country", Watch{Name: "w", Regions: []string{"Europe"}, Countries: []string{"NL"}}, []step{{plans: a, locations: dutch}, {plans: a, locations: german}, {plans: a, locations: dutch, hits: 1}}},
		{"price at first", cheapInEurope, []step{{plans: at("50")}, {plans: a}, {plans: at(101)}, {plans: a, hits: 1}}},
		{"stock", cheapInEurope, []step{{plans: a}, {plans: unknown}, {plans: a}}},
		{"sold out at an unknown price", cheapInEurope, []step{{plans: a}, {plans: catalog{listed("a", false, nil)}}, {plans: a, hits: 1}}},
		{"stock at first", cheapInEurope, []step{{plans: unknown}, {plans: a}, {plans: sold}, {plans: a, hits: 1}}},

		// Data that comes back is seen for the first time.
		{"plans expired", cheapInEurope, []step{{unknown: "plans", hits: -1}, {plans: a}, {unknown: "plans", hits: -1}, {plans: a}}},
		{"plans expired while sold out", cheapInEurope, []step{{plans: sold}, {unknown: "plans", hits: -1}, {plans: a}}},
		{"locations expired", cheapInEurope, []step{{plans: sold}, {plans: sold, unknown: "locations", hits: -1}, {plans: a}}},
		{"locations are not needed", cheap, []step{{plans: sold}, {plans: sold, unknown: "locations"}, {plans: a, hits: 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, w, want, got := today, &Watched{Watch: c.watch}, []float64{}, []float64{}
			var hitAt float64
			for _, s := range c.steps {
				now = now.Add(max(s.wait, time.Minute))
				data := plansOf(t, s.plans, now).Data
				data.Locations = s.locations
				if s.locations == nil {
					data.Locations = &LocationData{"fra": {Region: "Europe"}, "nyc": {Region: "North America"}}
				}
				switch s.unknown {
				case "plans":
					data.Plans = nil
				case "locations":
					data.Locations = nil
				}
				if slices.ContainsFunc(w.step(data, now), func(e Event) bool { return e.Message == "watch hit" }) {
					hitAt = float64(now.Unix())
				}
				want, got = append(want, s.hits), append(got, hits(t, w))
			}
			simtest.AssertEqual(t, "hits", got, want)
			last := exposed(t, WatchMetrics([]*Watched{w}))[simtest.Series(watchLastHit.Name, "plan", "a", "watch", "w")]
			simtest.AssertEqual(t, "last hit", last, hitAt)
		})
	}
}

// TestWatchLosesPlan has a plan that stops matching, whose series end after an hour, and one that is
// removed, which an event tells.
func TestWatchLosesPlan(t *testing.T) {
	w := &Watched{Watch: Watch{Name: "w", MaxUSDPerMonth: ptr(100.0)}}
	var got []string
	for _, s := range []struct {
		minute int
		plans  catalog
	}{
		{0, catalog{inStock("a"), inStock("b")}},
		{1, catalog{listed("a", true, 500), inStock("b")}},
		{2, catalog{inStock("b")}},
		{60, catalog{listed("a", true, 500)}},
		{61, catalog{listed("a", true, 500)}},
		{119, catalog{listed("a", true, 500)}},
		{120, catalog{listed("a", true, 500)}},
	} {
		now := today.Add(time.Duration(s.minute) * time.Minute)
		events := w.step(plansOf(t, s.plans, now).Data, now)
		var series []string
		for name := range exposed(t, WatchMetrics([]*Watched{w})) {
			if strings.HasPrefix(name, watchHits.Name) {
				series = append(series, name[len(watchHits.Name):])
			}
		}
		slices.Sort(series)
		got = append(got, fmt.Sprintln(s.minute, series, eventTexts(events)))
	}
	const a, b = `{plan="a",watch="w"}`, `{plan="b",watch="w"}`
	simtest.AssertEqual(t, "series of hits and events", strings.Join(got, ""), `0 [`+a+` `+b+`] []
1 [`+a+` `+b+`] []
2 [`+a+` `+b+`] []
60 [`+a+` `+b+`] [plan removed: watch=w plan=b name= usd_per_month=50]
61 [`+b+`] []
119 [`+b+`] []
120 [] []
`)
}

// TestUnknownStock has a plan whose stock is not known: how many are in stock is not known, either.
func TestUnknownStock(t *testing.T) {
	for _, stock := range []any{nil, "yes", false} {
		s := plansOf(t, catalog{inStock("a"), listed("b", stock, 50), listed("c", stock, 500)}, today)
		w := &Watched{Watch: Watch{Name: "w", MaxUSDPerMonth: ptr(100.0)}}
		w.step(s.Data, today)
		values := exposed(t, slices.Concat(s.Metrics, WatchMetrics([]*Watched{w})))
		var got []bool
		for _, series := range []string{simtest.Series(catalogInStock.Name), simtest.Series(watchPlansInStock.Name, "watch", "w"), simtest.Series(watchHits.Name, "plan", "b", "watch", "w")} {
			_, found := values[series]
			got = append(got, found)
		}
		simtest.AssertEqual(t, fmt.Sprint(stock), got, []bool{stock == false, stock == false, true})
	}
}

// hits returns the hits of a watch; -1 without series.
func hits(t *testing.T, w *Watched) float64 {
	t.Helper()
	metrics := WatchMetrics([]*Watched{w})
	if len(metrics) == 0 {
		return -1
	}
	sum := 0.0
	for series, n := range exposed(t, metrics) {
		if strings.HasPrefix(series, watchHits.Name+"{") {
			sum += n
		}
	}
	return sum
}
