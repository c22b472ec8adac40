package simtest

import (
	"net"
	"os/exec"
	"testing"
)

// FreeAddress returns a loopback address on which nothing listens.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
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
