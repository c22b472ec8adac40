package exposition

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// block is the metrics of a group. It is immutable, and encoded once for each variant.
type block struct {
	families [][]prometheus.Metric // sorted and distinct
	err      error                 // duplicates that are missing
	encoding *sync.Mutex           // held while a family is encoded

	mu       sync.Mutex
	variants map[Variant]func() *encodedBlock
	bytes    atomic.Int64 // in all variants
}

// encodedBlock is a block in one variant: a part for each family. It is immutable.
type encodedBlock struct {
	parts []part
	err   error // metrics that are missing, and why
}

// newBlock returns a block that encodes one family at a time, and only while it holds
// encoding. Its families are in the order of descs.
func newBlock(metrics []prometheus.Metric, descs []*prometheus.Desc, encoding *sync.Mutex) *block {
	b := &block{encoding: encoding, variants: map[Variant]func() *encodedBlock{}}
	count := map[*prometheus.Desc]int{}
	for _, m := range metrics {
		count[m.Desc()]++
	}
	byDesc := make(map[*prometheus.Desc][]prometheus.Metric, len(count))
	for d, n := range count {
		byDesc[d] = make([]prometheus.Metric, 0, n)
	}
	for _, m := range metrics {
		byDesc[m.Desc()] = append(byDesc[m.Desc()], m)
	}
	for _, d := range descs {
		if len(byDesc[d]) > 0 {
			family, err := distinct(byDesc[d])
			b.families = append(b.families, family)
			b.err = errors.Join(b.err, err)
		}
	}
	return b
}

// encoded returns the block in a variant. The first call encodes it, others wait.
func (b *block) encoded(v Variant) *encodedBlock {
	b.mu.Lock()
	once, ok := b.variants[v]
	if !ok {
		once = sync.OnceValue(func() *encodedBlock { return b.encode(v) })
		b.variants[v] = once
	}
	b.mu.Unlock()
	return once()
}

func (b *block) encode(v Variant) *encodedBlock {
	e := &encodedBlock{err: b.err}
	for _, family := range b.families {
		p, err := b.encodeFamily(v, family)
		e.err = errors.Join(e.err, err)
		e.parts = append(e.parts, p)
		b.bytes.Add(int64(len(p.body)))
	}
	return e
}

func (b *block) encodeFamily(v Variant, metrics []prometheus.Metric) (part, error) {
	b.encoding.Lock()
	defer b.encoding.Unlock()
	e := blockEncoders.Get().(*encoder)
	defer blockEncoders.Put(e)
	e.begin(v)
	err := e.writeMetrics(metrics)
	p, endErr := e.end()
	p.family = metrics[0].(sample).Family().GetName()
	return p, errors.Join(err, endErr)
}
