package exposition

import (
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// sample is a metric of a group, as those of package metric are.
type sample interface {
	prometheus.Metric
	// Family returns the family without metrics.
	Family() *dto.MetricFamily
	// CompareLabels returns the order of the metric and another one of its family.
	CompareLabels(other prometheus.Metric) int
}

// block is the metrics of a group. It is immutable, and encoded once for each variant.
type block struct {
	families []family
	encoded  sync.Map // func() []part by variant: a part for each family
}

// family is the metrics of a family, sorted and distinct.
type family struct {
	name    string
	metrics []prometheus.Metric
	err     error // duplicates that are missing
}

// newBlock returns a block with families in the order of descs.
func newBlock(metrics []prometheus.Metric, descs []*prometheus.Desc) *block {
	byDesc := map[*prometheus.Desc][]prometheus.Metric{}
	for _, m := range metrics {
		byDesc[m.Desc()] = append(byDesc[m.Desc()], m)
	}
	b := &block{}
	compare := func(a, b prometheus.Metric) int { return a.(sample).CompareLabels(b) }
	for _, d := range descs {
		all := byDesc[d]
		if len(all) == 0 {
			continue
		}
		slices.SortStableFunc(all, compare)
		f := family{name: all[0].(sample).Family().GetName()}
		f.metrics = slices.CompactFunc(all, func(a, b prometheus.Metric) bool { return compare(a, b) == 0 })
		if n := len(all) - len(f.metrics); n > 0 {
			f.err = fmt.Errorf("%s: %d duplicates", f.name, n)
		}
		b.families = append(b.families, f)
	}
	return b
}
