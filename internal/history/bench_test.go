package history

import (
	"io"
	"testing"
	"time"
)

// BenchmarkDay generates a day of the exporter, ten days ago.
func BenchmarkDay(b *testing.B) {
	begin := end.AddDate(0, 0, -10)
	for b.Loop() {
		r := newRecorder(nil)
		if err := newRun(options(20*24*time.Hour, 1), r, begin).run(begin.AddDate(0, 0, 1)); err != nil {
			b.Fatal(err)
		}
		samples, err := r.write(io.Discard)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(samples), "samples")
	}
}
