package rentalapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/semaphore"
)

// Bounds on a response. It is decoded while it is read, so that memory holds one value of it as JSON, and
// what was decoded.
const (
	maxBodyBytes  = 16 << 20
	maxValueBytes = 1 << 20   // bytes of an item, of a single object or of the meta object
	maxSmallBytes = 256 << 10 // bytes of a response that waits for no other
)

// connection is the body of a response as it was sent. Its errors are those of the request.
type connection struct {
	io.Reader
	describe func(error) *Error
}

// Read implements io.Reader.
func (c connection) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = c.describe(err)
	}
	return n, err
}

// decodeContent calls read with a decoder of a body: without gzip, which is known by its first bytes,
// whatever the header says, and without a byte order mark. One that is no JSON, or is too large,
// fails with an error that repeats nothing of it.
func decodeContent(ctx context.Context, body io.Reader, turn *semaphore.Weighted, read func(*json.Decoder) error) error {
	c := &content{ctx: ctx, turn: turn}
	c.text, c.err = openContent(body)
	c.dec = json.NewDecoder(c)
	err := read(c.dec)
	if c.hasTurn {
		turn.Release(1)
	}
	switch {
	case errors.As(c.err, new(*Error)):
		return c.err
	case c.err != nil:
		return fmt.Errorf("response: %w", c.err)
	case errors.As(err, new(*json.SyntaxError)), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // a text may repeat a character of the body
		return fmt.Errorf("response: no valid JSON at byte %d", c.dec.InputOffset())
	}
	return err
}

// openContent returns the text of a body.
func openContent(body io.Reader) (*bufio.Reader, error) {
	text := bufio.NewReader(body)
	if start, _ := text.Peek(2); string(start) == "\x1f\x8b" {
		unpacked, err := gzip.NewReader(text)
		if err != nil {
			return nil, err
		}
		text = bufio.NewReader(unpacked)
	}
	if start, _ := text.Peek(3); string(start) == "\ufeff" {
		_, _ = text.Discard(3)
	}
	if start, _ := text.Peek(512); bytes.HasPrefix(bytes.TrimSpace(start), []byte("<")) {
		return nil, &Error{Reason: Decode, Err: errors.New("response: a web page"), Hint: "api.base_url probably leads to a site and not to the API"}
	}
	return text, nil
}

// content is the text of a body within its bounds, for its decoder.
type content struct {
	ctx     context.Context
	text    io.Reader
	dec     *json.Decoder
	turn    *semaphore.Weighted // for large responses, one at a time
	hasTurn bool
	n       int64 // bytes read
	err     error // the first one but io.EOF: that of a decoder does not say whose it is
}

// Read implements io.Reader.
func (c *content) Read(p []byte) (n int, err error) {
	switch {
	case c.err != nil:
	case c.n > maxBodyBytes, c.n-c.dec.InputOffset() > maxValueBytes:
		c.err = ErrTooLarge
	case c.n > maxSmallBytes && !c.hasTurn:
		if c.hasTurn = c.turn.Acquire(c.ctx, 1) == nil; !c.hasTurn {
			c.err = &Error{Reason: Timeout, Err: errors.New("timed out while other large responses were read")}
		}
	}
	if c.err != nil {
		return 0, c.err
	}
	n, err = c.text.Read(p)
	c.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}
