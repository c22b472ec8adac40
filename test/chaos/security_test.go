package campaign_test

import (
	"bufio"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
)

// secure is a provider behind TLS, and what it takes to trust it.
type secure struct {
	*simulator.Simulator
	server *httptest.Server
	ca     string // file
}

func newSecure(t *testing.T) *secure {
	t.Helper()
	sim := simulator.New(simulator.Options{})
	sim.Change(func(w *simulator.World) { w.Accounts[mainToken] = simulator.ExampleAccount("main", time.Now()) })
	server := httptest.NewUnstartedServer(sim)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are meant
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &secure{sim, server, write(t, filepath.Join(t.TempDir(), "ca.pem"), string(ca))}
}

func (s *secure) configuration(t *testing.T, http string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "token"), mainToken)
	return "--config.file=" + write(t, filepath.Join(dir, "rental.yml"),
		fmt.Sprintf("api:\n  base_url: %s/api/v1\n  timeout: 5s\n  http: %s\naccounts: [{name: main, token_file: token}]\n", s.server.URL, http))
}

// recorder is a listener that keeps every byte it is sent.
type recorder struct {
	net.Listener
	mu   sync.Mutex
	seen strings.Builder
}

type recorded struct {
	net.Conn
	r *recorder
}

func (r *recorder) Accept() (net.Conn, error) {
	c, err := r.Listener.Accept()
	return recorded{c, r}, err
}

func (c recorded) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.seen.Write(p[:n])
	return n, err
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen.String()
}

// newProxy is an HTTP proxy that keeps what it is sent.
func newProxy(t *testing.T) (*recorder, string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{Listener: l}
	server := &http.Server{ReadHeaderTimeout: soon, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodConnect {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		to, err := (&net.Dialer{}).DialContext(q.Context(), "tcp", q.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusOK)
		from, begun, err := http.NewResponseController(w).Hijack()
		if err != nil {
			_ = to.Close()
			return
		}
		go func() {
			_, _ = io.Copy(to, begun) // the client may have sent something already
			_ = to.Close()
		}()
		_, _ = io.Copy(from, to)
		_ = from.Close()
	})}
	go func() { _ = server.Serve(r) }()
	t.Cleanup(func() { _ = server.Close() })
	return r, "http://" + l.Addr().String()
}

// TestTokenThroughProxy: a proxy is told the provider's name and port, and sees no token.
func TestTokenThroughProxy(t *testing.T) {
	t.Parallel()
	s := newSecure(t)
	proxy, address := newProxy(t)
	e := ready(t, nil, s.configuration(t, fmt.Sprintf("{proxy_url: %q, tls_config: {ca_file: %s}}", address, s.ca)))
	if n := failing(e.scrape()); n > 0 {
		t.Errorf("%d collectors fail; log:\n%s", n, e.log)
	}
	if got := proxy.String(); strings.Contains(got, mainToken) || strings.Contains(got, "Bearer") {
		t.Error("the proxy saw the token")
	} else if !strings.Contains(got, "CONNECT "+strings.TrimPrefix(s.server.URL, "https://")) {
		t.Errorf("the proxy was not used: %.300q", got)
	}
}

// TestProxyOfEnvironment: a proxy in the environment is used only where the
// configuration says so, and for a plain http base URL, which is a loopback
// address, not even then.
func TestProxyOfEnvironment(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"{}", "{proxy_from_environment: true}"} {
		r := newRental(t)
		proxy, address := newProxy(t)
		config := r.configuration(t, t.TempDir(), both(), "")
		raw, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		write(t, config, strings.Replace(string(raw), "api: {", "api: {http: "+setting+", ", 1))
		e := ready(t, []string{"HTTP_PROXY=" + address, "HTTPS_PROXY=" + address, "ALL_PROXY=" + address}, "--config.file="+config)
		if n := failing(e.scrape()); n > 0 {
			t.Errorf("%s: %d collectors fail; log:\n%s", setting, n, e.log)
		}
		if got := proxy.String(); got != "" {
			t.Errorf("%s: the proxy was sent %.200q", setting, got)
		}
	}
}

