package chaos_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

func TestMain(m *testing.M) { simtest.Main(m) }

// skipShort skips a test that takes more than a second.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow")
	}
}

// hourly is YAML that makes every collector fetch once during a test.
func hourly() string {
	var b strings.Builder
	b.WriteString("collectors:\n")
	for _, r := range collector.Resources() {
		fmt.Fprintf(&b, "  %s: {interval: 1h}\n", r.Name)
	}
	return b.String()
}

// failing counts the collectors that do not work, including those not tried yet.
func failing(page simtest.Exposition) int {
	n := len(page.WithPrefix("server_rental_exporter_collector_interval_seconds{"))
	for _, success := range page.CollectorSuccess() {
		n -= int(success)
	}
	return n
}

// startReady runs the exporter with environment variables until it has fetched
// everything once.
func startReady(t testing.TB, env []string, args ...string) *simtest.Process {
	t.Helper()
	cmd := exec.Command(simtest.Binary(t), append([]string{"--web.listen-address=127.0.0.1:0"}, args...)...)
	cmd.Env = append([]string{}, env...)
	p := simtest.StartCommand(t, cmd)
	p.WaitServing()
	p.WaitReady()
	return p
}

// memory returns a value of /proc/PID/status in MiB.
func memory(p *simtest.Process, t testing.TB, name string) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	_, after, _ := strings.Cut(string(raw), name+":")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

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
	p := api.startExporter(t, fmt.Sprintf("{proxy_url: %q, proxy_connect_header: {X-Tenant: [seven]}, tls_config: {ca_file: %s}}", address, api.caFile))
	simtest.AssertEqual(t, "failing collectors", failing(p.Scrape()), 0)
	simtest.AssertNoSecrets(t, "proxy", proxy.String())
	if got := proxy.String(); !strings.Contains(got, "CONNECT "+strings.TrimPrefix(api.url, "https://")) || !strings.Contains(got, "X-Tenant: seven") || strings.Contains(got, "Bearer") {
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
		simtest.AssertEqual(t, name+": failing collectors", failing(p.Scrape()), len(collector.Resources()))
		if !strings.Contains(p.Log.String(), c.cause) {
			t.Errorf("%s: the log lacks %q", name, c.cause)
		}
		simtest.AssertNoSecrets(t, "log", p.Log.String())
	}
	simtest.AssertEqual(t, "requests", len(api.Requests()), 0)
}
