package exporter

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"server_rental_exporter/internal/simulator/simtest"
)

// authority signs certificates for one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue returns a certificate and its key in PEM, self-signed without a signer.
func issue(t *testing.T, by *authority, common string, use x509.ExtKeyUsage) (issued *authority, certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: common},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{use},
		BasicConstraintsValid: true, IsCA: by == nil,
	}
	if by == nil {
		by = &authority{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func TestWebConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, caPEM, _ := issue(t, nil, "authority", x509.ExtKeyUsageAny)
	_, serverPEM, serverKey := issue(t, ca, "exporter", x509.ExtKeyUsageServerAuth)
	_, clientPEM, clientKey := issue(t, ca, "prometheus", x509.ExtKeyUsageClientAuth)
	simtest.WriteFile(t, filepath.Join(dir, "ca.pem"), string(caPEM))
	simtest.WriteFile(t, filepath.Join(dir, "server.pem"), string(serverPEM))
	simtest.WriteFile(t, filepath.Join(dir, "server.key"), string(serverKey))
	config := simtest.WriteFile(t, filepath.Join(dir, "web.yml"), `tls_server_config:
  cert_file: server.pem
  key_file: server.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.pem
basic_auth_users: # open sesame
  prometheus: $2a$04$WQSbgCXB3g5K/3T457BhO.PFPFmllUxEuKXkkVQiBcT3JViqbPYW.
`)
	certificate, err := tls.X509KeyPair(clientPEM, clientKey)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(caPEM)

	p := start(t, Environment{}, "--demo", "--web.config.file="+config)
	address := strings.TrimPrefix(p.url, "http://")
	for _, tc := range []struct {
		name, scheme, password string
		certificates           []tls.Certificate
		maxVersion             uint16 // of TLS
		want                   int    // status; 0 if there is no response
	}{
		{"all of it", "https", "open sesame", []tls.Certificate{certificate}, 0, 200},
		{"wrong password", "https", "open", []tls.Certificate{certificate}, 0, 401},
		{"no certificate", "https", "open sesame", nil, 0, 0},
		{"no TLS", "http", "open sesame", nil, 0, 400},
		{"TLS 1.2", "https", "open sesame", []tls.Certificate{certificate}, tls.VersionTLS12, 200},
		{"TLS 1.1", "https", "open sesame", []tls.Certificate{certificate}, tls.VersionTLS11, 0},
	} {
		client := &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: tc.certificates, MinVersion: tls.VersionTLS10, MaxVersion: tc.maxVersion},
		}}
		authorization := "Basic " + base64.StdEncoding.EncodeToString([]byte("prometheus:"+tc.password))
		for _, path := range []string{"/metrics", "/", "/-/healthy"} {
			got, err := simtest.Do(client, http.MethodGet, tc.scheme+"://"+address+path, "Authorization", authorization)
			if got.Status != tc.want {
				t.Errorf("%s: %s: got status %d, error %v, want %d", tc.name, path, got.Status, err, tc.want)
			}
		}
	}
	if want := "page=https://127.0.0.1:"; !strings.Contains(p.log.String(), want) {
		t.Errorf("the log lacks %s:\n%s", want, p.log)
	}
}

func TestPageURL(t *testing.T) {
	dir := t.TempDir()
	secured := simtest.WriteFile(t, filepath.Join(dir, "secured.yml"), "tls_server_config: {cert_file: a, key_file: b}\n")
	plain := simtest.WriteFile(t, filepath.Join(dir, "plain.yml"), "basic_auth_users: {prometheus: hash}\n")
	for _, tc := range []struct {
		address, config string
		systemd         bool
		want            string
	}{
		{":10170", "", false, "http://localhost:10170/"},
		{"0.0.0.0:10170", "", false, "http://localhost:10170/"},
		{"[::]:10170", "", false, "http://localhost:10170/"},
		{"127.0.0.1:80", "", false, "http://127.0.0.1:80/"},
		{"[::1]:80", "", false, "http://[::1]:80/"},
		{"rental.internal:443", secured, false, "https://rental.internal:443/"},
		{"rental.internal:80", plain, false, "http://rental.internal:80/"},
		{"vsock://:9100", "", false, ""},
		{":10170", "", true, ""},
	} {
		flags := &toolkit.FlagConfig{WebListenAddresses: &[]string{tc.address, "127.0.0.1:1"}, WebConfigFile: &tc.config, WebSystemdSocket: &tc.systemd}
		if got := pageURL(flags); got != tc.want {
			t.Errorf("%s, web configuration %q: got %q, want %q", tc.address, tc.config, got, tc.want)
		}
	}
}
