package exporter

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestTooManyConnections has clients that connect and do nothing: those that have waited
// longest make room for others. Then all have a request whose body is missing, so that no
// other is served.
func TestTooManyConnections(t *testing.T) {
	p := start(t, Environment{}, "--demo")
	connect := func(text string) net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, text) // fails if it is closed already
		return conn
	}
	closed := func(conn net.Conn) bool {
		_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		_, err := conn.Read(make([]byte, 1))
		return !errors.Is(err, os.ErrDeadlineExceeded)
	}
	var idle, busy []net.Conn
	for range maxConnections + 20 {
		idle = append(idle, connect(""))
	}
	simtest.Eventually(t, "the first connection is closed", func() bool { return closed(idle[0]) })
	simtest.AssertEqual(t, "last connection closed", closed(idle[len(idle)-1]), false)
	simtest.AssertEqual(t, "status beside idle clients", p.get("/-/healthy").Status, http.StatusOK)

	request := func() { busy = append(busy, connect("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n")) }
	for range maxConnections {
		request()
	}
	simtest.Eventually(t, "a further request is refused", func() bool {
		request()
		return closed(busy[len(busy)-1])
	})
	simtest.AssertEqual(t, "all requests are refused", !slices.ContainsFunc(busy, func(conn net.Conn) bool { return !closed(conn) }), false)
	for _, conn := range busy {
		_ = conn.Close()
	}
	simtest.Eventually(t, "served again", func() bool { return !closed(connect("")) })
}
