package exposition

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/flate"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

// page holds all published samples, and their encodings. It is immutable.
type page struct {
	families    []family
	at, expires time.Time // wall clock; expires is zero if it does not expire
	err         error     // names the duplicates that were dropped
	encoded     sync.Map  // maps a variant to a func() text, which encodes once
}

// family holds the samples of a metric family: sorted and distinct.
type family struct {
	definition *metric.Definition
	samples    []*metric.Sample
}

// newPage returns the page of samples at a time, with families in the order of definitions.
func newPage(samples []*metric.Sample, definitions []*metric.Definition, at, expires time.Time) *page {
	p, counts, byDefinition := &page{at: at, expires: expires}, map[*metric.Definition]int{}, map[*metric.Definition][]*metric.Sample{}
	for _, s := range samples {
		counts[s.Definition]++
	}
	for _, s := range samples {
		if byDefinition[s.Definition] == nil {
			byDefinition[s.Definition] = make([]*metric.Sample, 0, counts[s.Definition])
		}
		byDefinition[s.Definition] = append(byDefinition[s.Definition], s)
	}
	for _, d := range definitions {
		all := byDefinition[d]
		if len(all) == 0 {
			continue
		}
		slices.SortStableFunc(all, func(a, b *metric.Sample) int { return slices.Compare(a.Labels, b.Labels) })
		distinct := slices.CompactFunc(all, func(a, b *metric.Sample) bool { return slices.Equal(a.Labels, b.Labels) })
		if n := len(all) - len(distinct); n > 0 {
			p.err = errors.Join(p.err, fmt.Errorf("%s: %d duplicates", d.Name, n))
		}
		p.families = append(p.families, family{d, distinct})
	}
	return p
}

// isStale returns whether the page expired so long ago, or the clock was set back.
func (p *page) isStale(now time.Time, late time.Duration) bool {
	return now.Before(p.at) || !p.expires.IsZero() && !now.Before(p.expires.Add(late))
}

// batch is the number of samples that are encoded at a time: they take many times the memory
// of the result.
const batch = 1000

// messages returns families in batches. In protobuf, a family is one message.
func (p *page) messages(v variant, unwanted func(family string) bool) iter.Seq[*dto.MetricFamily] {
	return func(yield func(*dto.MetricFamily) bool) {
		for _, f := range p.families {
			n := min(batch, len(f.samples))
			if v.format == expfmt.FmtProtoDelim {
				n = len(f.samples)
			}
			for samples := range slices.Chunk(f.samples, n) {
				if !unwanted(f.definition.Name) && !yield(f.definition.Family(samples)) {
					return
				}
			}
		}
	}
}

// text is an encoded text that another one can continue: compressed, it ends at a byte, and what follows
// refers to nothing before it.
type text struct {
	body net.Buffers
	crc  uint32 // CRC-32 before compression
	size uint32 // bytes before compression, modulo 2^32
	err  error  // says which metrics are missing, and why
}

// pageEncoders encode for many scrapes, scrapeEncoders for one. At the same level, klauspost's
// compressors cost a third of the standard library's.
var pageEncoders, scrapeEncoders = newEncoders(6), newEncoders(flate.BestSpeed)

// encoder is reused: compressors take hundreds of kilobytes.
type encoder struct {
	text       bytes.Buffer
	compressor *flate.Writer
}

func newEncoders(level int) *sync.Pool {
	return &sync.Pool{New: func() any {
		w, _ := flate.NewWriter(nil, level) // the levels are valid
		return &encoder{compressor: w}
	}}
}

// blockSize is the size of a piece of a text. It has several, so that none is copied when it grows.
const blockSize = 64 << 10

// Write implements io.Writer. It never fails.
func (t *text) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		last := len(t.body) - 1
		if last < 0 || len(t.body[last]) == cap(t.body[last]) {
			t.body, last = append(t.body, make([]byte, 0, min(max(len(p), 1<<10), blockSize))), last+1
		}
		fits := min(len(p), cap(t.body[last])-len(t.body[last]))
		t.body[last], p = append(t.body[last], p[:fits]...), p[fits:]
	}
	return n, nil
}

// encode returns a text, continued with messages and an end. As with promhttp, created timestamps are in
// protobuf only: as text they would be a second series for each counter.
func (t text) encode(encoders *sync.Pool, v variant, messages iter.Seq[*dto.MetricFamily], end string) text {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.text.Reset()
	t.body = slices.Clip(t.body) // that of the page stays as it is
	if n := len(t.body); n > 0 {
		t.body = append(t.body[:n-1:n-1], slices.Clip(t.body[n-1]))
	}
	var body io.Writer = &t
	if v.gzip {
		e.compressor.Reset(&t)
		body = e.compressor
	}
	family, encode := "", expfmt.NewEncoder(&e.text, v.format.WithEscapingScheme(model.NoEscaping)) // no name needs escaping
	for m := range messages {
		t.err = errors.Join(t.err, encode.Encode(m))
		for m.GetName() == family && bytes.HasPrefix(e.text.Bytes(), []byte("#")) { // the comments are there already
			_, _ = e.text.ReadBytes('\n')
		}
		family = m.GetName()
		t.add(&e.text, body)
	}
	e.text.WriteString(end)
	t.add(&e.text, body)
	if v.gzip {
		_ = e.compressor.Flush()
	}
	return t
}

// add writes a part of the text to the body, and continues checksum and size with it.
func (t *text) add(part *bytes.Buffer, body io.Writer) {
	t.crc = crc32.Update(t.crc, crc32.IEEETable, part.Bytes())
	t.size += uint32(part.Len()) //nolint:gosec // modulo 2^32
	_, _ = part.WriteTo(body)
}
