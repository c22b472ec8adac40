package exposition

import (
	"encoding/binary"
	"errors"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// Handler answers scrapes from a publisher and a registry.
type Handler struct {
	Publisher *Publisher
	// Gatherer is encoded on every scrape. It shares no family with the publisher.
	Gatherer prometheus.Gatherer
	// Fallback answers requests that select metrics by name.
	Fallback http.Handler
	// OnError is called with errors, by cause as promhttp names them: gathering or
	// encoding.
	OnError func(cause string, err error)
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "" && r.URL.Query().Has("name[]") {
		h.Fallback.ServeHTTP(w, r)
		return
	}
	v, contentType := negotiate(r.Header)
	h.Publisher.recordVariant(v)
	b := body{variant: v}
	for _, block := range h.Publisher.published.Load().blocks {
		e := block.in(v)
		if e.err != nil {
			h.OnError("gathering", e.err)
		}
		b.add(e)
	}
	dynamic, err := h.encodeDynamic(v)
	if err != nil {
		h.OnError("encoding", err)
		http.Error(w, "An error has occurred while serving metrics:\n\n"+err.Error(), http.StatusInternalServerError)
		return
	}
	b.add(dynamic)
	b.close()
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(b.length))
	header.Add("Vary", "Accept")
	header.Add("Vary", "Accept-Encoding")
	if v.Encoding != Identity {
		header.Set("Content-Encoding", string(v.Encoding))
	}
	if r.Method == http.MethodHead {
		return
	}
	for _, part := range b.parts {
		if _, err := w.Write(part); err != nil {
			return // the client left
		}
	}
}

// encodeDynamic encodes what changes all the time, and the end of the answer.
func (h *Handler) encodeDynamic(v Variant) (*encodedBlock, error) {
	families, err := h.Gatherer.Gather()
	if err != nil {
		h.OnError("gathering", err)
	}
	w := newWriter(v)
	enc := newEncoder(w, v.Format)
	err = encodeFamilies(enc, families)
	if c, ok := enc.(expfmt.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	e, closeErr := w.close()
	return e, errors.Join(err, closeErr)
}

// gzipHeader begins a gzip member: deflate, no name, no time, unknown system.
const gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// body is the body of an answer, joined from encoded blocks.
type body struct {
	variant Variant
	parts   [][]byte
	length  int
	size    int64  // before compression
	crc     uint32 // before compression
}

func (b *body) add(e *encodedBlock) {
	if len(b.parts) == 0 && b.variant.Encoding == Gzip {
		b.write([]byte(gzipHeader))
	}
	for _, part := range e.parts {
		b.write(part)
	}
	b.crc = crc32Combine(b.crc, e.crc, e.size)
	b.size += e.size
}

func (b *body) write(part []byte) {
	b.parts = append(b.parts, part)
	b.length += len(part)
}

// close writes the end of a gzip member: an empty last block, and the trailer with
// checksum and size modulo 2^32.
func (b *body) close() {
	if b.variant.Encoding != Gzip {
		return
	}
	trailer := []byte{0x03, 0x00}
	trailer = binary.LittleEndian.AppendUint32(trailer, b.crc)
	trailer = binary.LittleEndian.AppendUint32(trailer, uint32(b.size)) //nolint:gosec // modulo 2^32 is meant
	b.write(trailer)
}

// HandlerOptions are those of a promhttp handler that answers as a Handler does.
func HandlerOptions() promhttp.HandlerOpts {
	return promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, AcceptedFormats: Formats(), EnableOpenMetricsTextCreatedSamples: true,
	}
}
