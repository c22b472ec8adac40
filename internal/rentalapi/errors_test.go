package rentalapi

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestSanitizeError asserts that errors repeat nothing that the other side sent.
func TestSanitizeError(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", errors.New(`malformed HTTP response "secret"`)), "answer: not valid HTTP"},
		{fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", io.ErrUnexpectedEOF), "unexpected EOF"},
		{fmt.Errorf("transport: %w", io.EOF), "EOF"},
		{errors.New("Proxy Authentication Required"), "proxy: Proxy Authentication Required"},
		{errors.New("Come back with secret"), "answer: not valid HTTP"},
		{fmt.Errorf("secret: %w", errors.New("net/http: server response headers exceeded 9 bytes; aborted")), "net/http: server response headers exceeded 9 bytes; aborted"},
		{fmt.Errorf("secret: %w", errors.New("tls: handshake failure")), "tls: handshake failure"},
		{refused, "dial tcp: connection refused"},
		{fmt.Errorf("verify: %w", x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"secret"}}, Host: "rental.example"}), "tls: certificate for other names, not rental.example"},
		{fmt.Errorf("verify: %w", x509.UnknownAuthorityError{Cert: &x509.Certificate{}}), "tls: certificate signed by unknown authority"},
		{fmt.Errorf("verify: %w", x509.CertificateInvalidError{Reason: x509.Expired, Detail: "secret"}), "tls: certificate expired, not yet valid, or not for this use"},
	} {
		simtest.AssertEqual(t, c.err.Error(), sanitizeError(c.err).Error(), c.want)
	}
}
