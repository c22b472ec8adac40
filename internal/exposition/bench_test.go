package exposition

import (
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
)

// BenchmarkPublish publishes a large group in one variant.
func BenchmarkPublish(b *testing.B) {
	for _, v := range []Variant{{expfmt.FmtOpenMetrics_1_0_0, Identity}, {expfmt.FmtOpenMetrics_1_0_0, Gzip}, {expfmt.FmtProtoDelim, Gzip}} {
		b.Run(strings.SplitN(string(v.Format), ";", 2)[0]+"/"+string(v.Encoding), func(b *testing.B) {
			g := newTestGroup("test", 60_000)
			p := NewPublisher(g.Group)
			p.encoded(v)
			b.ReportAllocs()
			for b.Loop() {
				g.Changed()
				p.Publish()
			}
			b.ReportMetric(float64(p.CacheBytes())/1024, "KiB")
		})
	}
}
