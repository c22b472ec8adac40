package chaos_test

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
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// tlsAPI is a simulated provider that serves TLS.
type tlsAPI struct {
	*simtest.API
	url, caFile string
}

func startTLS(t *testing.T) *tlsAPI {
	t.Helper()
	api := simtest.Start(t, simulator.Options{})
	server := httptest.NewUnstartedServer(api)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes are expected
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &tlsAPI{api, server.URL, simtest.WriteFile(t, filepath.Join(t.TempDir(), "ca.pem"), string(ca))}
}

// startExporter runs the exporter with these api.http settings.
func (a *tlsAPI) startExporter(t *testing.T, http string) *simtest.Process {
	t.Helper()
	dir := t.TempDir()
	simtest.WriteFile(t, filepath.Join(dir, "token"), simtest.MainToken)
	config := simtest.WriteFile(t, filepath.Join(dir, "rental.yml"),
		fmt.Sprintf("api: {base_url: %s/api/v1, timeout: 5s, http: %s}\naccounts: [{name: main, token_file: token}]\n", a.url, http))
	return startReady(t, nil, "--config.file="+config)
}

// newProxy starts an HTTP proxy that records what it receives.
func newProxy(t *testing.T) (received *simtest.Buffer, address string) {
	t.Helper()
	received = &simtest.Buffer{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.Write(received) // a request that was read can be written
		to, err := net.Dial("tcp", r.Host)
		if r.Method != http.MethodConnect || err != nil {
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
			_, _ = io.Copy(to, io.TeeReader(begun, received)) // the client may have sent something already
			_ = to.Close()
		}()
		_, _ = io.Copy(from, to)
		_ = from.Close()
	}))
	t.Cleanup(server.Close)
	return received, server.URL
}

// TestTokenThroughProxy: a proxy receives the provider's name and port, and no token.
func TestTokenThroughProxy(t *testing.T) {
	t.Parallel()
	api := startTLS(t)
	proxy, address := newProxy(t)
	p := api.startExporter(t, fmt.Sprintf("{proxy_url: %q, tls_config: {ca_file: %s}}", address, api.caFile))
	simtest.AssertEqual(t, "failing collectors", failing(p.Scrape()), 0)
	simtest.AssertNoSecrets(t, "proxy", proxy.String())
	if got := proxy.String(); !strings.Contains(got, "CONNECT "+strings.TrimPrefix(api.url, "https://")) || strings.Contains(got, "Bearer") {
		t.Errorf("the proxy received %.300q", got)
	}
}

// TestProxyOfEnvironment: a proxy in the environment is used only if the configuration
// says so, and never for a plain HTTP base URL, which is a loopback address.
func TestProxyOfEnvironment(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{"{}", "{proxy_from_environment: true}"} {
		api := simtest.Start(t, simulator.Options{})
		proxy, address := newProxy(t)
		config := api.ConfigFile(t.TempDir(), simtest.Tokens(), "")
		raw, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		simtest.WriteFile(t, config, strings.Replace(string(raw), "api: {", "api: {http: "+settings+", ", 1))
		p := startReady(t, []string{"HTTP_PROXY=" + address, "HTTPS_PROXY=" + address, "ALL_PROXY=" + address}, "--config.file="+config)
		simtest.AssertEqual(t, settings+": failing collectors", failing(p.Scrape()), 0)
		simtest.AssertEqual(t, settings+": received by the proxy", proxy.String(), "")
	}
}

// TestManInTheMiddle: a server without a trusted certificate for the requested name
// receives no request and no token.
func TestManInTheMiddle(t *testing.T) {
	t.Parallel()
	api := startTLS(t)
	for name, c := range map[string]struct{ http, cause string }{
		"unknown authority": {"{}", "certificate signed by unknown authority"},
		"another name":      {fmt.Sprintf("{tls_config: {ca_file: %s, server_name: rental.invalid}}", api.caFile), "not rental.invalid"},
		"old TLS":           {fmt.Sprintf("{tls_config: {ca_file: %s, max_version: TLS10, min_version: TLS10}}", api.caFile), "protocol version"},
	} {
		p := api.startExporter(t, c.http)
		simtest.AssertEqual(t, name+": failing collectors", failing(p.Scrape()), collectorCount(1))
		if !strings.Contains(p.Log.String(), c.cause) {
			t.Errorf("%s: the log lacks %q", name, c.cause)
		}
		simtest.AssertNoSecrets(t, "log", p.Log.String())
	}
	simtest.AssertEqual(t, "requests", len(api.Requests()), 0)
}

