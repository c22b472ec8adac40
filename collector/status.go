package collector

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"server_rental_exporter/internal/metric"
)

// providerStatus is API.md's Status. Its locations and their components are kept
// raw, so that one that cannot be understood does not hide the others.
type providerStatus struct {
	Overall   string
	Since     *instant
	Locations map[string]json.RawMessage
	Ongoing   *count
	Scheduled *count
	UpdatedAt *instant `json:"updated_at"`
}

var (
	statusInfo     = metric.Gauge("status_info", "The provider's overall state in its own words; constant 1.", "Status overall", "overall")
	componentUp    = metric.Gauge("component_operational", "Whether a component of a location is operational: 1, or 0 for any other state.", "Status locations.*.components", "location", "component").Per("location and component")
	componentState = metric.Gauge("component_state", "The present state of a component of a location in the provider's own word; constant 1.", "Status locations.*.components", "location", "component", "state").Per("location and component")
	incidents      = metric.Gauge("incidents_ongoing", "Incidents that are going on.", "Status ongoing")
	maintenances   = metric.Gauge("maintenances_scheduled", "Maintenance windows that are scheduled.", "Status scheduled")
	statusSince    = metric.Gauge("status_since_timestamp_seconds", "Since when the overall state holds: midnight UTC of the day.", "Status since")
	statusUpdated  = metric.Gauge("status_updated_timestamp_seconds", "When the provider last updated its status.", "Status updated_at")
)

func status() Resource {
	return Resource{
		Name: "status", Help: "component states, incidents and maintenances", Endpoint: "/status",
		Interval: 30 * time.Second, MaxAge: 5 * time.Minute, MinInterval: 30 * time.Second, Requests: 1,
		Metrics: []*metric.Definition{statusInfo, componentUp, componentState, incidents, maintenances, statusSince, statusUpdated},
		open:    func() fetch { return object("/status", showStatus) },
	}
}

func showStatus(b *metric.Builder, s *providerStatus, invalid *faults) (any, error) {
	b.Add(statusInfo, 1, s.Overall)
	metric.Put(b, incidents, s.Ongoing)
	metric.Put(b, maintenances, s.Scheduled)
	metric.Put(b, statusSince, s.Since)
	metric.Put(b, statusUpdated, s.UpdatedAt)
	for _, id := range slices.Sorted(maps.Keys(s.Locations)) {
		var l struct{ Components map[string]json.RawMessage }
		err := decode(s.Locations[id], &l)
		if err == nil && id == "" {
			err = errNoID
		}
		if err != nil {
			invalid.add(fmt.Errorf("locations: %w", err))
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(l.Components)) {
			invalid.add(showComponent(b, id, name, l.Components[name]))
		}
	}
	return nil, nil
}

func showComponent(b *metric.Builder, location, name string, raw json.RawMessage) error {
	var state *string
	err := decode(raw, &state)
	if err == nil && name == "" {
		err = errNoID
	}
	if err == nil && state != nil {
		err = b.Item(func() {
			operational := *state == "operational"
			b.Bool(componentUp, &operational, location, name)
			b.Add(componentState, 1, location, name, *state)
		})
	}
	if err != nil {
		return fmt.Errorf("components: %w", err)
	}
	return nil
}
