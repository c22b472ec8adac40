package exporter

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

// addressFlags are the flags for listen addresses.
func addressFlags(addresses ...string) []string {
	var flags []string
	for _, a := range addresses {
		flags = append(flags, "--web.listen-address="+a)
	}
	return flags
}

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeCertificate(t, dir)
	const users = "basic_auth_users: {prometheus: $2a$04$WQSbgCXB3g5K/3T457BhO.PFPFmllUxEuKXkkVQiBcT3JViqbPYW.}\n"
	for _, tc := range []struct{ name, config string }{
		{"plain", ""},
		{"password", users},
		{"rate limit", "rate_limit: {interval: 1h, burst: 0}\n"},
		{"TLS", tlsServer},
		{"TLS 1.2 only", tlsServer + "  max_version: TLS12\n  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]\n"},
		{"client certificate wished for", tlsServer + "  client_auth_type: VerifyClientCertIfGiven\n  client_ca_file: server.pem\n"},
		{"client certificate", tlsServer + "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: server.pem\n"},
		{"client certificate, TLS 1.2", tlsServer + "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: server.pem\n  max_version: TLS12\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			args := []string{}
			if tc.config != "" {
				file := simtest.WriteFile(t, filepath.Join(dir, strings.ReplaceAll(tc.name, " ", "-")+".yml"), tc.config)
				args = append(args, "--web.config.file="+file)
			}
			p := start(t, Environment{}, append(args, "--demo")...)
			args = append(args, addressFlags(strings.TrimPrefix(p.url, "http://"))...)
			got := finish(t, Environment{}, append(args, "--healthcheck")...).outcome()
			simtest.AssertEqual(t, "outcome", got, outcome{0, "healthy\n", ""})
		})
	}
}

func TestHealthcheckAddresses(t *testing.T) {
	t.Parallel()
	needIPv6(t)
	p := launch(t, Environment{}, append(addressFlags(":0", "127.0.0.1:0"), "--demo")...)
	addresses := p.addresses(2)
	slices.Sort(addresses) // the order is random; that of all interfaces is the last one, in brackets
	_, port, err := net.SplitHostPort(addresses[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		addressFlags(":" + port), addressFlags("0.0.0.0:" + port), addressFlags("[::]:" + port), addressFlags("localhost:" + port),
		addressFlags(addresses...),
		append(addressFlags(addresses...), "--demo", "--web.telemetry-path=/m"), // the exporter's own arguments
	} {
		got := finish(t, Environment{}, append(args, "--healthcheck")...).outcome()
		simtest.AssertEqual(t, fmt.Sprint(args), got, outcome{0, "healthy\n", ""})
	}
}

// needIPv6 skips the test on a machine without IPv6.
func needIPv6(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("this machine has no IPv6")
	}
	_ = l.Close()
}

// TestHealthcheckVariables is not parallel, because the environment is the process'.
func TestHealthcheckVariables(t *testing.T) {
	needIPv6(t)
	users := simtest.WriteFile(t, filepath.Join(t.TempDir(), "web.yml"), "http_server_config: {headers: {X-Frame-Options: deny}}\n")
	t.Setenv("SERVER_RENTAL_WEB_LISTEN_ADDRESS", "127.0.0.1:0\n[::1]:0")
	t.Setenv("SERVER_RENTAL_WEB_CONFIG_FILE", users)
	p := launch(t, Environment{}, "--demo")
	addresses := p.addresses(2)
	response := simtest.Get(t, "http://"+addresses[0]+"/")
	simtest.AssertEqual(t, "header of the web configuration", response.Header.Get("X-Frame-Options"), "DENY")
	t.Setenv("SERVER_RENTAL_WEB_LISTEN_ADDRESS", strings.Join(addresses, "\n"))
	simtest.AssertEqual(t, "running", finish(t, Environment{}, "--healthcheck").outcome(), outcome{0, "healthy\n", ""})
	p.terminate()
	got := finish(t, Environment{}, "--healthcheck").outcome()
	if got.Code != 1 || strings.Count(got.Log, "connection refused") != 2 {
		t.Errorf("ended: got %+v, want an error for each address", got)
	}
}

func TestHealthcheckFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	writeCertificate(t, dir)
	secured := simtest.WriteFile(t, filepath.Join(dir, "secured.yml"), tlsServer)
	demanding := simtest.WriteFile(t, filepath.Join(dir, "demanding.yml"), tlsServer+"  client_auth_type: RequireAnyClientCert\n")
	broken := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(broken.Close)
	other := strings.TrimPrefix(broken.URL, "http://")
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"not the exporter", addressFlags(other), "unhealthy: " + other + ": status 404 Not Found\n"},
		{"TLS expected", append(addressFlags(other), "--web.config.file="+secured), "unhealthy: " + other + ": tls: first record does not look like a TLS handshake\n"},
		{"client certificate expected", append(addressFlags(other), "--web.config.file="+demanding), "unhealthy: " + other + ": tls: first record does not look like a TLS handshake\n"},
		{"vsock", addressFlags("vsock://:1"), "unhealthy: vsock://:1: dial tcp: address vsock://:1: too many colons in address\n"},
		{"systemd", []string{"--web.systemd-socket"}, "--healthcheck: conflicts with --web.systemd-socket: only systemd knows the addresses\n"},
		{
			"invalid", append(addressFlags("here"), "--nope", "--web.config.file="+missing),
			"--nope: unknown flag; try --help\n--web.config.file: no such file or directory\n--web.listen-address: must be HOST:PORT, with a port of at most 65535\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := finish(t, Environment{}, append(tc.args, "--healthcheck")...).outcome()
			simtest.AssertEqual(t, "outcome", got, outcome{1, "", tc.want})
		})
	}
}

// TestHealthcheckTimeout asks a server that accepts connections and never responds.
func TestHealthcheckTimeout(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := launch(t, Environment{}, append(addressFlags(l.Addr().String()), "--healthcheck")...)
	time.AfterFunc(100*time.Millisecond, p.stop)
	<-p.ended
	simtest.AssertEqual(t, "outcome", p.outcome(), outcome{1, "", "unhealthy: " + l.Addr().String() + ": context canceled\n"})
}
