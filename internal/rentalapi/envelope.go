package rentalapi

import (
	"encoding/json"
	"errors"
	"io"
)

// readEnvelope reads a response: a JSON object with data, and in the case of a list with
// meta, which is an empty object if there is none.
func readEnvelope(body io.Reader) (data json.RawMessage, meta any, err error) {
	var envelope struct {
		Data json.RawMessage
		Meta any
	}
	dec := newDecoder(body)
	err = dec.Decode(&envelope)
	_, mistyped := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, nil, errors.New("response: ends too early")
	case mistyped:
		return nil, nil, errors.New("response: not an object")
	case err != nil: // a syntax error names a character and a place, nothing of the content
		return nil, nil, err
	case envelope.Data == nil:
		return nil, nil, errors.New("data: missing")
	case envelope.Meta == nil:
		envelope.Meta = map[string]any{}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("response: more after its end")
	}
	return envelope.Data, envelope.Meta, nil
}

// newDecoder returns a decoder that keeps numbers as they are written.
func newDecoder(r io.Reader) *json.Decoder {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	return dec
}
