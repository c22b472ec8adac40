package exposition

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"

	"github.com/klauspost/compress/flate"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

// family holds the published samples of a metric family: sorted, distinct, and encoded once for
// each variant. It is immutable.
type family struct {
	definition *metric.Definition
	samples    []*metric.Sample
	err        error    // names the duplicates that were dropped
	encoded    sync.Map // maps a variant to a func() part, which encodes once
}

// newFamilies returns the families of samples, in the order of definitions.
func newFamilies(samples []*metric.Sample, definitions []*metric.Definition) (families []*family) {
	byDefinition := map[*metric.Definition][]*metric.Sample{}
	for _, s := range samples {
		byDefinition[s.Definition] = append(byDefinition[s.Definition], s)
	}
	for _, d := range definitions {
		all := byDefinition[d]
		if len(all) == 0 {
			continue
		}
		slices.SortStableFunc(all, func(a, b *metric.Sample) int { return slices.Compare(a.Labels, b.Labels) })
		f := &family{definition: d}
		f.samples = slices.CompactFunc(all, func(a, b *metric.Sample) bool { return slices.Equal(a.Labels, b.Labels) })
		if n := len(all) - len(f.samples); n > 0 {
			f.err = fmt.Errorf("%s: %d duplicates", d.Name, n)
		}
		families = append(families, f)
	}
	return families
}

// batch is the number of samples that are encoded at a time: they take many times the memory
// of the result.
const batch = 1000

// messages returns the family in batches. In protobuf, a family is one message.
func (f *family) messages(v variant) iter.Seq[*dto.MetricFamily] {
	n := min(batch, len(f.samples))
	if v.format == expfmt.FmtProtoDelim {
		n = len(f.samples)
	}
	return func(yield func(*dto.MetricFamily) bool) {
		for samples := range slices.Chunk(f.samples, n) {
			if !yield(f.definition.Family(samples)) {
				return
			}
		}
	}
}

// part is a part of a response that can be joined with others: its compressed data ends at a
// byte and refers to nothing before it.
type part struct {
	body        []byte
	crc         uint32 // CRC-32 of the text
	crcAfterOne uint32 // CRC-32 of the text after one with the CRC-32 polynomialOne
	size        uint32 // bytes of the text, modulo 2^32
	err         error  // says which metrics are missing, and why
}

// familyEncoders encode for many scrapes, scrapeEncoders for one. At the same level, klauspost's
// compressors cost a third of the standard library's.
var familyEncoders, scrapeEncoders = newEncoders(6), newEncoders(flate.BestSpeed)

// encoder is reused: compressors take hundreds of kilobytes.
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

// encode returns messages, and then the end of a response, with the error of collecting them. As with
// promhttp, created timestamps are in protobuf only: as text they would be a second series for each
// counter.
func encode(encoders *sync.Pool, v variant, messages iter.Seq[*dto.MetricFamily], end string, err error) part {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.text.Reset()
	e.body.Reset()
	var body io.Writer = &e.body
	if v.gzip {
		e.compressor.Reset(&e.body)
		body = e.compressor
	}
	p, family := part{crcAfterOne: polynomialOne, err: err}, ""
	text := expfmt.NewEncoder(&e.text, v.format.WithEscapingScheme(model.NoEscaping)) // no name needs escaping
	for m := range messages {
		p.err = errors.Join(p.err, text.Encode(m))
		for m.GetName() == family && bytes.HasPrefix(e.text.Bytes(), []byte("#")) { // the comments are there already
			_, _ = e.text.ReadBytes('\n')
		}
		family = m.GetName()
		p.add(e.text.Bytes())
		_, _ = e.text.WriteTo(body) // a buffer takes everything
	}
	p.add([]byte(end))
	_, _ = io.WriteString(body, end)
	if v.gzip {
		_ = e.compressor.Flush()
	}
	p.body = bytes.Clone(e.body.Bytes())
	return p
}
