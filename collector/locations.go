package collector

import (
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// location is the provider's Location.
type location struct {
	ID          locationID
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
	locationSet metric.Set

	locationInfo    = locationSet.Gauge("location_info", "City, country and region of a location.", "location", "iata", "city", "country", "country_code", "region")
	locationLat     = locationSet.Gauge("location_latitude_degrees", "Latitude of a location in degrees; north is positive.", "location")
	locationLon     = locationSet.Gauge("location_longitude_degrees", "Longitude of a location in degrees; east is positive.", "location")
	locationPlans   = locationSet.Gauge("location_plans", "Plans offered in a location.", "location")
	locationInStock = locationSet.Gauge("location_plans_in_stock", "Plans offered in a location that are in stock.", "location")
)

// LocationData are the locations by id.
type LocationData map[locationID]location

var locations = Resource{
	Name: "locations", Help: "locations and how many plans each has in stock", Path: "/locations",
	Timing: Timing{Interval: time.Minute, MaxAge: 5 * time.Minute}, MinInterval: time.Minute,
	Metrics: locationSet,
	get:     getList(500, addLocations),
}

func addLocations(b *metric.Builder, page rentalapi.Page[location, struct{}], s *Snapshot) {
	byID := make(LocationData, len(page.Items))
	for _, l := range page.Items {
		id := string(l.ID)
		b.Add(locationInfo, 1, id, l.IATA, l.City, l.Country, l.CountryCode, l.Region)
		metric.AddOptional(b, locationLat, l.Coordinates.Lat, id)
		metric.AddOptional(b, locationLon, l.Coordinates.Lon, id)
		metric.AddOptional(b, locationPlans, l.Plans, id)
		metric.AddOptional(b, locationInStock, l.PlansInStock, id)
		if l.Plans != nil && l.PlansInStock != nil && *l.PlansInStock > *l.Plans && len(page.Errors[id]) == 0 {
			s.Invalid.Add(id, rentalapi.FieldError{Field: "plans_in_stock", Problem: "more than plans"})
		}
		byID[l.ID] = *l
	}
	s.Data.Locations = &byID
}
