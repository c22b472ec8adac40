package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	maxFile  = 1 << 20 // bytes of a configuration file
	maxToken = 4 << 10 // bytes of a token file
)

// TokenFile reads a token from a file, again and again.
type TokenFile struct {
	path    string
	mu      sync.Mutex
	pending <-chan content // of a read that did not end in time; nil if there is none
}

// NewTokenFile returns the reader of a token file.
func NewTokenFile(path string) *TokenFile { return &TokenFile{path: path} }

// Read returns the content of the file, at most 4096 bytes, without surrounding white
// space, which is a valid header value. It takes at most 5 seconds, also if the file
// system hangs. The error contains neither content nor path; it wraps that of the file
// system.
func (f *TokenFile) Read() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pending == nil {
		f.pending = startRead(f.path, maxToken)
	}
	read, err := awaitRead(f.pending)
	if !errors.Is(err, errReadTimeout) { // else no second read begins meanwhile
		f.pending = nil
	}
	var token string
	if err == nil {
		token, err = checkToken(string(read))
	}
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	return token, nil
}

func readToken(path string) (string, error) {
	content, err := readFile(path, maxToken)
	if err != nil {
		return "", err
	}
	return checkToken(string(content))
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

// readFile reads a regular file of at most limit bytes, in at most readTimeout. Its
// errors do not contain the path.
func readFile(path string, limit int64) ([]byte, error) { return awaitRead(startRead(path, limit)) }

// readTimeout bounds the reading of a file: a network file system can hang for ever.
const readTimeout = 5 * time.Second

var errReadTimeout = fmt.Errorf("the file system did not answer within %s", readTimeout)

// content is the outcome of reading a file.
type content struct {
	bytes []byte
	err   error
}

// startRead reads a file in the background.
func startRead(path string, limit int64) <-chan content {
	done := make(chan content, 1)
	go func() {
		read, err := readRegular(path, limit)
		done <- content{read, err}
	}()
	return done
}

func awaitRead(done <-chan content) ([]byte, error) {
	timeout := time.NewTimer(readTimeout)
	defer timeout.Stop()
	select {
	case c := <-done:
		return c.bytes, c.err
	case <-timeout.C:
		return nil, errReadTimeout
	}
}

func readRegular(path string, limit int64) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would block until it has a writer
	if err != nil {
		return nil, withoutPath(err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, withoutPath(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	}
	read, err := io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, withoutPath(err)
	case int64(len(read)) > limit:
		return nil, fmt.Errorf("too large: must be at most %d bytes", limit)
	}
	return read, nil
}

// withoutPath returns the cause of a failed file operation.
func withoutPath(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
