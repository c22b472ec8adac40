package exposition

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
)

// BenchmarkPublish publishes a large group in one variant.
func BenchmarkPublish(b *testing.B) {
	for _, v := range []variant{{expfmt.FmtOpenMetrics_1_0_0, false}, {expfmt.FmtOpenMetrics_1_0_0, true}, {expfmt.FmtProtoDelim, true}} {
		b.Run(strings.SplitN(string(v.format), ";", 2)[0]+fmt.Sprintf("/gzip=%t", v.gzip), func(b *testing.B) {
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
