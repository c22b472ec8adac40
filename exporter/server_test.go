package exporter

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/web"
)

// tlsServer is a web configuration that wants a certificate of the client.
const tlsServer = "tls_server_config: {cert_file: cert.pem, key_file: key.pem, client_auth_type: RequireAndVerifyClientCert, client_ca_file: cert.pem}\n"

// TestHealthcheck has web configurations that refuse a request without a password, many requests,
// and clients without a certificate, such as the health check.
func TestHealthcheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	simtest.WriteCertificate(t, dir)
	for name, tc := range map[string]struct {
		config string
		status int // of a scrape
		cache  string
	}{
		"password":           {"basic_auth_users: {prometheus: $2a$04$WQSbgCXB3g5K/3T457BhO.PFPFmllUxEuKXkkVQiBcT3JViqbPYW.}\n", 401, "no-store"},
		"rate limit":         {"rate_limit: {interval: 1h, burst: 0}\n", 429, "no-store"},
		"client certificate": {tlsServer, 400, ""}, // the scrape uses no TLS: net/http responds itself
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := "--web.config.file=" + simtest.WriteFile(t, filepath.Join(dir, name+".yml"), tc.config)
			p := start(t, "--demo", file)
			got := p.Get("/metrics")
			simtest.AssertEqual(t, "status and Cache-Control", []any{got.Status, got.Header.Get("Cache-Control")}, []any{tc.status, tc.cache})
			assertHealthy(t, finish(t, "--healthcheck", file, "--web.listen-address="+strings.TrimPrefix(p.URL, "http://")))
		})
	}
}

// TestLimit has as many requests that hang as are served at a time: reloads, and then pages.
func TestLimit(t *testing.T) {
	t.Parallel()
	for path, others := range map[string][]string{web.ReloadPath: {"/metrics", web.HealthyPath}, "/": {web.HealthyPath}} {
		synctest.Test(t, func(t *testing.T) {
			end := make(chan struct{})
			h := limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == path {
					<-end
				}
			}))
			for range maxRequests {
				go h.ServeHTTP(nil, httptest.NewRequest(http.MethodPost, path, nil))
			}
			synctest.Wait()
			for _, other := range others {
				h.ServeHTTP(nil, httptest.NewRequest(http.MethodGet, other, nil)) // a deadlock if it waits
			}
			left, leave := context.WithCancel(t.Context())
			leave()
			h.ServeHTTP(nil, httptest.NewRequestWithContext(left, http.MethodGet, "/", nil)) // likewise
			close(end)
		})
	}
}

// TestRenewedCertificate has a key that no longer fits the certificate, as in the middle of a renewal,
// and a web configuration file that is wrong. The log says so.
func TestRenewedCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	simtest.WriteCertificate(t, dir)
	p := start(t, "--demo", "--web.config.file="+simtest.WriteFile(t, filepath.Join(dir, "web.yml"), "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n"))
	handshake := func() error {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(p.URL, "http://"), &tls.Config{InsecureSkipVerify: true})
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	if err := handshake(); err != nil {
		t.Fatal(err)
	}
	for _, fault := range []struct{ file, content, line string }{
		{"key.pem", "half a key\n", "failed to load X509KeyPair: tls: failed to find any PEM data in key input"},
		{"web.yml", "basic_auth_users: pa55word\n", "line 1: cannot unmarshal !!str"},
	} {
		simtest.WriteFile(t, filepath.Join(dir, fault.file), fault.content)
		if handshake() == nil {
			t.Errorf("%s: served with a fault", fault.file)
		}
		simtest.Eventually(t, fault.line, func() bool {
			return strings.Contains(p.log.String(), `level=error msg="cannot serve TLS" err="`+fault.line+`"`)
		})
	}
	if strings.Contains(p.log.String(), "pa55word") {
		t.Error("the log repeats a password")
	}
}

// TestLocalURL asserts that no name needs to be resolved where none is configured.
func TestLocalURL(t *testing.T) {
	none := ""
	for address, want := range map[string]string{
		":9100": "http://127.0.0.1:9100/", "0.0.0.0:9100": "http://127.0.0.1:9100/", "[::]:9100": "http://127.0.0.1:9100/",
		"10.0.0.1:9100": "http://10.0.0.1:9100/", "[fe80::1%eth0]:9100": "http://[fe80::1%25eth0]:9100/", "rental.example:9100": "http://rental.example:9100/",
	} {
		simtest.AssertEqual(t, address, localURL(&toolkit.FlagConfig{WebConfigFile: &none}, address), want)
	}
}

// TestHealthcheckAddresses has two addresses, and settings in the environment, as in a container.
// It is not parallel, because the environment is the process'.
func TestHealthcheckAddresses(t *testing.T) {
	headers := simtest.WriteFile(t, filepath.Join(t.TempDir(), "web.yml"), "http_server_config: {headers: {X-Frame-Options: deny}}\n")
	t.Setenv("SERVER_RENTAL_WEB_LISTEN_ADDRESS", ":0\n127.0.0.1:0")
	t.Setenv("SERVER_RENTAL_WEB_CONFIG_FILE", headers)
	p := launch(t, "--demo")
	addresses := p.addresses(2)
	slices.Sort(addresses) // the order is random; that of all interfaces is the last one, in brackets
	response := simtest.Get(t, "http://"+addresses[0]+"/")
	simtest.AssertEqual(t, "header of the web configuration", response.Header.Get("X-Frame-Options"), "deny")
	_, port, err := net.SplitHostPort(addresses[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, listen := range []string{"0.0.0.0:" + port, strings.Join(addresses, "\n")} {
		t.Setenv("SERVER_RENTAL_WEB_LISTEN_ADDRESS", listen)
		assertHealthy(t, finish(t, "--healthcheck"))
	}
	p.terminate()
	got := finish(t, "--healthcheck")
	if got.code != 1 || strings.Count(got.log.String(), "connection refused") != 2 {
		t.Errorf("ended: got status %d, log:\n%s\nwant 1 and an error for each address", got.code, got.log)
	}
}

func assertHealthy(t *testing.T, p *program) {
	t.Helper()
	simtest.AssertEqual(t, "status, output and log", []any{p.code, p.out.String(), p.log.String()}, []any{0, "healthy\n", ""})
}
