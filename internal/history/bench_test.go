package history

import (
	"io"
	"testing"
	"time"
)

// BenchmarkDay generates a day of the exporter, ten days ago.
func BenchmarkDay(b *testing.B) {
	for b.Loop() {
		r := newRun(options(20*24*time.Hour, 1), end.AddDate(0, 0, -10), end.AddDate(0, 0, -9), 0)
		if err := r.run(); err != nil {
			b.Fatal(err)
		}
		samples, err := write(io.Discard, []*recorder{r.recorder})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(samples), "samples")
	}
}
