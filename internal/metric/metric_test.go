package metric

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

func TestBuilder(t *testing.T) {
	var set Set
	plain, one, two := set.Gauge("plain", "Help."), set.Gauge("one", "Help.", "a"), set.Counter("two_total", "Help.", "b", "account")
	type number float64
	yes, no, five := true, false, number(5)
	b := &Builder{}
	simtest.AssertEqual(t, "nothing", len(b.Metrics()), 0)
	b.Add(plain, 1)
	b.Add(one, 2, "x")
	b.AddBool(plain, &yes)
	b.AddBool(plain, &no)
	b.AddBool(plain, nil)
	AddOptional(b, plain, &five)
	AddOptional[number](b, plain, nil)
	b.ConstLabelValues = []string{"y"}
	b.Add(two, 3, "main")
	b.Add(two, 4, "lab")
	b.Add(one, 5)
	var got []string
	for _, s := range b.Metrics() {
		got = append(got, fmt.Sprintf("%s %q %v", s.Definition.Name, s.Labels, s.Value))
	}
	simtest.AssertEqual(t, "samples", got, []string{
		"server_rental_plain [] 1", `server_rental_one ["x"] 2`, "server_rental_plain [] 1", "server_rental_plain [] 0", "server_rental_plain [] 5",
		`server_rental_two_total ["y" "main"] 3`, `server_rental_two_total ["y" "lab"] 4`, `server_rental_one ["y"] 5`,
	})
	defer func() {
		simtest.AssertEqual(t, "panic", recover(), any("server_rental_two_total: 3 label values for 2 labels"))
	}()
	b.Add(two, 1, "main", "lab")
}

func TestDefinition(t *testing.T) {
	var set Set
	for _, c := range []struct {
		d    *Definition
		want []string // name, type, base unit
	}{
		{set.Gauge("up", "H."), []string{"server_rental_up", "GAUGE", ""}},
		{set.Gauge("plan_price_usd_per_month", "H.", "plan"), []string{"server_rental_plan_price_usd_per_month", "GAUGE", ""}},
		{set.Counter("credit_usd_total", "H.", "account", "type"), []string{"server_rental_credit_usd_total", "COUNTER", ""}},
		{set.Counter("sent_bytes_total", "H."), []string{"server_rental_sent_bytes_total", "COUNTER", "bytes"}},
		{set.Histogram("duration_seconds", "H.", "endpoint"), []string{"server_rental_duration_seconds", "HISTOGRAM", "seconds"}},
		{set.Gauge("base_hertz", "H.", "plan"), []string{"server_rental_base_hertz", "GAUGE", "hertz"}},
		{set.Gauge("latitude_degrees", "H.", "location"), []string{"server_rental_latitude_degrees", "GAUGE", "degrees"}},
		{set.Gauge("bonus_ratio", "H.", "topup"), []string{"server_rental_bonus_ratio", "GAUGE", "ratio"}},
	} {
		f := c.d.Family(nil)
		simtest.AssertEqual(t, c.d.Name, []string{f.GetName(), f.GetType().String(), f.GetUnit()}, c.want)
	}
}

// TestFamily has samples as protobuf: labels in order of their names, and created timestamps.
func TestFamily(t *testing.T) {
	var set Set
	gauge, counter := set.Gauge("up", "H.", "b", "a"), set.Counter("credit_usd_total", "H.")
	b := &Builder{}
	b.AddCreated(gauge, 1, time.Unix(1, 0), "x", "y")
	b.AddCreated(counter, 2, time.UnixMilli(1_700_000_000_500))
	b.AddCreated(counter, 3, time.Unix(-1, 0))
	var got []string
	for _, s := range b.Metrics() {
		text, err := protojson.Marshal(s.Definition.Family([]*Sample{s}).GetMetric()[0])
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(simtest.Encode(t, simtest.Decode(t, text))))
	}
	simtest.AssertEqual(t, "metrics", got, []string{
		`{"gauge":{"value":1},"label":[{"name":"a","value":"y"},{"name":"b","value":"x"}]}`,
		`{"counter":{"createdTimestamp":"2023-11-14T22:13:20.500Z","value":2}}`, `{"counter":{"value":3}}`,
	})
}

// TestSample reads and compares samples of one family.
func TestSample(t *testing.T) {
	d := new(Set).Gauge("up", "H.", "b", "a")
	x, y := &Sample{Definition: d, Labels: []string{"x", "1"}}, &Sample{Definition: d, Labels: []string{"x", "2"}}
	simtest.AssertEqual(t, "labels", []string{x.Label("a"), x.Label("c")}, []string{"1", ""})
	simtest.AssertEqual(t, "order", []int{x.CompareFirst(y.Labels), y.CompareFirst(x.Labels), x.CompareFirst(y.Labels[:1])}, []int{-1, 1, 0})
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	simtest.AssertEqual(t, "earlier", []time.Time{Earlier(early, late), Earlier(late, early), Earlier(time.Time{}, late), Earlier(late, time.Time{})}, []time.Time{early, early, late, late})
}
