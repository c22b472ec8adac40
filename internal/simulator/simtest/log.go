package simtest

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
)

// Buffer is a bytes.Buffer for concurrent use.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns everything written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Log is a go-kit logger that records lines in logfmt, except debug messages.
type Log struct{ Buffer }

// Log implements log.Logger.
func (l *Log) Log(keyvals ...any) error {
	if slices.Contains(keyvals, any(level.DebugValue())) {
		return nil
	}
	return log.NewLogfmtLogger(&l.Buffer).Log(keyvals...)
}

// Take returns the lines recorded since the last call in alphabetical order, and
// asserts that they contain no secrets.
func (l *Log) Take(t testing.TB) []string {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.b.String()
	l.b.Reset()
	AssertNoSecrets(t, "log", text)
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	return lines
}

// Assert takes the lines and asserts that they match the wanted ones, in any order. A
// wanted line is texts that a line contains one after the other, with * between them.
func (l *Log) Assert(t testing.TB, want ...string) {
	t.Helper()
	rest := l.Take(t)
	var missing []string
	for _, w := range want {
		pattern := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(w), `\*`, ".*"))
		i := slices.IndexFunc(rest, pattern.MatchString)
		if i < 0 {
			missing = append(missing, w)
			continue
		}
		rest = slices.Delete(rest, i, i+1)
	}
	if len(rest)+len(missing) > 0 {
		t.Errorf("log:\nunexpected %.2000q\n   missing %q", rest, missing)
	}
}
