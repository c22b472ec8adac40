package exposition

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"slices"
	"sync"

	"github.com/klauspost/compress/flate"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// part is a part of a response that can be joined with others: what is compressed ends
// at a byte and refers to nothing before it.
type part struct {
	family      string // its name; empty for several
	body        []byte
	crc         uint32 // CRC-32 before compression
	crcAfterOne uint32 // the same after a text with the CRC-32 one
	size        uint32 // before compression, modulo 2^32
	err         error  // metrics that are missing, and why
}

// Encoders of what is encoded once for many scrapes, and of what is encoded for each,
// which is compressed fast. The compressors are klauspost's: at the same level they cost
// a third of the standard library's.
var blockEncoders, scrapeEncoders = newEncoders(6), newEncoders(flate.BestSpeed)

// encoder has memory that is used again: compressors take hundreds of kilobytes.
type encoder struct {
	text, body bytes.Buffer
	compressor *flate.Writer
}

func newEncoders(level int) *sync.Pool {
	return &sync.Pool{New: func() any {
		w, _ := flate.NewWriter(nil, level) // the levels are valid
		return &encoder{compressor: w}
	}}
}

// encode adds messages to an empty part: those of its family, or without one those of
// several, which end a response. Created timestamps are in protobuf only, as with promhttp: as
// text they would be a second series for each counter. No name needs escaping, so that none is
// checked for it. Writing to a buffer does not fail.
func encode(encoders *sync.Pool, p part, v variant, messages iter.Seq[*dto.MetricFamily]) part {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.text.Reset()
	e.body.Reset()
	var body io.Writer = &e.body
	if v.gzip {
		e.compressor.Reset(&e.body)
		body = e.compressor
	}
	p.crcAfterOne = one
	text := expfmt.NewEncoder(&e.text, v.format.WithEscapingScheme(model.NoEscaping))
	for m := range messages {
		p.err = errors.Join(p.err, text.Encode(m))
		for p.family != "" && p.size > 0 && bytes.HasPrefix(e.text.Bytes(), []byte("#")) { // the comments are there already
			_, _ = e.text.ReadBytes('\n')
		}
		p.add(e.text.Bytes())
		_, _ = e.text.WriteTo(body)
	}
	if p.family == "" && v.format == expfmt.FmtOpenMetrics_1_0_0 {
		p.add([]byte("# EOF\n"))
		_, _ = io.WriteString(body, "# EOF\n")
	}
	if v.gzip {
		_ = e.compressor.Flush()
	}
	p.body = bytes.Clone(e.body.Bytes())
	return p
}

// batch is how many metrics of a family are encoded at a time, because they take many
// times the memory of the result.
const batch = 1000

// messages returns the batches of the family.
func (f *family) messages(v variant) iter.Seq[*dto.MetricFamily] {
	n := min(batch, len(f.metrics))
	if v.format == expfmt.FmtProtoDelim { // a family is one message
		n = len(f.metrics)
	}
	return func(yield func(*dto.MetricFamily) bool) {
		for metrics := range slices.Chunk(f.metrics, n) {
			m := f.definition.Family()
			for _, sample := range metrics {
				out := &dto.Metric{}
				_ = sample.Write(out) // which fails for no metric of a group
				m.Metric = append(m.Metric, out)
			}
			if !yield(m) {
				return
			}
		}
	}
}
