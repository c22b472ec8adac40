package collector

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator/simtest"
)

func TestAge(t *testing.T) {
	const year = 365 * 24 * 3600 // seconds
	received := today
	date := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	stampOf := func(at time.Time) *timestamp { ts := timestamp(at.UnixMilli()) / 1000; return &ts }
	known := func(age, ago time.Duration) Age { return Age{&age, received.Add(-ago)} }
	seconds := func(n time.Duration) *time.Duration { d := n * time.Second; return &d }
	for name, c := range map[string]struct {
		response   rentalapi.Response
		producedAt *timestamp
		want       Age
	}{
		"Age":                     {rentalapi.Response{Age: seconds(17)}, nil, known(17*time.Second, 17*time.Second)},
		"Age and stamp":           {rentalapi.Response{Age: seconds(0), Date: date}, stampOf(date.Add(-time.Minute)), known(0, 0)},
		"stamp":                   {rentalapi.Response{Date: date}, stampOf(date.Add(-17 * time.Second)), known(17*time.Second, 16*time.Second)},
		"stamp with milliseconds": {rentalapi.Response{Date: date}, stampOf(date.Add(-1700 * time.Millisecond)), known(1700*time.Millisecond, 700*time.Millisecond)},
		"stamp without Date":      {rentalapi.Response{}, stampOf(date), Age{}},
		"Date without stamp":      {rentalapi.Response{Date: date}, nil, Age{}},
		"stamp in the future":     {rentalapi.Response{Date: date}, stampOf(date.Add(time.Second)), Age{}},
		"Age of two years":        {rentalapi.Response{Age: seconds(2 * year)}, nil, Age{}},
		"that, and stamp":         {rentalapi.Response{Age: seconds(2 * year), Date: date}, stampOf(date), known(0, 0)},
		"stamp of a year ago":     {rentalapi.Response{Date: date}, stampOf(date.Add(-year * time.Second)), known(year*time.Second, (year-1)*time.Second)},
		"stamp of 1970":           {rentalapi.Response{Date: date}, new(timestamp), Age{}},
		"Date of the year 9999":   {rentalapi.Response{Date: date.AddDate(7973, 0, 0)}, stampOf(date), Age{}},
		"stamp of the year 9999":  {rentalapi.Response{Date: date}, stampOf(date.AddDate(7973, 0, 0)), Age{}},
	} {
		c.response.Received = received
		simtest.AssertEqual(t, name, newAge(c.response, c.producedAt), c.want)
	}
}

// TestAgeOfStatus has a status that did not change for some time. Its updated_at says when the
// response was made only if that is not long ago, and is never shown as its age, unlike the
// header Age.
func TestAgeOfStatus(t *testing.T) {
	header := 5 * time.Minute
	for _, c := range []struct {
		unchanged time.Duration
		header    *time.Duration
		want      Age
	}{
		{20 * time.Second, nil, Age{nil, today.Add(-19 * time.Second)}},
		{2 * time.Minute, nil, Age{nil, today.Add(-119 * time.Second)}},
		{2*time.Minute + time.Second, nil, Age{}},
		{72 * time.Hour, nil, Age{}},
		{72 * time.Hour, &header, Age{&header, today.Add(-header)}},
	} {
		body := fmt.Sprintf(`{"data":{"locations":{"fra":{"components":{"network":"operational"}}},"updated_at":%q}}`, today.Add(-c.unchanged).Format(time.RFC3339))
		api := &fakeAPI{response: rentalapi.Response{Received: today, Date: today, Age: c.header}, body: func(url.Values) []byte { return []byte(body) }}
		snap, err := newFetcher(t, status())(t.Context(), api)
		simtest.AssertEqual(t, c.unchanged.String(), []any{err, snap.Age}, []any{nil, c.want})
	}
}
