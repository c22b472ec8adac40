package rentalapi

import (
	"fmt"
	"net/http"

	"github.com/prometheus/common/config"
)

// NewTransport returns a transport of which one call is exactly one request at
// the provider, which the limiters rely on. net/http repeats a request silently
// when a kept connection turns out to be dead, and HTTP/2 when a stream is
// refused; so connections are used once and HTTP/1.1 is spoken. At a request
// every few seconds a handshake each costs nothing that matters.
func NewTransport(c config.HTTPClientConfig, opts ...config.HTTPClientOption) (http.RoundTripper, error) {
	opts = append(opts, config.WithKeepAlivesDisabled(), config.WithHTTP2Disabled())
	t, err := config.NewRoundTripperFromConfig(c, "server_rental", opts...)
	if err != nil {
		return nil, fmt.Errorf("transport: %w", err)
	}
	return t, nil
}
