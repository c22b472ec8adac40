package exposition

import (
	"bytes"
	"errors"
	"io"
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

// encoder has memory for encoding that is used again: compressors take hundreds of
// kilobytes. They are klauspost's: at the same level they cost a third of the standard
// library's.
type encoder struct {
	text, body bytes.Buffer
	compressor *flate.Writer
}

var encoders = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, 6) // the level is valid
	return &encoder{compressor: w}
}}

// batch is how many metrics of a family are encoded at a time, because they take many
// times the memory of the result.
const batch = 1000

// encode returns the family in a variant.
func (f *family) encode(v variant) part {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.body.Reset()
	var body io.Writer = &e.body
	if v.gzip {
		e.compressor.Reset(&e.body)
		body = e.compressor
	}
	n := min(batch, len(f.metrics))
	if v.format == expfmt.FmtProtoDelim { // a family is one message
		n = len(f.metrics)
	}
	p := part{family: f.definition.Name, crcAfterOne: one, err: f.err}
	message, out := f.definition.Family(), make([]dto.Metric, n)
	for metrics := range slices.Chunk(f.metrics, n) {
		message.Metric = message.Metric[:0]
		for i, m := range metrics {
			p.err = errors.Join(p.err, m.Write(&out[i]))
			message.Metric = append(message.Metric, &out[i])
		}
		p.err = errors.Join(p.err, write(&e.text, v.format, message))
		for p.size > 0 && bytes.HasPrefix(e.text.Bytes(), []byte("#")) { // the comments are there already
			_, _ = e.text.ReadBytes('\n')
		}
		p.add(e.text.Bytes())
		_, _ = e.text.WriteTo(body) // writing to a buffer does not fail
	}
	if v.gzip {
		_ = e.compressor.Flush()
	}
	p.body = bytes.Clone(e.body.Bytes())
	return p
}

// write writes families in a format. OpenMetrics has created timestamps also in its text
// form. No name needs escaping, so that none is checked for it.
func write(w io.Writer, format expfmt.Format, families ...*dto.MetricFamily) error {
	e := expfmt.NewEncoder(w, format.WithEscapingScheme(model.NoEscaping), expfmt.WithCreatedLines())
	for _, f := range families {
		if err := e.Encode(f); err != nil {
			return err
		}
	}
	return nil
}