// TestRedirectOverTLS: no redirect to another host is followed, even if the configuration
// allows it.
func TestRedirectOverTLS(t *testing.T) {
	t.Parallel()
	api, other := startTLS(t), simtest.Start(t, simulator.Options{})
	api.Inject(simtest.Fault{Kind: simtest.Redirect, Header: http.Header{"Location": {other.URL.String() + "/account"}}})
	p := api.startExporter(t, fmt.Sprintf("{follow_redirects: true, tls_config: {ca_file: %s}}", api.caFile))
	simtest.AssertEqual(t, "failing collectors", failing(p.Scrape()), collectorCount(1))
	simtest.AssertEqual(t, "requests to another host", len(other.Requests()), 0)
}

// TestTokenFilePermissions: a token file that every user can access is reported at
// start and at a reload; access of the group is usual in Kubernetes.
func TestTokenFilePermissions(t *testing.T) {
	t.Parallel()
	api, dir := simtest.Start(t, simulator.Options{}), t.TempDir()
	config := api.ConfigFile(dir, simtest.Tokens(), hourly())
	token := filepath.Join(dir, "main.token")
	warnings := func(p *simtest.Process, mode os.FileMode) int {
		return strings.Count(p.Log.String(), fmt.Sprintf(`msg="token file can be read by others" account=main mode=%04o`, mode))
	}
	p := simtest.StartProcess(t, "--config.file="+config)
	for i, c := range []struct {
		mode os.FileMode
		want int // warnings
	}{{0o600, 0}, {0o400, 0}, {0o440, 0}, {0o640, 0}, {0o644, 1}, {0o604, 1}, {0o602, 1}, {0o666, 1}} {
		if err := os.Chmod(token, c.mode); err != nil {
			t.Fatal(err)
		}
		p.Signal(syscall.SIGHUP)
		p.Eventually("reload", func() bool { return strings.Count(p.Log.String(), "configuration reloaded") == i+1 })
		simtest.AssertEqual(t, fmt.Sprintf("warnings of mode %04o", c.mode), warnings(p, c.mode), c.want)
	}
	simtest.AssertEqual(t, "all warnings", strings.Count(p.Log.String(), "token file can be read"), 4)
	// At start, and through a link.
	if err := os.Rename(token, filepath.Join(dir, "target")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("target", token); err != nil {
		t.Fatal(err)
	}
	p = simtest.StartProcess(t, "--config.file="+config)
	simtest.AssertEqual(t, "warnings at start", warnings(p, 0o666), 1)
	simtest.AssertNoSecrets(t, "log", p.Log.String())
}

// TestHostileTexts: text of the provider and of the configuration stays text, in
// metrics, pages and log.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	const script = `<script>alert("1")</script>`
	texts := []string{
		script, "a\"} 1\nserver_rental_forged{x=\"y", `back\slash`, "\x1b[2Jcleared", "\u202eturned", "a\x00b", "# EOF\n", "{}", "' OR 1=1 --", "", strings.Repeat("x", 2048),
		strings.Repeat("y", 2049), // longer than a label may be
	}
	api := simtest.Start(t, simulator.Options{})
	want := map[string]string{} // names by plan
	api.Change(func(w *simulator.World) {
		for i, plan := range w.Plans {
			if i < len(texts) {
				plan["name"] = texts[i]
			}
			want[simulator.Text(plan, "id")] = simulator.Text(plan, "name")
		}
		want[simulator.Text(w.Plans[len(texts)-1], "id")] = ""
		w.Accounts[simtest.MainToken].Servers[0]["hostname"] = script
	})
	api.Inject(simtest.Fault{Path: "/os", Status: 500, Body: []byte(`{"error":{"code":"` + strings.ReplaceAll(script, `"`, `\"`) + `"}}`)})
	dir := t.TempDir()
	simtest.WriteFile(t, filepath.Join(dir, "token"), simtest.MainToken)
	config := api.ConfigFile(dir, nil, fmt.Sprintf("accounts: [{name: %q, token_file: token}]\n", script))
	p := startReady(t, nil, "--log.level=debug", "--web.enable-service-discovery", "--config.file="+config)

	page, got := p.Scrape(), map[string]string{}
	for series := range page.WithPrefix("server_rental_plan_info{") {
		got[simtest.Label(series, "plan")] = simtest.Label(series, "name")
	}
	simtest.AssertEqual(t, "names", got, want)
	simtest.AssertEqual(t, "forged metrics", len(page.WithPrefix("server_rental_forged")), 0)
	simtest.AssertEqual(t, "invalid plans", page.Values[invalidItems("plans", "")], 1.0)
	landing, targets := p.Get("/"), p.Get("/sd/servers?port=9100")
	if landing.Status != http.StatusOK || strings.Contains(landing.Body, "<script") || !strings.Contains(landing.Body, "&lt;script&gt;") {
		t.Errorf("the landing page does not escape: status %d\n%s", landing.Status, landing.Body)
	}
	if !json.Valid([]byte(targets.Body)) || strings.Contains(targets.Body, "<script") {
		t.Errorf("/sd/servers: %s", targets.Body)
	}
	if log := p.Log.String(); strings.Contains(log, "\x1b") || strings.Contains(log, "alert(") && !strings.Contains(log, `account="<script>`) {
		t.Error("the log contains text of the provider")
	}
}

