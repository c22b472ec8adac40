package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	maxFile  = 1 << 20 // bytes of a configuration file
	maxToken = 4 << 10 // bytes of a token, with white space
)

// TokenReader returns a function that reads the token again at each call. Of a file, that
// is the content, at most 4096 bytes, without surrounding white space, if it is a valid
// header value. It takes at most 5 seconds, also if the file system hangs. The error
// contains neither content nor path; it wraps that of the file system.
func (a Account) TokenReader() func() (string, error) {
	if a.Token != "" {
		return func() (string, error) { return checkToken(string(a.Token)) }
	}
	f := &file{path: a.TokenFile, limit: maxToken}
	return func() (string, error) {
		content, err := f.read()
		if err != nil {
			return "", err
		}
		return checkToken(string(content))
	}
}

// checkToken trims a token and rejects one that is not a valid header value.
func checkToken(token string) (string, error) {
	if len(token) > maxToken {
		return "", fmt.Errorf("too large: must be at most %d bytes", maxToken)
	}
	token = strings.TrimSpace(token)
	if token == "" {
		return "", errors.New("empty: must be a token")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("invalid token: must be printable ASCII without spaces")
	}
	return token, nil
}

// readTimeout bounds the reading of a file: a network file system can hang for ever.
const readTimeout = 5 * time.Second

// file is a regular file of at most limit bytes.
type file struct {
	path  string
	limit int64
	reads singleflight.Group // so that no second read begins while one hangs
}

// read returns the content of the file, in at most readTimeout. The error does not contain
// the path.
func (f *file) read() ([]byte, error) {
	select {
	case result := <-f.reads.DoChan("", func() (any, error) { return readRegular(f.path, f.limit) }):
		if pathErr, ok := errors.AsType[*fs.PathError](result.Err); ok {
			return nil, pathErr.Err
		}
		content, _ := result.Val.([]byte)
		return content, result.Err
	case <-time.After(readTimeout):
		return nil, fmt.Errorf("the file system did not answer within %s", readTimeout)
	}
}

func readRegular(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would block until it has a writer
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
