package rentalapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

const emptyList = `{"data":[]}`

// TestConnections has servers that would keep a connection, or close one that net/http would use again, and
// connections that take nine seconds at first: each request is made once, on a connection of its own, and
// counts when it is sent.
func TestConnections(t *testing.T) {
	for name, c := range map[string]struct {
		fault simtest.Fault
		slow  time.Duration
	}{
		"kept": {}, "closed": {fault: simtest.Fault{Kind: simtest.Drop}}, "slow": {slow: 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, h *harness) {
				var conns atomic.Int64
				began := time.Now()
				h.dialing = func() {
					conns.Add(1)
					time.Sleep(c.slow - time.Since(began))
				}
				h.Inject(c.fault)
				client := h.public()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute-time.Millisecond)
				defer cancel()
				var all sync.WaitGroup
				for range 4 {
					all.Go(func() {
						for ctx.Err() == nil {
							_ = fetchList(ctx, client, "/plans")
						}
					})
				}
				all.Wait()
				sent := h.Requests()
				if n := len(sent); n < 100 || int(conns.Load()) != n {
					t.Errorf("got %d requests on %d connections, want 100 or more, each on its own", n, conns.Load())
				}
				for i := 59; i < len(sent); i++ {
					if took := sent[i].Time.Sub(sent[i-59].Time); took < time.Minute {
						t.Fatalf("got 60 requests in %v", took)
					}
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
	page, err := GetList[testItem, struct{}](t.Context(), clientTo(t, server.URL+"/api/v1", cfg, new(net.Dialer).DialContext), "/plans", nil, 3)
	if err != nil {
		t.Fatal(err)
	}
	simtest.AssertEqual(t, "protocol", page.Items[0].ID, "HTTP/1.1")
}

// TestPermits has more requests at a time to an endpoint than it has permits: they are held until a
// response was read, and those that hang leave room for others.
func TestPermits(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.reply(200, `{}`)
		enough, reading := make(chan struct{}), atomic.Int64{}
		fetch := func(c *Client, path string) error {
			_, err := c.Get(t.Context(), path, nil, func(*json.Decoder) error {
				reading.Add(1)
				<-enough
				return nil
			})
			return err
		}
		var all sync.WaitGroup
		for i := range 10 {
			c := h.account("", fmt.Sprint("secret-", i))
			for _, path := range []string{"/servers", "/topups"} {
				all.Go(func() { simtest.AssertEqual(t, path, fetch(c, path), error(nil)) })
			}
		}
		synctest.Wait()
		simtest.AssertEqual(t, "responses that are read at a time, and requests", []int{int(reading.Load()), len(h.Requests())}, []int{2 * maxRequests, 2 * maxRequests})
		close(enough)
		all.Wait()

		defer h.Inject(simtest.Fault{Token: "secret-hangs", Kind: simtest.Hang})()
		const timedOut = "response: timed out"
		hanging := []*Client{h.account("", "secret-hangs"), h.account("", "secret-hangs"), h.account("", "secret-hangs")}
		for _, wait := range []time.Duration{10 * time.Second, 0} { // at first, and when they are known to hang
			for _, c := range hanging {
				all.Go(func() { simtest.AssertEqual(t, "account that hangs", errorText(fetch(c, "/servers")), timedOut) })
			}
			synctest.Wait()
			began := time.Now()
			simtest.AssertEqual(t, "another account", fetch(h.main(), "/servers"), error(nil))
			simtest.AssertEqual(t, "its delay", time.Since(began), wait)
			all.Wait()
		}
	})
}

// TestLargeResponses has large responses that stop halfway: others wait for them, small and public ones do
// not.
func TestLargeResponses(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		large := strings.Repeat(`{"zz":"`+strings.Repeat("x", 1000)+`"},`, 500)
		h.Inject(simtest.Fault{Path: "/servers", Handler: func(w http.ResponseWriter, r *http.Request) {
			begin(w, `{"data":[`+large)
			<-r.Context().Done()
		}})
		h.Inject(simtest.Fault{Path: "/topups", Handler: simtest.Reply(200, nil, emptyList)})
		h.reply(200, `{"data":[{"id":"a"}], "zz":[`+large+`{}]}`)
		first := make(chan error)
		fetch := func(c *Client, path string) error {
			_, err := GetList[testItem, struct{}](t.Context(), c, path, nil, 1000)
			return err
		}
		go func() { first <- fetch(h.main(), "/servers") }()
		synctest.Wait()
		lab := h.account("lab", simtest.LabToken)
		began := time.Now()
		simtest.AssertEqual(t, "a small one", fetch(lab, "/topups"), error(nil))
		simtest.AssertEqual(t, "a large public one", fetch(h.public(), "/plans"), error(nil))
		simtest.AssertEqual(t, "their delay", time.Since(began), time.Duration(0))
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		simtest.AssertEqual(t, "another large one", errorText(fetchList(ctx, lab, "/ssh-keys")), "timed out while other large responses were read")
		simtest.AssertEqual(t, "the one that stops", errorText(<-first), "response: timed out")
		simtest.AssertEqual(t, "after it", fetch(lab, "/ssh-keys"), error(nil))
	})
}

