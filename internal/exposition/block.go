package exposition

import (
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
)

// block is the metrics of a group. It is immutable, and encoded once for each variant.
type block struct {
	families []family
	encoded  sync.Map // func() []part by variant: a part for each family
}

// family is the metrics of a family, sorted and distinct.
type family struct {
	definition *metric.Definition
	metrics    []prometheus.Metric
	err        error // duplicates that are missing
}

// newBlock returns a block with families in the order of definitions.
func newBlock(metrics []prometheus.Metric, definitions []*metric.Definition) *block {
	byDesc := map[*prometheus.Desc][]prometheus.Metric{}
	for _, m := range metrics {
		byDesc[m.Desc()] = append(byDesc[m.Desc()], m)
	}
	b := &block{}
	compare := func(a, b prometheus.Metric) int {
		return slices.Compare(labelValues(a), labelValues(b))
	}
	for _, d := range definitions {
		all := byDesc[d.Desc]
		if len(all) == 0 {
			continue
		}
		slices.SortStableFunc(all, compare)
		f := family{definition: d}
		f.metrics = slices.CompactFunc(all, func(a, b prometheus.Metric) bool { return compare(a, b) == 0 })
		if n := len(all) - len(f.metrics); n > 0 {
			f.err = fmt.Errorf("%s: %d duplicates", d.Name, n)
		}
		b.families = append(b.families, f)
	}
	return b
}
