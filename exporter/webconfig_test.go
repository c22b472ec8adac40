package exporter

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"server_rental_exporter/internal/simulator/simtest"
)

// tlsServer is a web configuration with the files of writeCertificate.
const tlsServer = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n"

// writeCertificate writes a certificate for 127.0.0.1 and its key to a directory, and
// returns it.
func writeCertificate(t *testing.T, dir string) (tls.Certificate, *x509.Certificate) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	certificate := s.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	simtest.WriteFile(t, filepath.Join(dir, "server.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	simtest.WriteFile(t, filepath.Join(dir, "server.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	return certificate, s.Certificate()
}

func TestWebConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certificate, root := writeCertificate(t, dir)
	roots := x509.NewCertPool()
	roots.AddCert(root)
	config := simtest.WriteFile(t, filepath.Join(dir, "web.yml"), tlsServer+`  client_auth_type: RequireAnyClientCert
basic_auth_users: # open sesame
  prometheus: $2a$04$WQSbgCXB3g5K/3T457BhO.PFPFmllUxEuKXkkVQiBcT3JViqbPYW.
`)
	p := start(t, Environment{}, "--demo", "--web.config.file="+config)
	for _, tc := range []struct {
		name, password string
		certificates   []tls.Certificate
		want           int // status; 0 if there is no response
	}{
		{"all of it", "open sesame", []tls.Certificate{certificate}, 200},
		{"wrong password", "open", []tls.Certificate{certificate}, 401},
		{"no certificate", "open sesame", nil, 0},
	} {
		client := &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: tc.certificates},
		}}
		authorization := "Basic " + base64.StdEncoding.EncodeToString([]byte("prometheus:"+tc.password))
		got, err := simtest.Do(client, http.MethodGet, "https"+strings.TrimPrefix(p.url, "http")+"/metrics", "Authorization", authorization)
		if got.Status != tc.want {
			t.Errorf("%s: got status %d, error %v, want %d", tc.name, got.Status, err, tc.want)
		}
	}
	simtest.AssertEqual(t, "page logged", strings.Contains(p.log.String(), "page=https://127.0.0.1:"), true)
}

func TestPageURL(t *testing.T) {
	secured := simtest.WriteFile(t, filepath.Join(t.TempDir(), "secured.yml"), "tls_server_config: {cert_file: a, key_file: b}\n")
	for _, tc := range []struct {
		address, config string
		systemd         bool
		want            string
	}{
		{":10170", "", false, "http://localhost:10170/"},
		{"0.0.0.0:10170", "", false, "http://localhost:10170/"},
		{"[::1]:80", "", false, "http://[::1]:80/"},
		{"rental.internal:443", secured, false, "https://rental.internal:443/"},
		{":10170", "", true, ""},
	} {
		flags := &toolkit.FlagConfig{WebListenAddresses: &[]string{tc.address, "127.0.0.1:1"}, WebConfigFile: &tc.config, WebSystemdSocket: &tc.systemd}
		simtest.AssertEqual(t, tc.address, pageURL(flags), tc.want)
	}
}
