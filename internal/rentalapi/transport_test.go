package rentalapi

import (
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
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

const emptyList = `{"data":[]}`

// fetchFor fetches public data again and again, four at a time.
func (h *harness) fetchFor(t *testing.T, duration time.Duration) {
	t.Helper()
	c := h.public()
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

// TestConnections has servers that would keep a connection, or close one that net/http would use
// again: each request is made once, on a connection of its own.
func TestConnections(t *testing.T) {
	for name, fault := range map[string]simtest.Fault{"kept": {}, "closed": {Kind: simtest.Drop}} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, h *harness) {
				var conns atomic.Int64
				h.dialing = func() { conns.Add(1) }
				h.Inject(fault)
				h.fetchFor(t, time.Minute-time.Millisecond)
				if n := len(h.Requests()); n < 50 || n > 59 || int(conns.Load()) != n {
					t.Errorf("got %d requests in a minute on %d connections, want 50 to 59, each on its own", n, conns.Load())
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
	withHarness(t, func(t *testing.T, h *harness) {
		began := time.Now()
		h.dialing = func() { time.Sleep(9*time.Second - time.Since(began)) }
		h.fetchFor(t, 2*time.Minute)
		sent := h.Requests()
		for i := 59; i < len(sent); i++ {
			if took := sent[i].Time.Sub(sent[i-59].Time); took < time.Minute {
				t.Fatalf("got 60 requests in %v", took)
			}
		}
	})
}

// TestConnectionBound has more requests at a time than connections are allowed.
func TestConnectionBound(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Inject(simtest.Fault{Kind: simtest.Hang})
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				simtest.AssertEqual(t, "error", errorText(fetchList(t.Context(), h.client.Client("", func() (string, error) { return fmt.Sprint("secret-", i), nil }), "/servers")), "timed out before the response was complete")
			})
		}
		time.Sleep(5 * time.Second)
		simtest.AssertEqual(t, "requests at a time", len(h.Requests()), maxRequests)
		all.Wait()
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
		"cut gzip":        {pack(emptyList)[:20], "gzip", "response: unexpected EOF"},
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
