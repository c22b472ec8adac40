package exposition

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// block is an immutable set of metrics that is encoded once for each variant.
type block struct {
	metrics []prometheus.Metric
	descs   []*prometheus.Desc // of all families that metrics may have

	encoding sync.Mutex // held while the block is encoded

	mu    sync.Mutex
	cache map[Variant]*encodedBlock
}

// encodedBlock is a block in one variant. It is immutable.
type encodedBlock struct {
	parts [][]byte
	size  int64  // before compression
	crc   uint32 // CRC-32 before compression, for gzip
	err   error  // metrics that are missing, and why
}

func newBlock(metrics []prometheus.Metric, descs []*prometheus.Desc) *block {
	return &block{metrics: metrics, descs: descs, cache: map[Variant]*encodedBlock{}}
}

// cacheBytes returns the bytes that the block holds in all variants.
func (b *block) cacheBytes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, e := range b.cache {
		for _, part := range e.parts {
			n += cap(part)
		}
	}
	return n
}

// in returns the block in a variant, and encodes it where that is the first time.
func (b *block) in(v Variant) *encodedBlock {
	if e := b.cached(v); e != nil {
		return e
	}
	b.encode(v)
	return b.cached(v)
}

func (b *block) cached(v Variant) *encodedBlock {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cache[v]
}

// encode fills the cache for the variants in one pass, a family at a time: all
// families of a large block at once would take many times the memory of the result.
func (b *block) encode(variants ...Variant) {
	b.encoding.Lock()
	defer b.encoding.Unlock()
	var writers []*writer
	for _, v := range variants {
		if b.cached(v) == nil {
			writers = append(writers, newWriter(v))
		}
	}
	if len(writers) == 0 {
		return
	}
	var errs error
	var buf bytes.Buffer
	for desc, metrics := range b.families() {
		families, err := gather(desc, metrics)
		errs = errors.Join(errs, err)
		for _, format := range Formats() {
			errs = errors.Join(errs, write(writers, format, families, &buf))
		}
	}
	for _, w := range writers {
		e, err := w.close()
		e.err = errors.Join(errs, err)
		b.mu.Lock()
		b.cache[w.variant] = e
		b.mu.Unlock()
	}
}

// families yields the metrics of each family, in the order of descs.
func (b *block) families() func(yield func(*prometheus.Desc, []prometheus.Metric) bool) {
	byDesc := make(map[*prometheus.Desc][]prometheus.Metric, len(b.descs))
	for _, m := range b.metrics {
		byDesc[m.Desc()] = append(byDesc[m.Desc()], m)
	}
	return func(yield func(*prometheus.Desc, []prometheus.Metric) bool) {
		for _, d := range b.descs {
			if len(byDesc[d]) > 0 && !yield(d, byDesc[d]) {
				return
			}
		}
	}
}

// family is a prometheus.Collector of one metric family.
type family struct {
	desc    *prometheus.Desc
	metrics []prometheus.Metric
}

// Describe implements prometheus.Collector.
func (f family) Describe(ch chan<- *prometheus.Desc) { ch <- f.desc }

// Collect implements prometheus.Collector.
func (f family) Collect(ch chan<- prometheus.Metric) {
	for _, m := range f.metrics {
		ch <- m
	}
}

// gather checks and sorts a family as a registry does. Inconsistent metrics are
// dropped and reported in the error.
func gather(desc *prometheus.Desc, metrics []prometheus.Metric) ([]*dto.MetricFamily, error) {
	r := prometheus.NewRegistry()
	if err := r.Register(family{desc, metrics}); err != nil {
		return nil, fmt.Errorf("block: %w", err)
	}
	return r.Gather()
}

// write encodes families once for all writers of the format.
func write(writers []*writer, format expfmt.Format, families []*dto.MetricFamily, buf *bytes.Buffer) error {
	buf.Reset()
	var errs error
	for _, w := range writers {
		if w.variant.Format != format {
			continue
		}
		if buf.Len() == 0 {
			errs = errors.Join(errs, encodeFamilies(newEncoder(buf, format), families))
		}
		_, err := w.Write(buf.Bytes())
		errs = errors.Join(errs, err)
	}
	return errs
}

// newEncoder returns the encoder of a format, with created timestamps also in the
// text form of OpenMetrics.
func newEncoder(w io.Writer, f expfmt.Format) expfmt.Encoder {
	return expfmt.NewEncoder(w, f, expfmt.WithCreatedLines())
}

// encodeFamilies writes families without the end of an answer.
func encodeFamilies(enc expfmt.Encoder, families []*dto.MetricFamily) error {
	for _, mf := range families {
		if err := enc.Encode(mf); err != nil {
			return fmt.Errorf("encode %s: %w", mf.GetName(), err)
		}
	}
	return nil
}
