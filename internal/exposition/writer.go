package exposition

import (
	"bytes"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
)

// deflateLevel is the level at which klauspost's deflate costs a third of the
// standard library's default, for a few percent more bytes.
const deflateLevel = 6

// zstdWindow is how far back zstd looks. Its default takes many times the memory,
// for a few bytes less.
const zstdWindow = 256 << 10

// writer makes a piece.
type writer struct {
	form   Form
	piece  piece
	chunks chunks
	coder  coder // nil for Identity
	pool   *sync.Pool
}

// coder compresses. Flush ends it so that more may follow behind.
type coder interface {
	io.Writer
	Flush() error
	Reset(w io.Writer)
}

func newWriter(f Form) *writer {
	w := &writer{form: f}
	switch f.Coding {
	case Gzip:
		w.pool = &deflaters
	case Zstd:
		w.pool = &zstds
	case Identity:
		return w
	}
	w.coder = w.pool.Get().(coder)
	w.coder.Reset(&w.chunks)
	return w
}

// Write implements io.Writer.
func (w *writer) Write(raw []byte) (int, error) {
	w.piece.size += int64(len(raw))
	if w.coder == nil {
		return w.chunks.Write(raw)
	}
	if w.form.Coding == Gzip {
		w.piece.sum = crc32.Update(w.piece.sum, crc32.IEEETable, raw)
	}
	return w.coder.Write(raw)
}

// end returns what was written. The writer must not be used any more.
func (w *writer) end() (*piece, error) {
	var err error
	if w.coder != nil {
		err = w.coder.Flush()
		w.coder.Reset(nil) // it must not keep what it wrote to
		w.pool.Put(w.coder)
	}
	w.piece.parts = w.chunks.parts
	if w.coder != nil { // it has become small, and is sent at once
		w.piece.parts = [][]byte{bytes.Join(w.chunks.parts, nil)}
	}
	return &w.piece, err
}

var (
	deflaters = sync.Pool{New: func() any {
		w, err := flate.NewWriter(nil, deflateLevel)
		if err != nil {
			panic(err) // the level is a constant
		}
		return w
	}}
	zstds = sync.Pool{New: func() any {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true), zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			panic(err) // the options are constants
		}
		return frames{w}
	}}
)

// frames ends a frame where deflate only flushes: frames may follow each other.
type frames struct{ *zstd.Encoder }

// Flush ends the frame.
func (f frames) Flush() error { return f.Close() }

// The lengths of chunks: a small block takes little, a large one has few.
const (
	firstChunk = 512
	largeChunk = 256 << 10
)

// chunks keeps what is written without ever copying it again.
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
			c.parts = append(c.parts, make([]byte, 0, min(max(firstChunk, c.length), largeChunk)))
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
