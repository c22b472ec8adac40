package exposition

import (
	"bytes"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/flate"
)

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

// writer makes an encodedBlock. Compressed blocks are flushed to a byte, so that they
// can be joined.
type writer struct {
	variant    Variant
	block      *encodedBlock // of its own: a cache of it must not keep the writer
	out        chunks
	compressor *flate.Writer // nil for Identity
}

func newWriter(v Variant) *writer {
	w := &writer{variant: v, block: &encodedBlock{}}
	if v.Encoding == Gzip {
		w.compressor = compressors.Get().(*flate.Writer)
		w.compressor.Reset(&w.out)
	}
	return w
}

// Write implements io.Writer.
func (w *writer) Write(raw []byte) (int, error) {
	w.block.size += int64(len(raw))
	if w.compressor == nil {
		return w.out.Write(raw)
	}
	w.block.crc = crc32.Update(w.block.crc, crc32.IEEETable, raw)
	return w.compressor.Write(raw)
}

// close returns what was written. The writer must not be used afterwards.
func (w *writer) close() (*encodedBlock, error) {
	if w.compressor == nil {
		w.block.parts = w.out.parts
		return w.block, nil
	}
	err := w.compressor.Flush()
	w.compressor.Reset(nil) // the pool must not keep the output
	compressors.Put(w.compressor)
	w.block.parts = [][]byte{bytes.Join(w.out.parts, nil)}
	return w.block, err
}

// The lengths of chunks: a small block takes little, a large one has few.
const (
	firstChunk = 512
	maxChunk   = 256 << 10
)

// chunks keeps what is written without copying it again.
type chunks struct {
	parts  [][]byte
	length int
}

// Write implements io.Writer.
func (c *chunks) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		last := len(c.parts) - 1
		if last < 0 || len(c.parts[last]) == cap(c.parts[last]) {
			c.parts = append(c.parts, make([]byte, 0, min(max(firstChunk, c.length), maxChunk)))
			last++
		}
		part := c.parts[last]
		taken := copy(part[len(part):cap(part)], p)
		c.parts[last] = part[:len(part)+taken]
		c.length += taken
		p = p[taken:]
	}
	return n, nil
}
