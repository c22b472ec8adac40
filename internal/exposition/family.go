package exposition

import (
	"bytes"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// part is a part of a response that can be joined with others: what is compressed ends
// at a byte and refers to nothing before it.
type part struct {
	family string // its name; empty for several
	body   []byte
	crc    uint32 // CRC-32 before compression
	shift  uint32 // x^(8 * size), to combine it with the CRC-32 of what is before
	size   int64  // before compression
	err    error  // metrics that are missing, and why
}

// Encoders of what is encoded once for many scrapes, and of what is encoded for each,
// which is compressed fast. The compressors are klauspost's: at the same level they cost
// a third of the standard library's.
var blockEncoders, scrapeEncoders = newEncoders(6), newEncoders(flate.BestSpeed)

// encoders are used again: compressors take hundreds of kilobytes.
type encoders struct{ sync.Pool }

// encoder encodes a part.
type encoder struct {
	text       bytes.Buffer
	out        bytes.Buffer
	compressor *flate.Writer // to out

	variant variant
	expfmt  expfmt.Encoder // to text
	crc     uint32
	size    int64 // before compression
}

// newEncoders returns encoders that compress at a level.
func newEncoders(level int) *encoders {
	return &encoders{sync.Pool{New: func() any {
		w, err := flate.NewWriter(nil, level)
		if err != nil {
			panic(err) // the level is a constant
		}
		return &encoder{compressor: w}
	}}}
}

// encode returns what write writes as a part. OpenMetrics has created
// timestamps also in its text form. No name needs escaping, so that none is checked for it.
func (all *encoders) encode(family string, v variant, write func(*encoder) error) part {
	e := all.Get().(*encoder)
	defer all.Put(e)
	e.text.Reset()
	e.out.Reset()
	if v.gzip {
		e.compressor.Reset(&e.out)
	}
	e.variant, e.crc, e.size = v, 0, 0
	e.expfmt = expfmt.NewEncoder(&e.text, v.format.WithEscapingScheme(model.NoEscaping), expfmt.WithCreatedLines())
	err := write(e)
	if v.gzip {
		_ = e.compressor.Flush()
	}
	return part{family, bytes.Clone(e.out.Bytes()), e.crc, power(e.size * 8), e.size, err}
}

// batch is how many metrics of a family are encoded at a time, because they take many
// times the memory of the result.
const batch = 1000

// writeMetrics writes the metrics of one family.
func (e *encoder) writeMetrics(metrics []prometheus.Metric) error {
	f := metrics[0].(sample).Family()
	n := batch
	if e.variant.format == expfmt.FmtProtoDelim { // a family is one message
		n = len(metrics)
	}
	out := make([]dto.Metric, min(n, len(metrics)))
	for begin := 0; begin < len(metrics); begin += n {
		f.Metric = f.Metric[:0]
		for i, m := range metrics[begin:min(begin+n, len(metrics))] {
			if err := m.Write(&out[i]); err != nil {
				return err
			}
			f.Metric = append(f.Metric, &out[i])
		}
		if err := e.expfmt.Encode(f); err != nil {
			return err
		}
		for begin > 0 && bytes.HasPrefix(e.text.Bytes(), []byte("#")) { // the comments are there already
			_, _ = e.text.ReadBytes('\n')
		}
		e.compress()
	}
	return nil
}

// writeFamilies writes families and the end of a response.
func (e *encoder) writeFamilies(families []*dto.MetricFamily) error {
	for _, f := range families {
		if err := e.expfmt.Encode(f); err != nil {
			return err
		}
	}
	if e.variant.format == expfmt.FmtOpenMetrics_1_0_0 {
		e.text.WriteString("# EOF\n")
	}
	e.compress()
	return nil
}

// compress moves the text to the part. Writing to a buffer does not fail.
func (e *encoder) compress() {
	text := e.text.Bytes()
	e.crc = crc32.Update(e.crc, crc32.IEEETable, text)
	e.size += int64(len(text))
	if e.variant.gzip {
		_, _ = e.compressor.Write(text)
	} else {
		e.out.Write(text)
	}
	e.text.Reset()
}
