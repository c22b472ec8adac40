package exporter

import (
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
)

// tlsServer is a web configuration with the files of writeCertificate that wants a certificate of
// the client.
const tlsServer = "tls_server_config: {cert_file: server.pem, key_file: server.key, client_auth_type: RequireAndVerifyClientCert, client_ca_file: server.pem}\n"

// writeCertificate writes a certificate for 127.0.0.1 and its key to a directory.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	simtest.WriteFile(t, filepath.Join(dir, "server.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	simtest.WriteFile(t, filepath.Join(dir, "server.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
}
