package exporter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"

	"server_rental_exporter/web"
)

// healthcheckTimeout bounds the check of all addresses together.
const healthcheckTimeout = 5 * time.Second

// healthcheck checks that a running exporter with the same web flags serves at all its
// listen addresses. It prints the outcome and returns the exit status.
func (o *options) healthcheck(ctx context.Context, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	err := errors.Join(append(o.unknown, o.checkServer()...)...)
	if err == nil {
		err = o.askAddresses(ctx)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	fmt.Fprintln(stdout, "healthy")
	return 0
}

// askAddresses returns an error for each address that does not serve.
func (o *options) askAddresses(ctx context.Context) error {
	if *o.web.WebSystemdSocket {
		return errors.New("--healthcheck: conflicts with --web.systemd-socket: only systemd knows the addresses")
	}
	settings, err := readTLSConfig(*o.web.WebConfigFile)
	if err != nil {
		return fmt.Errorf("--web.config.file: %w", err)
	}
	var errs []error
	for _, address := range *o.web.WebListenAddresses {
		if err := ask(ctx, address, settings); err != nil {
			errs = append(errs, fmt.Errorf("unhealthy: %s: %w", address, err))
		}
	}
	return errors.Join(errs...)
}

// ask returns an error if the exporter does not serve at a listen address. Like
// net.Dial, it takes an address without a host, or with an unspecified one, as one of
// this machine.
func ask(ctx context.Context, address string, settings toolkit.TLSConfig) error {
	if strings.HasPrefix(address, vsockScheme) {
		return errors.New("vsock addresses cannot be checked")
	}
	demanded := false
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		},
		// The certificate names the host that Prometheus knows, not this address. No secret
		// is sent.
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // see above
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				demanded = true
				return &tls.Certificate{}, nil
			},
		},
		DisableKeepAlives: true,
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, schemeOf(settings)+"://localhost"+web.HealthyPath, nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		// A server that requests a client certificate works: it does so after its own part
		// of the handshake.
		if demanded && ctx.Err() == nil {
			return nil
		}
		return err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	// Those for missing credentials and too many requests come from a server that works:
	// exporter-toolkit refuses such requests before it looks at the path.
	case http.StatusOK, http.StatusUnauthorized, http.StatusTooManyRequests:
		return nil
	}
	return fmt.Errorf("status %s", response.Status)
}

// readTLSConfig returns the TLS settings of a valid web configuration file. They are
// zero without a file.
func readTLSConfig(file string) (toolkit.TLSConfig, error) {
	if file == "" {
		return toolkit.TLSConfig{}, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return toolkit.TLSConfig{}, err
	}
	var c toolkit.Config
	err = yaml.Unmarshal(content, &c)
	return c.TLSConfig, err
}

// schemeOf returns the scheme of a server's URLs.
func schemeOf(settings toolkit.TLSConfig) string {
	if settings.IsEnabled() {
		return "https"
	}
	return "http"
}
