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

const (
	batch     = 1000     // samples that are encoded at a time: they take many times the memory of the result
	blockSize = 16 << 10 // bytes of a piece of a text, which has several, so that none is copied when it grows
)

// page holds all published samples, and their encodings. It is immutable.
type page struct {
	families    [][]*metric.Sample // each of one definition, sorted and distinct
	at, expires time.Time          // wall clock; expires is zero if it does not expire
	err         error              // names the duplicates that were dropped
	encoded     sync.Map           // maps a variant to a func() text, which encodes once
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
		slices.SortStableFunc(all, func(a, b *metric.Sample) int { return slices.Compare(a.Labels, b.Labels) })
		distinct := slices.CompactFunc(all, func(a, b *metric.Sample) bool { return slices.Equal(a.Labels, b.Labels) })
		if n := len(all) - len(distinct); n > 0 {
			p.err = errors.Join(p.err, fmt.Errorf("%s: %d duplicates", d.Name, n))
		}
		if len(distinct) > 0 {
			p.families = append(p.families, distinct)
		}
	}
	return p
}

// isStale returns whether the page expired so long ago, or the clock was set back.
func (p *page) isStale(now time.Time, late time.Duration) bool {
	return now.Before(p.at) || !p.expires.IsZero() && !now.Before(p.expires.Add(late))
}

// messages returns the families with some names, or all, in batches. In protobuf, a family is one message.
func (p *page) messages(v variant, names []string) iter.Seq[*dto.MetricFamily] {
	return func(yield func(*dto.MetricFamily) bool) {
		for _, all := range p.families {
			n := batch
			if v.format == expfmt.FmtProtoDelim {
				n = len(all)
			}
			for samples := range slices.Chunk(all, n) {
				if d := samples[0].Definition; wanted(d.Name, names) && !yield(d.Family(samples)) {
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

// Write implements io.Writer. It never fails.
func (t *text) Write(p []byte) (int, error) {
	last := len(t.body) - 1
	if last < 0 || cap(t.body[last])-len(t.body[last]) < len(p) {
		t.body, last = append(t.body, make([]byte, 0, max(len(p), blockSize))), last+1
	}
	t.body[last] = append(t.body[last], p...)
	return len(p), nil
}

// encoder encodes one text at a time, to bound memory and the processor's time: hundreds of scrapes would keep
// it from all else, such as signals. At the same level, klauspost's compressor costs a third of the standard
// library's.
type encoder struct {
	encoding   sync.Mutex
	text       bytes.Buffer
	compressor *flate.Writer
}

func newEncoder(level int) *encoder {
	w, _ := flate.NewWriter(nil, level) // the levels are valid
	return &encoder{compressor: w}
}

// encode returns a text, continued with messages and an end. As with promhttp, created timestamps are in
// protobuf only: as text they would be a second series for each counter.
func (e *encoder) encode(t text, v variant, messages iter.Seq[*dto.MetricFamily], end string) text {
	e.encoding.Lock()
	defer e.encoding.Unlock()
	before := t.body
	t.body = nil
	var body io.Writer = &t
	if v.gzip {
		e.compressor.Reset(&t)
		body = e.compressor
	}
	add := func() {
		t.crc = crc32.Update(t.crc, crc32.IEEETable, e.text.Bytes())
		t.size += uint32(e.text.Len()) //nolint:gosec // modulo 2^32
		_, _ = e.text.WriteTo(body)
	}
	family, encode := "", expfmt.NewEncoder(&e.text, v.format.WithEscapingScheme(model.NoEscaping)) // no name needs escaping
	for m := range messages {
		t.err = errors.Join(t.err, encode.Encode(m))
		for m.GetName() == family && bytes.HasPrefix(e.text.Bytes(), []byte("#")) { // the comments are there already
			_, _ = e.text.ReadBytes('\n')
		}
		family = m.GetName()
		add()
	}
	e.text.WriteString(end)
	add()
	if v.gzip {
		_ = e.compressor.Flush()
	}
	t.body = slices.Concat(before, t.body)
	return t
}