// TestManInTheMiddle: whoever has no certificate that the exporter trusts, for the
// name it asked for, gets no request and no token.
func TestManInTheMiddle(t *testing.T) {
	t.Parallel()
	s := newSecure(t)
	for name, tc := range map[string]struct{ http, cause string }{
		"unknown authority": {"{}", "certificate signed by unknown authority"},
		"another name":      {fmt.Sprintf("{tls_config: {ca_file: %s, server_name: rental.invalid}}", s.ca), "not rental.invalid"},
		"old TLS":           {fmt.Sprintf("{tls_config: {ca_file: %s, max_version: TLS10, min_version: TLS10}}", s.ca), "protocol version"},
	} {
		e := ready(t, nil, s.configuration(t, tc.http))
		if got, want := failing(e.scrape()), 10; got != want {
			t.Errorf("%s: %d collectors fail, want %d", name, got, want)
		}
		if !strings.Contains(e.log.String(), tc.cause) {
			t.Errorf("%s: the log lacks %q:\n%s", name, tc.cause, e.log)
		}
		noSecrets(t, "the log", e.log.String())
	}
	if got := s.Requests(); len(got) > 0 {
		t.Errorf("requests: got %v, want none", got)
	}
}

// TestRedirectOverTLS: a redirect is not followed, neither to another host, nor to
// plain http, nor to the same host.
func TestRedirectOverTLS(t *testing.T) {
	t.Parallel()
	s, other := newSecure(t), newRental(t)
	for _, to := range []string{other.base + "/account", "/api/v1/elsewhere", s.server.URL + "/elsewhere"} {
		remove := s.Inject(simulator.Fault{Kind: simulator.Redirect, Header: http.Header{"Location": {to}}})
		e := ready(t, nil, s.configuration(t, fmt.Sprintf("{follow_redirects: true, tls_config: {ca_file: %s}}", s.ca)))
		remove()
		if got, want := failing(e.scrape()), 10; got != want {
			t.Errorf("%s: %d collectors fail, want %d", to, got, want)
		}
	}
	for _, q := range s.Requests() {
		if strings.Contains(q.Path, "elsewhere") {
			t.Errorf("followed: %s", q.Path)
		}
	}
	if got := other.Requests(); len(got) > 0 {
		t.Errorf("followed: %v", got)
	}
}

func noSecrets(t *testing.T, where, text string) {
	t.Helper()
	for _, secret := range []string{"secret-", "@customer.example", "bc1q", "bitcoin:", "tron:", "ssh-ed25519 AAAA"} {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%s tells %q: %.200q", where, secret, text[max(0, i-80):])
		}
	}
}

// TestTokenFilePermissions: a token file that every user of the machine can use is
// warned of at the start and at a reload; one for the group is as Kubernetes mounts it.
func TestTokenFilePermissions(t *testing.T) {
	t.Parallel()
	r, dir := newRental(t), t.TempDir()
	tokens := map[string]string{"main": mainToken, "lab": labToken}
	config := r.configuration(t, dir, tokens, hourly)
	warning := func(mode string) string {
		return fmt.Sprintf(`level=warn ts= msg="token file can be read by others" account=main mode=%s`, mode)
	}
	e := start(t, nil, "--config.file="+config)
	reloads := 0
	for _, tc := range []struct {
		mode os.FileMode
		want []string
	}{
		{0o600, nil},
		{0o400, nil},
		{0o440, nil},
		{0o640, nil},
		{0o644, []string{warning("0644")}},
		{0o604, []string{warning("0604")}},
		{0o602, []string{warning("0602")}},
		{0o666, []string{warning("0666")}},
	} {
		if err := os.Chmod(filepath.Join(dir, "main.token"), tc.mode); err != nil {
			t.Fatal(err)
		}
		before := len(e.log.String())
		e.signal(1)
		reloads++
		eventually(t, "a reload", func() bool { return strings.Count(e.log.String(), "configuration reloaded") == reloads })
		var got []string
		for line := range strings.Lines(e.log.String()[before:]) {
			if strings.Contains(line, "token file") {
				got = append(got, timeless(strings.TrimSuffix(line, "\n")))
			}
		}
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("mode %04o:\ngot  %q\nwant %q", tc.mode, got, tc.want)
		}
	}
	// At the start, and through a link.
	if err := os.Rename(filepath.Join(dir, "main.token"), filepath.Join(dir, "target")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("target", filepath.Join(dir, "main.token")); err != nil {
		t.Fatal(err)
	}
	e = start(t, nil, "--config.file="+config)
	if got := strings.Count(e.log.String(), `msg="token file can be read by others" account=main mode=0666`); got != 1 {
		t.Errorf("at the start: got %d warnings, want 1:\n%s", got, e.log)
	}
	noSecrets(t, "the log", e.log.String())
}

// timeless takes the time out of a line of the log.
func timeless(line string) string { return logTime.ReplaceAllString(line, "ts=") }

var logTime = regexp.MustCompile(`ts=\S+`)

