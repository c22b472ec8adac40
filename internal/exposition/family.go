package exposition

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

// newEncoder returns the encoder of a format, with created timestamps also in the
// text form of OpenMetrics.
func newEncoder(w io.Writer, f expfmt.Format) expfmt.Encoder {
	return expfmt.NewEncoder(w, f, expfmt.WithCreatedLines())
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

// part is a part of a response that can be joined with others: what is compressed ends
// at a byte and refers to nothing before it.
type part struct {
	family string // its name
	body   []byte
	checksum
}

// deflateLevel is the level at which klauspost's deflate costs a third of the
// standard library's default, for a few percent more bytes.
const deflateLevel = 6

// compressors are kept for reuse: each takes hundreds of kilobytes.
var compressors = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, deflateLevel)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// newPart returns a part of a text. Its body is in one of the buffers.
func newPart(e Encoding, text, compressed *bytes.Buffer) (part, error) {
	if e == Identity {
		return part{body: text.Bytes()}, nil
	}
	compressed.Reset()
	w := compressors.Get().(*flate.Writer)
	defer compressors.Put(w)
	w.Reset(compressed)
	_, err := w.Write(text.Bytes())
	err = errors.Join(err, w.Flush())
	w.Reset(nil) // the pool must not keep the output
	return part{body: compressed.Bytes(), checksum: newChecksum(text.Bytes())}, err
}
