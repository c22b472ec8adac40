package rentalapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/config"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestDescribe asserts that errors repeat nothing that the other side sent, and no
// address.
func TestDescribe(t *testing.T) {
	here, there := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: 4444}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 6), Port: 443}
	network := func(op string, cause error) error {
		return fmt.Errorf("transport: %w", &net.OpError{Op: op, Net: "tcp", Source: here, Addr: there, Err: cause})
	}
	refused := os.NewSyscallError("connect", syscall.ECONNREFUSED)
	lookup := func(e net.DNSError) error {
		e.Name, e.Server = "rental.example", "10.0.0.2:53"
		return network("dial", &e)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("secret: %w", errors.New("tls: handshake failure")), "tls: handshake failure"},
		{network("dial", refused), "dial: connection refused"},
		{network("proxyconnect", network("dial", refused)), "proxyconnect: connection refused"},
		{network("socks connect", errors.New("unknown error host unreachable")), "socks connect: failed"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: protocol version not supported")}, "remote error: tls: protocol version not supported"},
		{network("dial", &net.AddrError{Err: "no suitable address", Addr: "10.0.0.6"}), "dial: failed"},
		{lookup(net.DNSError{IsNotFound: true}), "lookup rental.example: no such host"},
		{lookup(net.DNSError{Err: "server misbehaving", IsTemporary: true}), "lookup rental.example: DNS server: SERVFAIL"},
		{lookup(net.DNSError{Err: "server misbehaving"}), "lookup rental.example: DNS server: REFUSED or a similar error"},
		{lookup(net.DNSError{Err: "read udp 10.0.0.5:4444->10.0.0.2:53: read: connection refused"}), "lookup rental.example: DNS server: connection refused"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{Cert: &x509.Certificate{}}}, "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
	} {
		simtest.AssertEqual(t, c.err.Error(), describe(c.err), c.want)
	}
	var waiting stage
	waiting.trace(nil).DNSStart(httptrace.DNSStartInfo{Host: "rental.example"})
	err := connectionError(t.Context(), lookup(net.DNSError{IsTimeout: true}), &waiting)
	simtest.AssertEqual(t, "timeout of the system", *err, Error{Reason: Timeout, Err: errors.New("lookup rental.example: timed out")})
}

// TestFiles asserts that a file which has other content, disappears, or becomes a pipe is named as the cause.
func TestFiles(t *testing.T) {
	file := simtest.WriteFile(t, filepath.Join(t.TempDir(), "secret-file"), "secret-")
	var header, authority config.HTTPClientConfig
	header.HTTPHeaders = &config.Headers{Headers: map[string]config.Header{"X-Tenant": {Files: []string{file}}}}
	authority.TLSConfig.CAFile = file
	clients := []*Client{clientTo(t, "https://127.0.0.1:1", header, new(net.Dialer).DialContext), clientTo(t, "https://127.0.0.1:1", authority, new(net.Dialer).DialContext)}
	assertErrors := func(want ...string) {
		t.Helper()
		for i, c := range clients {
			simtest.AssertEqual(t, "error", errorText(fetchList(t.Context(), c, "/plans")), want[i])
		}
	}
	assertErrors("dial: connection refused", "api.http.tls_config.ca_file: not a CA certificate")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	const noFile = "api.http: cannot read a file: no such file or directory"
	assertErrors(noFile, noFile)
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	assertErrors("api.http: http_headers: X-Tenant: files[0]: not a regular file", "api.http: tls_config.ca_file: not a regular file")
}

// TestProxy has a proxy that refuses connections in words that repeat a secret.
func TestProxy(t *testing.T) {
	proxy := httptest.NewServer(raw("HTTP/1.1 407 secret\r\n\r\n"))
	defer proxy.Close()
	address, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := clientTo(t, "https://rental.example", config.HTTPClientConfig{ProxyConfig: config.ProxyConfig{ProxyURL: config.URL{URL: address}}}, new(net.Dialer).DialContext)
	simtest.AssertEqual(t, "error", errorText(fetchList(t.Context(), client, "/plans")), "proxy: status 407 Proxy Authentication Required")
}

