package config

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// ReadToken returns the token. Of a file, that is the content without surrounding white
// space. The error contains neither content nor path; it wraps that of the file system.
func (a Account) ReadToken() (string, error) {
	if a.TokenFile == "" {
		return checkToken(string(a.Token))
	}
	content, err := readFile(a.TokenFile)
	if err != nil {
		return "", err
	}
	return checkToken(string(content))
}

// checkToken trims a token and rejects one that is not a valid header value.
func checkToken(token string) (string, error) {
	token = strings.TrimSpace(token)
	if token == "" {
		return "", errors.New("missing or empty: must be a token")
	}
	switch {
	case strings.HasPrefix(token, "Bearer "):
		return "", errors.New("invalid token: must not begin with \"Bearer \"")
	case strings.HasPrefix(token, "\ufeff"):
		return "", errors.New("invalid token: must not begin with a byte-order mark")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("invalid token: must be printable ASCII without spaces, and nothing else")
	}
	return token, nil
}

// readFile returns the content of a regular file. A pipe is an error: it would block until
// it has a writer. The error does not contain the path.
func readFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	content, err := os.ReadFile(path)
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	return content, err
}
