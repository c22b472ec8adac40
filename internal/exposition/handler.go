package exposition

import (
	"context"
	"encoding/binary"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// Formats returns the formats that are offered.
func Formats() []expfmt.Format {
	return []expfmt.Format{expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtProtoDelim, expfmt.FmtText}
}

// lately is for how long a form is prepared after somebody asked for it.
const lately = 10 * time.Minute

// How long Keep rests after it worked: it uses a tenth of a processor at most.
const (
	minRest    = 100 * time.Millisecond
	restFactor = 9
)

// Handler answers scrapes from blocks and a registry.
type Handler struct {
	// Blocks returns what is shown now, in any order.
	Blocks func() []*Block
	// Own is encoded on every scrape. It shares no family with any block.
	Own prometheus.Gatherer
	// Whole shows all of it and answers requests that select metrics by name.
	Whole http.Handler
	// Failed is told of errors, by cause as promhttp names them: gathering, encoding.
	Failed func(cause string, err error)

	mu    sync.Mutex
	asked map[Form]time.Time
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "" && r.URL.Query().Has("name[]") {
		h.Whole.ServeHTTP(w, r)
		return
	}
	format, contentType := negotiateFormat(r.Header)
	f := Form{Format: format, Coding: negotiateCoding(r.Header.Values("Accept-Encoding"))}
	h.note(f)
	a := answer{form: f}
	for _, b := range h.Blocks() {
		p := b.in(f)
		if p.err != nil {
			h.Failed("gathering", p.err)
		}
		a.add(p)
	}
	if err := a.end(h.own(f)); err != nil {
		h.Failed("encoding", err)
		http.Error(w, "An error has occurred while serving metrics:\n\n"+err.Error(), http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(a.length))
	header.Add("Vary", "Accept")
	header.Add("Vary", "Accept-Encoding")
	if f.Coding != Identity {
		header.Set("Content-Encoding", string(f.Coding))
	}
	if r.Method == http.MethodHead {
		return
	}
	for _, part := range a.parts {
		if _, err := w.Write(part); err != nil {
			return // the client left
		}
	}
}

// own makes a piece of what changes all the time, and of what ends an answer.
func (h *Handler) own(f Form) (*piece, error) {
	families, err := h.Own.Gather()
	if err != nil {
		h.Failed("gathering", err)
	}
	w := newWriter(f)
	err = encode(w, families, f.Format)
	if c, ok := expfmt.NewEncoder(w, f.Format).(expfmt.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	p, ended := w.end()
	return p, errors.Join(err, ended)
}

// note remembers that a form is asked for.
func (h *Handler) note(f Form) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked == nil {
		h.asked = map[Form]time.Time{}
	}
	h.asked[f] = time.Now()
}

// Asked returns the forms that somebody asked for lately.
func (h *Handler) Asked() []Form {
	h.mu.Lock()
	defer h.mu.Unlock()
	var forms []Form
	for f, at := range h.asked {
		if time.Since(at) > lately {
			delete(h.asked, f)
			continue
		}
		forms = append(forms, f)
	}
	return forms
}

// Keep makes the blocks that due returns ready in the forms that were asked for
// lately, whenever renewed says that there are new ones, until ctx ends. It rests for longer than it
// works, so that blocks that change all the time do not take the processor; a
// scrape that comes meanwhile makes what it needs itself.
func (h *Handler) Keep(ctx context.Context, renewed <-chan struct{}, due func() []*Block) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-renewed:
		}
		began := time.Now()
		for _, b := range due() {
			b.Prepare(h.Asked()...) // the scrape that meets an error tells of it
		}
		rest := time.NewTimer(max(minRest, restFactor*time.Since(began)))
		select {
		case <-ctx.Done():
		case <-rest.C:
		}
		rest.Stop()
	}
}

// gzipHeader begins a gzip member: deflate, no name, no time, unknown system.
const gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// answer is a body that is being put together.
type answer struct {
	form   Form
	parts  [][]byte
	length int
	size   int64
	sum    uint32
}

func (a *answer) add(p *piece) {
	if len(a.parts) == 0 && a.form.Coding == Gzip {
		a.write([]byte(gzipHeader))
	}
	for _, part := range p.parts {
		a.write(part)
	}
	if a.form.Coding == Gzip {
		a.sum = combine(a.sum, p.sum, p.size)
		a.size += p.size
	}
}

func (a *answer) write(b []byte) {
	a.parts = append(a.parts, b)
	a.length += len(b)
}

// end adds the last piece and what ends the coding.
func (a *answer) end(last *piece, err error) error {
	if err != nil {
		return err
	}
	a.add(last)
	if a.form.Coding == Gzip {
		// An empty last block, then the trailer: checksum and size modulo 2^32.
		trailer := []byte{0x03, 0x00}
		trailer = binary.LittleEndian.AppendUint32(trailer, a.sum)
		trailer = binary.LittleEndian.AppendUint32(trailer, uint32(a.size)) //nolint:gosec // modulo 2^32 is meant
		a.write(trailer)
	}
	return nil
}

// negotiateFormat picks the format of an answer, and the whole content type that
// says so. Both versions of OpenMetrics are written in the same way.
func negotiateFormat(h http.Header) (expfmt.Format, string) {
	with := expfmt.NegotiateAccept(h, Formats()...)
	switch with.FormatType() {
	case expfmt.TypeOpenMetrics:
		return expfmt.FmtOpenMetrics_1_0_0, string(with)
	case expfmt.TypeProtoDelim:
		return expfmt.FmtProtoDelim, string(with)
	default:
		return expfmt.FmtText, string(with)
	}
}

// negotiateCoding picks the coding that a client likes best, of those offered.
func negotiateCoding(accept []string) Coding {
	best, bestQ := Identity, 0.0
	for _, offer := range []Coding{Identity, Gzip, Zstd} {
		for _, value := range accept {
			for spec := range strings.SplitSeq(value, ",") {
				name, q := quality(spec)
				if (name == string(offer) || name == "*") && q > bestQ {
					best, bestQ = offer, q
				}
			}
		}
	}
	return best
}

// quality reads one element of an Accept-Encoding header.
func quality(spec string) (name string, q float64) {
	name, params, _ := strings.Cut(spec, ";")
	q = 1
	if _, v, ok := strings.Cut(params, "q="); ok {
		n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if err != nil {
			n = 0
		}
		q = n
	}
	return strings.ToLower(strings.TrimSpace(name)), q
}

// HandlerOptions are those of a promhttp handler that answers like a Handler.
func HandlerOptions() promhttp.HandlerOpts {
	return promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, AcceptedFormats: Formats()}
}
