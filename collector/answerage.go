package collector

import (
	"time"

	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
)

// answerAge is how old an answer was when it came.
type answerAge struct {
	known bool
	age   time.Duration
	// producedBy is when the provider made the answer at the latest, by the local
	// clock: ages are truncated to seconds.
	producedBy time.Time
}

// newAnswerAge takes the age from the header Age, or else compares the time in the
// answer with the header Date; never with the local clock, which may be wrong.
func newAnswerAge(a rentalapi.Answer, producedAt *timestamp) answerAge {
	if a.Age != nil {
		return answerAge{known: true, age: *a.Age, producedBy: a.Received.Add(-*a.Age)}
	}
	if producedAt == nil || a.Date.IsZero() {
		return answerAge{}
	}
	age := a.Date.Sub(time.UnixMilli(int64(float64(*producedAt) * 1000)))
	if age < 0 { // in the future: not usable
		return answerAge{}
	}
	return answerAge{known: true, age: age, producedBy: a.Received.Add(-age + time.Second)}
}

// phase returns when the provider's cache holds newer answers, where it caches for
// cacheTime.
func (a answerAge) phase(cacheTime time.Duration) refresh.Phase {
	if !a.known || cacheTime == 0 {
		return refresh.Phase{}
	}
	return refresh.Phase{Next: a.producedBy.Add(cacheTime), Period: cacheTime}
}

// grid returns a phase that all collectors of one account share, so that account and
// servers are fetched within a second of each other.
func grid(origin time.Time, interval time.Duration, began time.Time) refresh.Phase {
	periods := began.Sub(origin)/interval + 1
	return refresh.Phase{Next: origin.Add(periods * interval), Period: interval}
}
