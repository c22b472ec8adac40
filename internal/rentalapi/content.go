package rentalapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

var (
	gzipMagic = []byte{0x1f, 0x8b}
	bom       = []byte("\ufeff")
)

// decodedContent returns the JSON of a body: without gzip, which is known by its first bytes,
// whatever the header says, and without a byte order mark. A body that is no object fails with
// an error that says what it is instead, and repeats nothing of it.
func decodedContent(body io.Reader, encoding string) (io.Reader, error) {
	r := bufio.NewReader(body)
	if start, _ := r.Peek(len(gzipMagic)); bytes.Equal(start, gzipMagic) {
		unpacked, err := gzip.NewReader(r)
		if err != nil {
			return nil, contentError(err)
		}
		r = bufio.NewReader(unpacked)
	}
	if start, _ := r.Peek(len(bom)); bytes.Equal(start, bom) {
		_, _ = r.Discard(len(bom))
	}
	for blanks := 0; ; blanks++ {
		c, err := r.ReadByte()
		switch {
		case blanks > maxValueBytes:
			return nil, ErrTooLarge
		case errors.Is(err, io.EOF):
			return nil, errors.New("response: empty")
		case err != nil:
			return nil, err
		case c == '{':
			return r, r.UnreadByte()
		case !strings.ContainsRune(" \t\r\n", rune(c)):
			return nil, errors.New("response: " + describeContent(c, encoding))
		}
	}
}

// describeContent says what a body is that begins with c and is no JSON object.
func describeContent(c byte, encoding string) string {
	encoding = strings.ToLower(strings.TrimSpace(encoding))
	switch {
	case slices.Contains([]string{"br", "compress", "deflate", "zstd"}, encoding):
		return fmt.Sprintf("Content-Encoding %s, but gzip was asked for", encoding)
	case encoding != "" && encoding != "identity" && encoding != "gzip":
		return "an unknown Content-Encoding, but gzip was asked for"
	case c == '<':
		return "a web page: api.base_url probably leads to a site and not to the API"
	case c == '[', c == '"':
		return "JSON, but not an object"
	case c < ' ', c >= 0x7f:
		return "binary data, not JSON"
	}
	return "text, not a JSON object"
}

// contentError returns an error of reading a response without its content, which might be private.
func contentError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("response: ends too early")
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("response: no valid JSON at byte %d", syntax.Offset)
	}
	return err
}
