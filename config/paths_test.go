package config

import (
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestPaths has each path of the configuration file: it is relative to the file, and not to the
// working directory.
func TestPaths(t *testing.T) {
	dir := t.TempDir()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for name, content := range map[string]string{
		"cert.pem": certificate, "key.pem": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})), "text": secret,
	} {
		simtest.WriteFile(t, filepath.Join(dir, "sub", name), content)
	}
	t.Chdir(dir)
	absolute := filepath.Join(dir, "sub")
	for setting, c := range map[string]struct {
		want string
		got  func(c *Config) string
	}{
		"api: {http: {tls_config: {ca_file: cert.pem}}}":                                       {"sub/cert.pem", func(c *Config) string { return c.API.HTTP.TLSConfig.CAFile }},
		"api: {http: {tls_config: {cert_file: cert.pem, key_file: " + absolute + "/key.pem}}}": {"sub/cert.pem", func(c *Config) string { return c.API.HTTP.TLSConfig.CertFile }},
		"api: {http: {tls_config: {cert_file: " + absolute + "/cert.pem, key_file: key.pem}}}": {"sub/key.pem", func(c *Config) string { return c.API.HTTP.TLSConfig.KeyFile }},
		"api: {http: {http_headers: {X-Team: {files: [text]}}}}":                               {"sub/text", func(c *Config) string { return c.API.HTTP.HTTPHeaders.Headers["X-Team"].Files[0] }},
		"accounts: [{name: main, token_file: text}]":                                           {"sub/text", func(c *Config) string { return c.Accounts[0].TokenFile }},
		"account_files: [te*]": {"sub/text", func(c *Config) string { return c.Accounts[0].TokenFile }},
	} {
		simtest.WriteFile(t, "sub/rental.yml", setting)
		config := mustLoad(t, parseFlags(t, nil, "--api.base-url="+baseURL, "--config.file=sub/rental.yml"))
		simtest.AssertEqual(t, setting, c.got(config), c.want)
	}
}
