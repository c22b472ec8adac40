package rentalapi

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
)

// What comes from the other side is not repeated.
func TestTold(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", errors.New(`malformed HTTP response "secret"`)), "answer: not sound HTTP"},
		{fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", io.ErrUnexpectedEOF), "unexpected EOF"},
		{fmt.Errorf("transport: %w", io.EOF), "EOF"},
		{errors.New("Proxy Authentication Required"), "proxy: Proxy Authentication Required"},
		{errors.New("Come back with secret"), "answer: not sound HTTP"},
		{refused, "dial tcp: connection refused"},
		{fmt.Errorf("verify: %w", x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"secret"}}, Host: "rental.example"}), "tls: certificate for other names, not rental.example"},
		{fmt.Errorf("verify: %w", x509.UnknownAuthorityError{Cert: &x509.Certificate{}}), "tls: certificate signed by unknown authority"},
		{fmt.Errorf("verify: %w", x509.CertificateInvalidError{Reason: x509.Expired, Detail: "secret"}), "tls: certificate expired, not yet valid, or not for this use"},
	} {
		if got := told(c.err); got.Error() != c.want {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
}
