package exposition

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// sample is a metric of a group, as those of package metric are.
type sample interface {
	// Family returns the family without metrics.
	Family() *dto.MetricFamily
	// CompareLabels returns the order of the metric and another one of its family.
	CompareLabels(other prometheus.Metric) int
}

// distinct sorts the metrics of a family and drops duplicates, which the error reports.
func distinct(metrics []prometheus.Metric) ([]prometheus.Metric, error) {
	compare := func(a, b prometheus.Metric) int { return a.(sample).CompareLabels(b) }
	slices.SortStableFunc(metrics, compare)
	n := len(metrics)
	metrics = slices.CompactFunc(metrics, func(a, b prometheus.Metric) bool { return compare(a, b) == 0 })
	if n -= len(metrics); n > 0 {
		return metrics, fmt.Errorf("%s: %d duplicates", metrics[0].(sample).Family().GetName(), n)
	}
	return metrics, nil
}

// part is a part of a response that can be joined with others: what is compressed ends
// at a byte and refers to nothing before it.
type part struct {
	family string // its name
	body   []byte
	checksum
}

// Encoders of what is encoded once for many scrapes, and of what is encoded for each,
// which is compressed fast. The compressors are klauspost's: at the same level they cost
// a third of the standard library's.
var blockEncoders, scrapeEncoders = newEncoders(6), newEncoders(flate.BestSpeed)

// encoder encodes a part. It is used again: compressors take hundreds of kilobytes.
type encoder struct {
	text       bytes.Buffer
	out        bytes.Buffer
	compressor *flate.Writer // to out

	variant Variant
	expfmt  expfmt.Encoder // to text
	crc     uint32
	size    int64 // before compression
}

// newEncoders returns a pool of encoders that compress at a level.
func newEncoders(level int) *sync.Pool {
	return &sync.Pool{New: func() any {
		w, err := flate.NewWriter(nil, level)
		if err != nil {
			panic(err) // the level is a constant
		}
		return &encoder{compressor: w}
	}}
}

// begin begins a part. OpenMetrics has created timestamps also in its text form. No name
// needs escaping, so that none is checked for it.
func (e *encoder) begin(v Variant) {
	e.out.Reset()
	if v.Encoding == Gzip {
		e.compressor.Reset(&e.out)
	}
	e.variant, e.crc, e.size = v, 0, 0
	e.expfmt = expfmt.NewEncoder(&e.text, v.Format.WithEscapingScheme(model.NoEscaping), expfmt.WithCreatedLines())
}

// batch is how many metrics of a family are encoded at a time, because they take many
// times the memory of the result.
const batch = 1000

// writeMetrics writes the metrics of one family.
func (e *encoder) writeMetrics(metrics []prometheus.Metric) error {
	f := metrics[0].(sample).Family()
	n := batch
	if e.variant.Format == expfmt.FmtProtoDelim { // a family is one message
		n = len(metrics)
	}
	out := make([]dto.Metric, min(n, len(metrics)))
	for begin := 0; begin < len(metrics); begin += n {
		f.Metric = f.Metric[:0]
		for i, m := range metrics[begin:min(begin+n, len(metrics))] {
			if err := m.Write(&out[i]); err != nil {
				return fmt.Errorf("%s: %w", f.GetName(), err)
			}
			f.Metric = append(f.Metric, &out[i])
		}
		if err := e.encode(f); err != nil {
			return err
		}
		text := e.text.Bytes()
		for begin > 0 && bytes.HasPrefix(text, []byte("#")) { // the comments are there already
			_, text, _ = bytes.Cut(text, []byte("\n"))
		}
		if err := e.write(text); err != nil {
			return err
		}
	}
	return nil
}

// writeFamily writes a family.
func (e *encoder) writeFamily(f *dto.MetricFamily) error {
	return errors.Join(e.encode(f), e.write(e.text.Bytes()))
}

// writeEnd writes the end of a response.
func (e *encoder) writeEnd() error {
	e.text.Reset()
	if c, ok := e.expfmt.(expfmt.Closer); ok {
		return errors.Join(c.Close(), e.write(e.text.Bytes()))
	}
	return nil
}

// encode replaces the text by a family.
func (e *encoder) encode(f *dto.MetricFamily) error {
	e.text.Reset()
	if err := e.expfmt.Encode(f); err != nil {
		return fmt.Errorf("encode %s: %w", f.GetName(), err)
	}
	return nil
}

func (e *encoder) write(text []byte) error {
	e.crc = crc32.Update(e.crc, crc32.IEEETable, text)
	e.size += int64(len(text))
	if e.variant.Encoding == Identity {
		_, err := e.out.Write(text)
		return err
	}
	_, err := e.compressor.Write(text)
	return err
}

// end returns the part.
func (e *encoder) end() (part, error) {
	var err error
	if e.variant.Encoding == Gzip {
		err = e.compressor.Flush()
	}
	return part{body: bytes.Clone(e.out.Bytes()), checksum: checksum{e.crc, power(e.size * 8), e.size}}, err
}
