package exporter

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestTooManyConnections has clients that connect and do nothing. Those that are too many
// are closed at once, and when the others leave the exporter serves again.
func TestTooManyConnections(t *testing.T) {
	p := start(t, Environment{}, "--demo")
	connect := func() net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	closed := func(conn net.Conn) bool {
		_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		_, err := conn.Read(make([]byte, 1))
		return !errors.Is(err, os.ErrDeadlineExceeded)
	}
	var open []net.Conn
	for range maxConnections + 20 {
		open = append(open, connect())
	}
	simtest.Eventually(t, "the last connection is closed", func() bool { return closed(open[len(open)-1]) })
	simtest.AssertEqual(t, "first connection closed", closed(open[0]), false)
	for _, conn := range open {
		_ = conn.Close()
	}
	simtest.Eventually(t, "served again", func() bool { return !closed(connect()) })
}
