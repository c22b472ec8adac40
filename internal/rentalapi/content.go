package rentalapi

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

var (
	gzipMagic = []byte{0x1f, 0x8b}
	bom       = []byte("\ufeff")
)

// readBounded reads up to one byte more than a body may have.
func readBounded(r io.Reader) ([]byte, error) {
	var b bytes.Buffer // grows in fewer steps than io.ReadAll
	_, err := b.ReadFrom(io.LimitReader(r, maxBodyBytes+1))
	return b.Bytes(), err
}

// decodedContent returns the JSON of a body: without gzip, which is known by its first bytes,
// whatever the header says, and without a byte order mark. A body that is no object, or is too large,
// fails with an error that repeats nothing of it.
func decodedContent(body []byte) ([]byte, error) {
	if bytes.HasPrefix(body, gzipMagic) {
		unpacked, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			body, err = readBounded(unpacked)
		}
		if err != nil {
			return nil, fmt.Errorf("response: %w", err)
		}
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(body, bom), " \t\r\n")
	switch {
	case len(body) > maxBodyBytes:
		return nil, ErrTooLarge
	case len(text) == 0:
		return nil, errors.New("response: empty")
	case text[0] == '<':
		return nil, errors.New("response: a web page: api.base_url probably leads to a site and not to the API")
	case text[0] != '{':
		return nil, errors.New("response: not a JSON object")
	}
	return text, nil
}