// TestHostileTexts: text of the provider and of the configuration stays text, in
// metrics, on the page and in the log.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const script = `<script>alert("1")</script>`
	texts := []string{
		script, "a\"} 1\nserver_rental_forged{x=\"y", `back\slash`, "\x1b[2Jcleared", "\u202eturned", "a\x00b", "# EOF\n", "{}", "' OR 1=1 --", "", strings.Repeat("x", 2048),
	}
	r := newRental(t)
	want := values{}
	r.Change(func(w *simulator.World) {
		for i, text := range texts {
			w.Plans[i]["name"] = text
			want[series("server_rental_plan_in_stock", "plan", w.Plans[i]["id"].(string))] = 0
		}
		w.Plans[len(texts)]["name"] = strings.Repeat("y", 2049) // longer than a label may be
		w.Accounts[mainToken].Servers[0]["hostname"] = script
	})
	r.Inject(simulator.Fault{Path: "/os", Status: 500, Body: []byte(`{"error":{"code":"` + strings.ReplaceAll(script, `"`, `\"`) + `"}}`)})
	dir := t.TempDir()
	write(t, filepath.Join(dir, "token"), mainToken)
	config := write(t, filepath.Join(dir, "rental.yml"),
		fmt.Sprintf("api: {base_url: %q}\naccounts: [{name: %q, token_file: token}]\n", r.base, script))
	e := ready(t, nil, "--log.level=debug", "--web.enable-service-discovery", "--config.file="+config)

	names := map[string]string{}
	page := e.scrape()
	for s := range page.with("server_rental_plan_info") {
		names[label(s, "plan")] = label(s, "name")
	}
	wantNames := map[string]string{}
	r.Read(func(w *simulator.World) {
		for i, p := range w.Plans {
			if i != len(texts) {
				wantNames[p["id"].(string)] = p["name"].(string)
			}
		}
	})
	if !reflect.DeepEqual(names, wantNames) {
		t.Errorf("names of plans:\ngot  %q\nwant %q", names, wantNames)
	}
	for s := range page {
		if strings.HasPrefix(s, "server_rental_forged") {
			t.Errorf("forged: %s", s)
		}
	}
	if got := page[series("server_rental_exporter_collector_invalid_items", "collector", "plans", "account", "")]; got != 1 {
		t.Errorf("invalid plans: got %v, want 1", got)
	}
	status, landing := e.get("/")
	if status != http.StatusOK || strings.Contains(landing, "<script") || !strings.Contains(landing, "&lt;script&gt;") {
		t.Errorf("the landing page does not escape: status %d\n%s", status, landing)
	}
	_, targets := e.get("/sd/servers")
	if !json.Valid([]byte(targets)) || strings.Contains(targets, "<script") {
		t.Errorf("/sd/servers: %s", targets)
	}
	if log := e.log.String(); strings.Contains(log, "\x1b") || strings.Contains(log, "alert(") && !strings.Contains(log, `account="<script>`) {
		t.Errorf("the log holds what the provider said:\n%s", log)
	}
}

// TestHostileProvider: a provider that sends more than belongs into an answer
// costs bounded memory.
func TestHostileProvider(t *testing.T) {
	t.Parallel()
	var kind struct {
		sync.Mutex
		name string
	}
	bomb := func(w http.ResponseWriter, begin, again string) {
		w.Header().Set("Content-Encoding", "gzip")
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		_, err := io.WriteString(z, begin)
		for chunk := strings.Repeat(again, 1+(1<<16)/len(again)); err == nil; {
			_, err = io.WriteString(z, chunk)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		kind.Lock()
		name := kind.name
		kind.Unlock()
		switch name {
		case "a text without end":
			bomb(w, `{"data":"`, "a")
		case "items without end":
			bomb(w, `{"data":[`, `{"id":"x"},`)
		case "keys without end":
			bomb(w, `{`, `"a":1,`)
		case "arrays in arrays":
			bomb(w, `{"data":`, "[")
		case "an error without end":
			w.WriteHeader(http.StatusInternalServerError)
			bomb(w, `{"error":{"code":"`, "a")
		case "headers without end":
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			for i := 0; err == nil; i++ {
				_, err = fmt.Fprintf(conn, "X-%d: %s\r\n", i, strings.Repeat("a", 1<<12))
			}
		}
	}))
	t.Cleanup(server.Close)
	r := &rental{base: server.URL + "/api/v1"}
	for _, name := range []string{
		"a text without end", "items without end", "keys without end", "arrays in arrays", "an error without end", "headers without end",
	} {
		kind.Lock()
		kind.name = name
		kind.Unlock()
		e := ready(t, []string{"GOMAXPROCS=1"}, "--config.file="+r.configuration(t, t.TempDir(), both(), ""))
		page := e.scrape()
		if got, want := failing(page), 16; got != want {
			t.Errorf("%s: %d collectors fail, want %d", name, got, want)
		}
		peak := e.memory("VmHWM") >> 20
		t.Logf("%s: resident memory at most %d MiB", name, peak)
		if peak > 400 {
			t.Errorf("%s: resident memory of %d MiB", name, peak)
		}
		e.signal(9)
		<-e.ended
	}
}

