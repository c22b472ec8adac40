// Package exposition serves metrics that change rarely at the cost of copying
// their bytes.
//
// A Block is a set of metrics that stays as it is: what the collectors show of one
// resource between two refreshes. It is gathered, encoded and compressed once for
// each format that somebody asks for, and kept. An answer is the kept bytes of all
// blocks and behind them what changes all the time (the exporter's own metrics),
// encoded afresh. For that, compressed pieces are made so that they can be joined:
// deflate is flushed to a byte and its checksums are combined into those of one
// gzip member, since several members are read by few clients; frames of zstd may
// follow each other as they are.
package exposition

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Coding is a content coding of HTTP.
type Coding string

// The codings that are offered, in the order in which they win where a client
// likes them the same.
const (
	Identity Coding = "identity"
	Gzip     Coding = "gzip"
	Zstd     Coding = "zstd"
)

// Form is what an answer looks like on the wire.
type Form struct {
	// Format is one of Formats, without an escaping scheme: no name of the exporter
	// needs escaping, so that all schemes give the same bytes.
	Format expfmt.Format
	Coding Coding
}

// Block is an immutable set of metrics. A metric family must not be in two blocks.
type Block struct {
	metrics []prometheus.Metric
	descs   []*prometheus.Desc

	making sync.Mutex // held while pieces are made

	mu   sync.Mutex
	kept map[Form]*piece
	took time.Duration
}

// piece is a block in one form. It does not change once made.
type piece struct {
	parts [][]byte
	size  int64  // before compression
	sum   uint32 // CRC-32 before compression, where the coding needs it
	err   error  // what was left out
}

// NewBlock returns a block of the metrics, each of which must have one of descs.
func NewBlock(metrics []prometheus.Metric, descs []*prometheus.Desc) *Block {
	return &Block{metrics: metrics, descs: descs, kept: map[Form]*piece{}}
}

// Size returns the bytes that the block holds in all forms.
func (b *Block) Size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, p := range b.kept {
		for _, part := range p.parts {
			n += cap(part)
		}
	}
	return n
}

// Took returns how long the last making of pieces took.
func (b *Block) Took() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.took
}

// in returns the block in a form, which is made where it was not before.
func (b *Block) in(f Form) *piece {
	if p := b.ready(f); p != nil {
		return p
	}
	b.Prepare(f)
	return b.ready(f)
}

func (b *Block) ready(f Form) *piece {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept[f]
}

// Prepare makes the block ready in these forms, so that no scrape has to wait for
// it. All forms together take one pass, a family at a time: what a scrape of the
// plain registry holds of all families at once is many times the bytes of a form.
func (b *Block) Prepare(forms ...Form) {
	b.making.Lock()
	defer b.making.Unlock()
	var writers []*writer
	for _, f := range forms {
		if b.ready(f) == nil {
			writers = append(writers, newWriter(f))
		}
	}
	if len(writers) == 0 {
		return
	}
	began := time.Now()
	var failed error
	var raw bytes.Buffer
	for _, d := range b.descs {
		families, err := family{d, b.metrics}.gather()
		failed = errors.Join(failed, err)
		for _, format := range Formats() {
			failed = errors.Join(failed, write(writers, format, families, &raw))
		}
	}
	for _, w := range writers {
		p, err := w.end()
		p.err = errors.Join(failed, err)
		b.keep(w.form, p)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.took = time.Since(began)
}

func (b *Block) keep(f Form, p *piece) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept[f] = p
}

// family is what a block has of one metric family.
type family struct {
	desc    *prometheus.Desc
	metrics []prometheus.Metric // of the whole block
}

// Describe implements prometheus.Collector.
func (f family) Describe(ch chan<- *prometheus.Desc) { ch <- f.desc }

// Collect implements prometheus.Collector.
func (f family) Collect(ch chan<- prometheus.Metric) {
	for _, m := range f.metrics {
		if m.Desc() == f.desc {
			ch <- m
		}
	}
}

// gather checks and sorts the family, as any registry does. What is inconsistent
// is left out and is the error.
func (f family) gather() ([]*dto.MetricFamily, error) {
	r := prometheus.NewRegistry()
	if err := r.Register(f); err != nil {
		return nil, fmt.Errorf("block: %w", err)
	}
	return r.Gather()
}

// write encodes families and hands them to the writers of the format.
func write(writers []*writer, format expfmt.Format, families []*dto.MetricFamily, raw *bytes.Buffer) error {
	raw.Reset()
	var failed error
	for _, w := range writers {
		if w.form.Format != format {
			continue
		}
		if raw.Len() == 0 {
			failed = errors.Join(failed, encode(raw, families, format))
		}
		_, err := w.Write(raw.Bytes())
		failed = errors.Join(failed, err)
	}
	return failed
}

// encode writes families without what ends a whole answer.
func encode(w io.Writer, families []*dto.MetricFamily, f expfmt.Format) error {
	enc := expfmt.NewEncoder(w, f)
	for _, mf := range families {
		if err := enc.Encode(mf); err != nil {
			return fmt.Errorf("encode %s: %w", mf.GetName(), err)
		}
	}
	return nil
}
