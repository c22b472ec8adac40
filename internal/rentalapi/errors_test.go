package rentalapi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/config"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestDescribe asserts that errors repeat nothing that the other side sent, and no
// address.
func TestDescribe(t *testing.T) {
	here, there := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: 4444}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 6), Port: 443}
	network := func(op string, cause error) error {
		return fmt.Errorf("transport: %w", &net.OpError{Op: op, Net: "tcp", Source: here, Addr: there, Err: cause})
	}
	refused := os.NewSyscallError("connect", syscall.ECONNREFUSED)
	lookup := func(e net.DNSError) error {
		e.Err, e.Name, e.Server = "read udp 10.0.0.5:4444->10.0.0.2:53: i/o timeout", "rental.example", "10.0.0.2:53"
		return network("dial", &e)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", errors.New(`malformed HTTP response "secret"`)), "no valid HTTP response"},
		{fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", io.ErrUnexpectedEOF), "unexpected EOF"},
		{fmt.Errorf("transport: %w", io.EOF), "EOF"},
		{errors.New("Proxy Authentication Required"), "proxy: Proxy Authentication Required"},
		{errors.New("Come back with secret"), "no valid HTTP response"},
		{fmt.Errorf("secret: %w", errors.New("tls: handshake failure")), "tls: handshake failure"},
		{network("dial", refused), "dial: connection refused"},
		{network("read", os.NewSyscallError("read", syscall.ECONNRESET)), "read: connection reset by peer"},
		{network("dial", os.NewSyscallError("socket", syscall.EMFILE)), "dial: too many open files"},
		{network("proxyconnect", network("dial", refused)), "proxyconnect: connection refused"},
		{network("socks connect", errors.New("unknown error host unreachable")), "socks connect: failed"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: protocol version not supported")}, "remote error: tls: protocol version not supported"},
		{network("dial", &net.AddrError{Err: "no suitable address", Addr: "10.0.0.6"}), "dial: failed"},
		{lookup(net.DNSError{IsNotFound: true}), "lookup rental.example: no such host"},
		{lookup(net.DNSError{}), "lookup rental.example: failed"},
		{&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"secret"}}, Host: "rental.example"}}, "tls: certificate for other names, not rental.example"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{Cert: &x509.Certificate{}}}, "tls: certificate signed by unknown authority: set api.http.tls_config.ca_file to its certificate"},
		{&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: "secret"}}, "tls: certificate expired, not yet valid, or not for this use"},
	} {
		simtest.AssertEqual(t, c.err.Error(), describe(c.err), c.want)
	}
	simtest.AssertEqual(t, "timeout of the system", connectionError(t.Context(), network("read", os.ErrDeadlineExceeded)).Reason, Timeout)
}

// TestFiles asserts that a file which disappears later, or has another content,
// is named as the cause.
func TestFiles(t *testing.T) {
	ca, err := os.ReadFile("../../config/testdata/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	file := simtest.WriteFile(t, filepath.Join(t.TempDir(), "secret-file"), string(ca))
	newFetch := func(c config.HTTPClientConfig) func() string {
		transport, err := config.NewRoundTripperFromConfig(c, "test")
		if err != nil {
			t.Fatal(err)
		}
		return func() string {
			return errorText(fetchList(t.Context(), clientOver(&url.URL{Scheme: "https", Host: "127.0.0.1:1"}, time.Minute, transport), "/plans"))
		}
	}
	header := newFetch(config.HTTPClientConfig{HTTPHeaders: &config.Headers{Headers: map[string]config.Header{"X-Tenant": {Files: []string{file}}}}})
	authority := newFetch(config.HTTPClientConfig{TLSConfig: config.TLSConfig{CAFile: file}})
	simtest.WriteFile(t, file, "secret-")
	simtest.AssertEqual(t, "wrong CA", authority(), "/plans: api.http.tls_config.ca_file: not a CA certificate")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for _, fetch := range []func() string{header, authority} {
		simtest.AssertEqual(t, "no file", fetch(), "/plans: api.http: cannot read a file: no such file or directory")
	}
}