// raw sends bytes and returns the first line of the answer.
func raw(t *testing.T, address, request string) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(conn, request) }() // an answer may come before its end
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(line)
}

// TestRequestLimits: nobody makes the exporter hold more than it should, and there
// is no page that it does not mean to serve.
func TestRequestLimits(t *testing.T) {
	t.Parallel()
	e := ready(t, nil, "--demo", "--web.enable-lifecycle")
	for name, tc := range map[string]struct{ request, want string }{
		"a long header":      {"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", "HTTP/1.1 431 Request Header Fields Too Large"},
		"a long path":        {"GET /" + strings.Repeat("a", 64<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 431 Request Header Fields Too Large"},
		"a body with GET":    {"GET /-/healthy HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n", "HTTP/1.1 200 OK"},
		"a body with POST":   {"POST /-/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n", "HTTP/1.1 200 OK"},
		"two lengths":        {"POST /-/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		"TRACE":              {"TRACE /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405 Method Not Allowed"},
		"CONNECT":            {"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", "HTTP/1.1 404 Not Found"},
		"another host":       {"GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", "HTTP/1.1 200 OK"},
		"a path upwards":     {"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 307 Temporary Redirect"},
		"pprof":              {"GET /debug/pprof/ HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 Not Found"},
		"pprof of the heap":  {"GET /debug/pprof/heap HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 Not Found"},
		"expvar":             {"GET /debug/vars HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 Not Found"},
		"the configuration":  {"GET /config HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 Not Found"},
		"reload with GET":    {"GET /-/reload HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405 Method Not Allowed"},
		"discovery":          {"GET /sd/servers HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403 Forbidden"},
		"many metric names":  {"GET /metrics?" + strings.Repeat("name[]=a&", 1000) + " HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK"},
		"not even a request": {"\x16\x03\x01\x02\x00\r\n\r\n", "HTTP/1.1 400 Bad Request"},
	} {
		if got := raw(t, e.address, tc.request); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// TestSlowHeader: who does not finish a request is cut off.
func TestSlowHeader(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for 10 seconds")
	}
	e := ready(t, nil, "--demo")
	began := time.Now()
	got := raw(t, e.address, "GET /metrics HTTP/1.1\r\nHost: x\r\nX: ")
	if took := time.Since(began); took < 5*time.Second || took > 30*time.Second {
		t.Errorf("cut off after %v with %q, want about 10 s", took, got)
	}
}

// TestHeadersOfPages: every page tells the browser to make nothing more of it.
func TestHeadersOfPages(t *testing.T) {
	t.Parallel()
	e := ready(t, nil, "--demo")
	for _, path := range []string{"/", "/metrics", "/-/healthy", "/-/ready", "/-/reload", "/sd/servers", "/nowhere"} {
		u := url.URL{Scheme: "http", Host: e.address, Path: path}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Close = true
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		got := []string{resp.Header.Get("X-Content-Type-Options"), resp.Header.Get("X-Frame-Options"), resp.Header.Get("Referrer-Policy"), resp.Header.Get("Server")}
		if want := []string{"nosniff", "DENY", "no-referrer", ""}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
		if csp := resp.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; ") || strings.Contains(csp, "script-src") {
			t.Errorf("%s: Content-Security-Policy: got %q", path, csp)
		}
	}
}

// TestServedOverTLS: with a certificate the exporter speaks TLS 1.2 or newer only.
func TestServedOverTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	donor := httptest.NewTLSServer(nil)
	defer donor.Close()
	key, err := keyPEM(donor.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "cert.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: donor.Certificate().Raw})))
	write(t, filepath.Join(dir, "key.pem"), string(key))
	web := write(t, filepath.Join(dir, "web.yml"), "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n")
	e := start(t, nil, "--demo", "--web.config.file="+web)
	for version, want := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version}}
		conn, err := d.DialContext(t.Context(), "tcp", e.address)
		if err == nil {
			_ = conn.Close()
		}
		if got := err == nil; got != want {
			t.Errorf("%s: got %v (%v), want %v", tls.VersionName(version), got, err, want)
		}
	}
}

func keyPEM(key any) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}
