package history

import (
	"io"
	"testing"
	"time"
)

// BenchmarkDay generates a day of the exporter, ten days ago.
func BenchmarkDay(b *testing.B) {
	for b.Loop() {
		r := newRecorder(nil)
		if err := newRun(options(20*24*time.Hour, 1), r, end.AddDate(0, 0, -10), end.AddDate(0, 0, -9), 0).run(); err != nil {
			b.Fatal(err)
		}
		samples, err := r.write(io.Discard)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(samples), "samples")
	}
}
