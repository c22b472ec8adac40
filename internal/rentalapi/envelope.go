package rentalapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// envelope decodes a response as a stream, and bounds what it reads.
type envelope struct {
	*json.Decoder
	r          io.Reader
	left, item int // bytes that may be read: in all, and until the next value
	maxItem    int
}

// readEnvelope reads the outer object of a response: at most maxBytes, and at most maxItem
// for one value, apart from what the decoder has read ahead. It calls data, which must read
// the value of that key, and returns the meta object, empty if there is none. Neither may
// be given twice.
func readEnvelope(r io.Reader, maxBytes, maxItem int, data func(*envelope) error) (meta json.RawMessage, err error) {
	e := &envelope{r: r, left: maxBytes, item: maxItem, maxItem: maxItem}
	e.Decoder = json.NewDecoder(e)
	var seen []string
	err = readEach(e.Decoder, '{', "response: not an object", func(name string) error {
		if name != "data" && name != "meta" {
			return e.value(new(json.RawMessage))
		}
		if slices.Contains(seen, name) {
			return fmt.Errorf("%s: given twice", name)
		}
		seen = append(seen, name)
		if name == "meta" {
			return e.value(&meta)
		}
		return data(e)
	})
	if err != nil {
		return nil, syntaxError(err)
	}
	switch _, err := e.Token(); {
	case err == nil:
		return nil, errors.New("response: more after its end")
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(err)
	case !slices.Contains(seen, "data"):
		return nil, errors.New("data: missing")
	}
	return meta, nil
}

// Read implements io.Reader for the decoder.
func (e *envelope) Read(p []byte) (int, error) {
	room := min(e.left, e.item)
	if room <= 0 {
		return 0, ErrTooLarge
	}
	n, err := e.r.Read(p[:min(len(p), room)])
	e.left -= n
	e.item -= n
	return n, err
}

// readEach calls f for each element of an array or, with its name, for each member of an
// object. f must read the value.
func readEach(dec *json.Decoder, start json.Delim, otherwise string, f func(name string) error) error {
	if t, err := dec.Token(); err != nil {
		return err
	} else if t != start {
		return errors.New(otherwise)
	}
	for dec.More() {
		name := ""
		if start == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			name, _ = key.(string)
		}
		if err := f(name); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

// value reads one value.
func (e *envelope) value(raw *json.RawMessage) error {
	e.item = e.maxItem
	return e.Decode(raw)
}

// syntaxError names a response that ends too early, or is empty. Other errors of
// encoding/json name a character and a place, nothing of the content.
func syntaxError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("response: ends too early")
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // its text repeats the number, however long
		return errors.New("response: a number out of range")
	}
	return err
}
