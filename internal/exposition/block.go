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
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
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

// deflateLevel is the level at which klauspost's deflate costs a third of the
// standard library's default, for a few percent more bytes.
const deflateLevel = 6

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

	mu   sync.Mutex
	kept map[Form]*piece
	took time.Duration
}

// piece is a block in one form.
type piece struct {
	make  sync.Once
	bytes []byte
	size  int64  // before compression
	sum   uint32 // CRC-32 before compression
	err   error
}

// NewBlock returns a block of the metrics, each of which must have one of descs.
func NewBlock(metrics []prometheus.Metric, descs []*prometheus.Desc) *Block {
	return &Block{metrics: metrics, descs: descs, kept: map[Form]*piece{}}
}

// Describe implements prometheus.Collector.
func (b *Block) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range b.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (b *Block) Collect(ch chan<- prometheus.Metric) {
	for _, m := range b.metrics {
		ch <- m
	}
}

// families checks, sorts and returns the block's metrics, as any registry does.
// What is inconsistent is left out and is the error.
func (b *Block) families() ([]*dto.MetricFamily, error) {
	r := prometheus.NewRegistry()
	if err := r.Register(b); err != nil {
		return nil, fmt.Errorf("block: %w", err)
	}
	return r.Gather()
}

// Prepare makes the block ready in a form, so that no scrape has to wait for it.
func (b *Block) Prepare(f Form) error {
	return b.in(f).err
}

// Size returns the bytes that the block holds in all forms.
func (b *Block) Size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, p := range b.kept {
		n += len(p.bytes)
	}
	return n
}

// Took returns how long it took to make the block in the form that took longest.
func (b *Block) Took() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.took
}

// in returns the block in a form. The first call of each form makes it.
func (b *Block) in(f Form) *piece {
	b.mu.Lock()
	p := b.kept[f]
	if p == nil {
		p = &piece{}
		b.kept[f] = p
	}
	b.mu.Unlock()
	p.make.Do(func() {
		began := time.Now()
		families, err := b.families()
		p.err = err
		var raw bytes.Buffer
		if err := encode(&raw, families, f.Format); err != nil {
			p.err = err
			return
		}
		p.size = int64(raw.Len())
		if f.Coding == Gzip {
			p.sum = crc32.ChecksumIEEE(raw.Bytes())
		}
		bytes, err := compress(raw.Bytes(), f.Coding)
		if err != nil {
			p.err = err
			return
		}
		b.mu.Lock()
		p.bytes = bytes
		b.took = max(b.took, time.Since(began))
		b.mu.Unlock()
	})
	return p
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

// compress returns raw in a coding, such that more may follow.
func compress(raw []byte, c Coding) ([]byte, error) {
	switch c {
	case Gzip:
		w := deflaters.Get().(*flate.Writer)
		defer deflaters.Put(w)
		out := bytes.NewBuffer(make([]byte, 0, len(raw)/8))
		w.Reset(out)
		if _, err := w.Write(raw); err != nil {
			return nil, err
		}
		if err := w.Flush(); err != nil {
			return nil, err
		}
		return bytes.Clone(out.Bytes()), nil
	case Zstd:
		return bytes.Clone(zstdEncoder().EncodeAll(raw, make([]byte, 0, len(raw)/8))), nil
	default:
		return bytes.Clone(raw), nil
	}
}

var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, deflateLevel)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// zstdEncoder is made when the first client asks for zstd, which Prometheus does not.
var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
})
