package exporter

import (
	"net"
	"net/url"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestTooManyConnections has clients that connect and do nothing. Those that are too many
// are closed at once, and when the others leave the exporter serves again.
func TestTooManyConnections(t *testing.T) {
	p := start(t, Environment{}, "--demo")
	target, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	var open []net.Conn
	for range maxConnections + 20 {
		conn, err := net.Dial("tcp", target.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		open = append(open, conn)
	}
	closed := func(conn net.Conn) bool {
		if err := conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		_, err := conn.Read(make([]byte, 1))
		timeout, isNet := err.(net.Error) //nolint:errorlint // it is not wrapped
		return !isNet || !timeout.Timeout()
	}
	simtest.Eventually(t, "the last connection is closed", func() bool { return closed(open[len(open)-1]) })
	if closed(open[0]) {
		t.Error("the first connection is closed")
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	simtest.Eventually(t, "served again", func() bool {
		conn, err := net.Dial("tcp", target.Host)
		if err != nil {
			return false
		}
		defer conn.Close()
		return !closed(conn)
	})
}