// TestStuckFile has a token file that blocks: what waits for it fails, says so, and is bounded until the
// file can be read.
func TestStuckFile(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.reply(200, emptyList)
		readable := make(chan struct{})
		stuck := h.newClient("main", func() (string, error) {
			<-readable
			return simtest.MainToken, nil
		})
		for n := range maxFiles + 1 {
			began := time.Now()
			simtest.AssertEqual(t, "error", errorText(fetchList(t.Context(), stuck, "/servers")), "token file: reading a file: timed out")
			want := 11 * time.Second
			if n == maxFiles {
				want = 0
			}
			simtest.AssertEqual(t, "duration", time.Since(began), want)
		}
		simtest.AssertEqual(t, "another account", fetchList(t.Context(), h.account("lab", simtest.LabToken), "/servers"), error(nil))
		close(readable)
		synctest.Wait()
		simtest.AssertEqual(t, "a file that can be read again", fetchList(t.Context(), stuck, "/servers"), error(nil))
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
		"blanks":          {strings.Repeat(" \n", 1000) + emptyList, "", ""},
		"BOM in gzip":     {pack("\ufeff" + emptyList), "gzip", ""},
		"only named gzip": {emptyList, "gzip", ""},
		"cut gzip":        {pack(emptyList)[:20], "gzip", "response: unexpected EOF"},
		"large":           {pack("{" + strings.Repeat(`"more":"`+strings.Repeat("x", 1<<19)+`",`, 33) + `"data":[]}`), "gzip", "response is too large"},
	} {
		withHarness(t, func(t *testing.T, h *harness) {
			h.reply(200, c.body, "Content-Encoding", c.encoding)
			simtest.AssertEqual(t, name, errorText(fetchList(t.Context(), h.public(), "/plans")), c.err)
		})
	}
}

// TestTimeouts has connections that never come, or get no byte: where they go, and what is said to be waited
// for.
func TestTimeouts(t *testing.T) {
	silent := func(ctx context.Context, network, address string) (net.Conn, error) {
		httptrace.ContextClientTrace(ctx).ConnectDone(network, address, nil) // as a net.Dialer does
		conn, other := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, other) }()
		return conn, nil
	}
	never := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done() // net/http alone would go on connecting
		return nil, ctx.Err()
	}
	for _, c := range []struct {
		base, proxy, noProxy string
		dial                 func(context.Context, string, string) (net.Conn, error)
		address, want        string
	}{
		{"http://rental.example", "", "", never, "rental.example:80", "dial: timed out"},
		{"http://rental.example", "", "", silent, "rental.example:80", "response: timed out"},
		{"https://bücher.example", "", "", silent, "xn--bcher-kva.example:443", "TLS handshake: timed out"},
		{"https://rental.example", "proxy.example", "other.example", silent, "proxy.example:80", "proxyconnect: timed out"},
		{"https://rental.example", "proxy.example", ".example", silent, "rental.example:443", "TLS handshake: timed out"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var cfg promconfig.HTTPClientConfig
			if c.proxy != "" {
				cfg.ProxyURL.URL, cfg.NoProxy = &url.URL{Scheme: "http", Host: c.proxy}, c.noProxy
			}
			var dialed atomic.Value // net/http dials in a goroutine of its own
			began := time.Now()
			client := clientTo(t, c.base, cfg, func(ctx context.Context, network, address string) (net.Conn, error) {
				dialed.Store(address)
				return c.dial(ctx, network, address)
			})
			err := fetchList(t.Context(), client, "/plans")
			simtest.AssertEqual(t, "address and error", []any{dialed.Load(), errorText(err)}, []any{c.address, c.want})
			simtest.AssertEqual(t, "duration", time.Since(began), time.Minute)
		})
	}
}
