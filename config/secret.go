package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

const (
	maxFile  = 1 << 20 // bytes of a configuration file
	maxToken = 4 << 10 // bytes of a token, with white space
)

// TokenReader returns a function that reads the token again at each call. Of a file, that
// is the content without surrounding white space. The error contains neither content nor
// path; it wraps that of the file system.
func (a Account) TokenReader() func() (string, error) {
	return func() (string, error) {
		if a.Token != "" {
			return checkToken(string(a.Token))
		}
		content, err := readFile(a.TokenFile, maxToken)
		if err != nil {
			return "", err
		}
		return checkToken(string(content))
	}
}

// checkToken trims a token and rejects one that is not a valid header value.
func checkToken(token string) (string, error) {
	token = strings.TrimSpace(token)
	if token == "" {
		return "", errors.New("empty: must be a token")
	}
	for _, mark := range []string{"\ufeff", "\xff\xfe", "\xfe\xff"} { // UTF-8, UTF-16
		if strings.HasPrefix(token, mark) {
			return "", errors.New("invalid token: begins with a byte-order mark, must be saved as plain text")
		}
	}
	if strings.HasPrefix(strings.ToLower(token), "bearer ") {
		return "", errors.New("invalid token: begins with Bearer, must be only the token")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("invalid token: must be printable ASCII without spaces")
	}
	return token, nil
}

// readFile returns the content of a regular file of at most limit bytes. A pipe is an error:
// it would block until it has a writer. The error does not contain the path.
func readFile(path string, limit int64) ([]byte, error) {
	content, err := readRegular(path, limit)
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	return content, err
}

func readRegular(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	read, err := io.ReadAll(io.LimitReader(f, limit+1))
	if int64(len(read)) > limit {
		return nil, fmt.Errorf("too large: must be at most %d bytes", limit)
	}
	return read, err
}
