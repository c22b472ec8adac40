package simtest

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator"
)

// TestCache has a price change every 10 seconds, and requests at some of these times.
func TestCache(t *testing.T) {
	for name, c := range map[string]struct {
		cache Cache
		want  []string // price, age and generated_at of each response
	}{
		"at once":        {Cache{Age: true}, []string{"0  :00", "5  :50", "6  :00", "7  :10", "13  :10"}},
		"at fixed times": {Cache{Kind: AtFixedTimes, Offset: 5 * time.Second, Age: true}, []string{"0 55 :05", "0 45 :05", "0 55 :05", "6 5 :05", "12 5 :05"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := StartInMemory(t, simulator.Options{})
				a.SetCache(c.cache)
				var got []string
				for i := range 14 {
					a.Change(func(w *simulator.World) { w.Plans = []simulator.Object{{"id": "x", "price": i}} })
					if slices.Contains([]int{0, 5, 6, 7, 13}, i) {
						r := ServeGet(a, "/api/v1/plans")
						body := Decode(t, []byte(r.Body))
						made := simulator.Text(body, "meta", "generated_at")
						price := body["data"].([]any)[0].(map[string]any)["price"]
						got = append(got, fmt.Sprint(price, " ", r.Header.Get("Age"), " ", made[16:19]))
					}
					time.Sleep(10 * time.Second)
				}
				AssertEqual(t, "responses", got, c.want)
			})
		})
	}
}