// TestFailures has every way in which a request can fail: its reason and text, how it
// is counted, and that no error contains a secret.
func TestFailures(t *testing.T) {
	const secret = simtest.MainToken
	const tooLarge = "response headers of more than 256 KiB"
	const timedOut = "response: timed out"
	const webPage = "response: a web page (api.base_url probably leads to a site and not to the API)"
	reply := func(status int, body string) http.HandlerFunc { return simtest.Reply(status, nil, body) }
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		reason  Reason
		code    string // label of the request counter
		text    string
	}{
		"401":                {reply(401, `{"error":{"code":"`+secret+`","message":"see `+secret+`"}}`), Unauthorized, "401", "status 401"},
		"404":                {reply(404, ``), Status, "404", "status 404"},
		"429":                {reply(429, ``), RateLimited, "429", "status 429"},
		"503":                {reply(503, ``), Unavailable, "503", "status 503"},
		"HTML":               {reply(200, `<html>`+secret), Decode, "200", webPage},
		"JSON as text/html":  {simtest.Reply(200, http.Header{"Content-Type": {"text/html"}}, `{"data":[1],"meta":{"count":3}}`), Incomplete, "200", "data: 1 items, but meta.count is 3: response is incomplete"},
		"no JSON":            {simtest.Reply(200, http.Header{"Content-Encoding": {secret}}, secret), Decode, "200", "response: no valid JSON at byte 0"},
		"empty":              {reply(200, " \n"), Decode, "200", "response: no valid JSON at byte 0"},
		"damaged gzip":       {reply(200, "\x1f\x8b"+secret), Decode, "200", "response: gzip: invalid header"},
		"endless":            {endless(200), TooLarge, "200", "response is too large"},
		"endless error":      {endless(500), Status, "500", "status 500"},
		"large header":       {raw("HTTP/1.1 200 x\r\nX: " + strings.Repeat("x", 300<<10) + "\r\n\r\n"), TooLarge, "error", tooLarge},
		"secret as status":   {raw("HTTP/1.1 " + secret + " x\r\n\r\n"), Connection, "error", "no valid HTTP response"},
		"secret as header":   {raw("HTTP/1.1 200 OK\r\nBearer " + secret + "\r\n\r\n"), Connection, "error", "no valid HTTP response"},
		"secret as trailer":  {raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\n" + secret + "\r\n\r\n"), Connection, "200", "no valid HTTP response"},
		"dropped":            {raw(""), Connection, "error", "connection closed before the response was complete"},
		"hanging":            {hang(""), Timeout, "error", timedOut},
		"hanging at the end": {hang(emptyList), Timeout, "200", timedOut},
		"dropped at the end": {raw("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + emptyList), Connection, "200", "connection closed before the response was complete"},
		"more at the end":    {reply(200, emptyList+emptyList), Decode, "200", "response: no valid JSON at byte 12"},
		"error beside data":  {reply(200, `{"data":[],"error":{"code":"`+secret+`"}}`), Incomplete, "200", "error: in a response of status 200: response is incomplete"},
		"redirect": {
			simtest.Reply(302, http.Header{"Location": {"/api/v1/elsewhere?" + secret}}, ""), Status, "302",
			"status 302 (redirects are not followed: set api.base_url to the API's final address)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(t *testing.T, h *harness) {
				h.Inject(simtest.Fault{Handler: c.handler})
				err := fetchList(t.Context(), h.main(), "/servers")
				text := errorText(err)
				if hint := ErrorOf(err).Hint; hint != "" {
					text += " (" + hint + ")"
				}
				simtest.AssertEqual(t, "reason and text", []string{string(ErrorOf(err).Reason), text}, []string{string(c.reason), c.text})
				got := h.gatherNonZero(t, "")
				delete(got, `backoff_until_timestamp_seconds{account="main"}`)
				want := map[string]float64{
					simtest.Series("errors_total", "path", "/servers", "reason", string(c.reason)): 1,
					simtest.Series("requests_total", "path", "/servers", "code", c.code):           1,
					simtest.Series("request_duration_seconds", "path", "/servers"):                 1,
				}
				if c.reason == Unauthorized {
					want[`token_rejected{account="main"}`] = 1
				}
				simtest.AssertEqual(t, "metrics", got, want)
				simtest.AssertEqual(t, "requests", len(h.Requests()), 1)
			})
		})
	}
}

// endless sends a text without an end.
func endless(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, err := io.WriteString(w, `{"data":["`)
		for err == nil {
			_, err = io.WriteString(w, strings.Repeat("x", 32<<10))
		}
	}
}

// raw sends bytes in place of an HTTP response.
func raw(bytes string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, bytes)
		_ = conn.Close()
	}
}

// begin sends the beginning of a response, if there is one.
func begin(w http.ResponseWriter, body string) {
	if body != "" {
		_, _ = io.WriteString(w, body)
		_ = http.NewResponseController(w).Flush()
	}
}

func hang(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		begin(w, body)
		<-r.Context().Done()
	}
}

// TestCancel asserts that a request which the exporter cuts off is no failure of the API.
func TestCancel(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Inject(simtest.Fault{Handler: hang("")})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := fetchList(ctx, h.main(), "/servers"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the error of the context", err)
		}
		simtest.AssertEqual(t, "metrics", h.gatherNonZero(t, ""), map[string]float64{})
	})
}
