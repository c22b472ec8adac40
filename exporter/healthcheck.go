package exporter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/web"
)

// healthcheck returns an error unless a running exporter with the same web flags serves at
// all its listen addresses.
func (o *options) healthcheck(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // for all addresses together
	defer cancel()
	errs := o.checkServer()
	if *o.web.WebSystemdSocket {
		errs = append(errs, errors.New("--healthcheck: conflicts with --web.systemd-socket: only systemd knows the addresses"))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	// The certificate names the host that Prometheus knows. No secret is sent.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} //nolint:gosec // see above
	for _, address := range *o.web.WebListenAddresses {
		if err := ask(ctx, transport, localURL(o.web, address)+web.HealthyPath[1:]); err != nil {
			errs = append(errs, fmt.Errorf("unhealthy: %s: %w", address, err))
		}
	}
	return errors.Join(errs...)
}

// ask returns an error if nothing serves at a URL. A server that refuses the client because it
// has no certificate or password works, and so does one that limits requests.
func ask(ctx context.Context, transport *http.Transport, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if opErr, ok := errors.AsType[*net.OpError](err); ok && opErr.Op == "remote error" { // of TLS
		return nil
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if !slices.Contains([]int{http.StatusOK, http.StatusUnauthorized, http.StatusTooManyRequests}, response.StatusCode) {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}
