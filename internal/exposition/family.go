package exposition

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// describer is a metric that knows its family.
type describer interface {
	// Family returns the family without metrics.
	Family() *dto.MetricFamily
}

// newFamily returns the family of its metrics, which all have the same labels, as a
// registry would: sorted, and without duplicates, which are reported in the error.
func newFamily(metrics []prometheus.Metric) (*dto.MetricFamily, error) {
	first, ok := metrics[0].(describer)
	if !ok {
		return nil, fmt.Errorf("%v: no family", metrics[0].Desc())
	}
	f := first.Family()
	all := make([]dto.Metric, len(metrics))
	f.Metric = make([]*dto.Metric, len(metrics))
	for i, m := range metrics {
		f.Metric[i] = &all[i]
		if err := m.Write(f.Metric[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", f.GetName(), err)
		}
	}
	slices.SortStableFunc(f.Metric, compareLabels)
	f.Metric = slices.CompactFunc(f.Metric, func(a, b *dto.Metric) bool { return compareLabels(a, b) == 0 })
	if n := len(metrics) - len(f.Metric); n > 0 {
		return f, fmt.Errorf("%s: %d duplicates", f.GetName(), n)
	}
	return f, nil
}

func compareLabels(a, b *dto.Metric) int {
	return slices.CompareFunc(a.Label, b.Label, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetValue(), b.GetValue()) })
}

// part is a part of a response that can be joined with others: what is compressed ends
// at a byte and refers to nothing before it.
type part struct {
	family string // its name
	body   []byte
	checksum
}

// The levels of compression: of what is encoded for each scrape, and of what is encoded
// once for many. The compressors are klauspost's, which cost a third of the standard
// library's for a few percent more bytes.
const (
	dynamicLevel   = flate.BestSpeed
	publishedLevel = 6
)

// encoder encodes families. Its memory is used again: compressors take hundreds of
// kilobytes.
type encoder struct {
	text, compressed bytes.Buffer
	compressor       *flate.Writer
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

// begin forgets what was encoded, and returns an encoder of a format, with created
// timestamps also in the text form of OpenMetrics.
func (e *encoder) begin(f expfmt.Format) expfmt.Encoder {
	e.text.Reset()
	return expfmt.NewEncoder(&e.text, f, expfmt.WithCreatedLines())
}

// part returns what was encoded. Its body is valid until begin is called.
func (e *encoder) part(encoding Encoding) (part, error) {
	if encoding == Identity {
		return part{body: e.text.Bytes()}, nil
	}
	e.compressed.Reset()
	e.compressor.Reset(&e.compressed)
	_, err := e.compressor.Write(e.text.Bytes())
	err = errors.Join(err, e.compressor.Flush())
	return part{body: e.compressed.Bytes(), checksum: newChecksum(e.text.Bytes())}, err
}

// writeFamilies writes families without the end of a response.
func writeFamilies(enc expfmt.Encoder, families ...*dto.MetricFamily) error {
	for _, f := range families {
		if err := enc.Encode(f); err != nil {
			return fmt.Errorf("encode %s: %w", f.GetName(), err)
		}
	}
	return nil
}
