package web

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Bounds of the section.
const (
	maxLocations  = 50
	maxStates     = 6  // of each location's components
	maxComponents = 12 // of each state
)

// locationRow is a row of the table of locations.
type locationRow struct {
	City, Details  string
	InStock, Plans string
	States         table[componentState]
}

// componentState is the components of a location that have the same state.
type componentState struct {
	State, Class, Components string
}

// provider is the provider's state as a whole.
type provider struct {
	Overall, Since, Incidents, Maintenances string
}

func (v *view) provider() provider {
	p := provider{Overall: none, Since: none, Incidents: number(v.samples.single("incidents_ongoing")), Maintenances: number(v.samples.single("maintenances_scheduled"))}
	for _, s := range v.samples["status_info"] {
		p.Overall = text(s.Label("overall"))
	}
	if since := v.samples.single("status_since_timestamp_seconds"); since != nil {
		p.Since = at(*since).Format("2006-01-02")
	}
	return p
}

// locationName is the city of a location and its id.
func (v *view) locationName(id string) string {
	if city := label(v.locationInfo[id], "city"); city != "" {
		return text(city) + " (" + text(id) + ")"
	}
	return text(id)
}

// locations returns the locations of both collectors by city.
func (v *view) locations() table[locationRow] {
	s := v.samples
	plans, inStock := s.by("location_plans", "location"), s.by("location_plans_in_stock", "location")
	ids := slices.Collect(maps.Keys(v.locationInfo))
	for id := range v.componentState {
		if v.locationInfo[id] == nil {
			ids = append(ids, id)
		}
	}
	rows := make([]locationRow, 0, len(ids))
	for _, id := range ids {
		l := locationRow{
			City: text(id), Plans: number(value(plans[id])), InStock: number(value(inStock[id])), States: v.componentStates(id),
		}
		if info := v.locationInfo[id]; info != nil {
			l.City, l.Details = text(info.Label("city")), text(id)+", "+text(info.Label("country"))
		}
		rows = append(rows, l)
	}
	slices.SortFunc(rows, func(a, b locationRow) int {
		return cmp.Or(strings.Compare(a.City, b.City), strings.Compare(a.Details, b.Details))
	})
	return cut(rows, maxLocations)
}

// componentStates returns the components of a location by state, operational last.
func (v *view) componentStates(location string) table[componentState] {
	components := map[string][]string{}
	for _, s := range v.componentState[location] {
		components[s.Label("state")] = append(components[s.Label("state")], s.Label("component"))
	}
	rows := make([]componentState, 0, len(components))
	for state, names := range components {
		class := "bad"
		if strings.EqualFold(state, "operational") {
			class = "good"
		}
		slices.Sort(names)
		rows = append(rows, componentState{text(state), class, join(names, maxComponents)})
	}
	slices.SortFunc(rows, func(a, b componentState) int {
		return cmp.Or(strings.Compare(a.Class, b.Class), strings.Compare(a.State, b.State)) // bad before good
	})
	return cut(rows, maxStates)
}
