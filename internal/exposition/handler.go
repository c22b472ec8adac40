package exposition

import (
	"encoding/binary"
	"net/http"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Handler serves scrapes from a publisher and a registry. As with promhttp, the
// parameters name[] select families by name, and what was gathered despite an error is
// served.
type Handler struct {
	Publisher *Publisher
	// Gatherer is encoded on every scrape. It shares no family with the publisher.
	Gatherer prometheus.Gatherer
	// OnError is called with errors, by cause as promhttp names them: gathering or
	// encoding.
	OnError func(cause string, err error)
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, contentType := negotiate(r.Header)
	names := r.URL.Query()["name[]"]
	unwanted := func(family string) bool { return len(names) > 0 && !slices.Contains(names, family) }
	b := newBody(v.gzip)
	for _, block := range h.Publisher.encoded(v) {
		if block.err != nil {
			h.OnError("gathering", block.err)
		}
		for _, p := range block.parts {
			if !unwanted(p.family) {
				b.add(p)
			}
		}
	}
	dynamic, err := h.encodeDynamic(v, unwanted)
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
	if v.gzip {
		header.Set("Content-Encoding", "gzip")
	}
	for _, chunk := range b.chunks {
		if _, err := w.Write(chunk); err != nil {
			return // the client left
		}
	}
}

// encodeDynamic encodes what changes all the time, and the end of the response.
func (h *Handler) encodeDynamic(v variant, unwanted func(family string) bool) (part, error) {
	families, err := h.Gatherer.Gather()
	if err != nil {
		h.OnError("gathering", err)
	}
	families = slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return unwanted(f.GetName()) })
	e := scrapeEncoders.Get().(*encoder)
	defer scrapeEncoders.Put(e)
	e.begin(v)
	if err := e.writeFamilies(families); err != nil {
		return part{}, err
	}
	return e.end(""), nil
}

// gzipHeader begins a gzip member: deflate, no name, no time, unknown system.
const gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// body is the body of a response, joined from parts.
type body struct {
	gzip   bool
	chunks [][]byte
	length int
	checksum
}

func newBody(gzip bool) *body {
	b := &body{gzip: gzip, checksum: noText}
	if gzip {
		b.write([]byte(gzipHeader))
	}
	return b
}

func (b *body) add(p part) {
	b.write(p.body)
	if b.gzip {
		b.checksum = b.append(p.checksum)
	}
}

func (b *body) write(chunk []byte) {
	b.chunks = append(b.chunks, chunk)
	b.length += len(chunk)
}

// close writes the end of a gzip member: an empty last block, and the trailer with
// checksum and size modulo 2^32.
func (b *body) close() {
	if !b.gzip {
		return
	}
	trailer := []byte{0x03, 0x00}
	trailer = binary.LittleEndian.AppendUint32(trailer, b.crc)
	trailer = binary.LittleEndian.AppendUint32(trailer, uint32(b.size)) //nolint:gosec // modulo 2^32 is meant
	b.write(trailer)
}
