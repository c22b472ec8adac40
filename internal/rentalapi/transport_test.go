package rentalapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	promconfig "github.com/prometheus/common/config"
	"golang.org/x/net/http2"

	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
)

// buffered is a connection in memory whose writes do not wait for the reader.
type buffered struct {
	net.Conn
	out chan []byte
}

// Write implements net.Conn.
func (b buffered) Write(p []byte) (int, error) {
	b.out <- bytes.Clone(p)
	return len(p), nil
}

func (b buffered) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-b.out:
			_, _ = b.Conn.Write(p) // fails if the client closed the connection
		}
	}
}

// bubble returns a client of a server in memory. A dial calls dialing.
func bubble(t *testing.T, scheme string, cfg promconfig.HTTPClientConfig, limits Limits, serve func(net.Conn), dialing ...func()) *Client {
	t.Helper()
	conns := make(chan net.Conn)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case conn := <-conns:
				go func() {
					defer conn.Close()
					b := buffered{conn, make(chan []byte, 100)}
					ended, end := context.WithCancel(ctx)
					defer end()
					go b.run(ended)
					go func() { <-ended.Done(); conn.Close() }()
					serve(b)
				}()
			}
		}
	}()
	transport, err := NewTransport(cfg, func(context.Context, string, string) (net.Conn, error) {
		for _, f := range dialing {
			f()
		}
		client, server := net.Pipe()
		conns <- server
		return client, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup((&http.Client{Transport: transport}).CloseIdleConnections)
	base := &url.URL{Scheme: scheme, Host: "rental.example", Path: "/api/v1"}
	return New("test/1", Settings{BaseURL: base, Transport: transport, Timeout: 10 * time.Second, Limits: limits}, nil).Client("", nil)
}

const emptyList = `{"data":[]}`

// fetchFor fetches again and again, four at a time.
func fetchFor(t *testing.T, c *Client, duration time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				_ = fetchList(ctx, c, "/plans")
			}
		})
	}
	all.Wait()
}

// TestRequestsOnTheWire has servers that make net/http repeat requests.
func TestRequestsOnTheWire(t *testing.T) {
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	certificates := certificate.TLS.Certificates
	certificate.Close()
	secure := func(conn net.Conn) net.Conn {
		return tls.Server(conn, &tls.Config{Certificates: certificates, NextProtos: []string{"h2"}})
	}
	insecure := promconfig.DefaultHTTPClientConfig
	insecure.TLSConfig.InsecureSkipVerify = true
	for name, c := range map[string]struct {
		scheme string
		serve  func(conn net.Conn, request func())
	}{
		"closed at the second request": {"http", func(conn net.Conn, request func()) {
			r := bufio.NewReader(conn)
			for n := range 2 {
				if _, err := http.ReadRequest(r); err != nil {
					return
				}
				request()
				if n == 0 {
					fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(emptyList), emptyList)
				}
			}
		}},
		"GOAWAY": {"https", func(conn net.Conn, request func()) {
			h2(secure(conn), request, func(f *http2.Framer, _ uint32) { _ = f.WriteGoAway(0, http2.ErrCodeNo, nil) })
		}},
		"REFUSED_STREAM": {"https", func(conn net.Conn, request func()) {
			h2(secure(conn), request, func(f *http2.Framer, id uint32) { _ = f.WriteRSTStream(id, http2.ErrCodeRefusedStream) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var requests atomic.Int64
				client := bubble(t, c.scheme, insecure, Limits{Public: 30}, func(conn net.Conn) {
					c.serve(conn, func() { requests.Add(1) })
				})
				fetchFor(t, client, time.Minute-time.Millisecond)
				if n := requests.Load(); n < 20 || n > 30 {
					t.Errorf("got %d requests in a minute, want 20 to 30", n)
				}
			})
		})
	}
}

// h2 serves HTTP/2, whose requests all get the same response.
func h2(conn net.Conn, request func(), respond func(f *http2.Framer, id uint32)) {
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(conn, conn)
	_ = f.WriteSettings()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			request()
			respond(f, frame.StreamID)
		}
	}
}

// closed is the response of a server that closes an idle connection while a request comes.
const closed = "HTTP"

// respondTo serves HTTP/1.1, whose responses are those of respond, by the number of the request.
func respondTo(conn net.Conn, respond func(n int) string) {
	r := bufio.NewReader(conn)
	for n := 1; ; n++ {
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		text := respond(n)
		if _, err := io.WriteString(conn, text); err != nil || text == closed {
			return
		}
	}
}

