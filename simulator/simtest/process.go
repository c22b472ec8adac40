package simtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// Main is TestMain for packages that run the exporter: it removes variables from
// the environment that would change the exporter, runs the tests, and deletes the
// binary.
func Main(m *testing.M) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "SERVER_RENTAL_") || name == "COLUMNS" {
			_ = os.Unsetenv(name)
		}
	}
	var err error
	if binaryDir, err = os.MkdirTemp("", "server_rental_exporter"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(binaryDir)
	os.Exit(code)
}

var (
	building  sync.Mutex
	binaryDir string // set by Main
)

// Binary builds the exporter once, without the race detector, and returns the path of its
// binary. The package needs a TestMain that calls [Main]. With -short, it skips the test.
func Binary(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a binary")
	}
	building.Lock()
	defer building.Unlock()
	const pkg = "github.com/server-rental-exporter/server_rental_exporter"
	path := filepath.Join(binaryDir, filepath.Base(pkg))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	cmd := exec.Command("go", "build", "-o", path, pkg)
	cmd.Dir = Root(t) // the tests of another module, too, build it with the modules of a release
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// Process is a running program. It is killed at the end of the test, and its log
// is shown if the test failed.
type Process struct {
	Server
	Cmd *exec.Cmd
	Log *Buffer // standard output and standard error

	ended chan struct{} // closed when the process has ended
}

// StartProcess runs the exporter on a free loopback port, with an empty
// environment, and waits until it serves.
func StartProcess(t testing.TB, args ...string) *Process {
	t.Helper()
	cmd := exec.Command(Binary(t), append([]string{"--web.listen-address=127.0.0.1:0"}, args...)...)
	cmd.Env = []string{}
	p := StartCommand(t, cmd)
	p.WaitServing()
	return p
}

// StartCommand runs a program, without waiting for anything.
func StartCommand(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Server: Server{T: t}, Cmd: cmd, Log: &Buffer{}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.Log, p.Log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // the exit status is in cmd.ProcessState
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails if the process has ended
		<-p.ended
		if t.Failed() {
			t.Logf("%s:\n%s", cmd, p.Log)
		}
	})
	return p
}

// StartServing runs a program that serves on an address, and waits until it responds to a path with 200.
func StartServing(t testing.TB, cmd *exec.Cmd, address, path string) *Process {
	t.Helper()
	p := StartCommand(t, cmd)
	p.URL = "http://" + address
	p.Eventually("ready", func() bool {
		r, err := Do(http.MethodGet, p.URL+path)
		return err == nil && r.Status == http.StatusOK
	})
	return p
}

var listening = regexp.MustCompile(`Listening on.* address=(\S+)`)

// WaitServing waits until the exporter has logged its first address, and sets URL.
func (p *Process) WaitServing() {
	p.T.Helper()
	p.Eventually("serving", func() bool {
		m := listening.FindStringSubmatch(p.Log.String())
		if m != nil {
			p.URL = "http://" + m[1]
		}
		return m != nil
	})
}

// Eventually is [Eventually] for a condition that needs the process to run.
func (p *Process) Eventually(what string, holds func() bool) {
	p.T.Helper()
	Eventually(p.T, what, func() bool {
		select {
		case <-p.ended:
			p.T.Fatalf("%s: process ended: %v", what, p.Cmd.ProcessState)
		default:
		}
		return holds()
	})
}

// Wait waits until the process has ended and returns its exit status.
func (p *Process) Wait() int {
	p.T.Helper()
	select {
	case <-p.ended:
		return p.Cmd.ProcessState.ExitCode()
	case <-time.After(eventuallyTimeout):
		p.T.Fatalf("process did not end within %v", eventuallyTimeout)
		return -1
	}
}

// FreeAddress returns a loopback address on which nothing listens. On Linux nothing
// else will: see listen.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l := listen(t)
	defer l.Close()
	return l.Addr().String()
}

// listen listens on a free port of a loopback address. On Linux, all of
// 127.0.0.0/8 is loopback, and the address is random. A port of 127.0.0.1 is soon used
// again, so that a client of a server that has ended, or that has not started yet,
// would find another server there.
func listen(t testing.TB) net.Listener {
	t.Helper()
	host := "127.0.0.1"
	if runtime.GOOS == "linux" {
		host = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(255), rand.IntN(256), 1+rand.IntN(254))
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Root returns the directory of the repository that the tests were built from.
func Root(t testing.TB) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}
