package exposition

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// block is the metrics of a group. It is immutable, and encoded once for each variant.
type block struct {
	metrics  []prometheus.Metric
	descs    []*prometheus.Desc // of all families that metrics may have
	encoding *sync.Mutex        // held while a family is encoded

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
// encoding: a family takes many times the memory of its result.
func newBlock(metrics []prometheus.Metric, descs []*prometheus.Desc, encoding *sync.Mutex) *block {
	return &block{metrics: metrics, descs: descs, encoding: encoding, variants: map[Variant]func() *encodedBlock{}}
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
	byDesc := make(map[*prometheus.Desc][]prometheus.Metric, len(b.descs))
	for _, m := range b.metrics {
		byDesc[m.Desc()] = append(byDesc[m.Desc()], m)
	}
	e := &encodedBlock{}
	for _, d := range b.descs {
		if len(byDesc[d]) == 0 {
			continue
		}
		p, err := b.encodeFamily(v, byDesc[d])
		e.err = errors.Join(e.err, err)
		e.parts = append(e.parts, p)
		b.bytes.Add(int64(len(p.body)))
	}
	return e
}

func (b *block) encodeFamily(v Variant, metrics []prometheus.Metric) (part, error) {
	b.encoding.Lock()
	defer b.encoding.Unlock()
	f, err := newFamily(metrics)
	e := published.Get().(*encoder)
	defer published.Put(e)
	err = errors.Join(err, writeFamilies(e.begin(v.Format), f))
	p, compressErr := e.part(v.Encoding)
	return part{family: f.GetName(), body: bytes.Clone(p.body), checksum: p.checksum}, errors.Join(err, compressErr)
}
