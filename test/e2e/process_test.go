//go:build e2e

// Package e2e runs the exporter's binary together with the programs it is made for.
package e2e

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program returns the path of the first of several names that is installed. Without
// it there is nothing to test, except in CI.
func program(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed", names[0])
	}
	t.Skipf("%s is not installed", names[0])
	return ""
}

// buildExporter builds the exporter and returns the path of its binary.
func buildExporter(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "server_rental_exporter")
	if out, err := exec.Command("go", "build", "-o", binary, "..").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

// freeAddress returns a loopback address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// answersOK tells whether an address answers 200.
func answersOK(address string) bool {
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// process is a program that a test runs.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  lockedBuffer
	done chan struct{}
	err  error // of Wait; read after done
}

// start runs a program until stop or the end of the test, whichever comes first.
// What it said is shown where the test fails.
func start(t *testing.T, path string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(path), p.log.String())
		}
	})
	return p
}

// stop ends the program and waits for it: politely at first.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails where it has ended by itself
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		p.t.Errorf("%s: did not end within 20 seconds", filepath.Base(p.cmd.Path))
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// await waits until ready returns true, as long as the program runs and no longer than
// limit.
func (p *process) await(what string, limit time.Duration, ready func() bool) {
	p.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); !ready(); {
		select {
		case <-p.done:
			p.t.Fatalf("%s: %s ended: %v", what, filepath.Base(p.cmd.Path), p.err)
		case <-tick.C:
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s: not within %v", what, limit)
		}
	}
}

// lockedBuffer takes what a program says while a test may read it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
