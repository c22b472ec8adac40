package rentalapi

import (
	"cmp"
	"net/http"
	"time"

	"github.com/prometheus/common/config"
)

// maxHeaderBytes bounds the header of a response, and that of a proxy: the reason for a transport
// of our own, because that of prometheus/common has no such bound. TLS handshakes have the bounds
// of crypto/tls.
const maxHeaderBytes = 64 << 10

// NewTransport returns a transport of which one call is exactly one request at
// the provider, which the limiters rely on. net/http repeats a request silently
// when a kept connection turns out to be dead, and HTTP/2 when a stream is
// refused; so connections are used once and HTTP/1.1 is spoken. At a request
// every few seconds a handshake each costs nothing that matters.
//
// It connects with dial, or with that of package net if dial is nil.
func NewTransport(c config.HTTPClientConfig, dial config.DialContextFunc) http.RoundTripper {
	return config.NewHeadersRoundTripper(cmp.Or(c.HTTPHeaders, &config.Headers{}), transport{c, dial})
}

type transport struct {
	config config.HTTPClientConfig
	dial   config.DialContextFunc
}

// RoundTrip implements http.RoundTripper. It reads the files of the TLS settings again.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	tlsConfig, err := config.NewTLSConfig(&t.config.TLSConfig)
	if err != nil {
		return nil, err
	}
	single := &http.Transport{
		Proxy:                  t.config.Proxy(),
		ProxyConnectHeader:     t.config.GetProxyConnectHeader(),
		DialContext:            t.dial,
		TLSClientConfig:        tlsConfig, // with settings of its own, net/http does not speak HTTP/2
		TLSHandshakeTimeout:    10 * time.Second,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	return single.RoundTrip(r)
}
