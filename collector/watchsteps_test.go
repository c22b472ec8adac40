package collector

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestWatchSteps changes plans and locations from one response to the next, a minute
// later, and compares the hits so far; - means that the watch has no series.
//
// A response is written as its plans: id, stock, price and location, which are by default
// in stock, 50 dollars and fra. ? is null, and ! an item without a usable id. A word with
// = changes the region of a location, "none" is an empty list, "no plans" and "no locations"
// are expired ones.
func TestWatchSteps(t *testing.T) {
	cheapInEurope := Watch{Name: "w", Regions: []string{"Europe"}, MaxUSDPerMonth: ptr(100.0)}
	cheap := Watch{Name: "w", MaxUSDPerMonth: ptr(100.0)}
	for _, c := range []struct {
		watch       Watch
		steps, want string
	}{
		{cheapInEurope, "a; a/out; a; a/out; a", "0 0 1 1 2"},
		{cheapInEurope, "a/in/100.01; a/in/100; a/in/101; a/in/99; a/in/1", "0 1 1 2 2"},
		{cheapInEurope, "a/out; a/out/200; a/out/50", "0 0 0"},
		{cheapInEurope, "a; a/in/50/nyc; a", "0 0 1"},
		{cheapInEurope, "a/in/50/nyc; a/in/50/nyc nyc=Europe", "0 1"},

		// A plan that returns as it was less than an hour ago is no hit.
		{cheapInEurope, "a b; b; a b", "0 0 0"},
		{cheapInEurope, "a b; b; a/out b", "0 0 0"},
		{cheapInEurope, "a; none; 57 minutes; a", "0 0 0 0"},
		{cheapInEurope, "a; none; 58 minutes; a", "0 0 0 1"},
		{cheapInEurope, "a; 90 minutes; a", "0 0 0"},
		{cheapInEurope, "a/out; none; a", "0 0 1"},
		{cheapInEurope, "a/out; none; a/?; a", "0 0 0 1"},

		// What is not known neither begins nor ends a match.
		{cheapInEurope, "a; a/?; a", "0 0 0"},
		{cheapInEurope, "a; a/in/?; a/in/60", "0 0 0"},
		{cheapInEurope, "a/in/50/nyc; a/in/50/nyc nyc=Europe; a/in/50/nyc nyc=; a/in/50/nyc nyc=Europe", "0 1 1 1"},
		{cheapInEurope, "a; a/in/?; a/in/200; a", "0 0 0 1"},
		{cheapInEurope, "a/?; a; a/out; a", "0 0 0 1"},
		{cheapInEurope, "!; a; a/out; a", "0 1 1 2"},
		{cheapInEurope, "a g/out; ! g/out; a g/out", "0 0 0"},
		{cheapInEurope, "a g/out; a/in/200 !; a !; b !; b g/out; a g/out", "0 0 1 2 2 2"},

		// Data that comes back is seen for the first time.
		{cheapInEurope, "no plans; a; no plans; a", "- 0 - 0"},
		{cheapInEurope, "no locations; a; no locations; a", "- 0 - 0"},
		{cheapInEurope, "a/out; no locations; a", "0 - 0"},
		{cheap, "no plans; a/out; no locations; a", "- 0 0 1"},
	} {
		now := today
		w := NewWatched(c.watch, now)
		places := LocationData{"fra": {Region: "Europe"}, "nyc": {Region: "North America"}}
		listed := &plansPage{}
		var got []string
		for step := range strings.SplitSeq(c.steps, "; ") {
			now = now.Add(time.Minute)
			known := Data{Plans: listed, Locations: &places}
			switch step {
			case "no plans":
				known.Plans = nil
			case "no locations":
				known.Locations = nil
			case "57 minutes", "58 minutes", "90 minutes": // pass without a response
				minutes, _ := strconv.Atoi(step[:2])
				now = now.Add(time.Duration(minutes-1) * time.Minute)
				got = append(got, hits(t, w))
				continue
			case "none":
				listed = &plansPage{}
				known.Plans = listed
			default:
				listed = watchedPlans(t, step, places)
				known.Plans = listed
			}
			w = w.Step(Known{Data: known}, now)
			got = append(got, hits(t, w))
		}
		simtest.AssertEqual(t, fmt.Sprintf("%+v: %s", c.watch, c.steps), strings.Join(got, " "), c.want)
	}
}

// watchedPlans reads a response of TestWatchSteps.
func watchedPlans(t *testing.T, step string, places LocationData) *plansPage {
	t.Helper()
	snap, err := fetchBody(t, plans(), planResponse(step, places))
	if err != nil {
		t.Fatal(err)
	}
	return snap.Data.Plans
}

// planResponse returns a response of TestWatchSteps.
func planResponse(step string, places LocationData) []byte {
	var items []string
	for word := range strings.FieldsSeq(step) {
		if id, region, found := strings.Cut(word, "="); found {
			places[locationID(id)] = location{Region: region}
			continue
		}
		fields := strings.Split(word, "/")
		fields = append(fields, []string{"", "in", "50", "fra"}[len(fields):]...)
		id := fmt.Sprintf("%q", fields[0])
		if id == `"!"` {
			id = "5"
		}
		stock := map[string]string{"in": "true", "out": "false", "?": "null"}[fields[1]]
		price := strings.ReplaceAll(fields[2], "?", "null")
		items = append(items, fmt.Sprintf(`{"id":%s,"availability":{"in_stock":%s,"locations":[%q]},"price":{"monthly":{"usd":%s}}}`, id, stock, fields[3], price))
	}
	return []byte(`{"data":[` + strings.Join(items, ",") + `]}`)
}

// hits returns the hits of a watch; - without series.
func hits(t *testing.T, w Watched) string {
	t.Helper()
	metrics := WatchMetrics([]Watched{w})
	if len(metrics) == 0 {
		return "-"
	}
	sum := 0.0
	for series, n := range exposed(t, Snapshot{Metrics: metrics}) {
		if strings.HasPrefix(series, watchHits.Name+"{") {
			sum += n
		}
	}
	return fmt.Sprint(sum)
}
