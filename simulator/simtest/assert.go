package simtest

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/google/go-cmp/cmp"
)

// Update is the flag -update, which rewrites golden and generated files.
var Update = flag.Bool("update", false, "rewrite golden and generated files")

// AssertEqual compares whole values, fields that are not exported included.
func AssertEqual(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("%s: -want +got:\n%s", what, diff)
	}
}

// Golden compares a text with a file, or rewrites the file if -update is given.
func Golden(t testing.TB, path, got string) {
	t.Helper()
	if *Update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (-update writes it)", err)
	}
	AssertEqual(t, path+" (-update rewrites it)", got, string(want))
}

// AssertNoSecrets fails the test if a text contains a token, or data of the
// simulated accounts that must not be exposed: e-mail and payment addresses,
// descriptions of transactions, public keys, addresses of servers.
func AssertNoSecrets(t testing.TB, where, text string) {
	t.Helper()
	for _, secret := range []string{
		"secret-", "@customer.example", "bc1q", "bitcoin:", "tron:", "Renewal of node-", "ssh-ed25519 AAAA", "198.18.", "198.19.",
	} {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%s contains %q: ...%.200q", where, secret, text[max(0, i-80):])
		}
	}
}

// eventuallyTimeout limits Eventually in a test that fails. Public data are fetched once
// a minute.
const eventuallyTimeout = 3 * time.Minute

// Eventually waits in real time until holds returns true. It asks less and less often,
// up to five times a second.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	pause := 5 * time.Millisecond
	for end := time.Now().Add(eventuallyTimeout); !holds(); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", eventuallyTimeout, what)
		}
		pause = min(pause+pause/4, 200*time.Millisecond)
	}
}

// WriteFile writes a file that only its owner can read, and returns its path.
func WriteFile(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// WriteCertificate writes a certificate for 127.0.0.1 and its key: cert.pem and key.pem.
func WriteCertificate(t testing.TB, dir string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	WriteFile(t, filepath.Join(dir, "cert.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	WriteFile(t, filepath.Join(dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
}

// Decode reads a JSON object.
func Decode(t testing.TB, body []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%.100s: %v", body, err)
	}
	return v
}

// Encode returns a value as JSON.
func Encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

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
	return level.NewFilter(log.NewLogfmtLogger(&l.Buffer), level.AllowInfo()).Log(keyvals...)
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
