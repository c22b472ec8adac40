package collector

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestAge has what a response says of its age. When it was made is by the wall clock: the monotonic one
// stands still while a machine is suspended.
func TestAge(t *testing.T) {
	const year = 365 * 24 * time.Hour
	date := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	stampOf := func(at time.Time) *timestamp { ts := timestamp(at.UnixMilli()) / 1000; return &ts }
	const unknown = -1
	for name, c := range map[string]struct {
		response rentalapi.Response
		stamp    *timestamp
		age, by  time.Duration // durations before it was received
	}{
		"Age":                     {rentalapi.Response{Age: ptr(17 * time.Second)}, nil, 17 * time.Second, 17 * time.Second},
		"Age and stamp":           {rentalapi.Response{Age: ptr(time.Duration(0)), Date: date}, stampOf(date.Add(-time.Minute)), 0, 0},
		"stamp":                   {rentalapi.Response{Date: date}, stampOf(date.Add(-17 * time.Second)), 17 * time.Second, 16 * time.Second},
		"stamp with milliseconds": {rentalapi.Response{Date: date}, stampOf(date.Add(-1700 * time.Millisecond)), 1700 * time.Millisecond, 700 * time.Millisecond},
		"stamp without Date":      {rentalapi.Response{}, stampOf(date), 0, unknown},
		"stamp in the future":     {rentalapi.Response{Date: date}, stampOf(date.Add(time.Second)), 0, unknown},
		"Age of two years":        {rentalapi.Response{Age: ptr(2 * year)}, nil, 0, unknown},
		"that, and stamp":         {rentalapi.Response{Age: ptr(2 * year), Date: date}, stampOf(date), 0, 0},
		"stamp of a year ago":     {rentalapi.Response{Date: date}, stampOf(date.Add(-year)), year, year - time.Second},
		"stamp of 1970":           {rentalapi.Response{Date: date}, new(timestamp), 0, unknown},
		"Date of the year 9999":   {rentalapi.Response{Date: date.AddDate(7973, 0, 0)}, stampOf(date), 0, unknown},
	} {
		c.response.Received = time.Now()
		s, by := newSnapshot(c.response), time.Time{}
		s.setStamp(c.response, c.stamp, maxPlausibleAge)
		if c.by != unknown {
			by = c.response.Received.Add(-c.by)
		}
		simtest.AssertEqual(t, name+": made", s.MadeAt.String(), c.response.Received.Round(0).Add(-c.age).String())
		simtest.AssertEqual(t, name+": at the latest", s.MadeAtLatest, by)
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
		want      []time.Time // made, and made by at the latest
	}{
		{20 * time.Second, nil, []time.Time{today, today.Add(-19 * time.Second)}},
		{2 * time.Minute, nil, []time.Time{today, today.Add(-119 * time.Second)}},
		{2*time.Minute + time.Second, nil, []time.Time{today, {}}},
		{72 * time.Hour, nil, []time.Time{today, {}}},
		{72 * time.Hour, &header, []time.Time{today.Add(-header), today.Add(-header)}},
	} {
		body := fmt.Sprintf(`{"data":{"locations":{"fra":{"components":{"network":"operational"}}},"updated_at":%q}}`, today.Add(-c.unchanged).Format(time.RFC3339))
		f := newBodyTest(t, status, []byte(body))
		f.response = rentalapi.Response{Received: today, Date: today, Age: c.header}
		s := f.mustFetch()
		simtest.AssertEqual(t, c.unchanged.String(), []time.Time{s.MadeAt, s.MadeAtLatest}, c.want)
	}
}

// TestTooManySamples has plans that are offered in very many locations, and some of them with long ids.
func TestTooManySamples(t *testing.T) {
	locations := make([]string, 900)
	for at := range locations {
		locations[at] = fmt.Sprint("location ", at)
	}
	for id, n := range map[string]int{"plan-": 300, strings.Repeat("plan", 500): 20} {
		var items catalog
		for i := range n {
			o := inStock(fmt.Sprint(id, i))
			simulator.Put(o, locations, "availability", "locations")
			items = append(items, o)
		}
		snap, err := newBodyTest(t, plans, simtest.Encode(t, simulator.Object{"data": items})).fetch()
		if !errors.Is(err, rentalapi.ErrTooLarge) || len(snap.Metrics) > 0 {
			t.Errorf("%d plans: got %d samples and error %v, want %v", n, len(snap.Metrics), err, rentalapi.ErrTooLarge)
		}
	}
}
