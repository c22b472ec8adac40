package exposition

import (
	"cmp"
	"encoding/binary"
	"errors"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Handler serves scrapes from a publisher and a registry. As with promhttp, the parameters
// name[] select families by name, and a scrape with an error has all metrics without one.
type Handler struct {
	Publisher *Publisher
	Gatherer  prometheus.Gatherer // encoded on every scrape; shares no family with the publisher
	OnError   func(error)
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	accepted := expfmt.NegotiateAccept(r.Header, formats...)
	v := variant{expfmt.NewFormat(accepted.FormatType()), acceptsGzip(r.Header.Values("Accept-Encoding"))}
	names := r.URL.Query()["name[]"]
	h.Publisher.lastUsed.Store(v, time.Now()) // the variant is encoded in advance from now on
	t := h.gather(h.Publisher.encode(h.Publisher.current(), v, names), v, names)
	if t.err != nil {
		h.OnError(t.err)
	}
	header := w.Header()
	header.Set("Content-Type", string(accepted))
	header["Vary"] = append(header["Vary"], "Accept", "Accept-Encoding")
	if v.gzip {
		header.Set("Content-Encoding", "gzip")
		t.body = gzipMember(t)
	}
	_, _ = t.body.WriteTo(w) // fails if the client left
}

// gather continues a text with what is encoded on every scrape, and its end.
func (h *Handler) gather(t text, v variant, names []string) text {
	var gatherErr error
	end, isOpenMetrics := "", v.format == expfmt.FmtOpenMetrics_1_0_0
	if isOpenMetrics {
		end = "# EOF\n"
	}
	t = h.Publisher.scrapes.encode(t, v, func(yield func(*dto.MetricFamily) bool) {
		var families []*dto.MetricFamily
		families, gatherErr = h.Gatherer.Gather()
		slices.Values(slices.DeleteFunc(families, func(f *dto.MetricFamily) bool {
			return !wanted(f.GetName(), names) || isOpenMetrics && f.GetName() == ambiguous
		}))(yield)
	}, end)
	t.err = errors.Join(t.err, gatherErr)
	return t
}

// wanted returns whether a family is one of those with the names, or of all.
func wanted(family string, names []string) bool {
	return len(names) == 0 || slices.Contains(names, family)
}

const (
	ambiguous  = "go_memstats_alloc_bytes"                  // a gauge; in OpenMetrics it is also the name of a counter, which strict parsers refuse
	gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" // deflate, no name, no time, unknown system
)

// gzipMember returns a compressed text between the begin of a gzip member, and an empty last block with
// checksum and size.
func gzipMember(t text) net.Buffers {
	trailer := binary.LittleEndian.AppendUint32([]byte{0x03, 0x00}, t.crc)
	trailer = binary.LittleEndian.AppendUint32(trailer, t.size)
	return slices.Concat(net.Buffers{[]byte(gzipHeader)}, t.body, net.Buffers{trailer})
}

// variant is one form of the response. Its format has neither version nor escaping scheme: both versions of
// OpenMetrics give the same bytes, and so do all schemes, as no name needs escaping.
type variant struct {
	format expfmt.Format
	gzip   bool
}

// formats are those that are offered.
var formats = []expfmt.Format{expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtProtoDelim, expfmt.FmtText}

// acceptsGzip returns whether a client names gzip, with a quality above 0.
func acceptsGzip(accept []string) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(accept, ","), ","), func(element string) bool {
		coding, params, _ := mime.ParseMediaType(element)
		quality, err := strconv.ParseFloat(cmp.Or(params["q"], "1"), 64)
		return coding == "gzip" && err == nil && quality > 0
	})
}
