package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

const (
	maxFile  = 1 << 20 // bytes of a configuration file
	maxToken = 4 << 10 // bytes of a token file
)

// ReadToken reads a token file of at most 4096 bytes and returns its content
// without surrounding white space, which is a valid header value. The error
// contains neither content nor path; it wraps that of the file system.
func ReadToken(path string) (string, error) {
	token, err := readToken(path)
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

// readFile reads a regular file of at most limit bytes. Its errors do not
// contain the path.
func readFile(path string, limit int64) ([]byte, error) {
	// Check before opening, because opening a pipe blocks until it has a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("too large: must be at most %d bytes", limit)
	}
	return content, nil
}

// withoutPath returns the cause of a failed file operation.
func withoutPath(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
