package process

import (
	"math"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
)

func gather(tb testing.TB, c prometheus.Collector) map[string]*dto.MetricFamily {
	tb.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	found := map[string]*dto.MetricFamily{}
	for _, f := range families {
		found[f.GetName()] = f
	}
	return found
}

func value(f *dto.MetricFamily) float64 {
	m := f.GetMetric()[0]
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

// The metrics are those of client_golang, but for the network's.
func TestSameAsStock(t *testing.T) {
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	got, want := gather(t, c), gather(t, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for name, w := range want {
		g := got[name]
		if strings.Contains(name, "_network_") {
			if g != nil {
				t.Errorf("%s is there", name)
			}
			continue
		}
		if g == nil || g.GetHelp() != w.GetHelp() || g.GetType() != w.GetType() {
			t.Errorf("%s: got %v, want %v", name, g, w)
			continue
		}
		// The second look at the same process may find a little more of it.
		if a, b := value(g), value(w); math.Abs(a-b) > 0.1*math.Abs(b)+1 {
			t.Errorf("%s: got %v, want %v", name, a, b)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("more than client_golang has: %v", got)
	}
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}

func BenchmarkCollect(b *testing.B) {
	own, err := New()
	if err != nil {
		b.Fatal(err)
	}
	for name, c := range map[string]prometheus.Collector{
		"lean": own, "stock": collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		b.Run(name, func(b *testing.B) {
			ch := make(chan prometheus.Metric, 16)
			b.ReportAllocs()
			for b.Loop() {
				c.Collect(ch)
				for len(ch) > 0 {
					<-ch
				}
			}
		})
	}
}
