package rentalapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	maxSmallBody   = 512 << 10 // bytes that every response may have at any time
	maxLargeBodies = 4         // responses that may have more at a time
)

// largeBody reads a response. Beyond maxSmallBody it waits until few enough others do so:
// with many accounts, all could be as large as a response may be.
type largeBody struct {
	ctx   context.Context
	r     io.Reader
	slots chan struct{}
	read  int
	held  bool
}

// Read implements io.Reader.
func (b *largeBody) Read(p []byte) (int, error) {
	if b.read > maxSmallBody && !b.held {
		select {
		case b.slots <- struct{}{}:
			b.held = true
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
	n, err := b.r.Read(p)
	b.read += n
	return n, err
}

func (b *largeBody) release() {
	if b.held {
		<-b.slots
	}
}

// readError is a failure of the connection while a response was read, as opposed
// to a response that was read and not understood.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// boundedReader reads at most left bytes, and at most item bytes between two calls of
// mark, which bounds the memory of one value however long the whole is.
type boundedReader struct {
	r          io.Reader
	left, item int
	maxItem    int
}

func (b *boundedReader) mark() { b.item = b.maxItem }

func (b *boundedReader) Read(p []byte) (int, error) {
	room := min(b.left, b.item)
	if room <= 0 {
		return 0, &readError{ErrTooLarge}
	}
	n, err := b.r.Read(p[:min(len(p), room)])
	b.left -= n
	b.item -= n
	if err != nil && err != io.EOF {
		err = &readError{err}
	}
	return n, err
}

// envelope reads a response as a stream: the outer object with data and meta.
type envelope struct {
	src *boundedReader
	dec *json.Decoder
}

// newEnvelope reads at most maxBytes, and at most maxValue for one value, apart from
// what the decoder has read ahead.
func newEnvelope(r io.Reader, maxBytes, maxValue int) *envelope {
	src := &boundedReader{r: r, left: maxBytes, maxItem: maxValue}
	src.mark()
	return &envelope{src: src, dec: json.NewDecoder(src)}
}

// read reads the outer object and calls field for each of its keys; field must read
// the key's value. Neither data nor meta may be given twice.
func (d *envelope) read(field func(key string) error) error {
	if err := d.delim('{', "response: not an object"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for d.dec.More() {
		key, err := d.dec.Token()
		if err != nil {
			return syntaxError(err)
		}
		name, _ := key.(string)
		if name == "data" || name == "meta" {
			if seen[name] {
				return fmt.Errorf("%s: given twice", name)
			}
			seen[name] = true
		}
		if err := field(name); err != nil {
			return err
		}
	}
	if _, err := d.dec.Token(); err != nil {
		return syntaxError(err)
	}
	if _, err := d.dec.Token(); err != io.EOF {
		if err == nil {
			return errors.New("response: more after its end")
		}
		return syntaxError(err)
	}
	return nil
}

// items reads an array and calls each for every element of it.
func (d *envelope) items(maxItems int, each func(json.RawMessage)) error {
	if err := d.delim('[', "data: not an array"); err != nil {
		return err
	}
	var raw json.RawMessage
	for n := 0; d.dec.More(); n++ {
		if n == maxItems {
			return &readError{fmt.Errorf("data: more than %d items: %w", maxItems, ErrTooLarge)}
		}
		if err := d.value(&raw); err != nil {
			return err
		}
		each(raw)
	}
	_, err := d.dec.Token()
	return syntaxError(err)
}

func (d *envelope) value(raw *json.RawMessage) error {
	d.src.mark()
	return syntaxError(d.dec.Decode(raw))
}

func (d *envelope) skip() error {
	var raw json.RawMessage
	return d.value(&raw)
}

func (d *envelope) delim(want json.Delim, otherwise string) error {
	t, err := d.dec.Token()
	if err != nil {
		return syntaxError(err)
	}
	if t != want {
		return errors.New(otherwise)
	}
	return nil
}

// syntaxError names a response that ends too early for what it is: a broken
// connection, or an empty body. Other errors of encoding/json name a character
// and a place, nothing of the content.
func syntaxError(err error) error {
	var read *readError
	var number *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &read):
		return err
	case errors.As(err, &number): // its text repeats the number, however long
		return errors.New("response: a number out of range")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("response: ends too early")
	default:
		return err
	}
}
