package simtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

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

// Python returns an interpreter that has prometheus_client: that of the PATH, or that
// of the system, which Debian's package python3-prometheus-client is for; empty for
// none.
func Python() string {
	for _, interpreter := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(interpreter, "-c", "import prometheus_client.openmetrics.parser").Run() == nil {
			return interpreter
		}
	}
	return ""
}

// Root returns the directory of the repository, from the directory of a test in it.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "VERSION")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the test does not run in the repository")
		}
		dir = filepath.Dir(dir)
	}
}
