package rentalapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
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

	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
)

// bubble returns a client of a server in memory. A dial calls dialing.
func bubble(t *testing.T, limits Limits, serve func(net.Conn), dialing ...func()) *Client {
	t.Helper()
	transport, err := NewTransport(promconfig.DefaultHTTPClientConfig, func(context.Context, string, string) (net.Conn, error) {
		for _, f := range dialing {
			f()
		}
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			serve(server)
		}()
		return client, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	base := &url.URL{Scheme: "http", Host: "rental.example", Path: "/api/v1"}
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

// closed is the response of a server that closes a connection instead.
const closed = "HTTP"

// respondTo serves HTTP/1.1, whose responses are those of respond.
func respondTo(conn net.Conn, respond func() string) {
	r := bufio.NewReader(conn)
	for {
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		text := respond()
		if _, err := io.WriteString(conn, text); err != nil || text == closed {
			return
		}
	}
}

// success is a response with an empty list.
const success = "HTTP/1.1 200 x\r\nContent-Length: 11\r\n\r\n" + emptyList

// TestConnections has servers that would keep a connection, or close one that net/http would use
// again: each request is made once, on a connection of its own.
func TestConnections(t *testing.T) {
	for name, answer := range map[string]string{"kept": success, "closed": closed} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var conns, requests atomic.Int64
				client := bubble(t, Limits{Public: 30}, func(conn net.Conn) {
					conns.Add(1)
					respondTo(conn, func() string {
						requests.Add(1)
						return answer
					})
				})
				fetchFor(t, client, time.Minute-time.Millisecond)
				if n := requests.Load(); n < 20 || n > 30 || conns.Load() != n {
					t.Errorf("got %d requests in a minute on %d connections, want 20 to 30, each on its own", n, conns.Load())
				}
			})
		})
	}
}

// TestHTTP2 has a server that prefers HTTP/2, in which one request may become many.
func TestHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"data":[{"id":%q}]}`, r.Proto)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	cfg := promconfig.DefaultHTTPClientConfig
	cfg.TLSConfig.InsecureSkipVerify = true
	page, err := GetList[testItem, struct{}](t.Context(), clientTo(t, server.URL+"/api/v1", cfg, nil), "/plans", nil, 3)
	if err != nil {
		t.Fatal(err)
	}
	simtest.AssertEqual(t, "protocol", page.Items[0].ID, "HTTP/1.1")
}

// TestAddresses has settings of proxies and names that must mean what they mean to Prometheus' own
// client: where a connection goes.
func TestAddresses(t *testing.T) {
	const proxy = "127.0.0.1:3128"
	for _, c := range []struct{ noProxy, base, want string }{
		{"", "http://api.internal.test:8443", proxy},
		{"api.internal.test:8443", "http://api.internal.test:8443", "api.internal.test:8443"},
		{"api.internal.test:80", "http://api.internal.test:8443", proxy},
		{"internal.test", "https://api.internal.test", "api.internal.test:443"},
		{"2001:db8:1::2", "http://[2001:db8:1::2]:8443", "[2001:db8:1::2]:8443"},
		{"2001:db8::/32", "http://[2001:db8:1::2]:8443", "[2001:db8:1::2]:8443"},
		{"*", "http://bücher.test:8080", "xn--bcher-kva.test:8080"},
	} {
		cfg := promconfig.DefaultHTTPClientConfig
		cfg.ProxyURL, cfg.NoProxy = promconfig.URL{URL: &url.URL{Scheme: "http", Host: proxy}}, c.noProxy
		var got string
		client := clientTo(t, c.base+"/api/v1", cfg, func(_ context.Context, _, address string) (net.Conn, error) {
			got = address
			return nil, io.EOF
		})
		_ = fetchList(t.Context(), client, "/plans")
		simtest.AssertEqual(t, c.base+" without a proxy for "+c.noProxy, got, c.want)
	}
}

// TestSlowConnections has connections that take nine seconds at first: requests count when they are
// sent.
func TestSlowConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, mu := time.Now(), sync.Mutex{}
		var sent []time.Time
		client := bubble(t, Limits{Public: 60}, func(conn net.Conn) {
			respondTo(conn, func() string {
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, time.Now())
				return success
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
		client := bubble(t, Limits{Public: 10_000}, func(conn net.Conn) {
			open.Add(1)
			defer open.Add(-1)
			respondTo(conn, func() string { return "" })
		})
		done := make(chan error)
		for range 40 {
			go func() { done <- fetchList(t.Context(), client, "/plans") }()
		}
		time.Sleep(5 * time.Second)
		simtest.AssertEqual(t, "connections at a time", open.Load(), int64(maxRequests))
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
		"large":           {pack("{" + strings.Repeat(`"more":"`+strings.Repeat("x", 1<<19)+`",`, 33) + `"data":[]}`), "gzip", "response is too large"},
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
