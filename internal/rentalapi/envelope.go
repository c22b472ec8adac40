package rentalapi

import (
	"encoding/json"
	"errors"
	"io"
)

// Bounds on the memory that a response takes. Decoded, a value is many times as large as in
// JSON.
const (
	maxBodyBytes  = 32 << 20
	maxValueBytes = 1 << 20 // of an item, of a single object or of the meta object
	maxElements   = 250_000 // of all arrays and maps within the items of a list
)

// readEnvelope reads a response: a JSON object with data, which readData decodes, and in the
// case of a list with meta, which is an empty object if there is none. A syntax error names a
// character and a place, nothing of the content.
func readEnvelope(body io.Reader, readData func(*json.Decoder) error) (meta any, err error) {
	defer func() {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("response: ends too early")
		}
	}()
	dec := newDecoder(body)
	if start, err := dec.Token(); err != nil {
		return nil, err
	} else if start != json.Delim('{') {
		return nil, errors.New("response: not an object")
	}
	found := false
	for dec.More() {
		key, err := dec.Token()
		switch {
		case err != nil:
		case key == "data" && found:
			err = errors.New("data: more than once")
		case key == "data":
			found, err = true, readData(dec)
		case key == "meta":
			err = dec.Decode(&meta)
		default:
			err = dec.Decode(new(json.RawMessage))
		}
		if err != nil {
			return nil, err
		}
	}
	if _, err := dec.Token(); err != nil { // the end of the object
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("response: more after its end")
	}
	if !found {
		return nil, errors.New("data: missing")
	}
	if meta == nil {
		meta = map[string]any{}
	}
	return meta, nil
}

// newDecoder returns a decoder that keeps numbers as they are written, and fails with
// ErrTooLarge after maxBodyBytes, or at a value of more than maxValueBytes.
func newDecoder(r io.Reader) *json.Decoder {
	b := &bounded{r: r}
	b.dec = json.NewDecoder(b)
	b.dec.UseNumber()
	return b.dec
}

// bounded lets a decoder read at most maxBodyBytes, and maxValueBytes more than it has decoded.
type bounded struct {
	r    io.Reader
	dec  *json.Decoder
	read int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	ahead := min(b.dec.InputOffset()+maxValueBytes, maxBodyBytes+1) - b.read
	if ahead <= 0 {
		return 0, ErrTooLarge
	}
	n, err := b.r.Read(p[:min(int64(len(p)), ahead)])
	b.read += int64(n)
	return n, err
}
