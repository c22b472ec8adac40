package rentalapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// readError is a failure of the connection while an answer was read, as opposed
// to an answer that was read and not understood.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// bounded reads at most left bytes, and at most item bytes between two calls of
// mark, which bounds the memory of one value however long the whole is.
type bounded struct {
	r          io.Reader
	left, item int
	most       int
}

func (b *bounded) mark() { b.item = b.most }

func (b *bounded) Read(p []byte) (int, error) {
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

// decoder reads an answer as a stream.
type decoder struct {
	src *bounded
	dec *json.Decoder
}

func newDecoder(r io.Reader, most int) *decoder {
	// The decoder reads ahead by less than it has buffered, so an item may be
	// charged for its predecessor's bytes: hence twice the bound.
	src := &bounded{r: r, left: most, most: max(2*maxItemBytes, most/8)}
	src.mark()
	return &decoder{src: src, dec: json.NewDecoder(src)}
}

// envelope reads the outer object and calls field for each of its keys; field
// must read the key's value. The three keys of the document come once at most.
func (d *decoder) envelope(field func(key string) error) error {
	if err := d.delim('{', "answer: not an object"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for d.dec.More() {
		key, err := d.dec.Token()
		if err != nil {
			return syntax(err)
		}
		name, _ := key.(string)
		if (name == "data" || name == "meta") && seen[name] {
			return fmt.Errorf("%s: given twice", name)
		}
		seen[name] = true
		if err := field(name); err != nil {
			return err
		}
	}
	if _, err := d.dec.Token(); err != nil {
		return syntax(err)
	}
	if _, err := d.dec.Token(); err != io.EOF {
		if err == nil {
			return errors.New("answer: more after its end")
		}
		return syntax(err)
	}
	return nil
}

// items reads an array and calls each for every element of it.
func (d *decoder) items(most int, each func(json.RawMessage)) error {
	if err := d.delim('[', "data: not an array"); err != nil {
		return err
	}
	var raw json.RawMessage
	for n := 0; d.dec.More(); n++ {
		if n == most {
			return &readError{fmt.Errorf("data: more than %d items: %w", most, ErrTooLarge)}
		}
		if err := d.value(&raw); err != nil {
			return err
		}
		each(raw)
	}
	_, err := d.dec.Token()
	return syntax(err)
}

func (d *decoder) value(raw *json.RawMessage) error {
	d.src.mark()
	return syntax(d.dec.Decode(raw))
}

func (d *decoder) skip() error {
	var raw json.RawMessage
	return d.value(&raw)
}

func (d *decoder) delim(want json.Delim, otherwise string) error {
	t, err := d.dec.Token()
	if err != nil {
		return syntax(err)
	}
	if t != want {
		return errors.New(otherwise)
	}
	return nil
}

// syntax gives an answer that ends too early the name of what it is: a broken
// connection, or nothing at all. Other errors of encoding/json name a character
// and a place, nothing of the content.
func syntax(err error) error {
	var read *readError
	var number *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &read):
		return err
	case errors.As(err, &number): // its text repeats the number, however long
		return errors.New("answer: a number out of range")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("answer: ends too early")
	default:
		return err
	}
}
