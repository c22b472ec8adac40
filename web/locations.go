package web

import (
	"cmp"
	"slices"
	"strings"
)

// Bounds of the section.
const (
	maxLocations  = 50
	maxComponents = 12 // of each location
)

// locationRow is a row of the table of locations.
type locationRow struct {
	ID, City, Country, Region string
	InStock, Plans            string
	Components                table[component]
}

// component is a component of a location.
type component struct {
	Name, State, Class string
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

// state is the state of a component, as the provider words it.
func (v *view) state(location, component string) string {
	for _, s := range v.componentState[location] {
		if s.Label("component") == component {
			return s.Label("state")
		}
	}
	return ""
}

// locations returns the locations of both collectors by city.
func (v *view) locations() table[locationRow] {
	s := v.samples
	plans, inStock := s.by("location_plans", "location"), s.by("location_plans_in_stock", "location")
	components := s.group("component_operational", "location")
	ids := make([]string, 0, len(v.locationInfo))
	for id := range v.locationInfo {
		ids = append(ids, id)
	}
	for id := range components {
		if v.locationInfo[id] == nil {
			ids = append(ids, id)
		}
	}
	rows := make([]locationRow, 0, len(ids))
	for _, id := range ids {
		info := v.locationInfo[id]
		l := locationRow{
			ID: text(id), City: text(label(info, "city")), Country: text(label(info, "country")), Region: text(label(info, "region")),
			Plans: number(value(plans[id])), InStock: number(value(inStock[id])),
		}
		all := make([]component, 0, len(components[id]))
		for _, c := range components[id] {
			name, class := c.Label("component"), "good"
			if c.Value() != 1 {
				class = "bad"
			}
			all = append(all, component{text(name), text(v.state(id, name)), class})
		}
		slices.SortFunc(all, func(a, b component) int {
			return cmp.Or(strings.Compare(a.Class, b.Class), strings.Compare(a.Name, b.Name)) // bad before good
		})
		l.Components = cut(all, maxComponents)
		rows = append(rows, l)
	}
	slices.SortFunc(rows, func(a, b locationRow) int {
		return cmp.Or(strings.Compare(a.City, b.City), strings.Compare(a.ID, b.ID))
	})
	return cut(rows, maxLocations)
}
