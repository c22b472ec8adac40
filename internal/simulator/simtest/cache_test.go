package simtest

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator"
)

// TestCache has a price change every 10 seconds, and requests at some of these times.
func TestCache(t *testing.T) {
	s := time.Second
	for _, c := range []struct {
		name  string
		cache Cache
		want  []string // price, age and seconds of generated_at of each response
	}{
		{"at once", Cache{Age: true}, []string{"0  00", "5  50", "6  00", "7  10", "13  10"}},
		{"at fixed times", Cache{Kind: AtFixedTimes, Offset: 5 * s, Age: true}, []string{"0 55 05", "0 45 05", "0 55 05", "6 5 05", "12 5 05"}},
		{
			"at fixed times, late",
			Cache{Kind: AtFixedTimes, Offset: 5 * s, Age: true, Late: func(time.Time) time.Duration { return 3 * s }},
			[]string{"0 52 08", "0 42 08", "0 52 08", "6 2 08", "12 2 08"},
		},
		{
			"at fixed times, hidden",
			Cache{Kind: AtFixedTimes, Offset: 5 * s, Age: true, Hidden: 8 * s},
			[]string{"0 55 05", "0 45 05", "0 55 05", "0 65 05", "6 65 05"},
		},
		{"on demand", Cache{Kind: OnDemand, Age: true}, []string{"0 0 00", "0 50 00", "6 0 00", "6 10 00", "13 0 10"}},
		{"per request", Cache{Kind: PerRequest, Age: true, Clock: 30 * s}, []string{"0 0 30", "5 0 20", "6 0 30", "7 0 40", "13 0 40"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := StartInMemory(t, simulator.Options{})
				a.SetCache(c.cache)
				var got []string
				for i := range 14 {
					a.Change(func(w *simulator.World) { w.Plans = []simulator.Object{{"id": "x", "price": i}} })
					switch i {
					case 0, 5, 6, 7, 13:
						got = append(got, describePlans(t, a))
					}
					time.Sleep(10 * s)
				}
				AssertEqual(t, "responses", got, c.want)
			})
		})
	}
}

// describePlans describes the response with the plans as in TestCache.
func describePlans(t *testing.T, a *API) string {
	t.Helper()
	r := ServeGet(a, "/api/v1/plans")
	var body struct {
		Data []struct{ Price int }
		Meta struct {
			GeneratedAt time.Time `json:"generated_at"`
		}
	}
	if err := json.Unmarshal([]byte(r.Body), &body); err != nil {
		t.Fatalf("%v: %s", err, r.Body)
	}
	return fmt.Sprint(body.Data[0].Price, " ", r.Header.Get("Age"), " ", body.Meta.GeneratedAt.Format("05"))
}