func response(status int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// TestConnections asserts which requests share a connection.
func TestConnections(t *testing.T) {
	upgrade := "HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
	early := strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 20_000)
	for name, c := range map[string]struct {
		second string // response to the second request, after one that succeeded
		err    string
		conns  int64 // connections that three requests took
	}{
		"success":        {response(200, emptyList), "", 1},
		"closed":         {closed, "", 2},
		"status 503":     {response(503, ""), "status 503", 2},
		"no JSON":        {response(200, "x"), "response: text, not a JSON object", 2},
		"204 with body":  {"HTTP/1.1 204 x\r\n\r\nsecret", "status 204", 2},
		"more than said": {response(200, emptyList) + "secret", "", 2},
		"hangs":          {"", "timed out before the response was complete", 2},
		"101":            {upgrade, "status 101", 2},
		"large header":   {"HTTP/1.1 200 x\r\nX: " + strings.Repeat("x", 300<<10) + "\r\n\r\n", "response headers of more than 256 KiB", 2},
		"many lines":     {"HTTP/1.1 200 x\r\n" + strings.Repeat("X: y\r\n", 1_500_000) + "\r\n", "response headers of more than 256 KiB", 2},
		"many 103":       {early, "response headers of more than 256 KiB", 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var conns atomic.Int64
				client := bubble(t, "http", promconfig.DefaultHTTPClientConfig, Limits{Public: 30}, func(conn net.Conn) {
					first := conns.Add(1) == 1
					respondTo(conn, func(n int) string {
						if first && n == 2 {
							return c.second
						}
						return response(200, emptyList)
					})
				})
				var errs []string
				for range 3 {
					errs = append(errs, errorText(fetchList(t.Context(), client, "/plans")))
					synctest.Wait()
				}
				simtest.AssertEqual(t, "errors", errs, []string{"", c.err, ""})
				simtest.AssertEqual(t, "connections", conns.Load(), c.conns)
			})
		})
	}
}

// TestHTTP2Header has header fields of more than 256 KiB, compressed to much less.
func TestHTTP2Header(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for n := range 10_000 {
			w.Header().Add("X", fmt.Sprint("the same text, which is long: ", n%2))
		}
		_, _ = io.WriteString(w, emptyList)
	}))
	server.EnableHTTP2, server.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	cfg := promconfig.DefaultHTTPClientConfig
	cfg.TLSConfig.InsecureSkipVerify = true
	transport, err := NewTransport(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	base, err := url.Parse(server.URL + "/api/v1")
	if err != nil {
		t.Fatal(err)
	}
	simtest.AssertEqual(t, "error", errorText(fetchList(t.Context(), clientOver(base, transport), "/plans")), "response headers of more than 256 KiB")
}

// TestSlowConnections has connections that take nine seconds at first: requests count when they are
// sent.
func TestSlowConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, mu := time.Now(), sync.Mutex{}
		var sent []time.Time
		client := bubble(t, "http", promconfig.DefaultHTTPClientConfig, Limits{Public: 60}, func(conn net.Conn) {
			respondTo(conn, func(int) string {
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, time.Now())
				return response(200, emptyList)
			})
		}, func() { time.Sleep(9*time.Second - time.Since(began)) })
		fetchFor(t, client, 2*time.Minute)
		for i, at := range sent {
			if i >= 60 && at.Sub(sent[i-60]) < time.Minute {
				t.Fatalf("got 61 requests in %v", at.Sub(sent[i-60]))
			}
		}
	})
}

// TestConnectionBound has more requests at a time than connections are allowed.
func TestConnectionBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int64
		client := bubble(t, "http", promconfig.DefaultHTTPClientConfig, Limits{Public: 10_000}, func(conn net.Conn) {
			open.Add(1)
			defer open.Add(-1)
			respondTo(conn, func(int) string { return "" })
		})
		done := make(chan error)
		for range 40 {
			go func() { done <- fetchList(t.Context(), client, "/plans") }()
		}
		time.Sleep(5 * time.Second)
		simtest.AssertEqual(t, "connections at a time", open.Load(), int64(maxConnections))
		for range 40 {
			simtest.AssertEqual(t, "error", errorText(<-done), "timed out before the response was complete")
		}
	})
}

// TestContent has responses that are JSON only after decoding.
func TestContent(t *testing.T) {
	pack := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, text)
		_ = w.Close()
		return b.String()
	}
	for name, c := range map[string]struct{ body, encoding, err string }{
		"gzip":            {pack(emptyList), "gzip", ""},
		"unnamed gzip":    {pack(emptyList), "", ""},
		"BOM":             {"\ufeff" + emptyList, "", ""},
		"BOM in gzip":     {pack("\ufeff" + emptyList), "gzip", ""},
		"only named gzip": {emptyList, "gzip", ""},
		"cut gzip":        {pack(emptyList)[:20], "gzip", "response: ends too early"},
		"array":           {"[]", "", "response: JSON, but not an object"},
		"broken":          {`{"data":[}`, "", "response: no valid JSON at byte 9"},
		"large":           {pack("{" + strings.Repeat(`"more":"`+strings.Repeat("x", 1<<19)+`",`, 65) + `"data":[]}`), "gzip", "response is too large"},
	} {
		withHarness(t, func(t *testing.T, h *harness) {
			header := http.Header{}
			if c.encoding != "" {
				header.Set("Content-Encoding", c.encoding)
			}
			h.Inject(simtest.Fault{Handler: simtest.Reply(200, header, c.body)})
			simtest.AssertEqual(t, name, errorText(fetchList(t.Context(), h.public(), "/plans")), c.err)
		})
	}
}
