package exporter

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// TestHealthcheckAddresses has two addresses, and settings in the environment, as in a container.
// It is not parallel, because the environment is the process'.
func TestHealthcheckAddresses(t *testing.T) {
	headers := simtest.WriteFile(t, filepath.Join(t.TempDir(), "web.yml"), "http_server_config: {headers: {X-Frame-Options: deny}}\n")
	t.Setenv("SERVER_RENTAL_WEB_LISTEN_ADDRESS", ":0\n127.0.0.1:0")
	t.Setenv("SERVER_RENTAL_WEB_CONFIG_FILE", headers)
	p := launch(t, Environment{}, "--demo")
	addresses := p.addresses(2)
	slices.Sort(addresses) // the order is random; that of all interfaces is the last one, in brackets
	response := simtest.Get(t, "http://"+addresses[0]+"/")
	simtest.AssertEqual(t, "header of the web configuration", response.Header.Get("X-Frame-Options"), "DENY")
	_, port, err := net.SplitHostPort(addresses[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, listen := range []string{":" + port, "0.0.0.0:" + port, "[::]:" + port, "localhost:" + port, strings.Join(addresses, "\n")} {
		t.Setenv("SERVER_RENTAL_WEB_LISTEN_ADDRESS", listen)
		simtest.AssertEqual(t, listen, finish(t, Environment{}, "--healthcheck", "--demo").outcome(), outcome{0, "healthy\n", ""})
	}
	p.terminate()
	got := finish(t, Environment{}, "--healthcheck").outcome()
	if got.Code != 1 || strings.Count(got.Log, "connection refused") != 2 {
		t.Errorf("ended: got %+v, want an error for each address", got)
	}
}

func TestHealthcheckFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeCertificate(t, dir)
	secured := simtest.WriteFile(t, filepath.Join(dir, "secured.yml"), tlsServer)
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
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := finish(t, Environment{}, append(tc.args, "--healthcheck")...).outcome()
			simtest.AssertEqual(t, "outcome", got, outcome{1, "", tc.want})
		})
	}
}
