package collector

import (
	"time"

	"server_rental_exporter/internal/rentalapi"
)

// Age is how old a response was when it was received. The zero Age is not known.
type Age struct {
	Age *time.Duration
	// ProducedBy is when the provider made the response at the latest, by the local
	// clock: ages are truncated to seconds.
	ProducedBy time.Time
}

// maxPlausibleAge bounds ages: beyond it, a clock of the provider is wrong.
const maxPlausibleAge = 365 * 24 * time.Hour

// newAge takes the age from the header Age, or else compares the time in the response
// with the header Date; never with the local clock, which may be wrong. An age that is
// negative or longer than maxPlausibleAge is not known.
func newAge(r rentalapi.Response, producedAt *timestamp) Age {
	if r.Age != nil && *r.Age <= maxPlausibleAge {
		return Age{r.Age, r.Received.Add(-*r.Age)}
	}
	if producedAt == nil || r.Date.IsZero() {
		return Age{}
	}
	age := r.Date.Sub(producedAt.time())
	if age < 0 || age > maxPlausibleAge {
		return Age{}
	}
	return Age{&age, r.Received.Add(-age + time.Second)}
}
