package exposition

import (
	"errors"
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
	families [][]prometheus.Metric // sorted and distinct
	err      error                 // duplicates that are missing
	encoded  sync.Map              // *encodedBlock by variant
}

// encodedBlock is a block in one variant: a part for each family. It is immutable.
type encodedBlock struct {
	parts []part
	err   error // metrics that are missing, and why
}

// newBlock returns a block with families in the order of descs.
func newBlock(metrics []prometheus.Metric, descs []*prometheus.Desc) *block {
	byDesc := map[*prometheus.Desc][]prometheus.Metric{}
	for _, m := range metrics {
		byDesc[m.Desc()] = append(byDesc[m.Desc()], m)
	}
	b := &block{}
	for _, d := range descs {
		if len(byDesc[d]) > 0 {
			family, err := distinct(byDesc[d])
			b.families = append(b.families, family)
			b.err = errors.Join(b.err, err)
		}
	}
	return b
}

// distinct sorts the metrics of a family and drops duplicates, which the error reports.
func distinct(metrics []prometheus.Metric) ([]prometheus.Metric, error) {
	compare := func(a, b prometheus.Metric) int { return a.(sample).CompareLabels(b) }
	slices.SortStableFunc(metrics, compare)
	n := len(metrics)
	metrics = slices.CompactFunc(metrics, func(a, b prometheus.Metric) bool { return compare(a, b) == 0 })
	if n -= len(metrics); n > 0 {
		return metrics, fmt.Errorf("%s: %d duplicates", metrics[0].(sample).Family().GetName(), n)
	}
	return metrics, nil
}

func (b *block) encode(v variant) *encodedBlock {
	encoded := &encodedBlock{err: b.err}
	e := blockEncoders.Get().(*encoder)
	defer blockEncoders.Put(e)
	for _, family := range b.families {
		e.begin(v)
		err := e.writeMetrics(family)
		encoded.err = errors.Join(encoded.err, err)
		encoded.parts = append(encoded.parts, e.end(family[0].(sample).Family().GetName()))
	}
	return encoded
}
