package collector

import (
	"time"

	"server_rental_exporter/internal/rentalapi"
)

// Age is how old a response was when it was received. The zero Age is not known.
type Age struct {
	Known bool
	Age   time.Duration
	// ProducedBy is when the provider made the response at the latest, by the local
	// clock: ages are truncated to seconds.
	ProducedBy time.Time
}

// newAge takes the age from the header Age, or else compares the time in the response
// with the header Date; never with the local clock, which may be wrong.
func newAge(r rentalapi.Response, producedAt *timestamp) Age {
	if r.Age != nil {
		return Age{Known: true, Age: *r.Age, ProducedBy: r.Received.Add(-*r.Age)}
	}
	if producedAt == nil || r.Date.IsZero() {
		return Age{}
	}
	age := r.Date.Sub(time.UnixMilli(int64(float64(*producedAt) * 1000)))
	if age < 0 { // in the future: not usable
		return Age{}
	}
	return Age{Known: true, Age: age, ProducedBy: r.Received.Add(-age + time.Second)}
}
