package history

import (
	"io"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
)

// BenchmarkDay simulates a day of the exporter, ten days ago.
func BenchmarkDay(b *testing.B) {
	end := time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC)
	for b.Loop() {
		r := &run{
			Options: Options{End: end, Length: 20 * 24 * time.Hour, Servers: simulator.ExampleServers, Seed: 1},
			start:   end.AddDate(0, 0, -10), end: end.AddDate(0, 0, -9), recorder: newRecorder(nil),
		}
		var err error
		simulate(func() { err = r.run() })
		if err != nil {
			b.Fatal(err)
		}
		samples, err := write(io.Discard, []*recorder{r.recorder})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(samples), "samples")
	}
}
