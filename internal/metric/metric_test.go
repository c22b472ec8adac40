package metric

import (
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestFamily has families as protobuf: with units, labels in order of their names, and created timestamps.
func TestFamily(t *testing.T) {
	var set Set
	up, counter := set.Gauge("up", "H.", "b", "a"), set.Counter("credit_usd_total", "H.")
	b := &Builder{}
	b.Add(up, 1, "x", "y")
	b.AddCreated(counter, 2, time.UnixMilli(1_700_000_000_500))
	b.AddCreated(counter, 3, time.Unix(-1, 0))
	samples := b.Metrics()
	for _, c := range []struct {
		d       *Definition
		samples []*Sample
		want    string
	}{
		{up, samples[:1], `{"help":"H.","metric":[{"gauge":{"value":1},"label":[{"name":"a","value":"y"},{"name":"b","value":"x"}]}],"name":"server_rental_up","type":"GAUGE"}`},
		{counter, samples[1:], `{"help":"H.","metric":[{"counter":{"createdTimestamp":"2023-11-14T22:13:20.500Z","value":2}},{"counter":{"value":3}}],"name":"server_rental_credit_usd_total","type":"COUNTER"}`},
		{set.Gauge("price_usd_per_month", "H."), nil, `{"help":"H.","name":"server_rental_price_usd_per_month","type":"GAUGE"}`},
		{set.Counter("sent_bytes_total", "H."), nil, `{"help":"H.","name":"server_rental_sent_bytes_total","type":"COUNTER","unit":"bytes"}`},
		{set.Histogram("duration_seconds", "H."), nil, `{"help":"H.","name":"server_rental_duration_seconds","type":"HISTOGRAM","unit":"seconds"}`},
		{set.Gauge("base_hertz", "H."), nil, `{"help":"H.","name":"server_rental_base_hertz","type":"GAUGE","unit":"hertz"}`},
		{set.Gauge("latitude_degrees", "H."), nil, `{"help":"H.","name":"server_rental_latitude_degrees","type":"GAUGE","unit":"degrees"}`},
		{set.Gauge("bonus_ratio", "H."), nil, `{"help":"H.","name":"server_rental_bonus_ratio","type":"GAUGE","unit":"ratio"}`},
	} {
		text, err := protojson.Marshal(c.d.Family(c.samples))
		if err != nil {
			t.Fatal(err)
		}
		simtest.AssertEqual(t, c.d.Name, string(simtest.Encode(t, simtest.Decode(t, text))), c.want)
	}
	defer func() {
		simtest.AssertEqual(t, "panic", recover(), any("server_rental_up: 1 label values for 2 labels"))
	}()
	b.Add(up, 1, "x")
}

// TestEarlier compares times, of which one may be none.
func TestEarlier(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	simtest.AssertEqual(t, "earlier", []time.Time{Earlier(early, late), Earlier(late, early), Earlier(time.Time{}, late), Earlier(late, time.Time{})}, []time.Time{early, early, late, late})
}
