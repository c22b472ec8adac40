package history

import (
	"testing"
	"time"
)

// BenchmarkDay simulates a day of the exporter, ten days ago.
func BenchmarkDay(b *testing.B) {
	end := time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC)
	for b.Loop() {
		r := &run{
			Options: Options{End: end, Length: 20 * 24 * time.Hour, Seed: 1},
			start:   end.AddDate(0, 0, -10), end: end.AddDate(0, 0, -9), recorder: newRecorder(nil),
		}
		var err error
		simulate(func() { err = r.run() })
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(r.recorder.samples), "samples")
	}
}
