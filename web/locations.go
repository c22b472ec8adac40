package web

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Bounds of cells.
const (
	maxStates     = 6  // of each location's components
	maxComponents = 12 // of each state
)

// locationRow is a row of the table of locations.
type locationRow struct{ ID, City, Details string }

// componentState is the components of a location that have the same state.
type componentState struct {
	State, Class, Components string
}

// Since returns the day since which the provider's state is as it is.
func (v *view) Since() string {
	since := v.Value("status_since_timestamp_seconds")
	if since == nil {
		return none
	}
	return at(*since).Format(time.DateOnly)
}

// locationName returns the city of a location and its id.
func (v *view) locationName(id string) string {
	if v.Label("city", "location_info", id) == "" {
		return text(id)
	}
	return v.NameOf("city", "location_info", id) + " (" + text(id) + ")"
}

// Locations returns the locations of both collectors by city.
func (v *view) Locations() table[locationRow] {
	components := v.group("component_state")
	ids := slices.Collect(maps.Keys(components))
	for _, info := range v.samples["location_info"] {
		if id := info.Label("location"); components[id] == nil {
			ids = append(ids, id)
		}
	}
	rows := make([]locationRow, 0, len(ids))
	for _, id := range ids {
		l := locationRow{ID: id, City: text(id)}
		if info := v.find("location_info", id); info != nil {
			l.City, l.Details = text(info.Label("city")), text(id)+", "+text(info.Label("country"))
		}
		rows = append(rows, l)
	}
	slices.SortFunc(rows, func(a, b locationRow) int {
		return cmp.Or(strings.Compare(a.City, b.City), strings.Compare(a.Details, b.Details))
	})
	return cut(rows, maxRows)
}

// States returns the components of a location by state, operational last.
func (v *view) States(location string) table[componentState] {
	components := map[string][]string{}
	for _, s := range v.samples["component_state"] {
		if s.Label("location") != location {
			continue
		}
		components[s.Label("state")] = append(components[s.Label("state")], s.Label("component"))
	}
	rows := make([]componentState, 0, len(components))
	for state, names := range components {
		slices.Sort(names)
		rows = append(rows, componentState{text(state), stateClass(state), join(names, maxComponents)})
	}
	slices.SortFunc(rows, func(a, b componentState) int {
		return cmp.Or(compareClasses(a.Class, b.Class), strings.Compare(a.State, b.State))
	})
	return cut(rows, maxStates)
}
