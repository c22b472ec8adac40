package web

import (
	"cmp"
	"slices"
	"strings"
)

// Bounds of cells.
const (
	maxStates     = 6  // of each location's components
	maxComponents = 12 // of each state
)

// componentState is the components of a location that have the same state.
type componentState struct {
	State, Class, Components string
}

// locationName returns the city of a location and its id.
func (v *view) locationName(id string) string {
	if v.Label("city", "location_info", id) == "" {
		return text(id)
	}
	return v.NameOf("city", "location_info", id) + " (" + text(id) + ")"
}

// Locations returns the ids of the locations of both collectors by name.
func (v *view) Locations() table[string] {
	var ids []string
	for _, s := range slices.Concat(v.samples["component_state"], v.samples["location_info"]) {
		ids = append(ids, s.Label("location"))
	}
	slices.Sort(ids)
	ids = slices.Compact(ids) // before the names, of which two may be the same
	slices.SortStableFunc(ids, func(a, b string) int { return strings.Compare(v.locationName(a), v.locationName(b)) })
	return cut(ids, maxRows)
}

// States returns the components of a location by state, operational last.
func (v *view) States(location string) table[componentState] {
	components := map[string][]string{}
	for _, s := range v.find("component_state", location) {
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