// writeEndless writes gzip that begins with a text and repeats another until the
// client is gone.
func writeEndless(w http.ResponseWriter, begin, repeated string) {
	w.Header().Set("Content-Encoding", "gzip")
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
	_, err := io.WriteString(z, begin)
	for chunk := strings.Repeat(repeated, 1+(1<<16)/len(repeated)); err == nil; {
		_, err = io.WriteString(z, chunk)
	}
}

func writeEndlessHeader(w http.ResponseWriter) {
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

// TestHostileProvider: every collector fails if the provider sends responses without
// an end. The long run also checks that this takes bounded memory.
func TestHostileProvider(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for name, respond := range map[string]http.HandlerFunc{
		"items":  func(w http.ResponseWriter, _ *http.Request) { writeEndless(w, `{"data":[`, `{"id":"x"},`) },
		"arrays": func(w http.ResponseWriter, _ *http.Request) { writeEndless(w, `{"data":`, "[") },
		"header": func(w http.ResponseWriter, _ *http.Request) { writeEndlessHeader(w) },
	} {
		api := simtest.Start(t, simulator.Options{})
		accounts, tokens := 1, map[string]string{"main": simtest.MainToken}
		if long() {
			accounts, tokens = 2, simtest.Tokens()
		}
		api.Override("", respond)
		p := startReady(t, []string{"GOMAXPROCS=1"}, "--config.file="+api.ConfigFile(t.TempDir(), tokens, ""))
		simtest.AssertEqual(t, name+": failing collectors", failing(p.Scrape()), collectorCount(accounts))
		peak := memory(p, t, "VmHWM")
		t.Logf("%s: resident memory at most %d MiB", name, peak)
		if long() && peak > 200 {
			t.Errorf("%s: resident memory of %d MiB", name, peak)
		}
		kill(p)
	}
}

// sendRaw sends bytes and returns the first line of the response.
func sendRaw(t *testing.T, url, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(conn, request) }() // a response may come before its end
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(line)
}

// TestRequestLimits: no request makes the exporter hold more than it should, and only
// documented paths are served.
func TestRequestLimits(t *testing.T) {
	t.Parallel()
	p := startReady(t, nil, "--demo", "--web.enable-lifecycle")
	for name, tc := range map[string]struct{ request, want string }{
		"a long header":      {"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", "HTTP/1.1 431 Request Header Fields Too Large"},
		"a long path":        {"GET /" + strings.Repeat("a", 64<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 431 Request Header Fields Too Large"},
		"a body with POST":   {"POST /-/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n", "HTTP/1.1 200 OK"},
		"two lengths":        {"POST /-/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		"TRACE":              {"TRACE /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405 Method Not Allowed"},
		"pprof":              {"GET /debug/pprof/ HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 Not Found"},
		"expvar":             {"GET /debug/vars HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 Not Found"},
		"many metric names":  {"GET /metrics?" + strings.Repeat("name[]=a&", 1000) + " HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK"},
		"not even a request": {"\x16\x03\x01\x02\x00\r\n\r\n", "HTTP/1.1 400 Bad Request"},
	} {
		if got := sendRaw(t, p.URL, tc.request); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// TestServedOverTLS: with a certificate the exporter serves TLS 1.2 or newer only.
func TestServedOverTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	donor := httptest.NewTLSServer(nil)
	defer donor.Close()
	key, err := x509.MarshalPKCS8PrivateKey(donor.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: donor.Certificate().Raw}, "key.pem": {Type: "PRIVATE KEY", Bytes: key},
	} {
		simtest.WriteFile(t, filepath.Join(dir, file), string(pem.EncodeToMemory(block)))
	}
	web := simtest.WriteFile(t, filepath.Join(dir, "web.yml"), "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n")
	p := simtest.StartProcess(t, "--demo", "--web.config.file="+web)
	for version, want := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		config := &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version}
		conn, err := tls.Dial("tcp", strings.TrimPrefix(p.URL, "http://"), config)
		if err == nil {
			_ = conn.Close()
		}
		simtest.AssertEqual(t, tls.VersionName(version), err == nil, want)
	}
}
