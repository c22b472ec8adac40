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
	"sync"
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

	gathering sync.Mutex // one scrape at a time: hundreds would keep the processor from all else, such as signals
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, contentType := negotiate(r.Header)
	names := r.URL.Query()["name[]"]
	unwanted := func(family string) bool {
		return len(names) > 0 && !slices.Contains(names, family) || family == ambiguous && v.isOpenMetrics()
	}
	h.Publisher.lastUsed.Store(v, time.Now()) // the variant is encoded in advance from now on
	page := h.Publisher.current()
	var t text
	if len(names) > 0 {
		t = h.Publisher.encodeFamilies(page, v, unwanted)
	} else {
		t = h.Publisher.encode(page, v)
	}
	t = h.gather(t, v, unwanted)
	if t.err != nil {
		h.OnError(t.err)
	}
	if v.gzip {
		t.body = gzipMember(t)
	}
	length := 0
	for _, b := range t.body {
		length += len(b)
	}
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(length))
	header.Add("Vary", "Accept")
	header.Add("Vary", "Accept-Encoding")
	if v.gzip {
		header.Set("Content-Encoding", "gzip")
	}
	_, _ = t.body.WriteTo(w) // fails if the client left
}

// gather continues a text with what is encoded on every scrape, without unwanted families.
func (h *Handler) gather(t text, v variant, unwanted func(family string) bool) text {
	h.gathering.Lock()
	defer h.gathering.Unlock()
	families, err := h.Gatherer.Gather()
	families = slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return unwanted(f.GetName()) })
	end := ""
	if v.isOpenMetrics() {
		end = "# EOF\n"
	}
	t.err = errors.Join(t.err, err)
	return t.encode(scrapeEncoders, v, slices.Values(families), end)
}

// ambiguous is a gauge of client_golang whose name is also that of a counter in OpenMetrics,
// which strict parsers refuse.
const ambiguous = "go_memstats_alloc_bytes"

// gzipHeader begins a gzip member: deflate, no name, no time, unknown system.
const gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// gzipMember returns a compressed text between the begin of a gzip member, and an empty last block with
// checksum and size.
func gzipMember(t text) net.Buffers {
	trailer := binary.LittleEndian.AppendUint32([]byte{0x03, 0x00}, t.crc)
	trailer = binary.LittleEndian.AppendUint32(trailer, t.size)
	return slices.Concat(net.Buffers{[]byte(gzipHeader)}, t.body, net.Buffers{trailer})
}

// variant is one form of the response. Its format has no escaping scheme: as no name needs
// escaping, all schemes give the same bytes.
type variant struct {
	format expfmt.Format
	gzip   bool
}

func (v variant) isOpenMetrics() bool { return v.format == expfmt.FmtOpenMetrics_1_0_0 }

// formats returns the formats that are offered.
func formats() []expfmt.Format {
	return []expfmt.Format{expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtProtoDelim, expfmt.FmtText}
}

// negotiate returns the variant of a response, and the content type with its parameters. Both
// versions of OpenMetrics have the same variant.
func negotiate(h http.Header) (v variant, contentType string) {
	accepted := expfmt.NegotiateAccept(h, formats()...)
	return variant{expfmt.NewFormat(accepted.FormatType()), acceptsGzip(h.Values("Accept-Encoding"))}, string(accepted)
}

// acceptsGzip returns whether a client names gzip, with a quality above 0.
func acceptsGzip(accept []string) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(accept, ","), ","), func(element string) bool {
		coding, params, _ := mime.ParseMediaType(element)
		quality, err := strconv.ParseFloat(cmp.Or(params["q"], "1"), 64)
		return coding == "gzip" && err == nil && quality > 0
	})
}
