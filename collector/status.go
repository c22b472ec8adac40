package collector

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// providerStatus is the provider's Status.
type providerStatus struct {
	Overall   state
	Since     *timestamp
	Locations map[locationID]struct{ Components map[string]state }
	Ongoing   *count
	Scheduled *count
	UpdatedAt *timestamp `json:"updated_at"`
}

var (
	statusSet metric.Set

	statusInfo     = statusSet.Gauge("status_info", "The provider's overall state, as the provider words it.", "overall")
	componentUp    = statusSet.Gauge("component_operational", "Whether a component of a location is operational: 1 or 0.", "location", "component")
	componentState = statusSet.Gauge("component_state", "The present state of a component of a location, as the provider words it.", "location", "component", "state")
	incidents      = statusSet.Gauge("incidents_ongoing", "Ongoing incidents.")
	maintenances   = statusSet.Gauge("maintenances_scheduled", "Scheduled maintenance windows.")
	statusSince    = statusSet.Gauge("status_since_timestamp_seconds", "The date in the provider's field since, as midnight UTC.")
	statusUpdated  = statusSet.Gauge("status_updated_timestamp_seconds", "When the provider last updated its status.")
)

// maxStatusAge is four times the cache time: an older updated_at tells no age, as the status has probably
// not changed since.
const maxStatusAge = 2 * time.Minute

var status = Resource{
	Name: "status", Help: "component states, incidents and maintenances", Path: "/status",
	Timing: Timing{Interval: 30 * time.Second, MaxAge: 5 * time.Minute}, MinInterval: 30 * time.Second,
	Metrics: statusSet,
	get:     getStatus,
	changes: &changeKind{changes: []change{{of: attrState, event: "component state changed"}}},
}

func getStatus(ctx context.Context, api rentalapi.Getter, path string, b *metric.Builder) (Snapshot, error) {
	o, err := rentalapi.GetObject[providerStatus](ctx, api, path)
	if err != nil {
		return Snapshot{}, err
	}
	st := o.Value
	if len(st.Locations) == 0 {
		return Snapshot{}, fmt.Errorf("data.locations: none valid: %w", rentalapi.ErrIncomplete)
	}
	if st.Overall != "" {
		b.Add(statusInfo, 1, string(st.Overall))
	}
	metric.AddOptional(b, incidents, st.Ongoing)
	metric.AddOptional(b, maintenances, st.Scheduled)
	metric.AddOptional(b, statusSince, st.Since)
	metric.AddOptional(b, statusUpdated, st.UpdatedAt)

	s := newSnapshot(o.Response)
	madeAt := s.MadeAt
	s.setStamp(o.Response, st.UpdatedAt, maxStatusAge)
	s.MadeAt = madeAt                                                                               // the status may be unchanged since updated_at
	isItem := func(e rentalapi.FieldError) bool { return strings.HasPrefix(e.Field, "locations.") } // a location or component
	for _, e := range o.Errors {
		if isItem(e) {
			s.Invalid.Add("status", e)
		}
	}
	s.Invalid.Add("status", slices.DeleteFunc(o.Errors, isItem)...)
	for _, id := range slices.Sorted(maps.Keys(st.Locations)) {
		components := st.Locations[id].Components
		for _, name := range slices.Sorted(maps.Keys(components)) {
			location, state := string(id), components[name]
			b.AddBool(componentUp, new(strings.EqualFold(string(state), "operational")), location, name)
			b.Add(componentState, 1, location, name, string(state))
			s.items = append(s.items, item{id: location + "\n" + name, values: values{attrState: string(state)}, keys: [][2]string{{"location", location}, {"component", name}}})
		}
	}
	return s, nil
}
