package exporter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"

	"server_rental_exporter/web"
)

// healthcheck returns an error unless a running exporter with the same web flags serves at
// all its listen addresses.
func (o *options) healthcheck(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // for all addresses together
	defer cancel()
	errs := slices.Concat(o.unknown, o.checkServer())
	if *o.web.WebSystemdSocket {
		errs = append(errs, errors.New("--healthcheck: conflicts with --web.systemd-socket: only systemd knows the addresses"))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, address := range *o.web.WebListenAddresses {
		if err := ask(ctx, scheme(o.web), address); err != nil {
			errs = append(errs, fmt.Errorf("unhealthy: %s: %w", address, err))
		}
	}
	return errors.Join(errs...)
}

// ask returns an error if the exporter does not serve at a listen address. Like
// net.Dial, it takes an address without a host, or with an unspecified one, as one of
// this machine.
func ask(ctx context.Context, scheme, address string) error {
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
	request := &http.Request{URL: &url.URL{Scheme: scheme, Host: "localhost", Path: web.HealthyPath}, Header: http.Header{}}
	response, err := transport.RoundTrip(request.WithContext(ctx))
	if err != nil {
		// A server that requests a client certificate works: it does so after its own part
		// of the handshake.
		if demanded && ctx.Err() == nil {
			return nil
		}
		return err
	}
	defer response.Body.Close()
	// Those for missing credentials and too many requests come from a server that works:
	// exporter-toolkit refuses such requests before it looks at the path.
	if !slices.Contains([]int{http.StatusOK, http.StatusUnauthorized, http.StatusTooManyRequests}, response.StatusCode) {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}

// readTLSConfig returns the TLS settings of a web configuration file. They are zero
// without a valid file.
func readTLSConfig(file string) toolkit.TLSConfig {
	var c toolkit.Config
	if content, err := os.ReadFile(file); err == nil {
		_ = yaml.Unmarshal(content, &c)
	}
	return c.TLSConfig
}

// scheme returns the scheme of the web server's URLs.
func scheme(flags *toolkit.FlagConfig) string {
	if settings := readTLSConfig(*flags.WebConfigFile); settings.IsEnabled() {
		return "https"
	}
	return "http"
}
