package collector

import (
	"time"

	"server_rental_exporter/internal/metric"
)

// location is API.md's Location.
type location struct {
	ID          string
	IATA        string
	City        string
	Country     string
	CountryCode string `json:"country_code"`
	Region      string
	Coordinates struct {
		Lat *latitude
		Lon *longitude
	}
	Plans        *count
	PlansInStock *count `json:"plans_in_stock"`
}

var (
	locationInfo    = metric.Gauge("location_info", "What a location is; constant 1.", "Location", "location", "iata", "city", "country", "country_code", "region")
	locationLat     = metric.Gauge("location_latitude_degrees", "Latitude of a location; north is positive.", "Location coordinates.lat", "location")
	locationLon     = metric.Gauge("location_longitude_degrees", "Longitude of a location; east is positive.", "Location coordinates.lon", "location")
	locationPlans   = metric.Gauge("location_plans", "Plans offered in a location.", "Location plans", "location")
	locationInStock = metric.Gauge("location_plans_in_stock", "Plans offered in a location that are in stock.", "Location plans_in_stock", "location")
)

func locations() Resource {
	return Resource{
		Name: "locations", Help: "locations and how many plans each has in stock", Endpoint: "/locations",
		Interval: time.Minute, MaxAge: 5 * time.Minute, MinInterval: time.Minute, Requests: 1,
		Metrics: []*metric.Definition{locationInfo, locationLat, locationLon, locationPlans, locationInStock},
		open: func() fetch {
			return list[location, struct{}]{
				endpoint: "/locations", most: mostItems,
				id: func(l *location) string { return l.ID },
				item: func(b *metric.Builder, l *location) {
					b.Add(locationInfo, 1, l.ID, l.IATA, l.City, l.Country, l.CountryCode, l.Region)
					metric.Put(b, locationLat, l.Coordinates.Lat, l.ID)
					metric.Put(b, locationLon, l.Coordinates.Lon, l.ID)
					metric.Put(b, locationPlans, l.Plans, l.ID)
					metric.Put(b, locationInStock, l.PlansInStock, l.ID)
				},
			}.fetch
		},
	}
}
