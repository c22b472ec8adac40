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

// ReadToken reads a token file and returns its trimmed content, which is a
// valid header value. The error contains neither content nor path.
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

// checkToken trims a token and refuses what would break the request's header.
func checkToken(token string) (string, error) {
	if len(token) > maxToken {
		return "", fmt.Errorf("larger than %d bytes", maxToken)
	}
	token = strings.TrimSpace(token)
	if token == "" {
		return "", errors.New("empty: must be one token")
	}
	if strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
		return "", errors.New("not a token: must be printable ASCII without spaces")
	}
	return token, nil
}

// readFile reads a regular file of at most limit bytes. Its errors leave the
// path out.
func readFile(path string, limit int64) ([]byte, error) {
	// Before opening, because opening a pipe would wait for its other end.
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
		return nil, fmt.Errorf("larger than %d bytes", limit)
	}
	return content, nil
}

// withoutPath is the cause of a failed file operation.
func withoutPath(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}
