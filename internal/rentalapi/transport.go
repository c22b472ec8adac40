package rentalapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"

	promconfig "github.com/prometheus/common/config"
)

const (
	maxRequests    = 16        // requests at a time, each with its connection, so that a process with 64 file descriptors can still serve
	maxHeaderBytes = 256 << 10 // bytes of a response header
)

// Dial opens a connection. Its signature is that of net.Dialer.DialContext.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// NewTransport returns a transport with the settings of a configuration; dial may be nil. It makes
// each request on a connection of its own: net/http then sends no request twice, so that one permit
// of a rate limit is one request. The same holds for HTTP/1.1 only.
func NewTransport(cfg promconfig.HTTPClientConfig, dial Dial) (http.RoundTripper, error) {
	tlsConfig, err := promconfig.NewTLSConfig(&cfg.TLSConfig)
	if err != nil {
		return nil, err
	}
	files := promconfig.TLSRoundTripperSettings{ // read again for each request
		CA: fileSecret(cfg.TLSConfig.CAFile), Cert: fileSecret(cfg.TLSConfig.CertFile), Key: fileSecret(cfg.TLSConfig.KeyFile),
	}
	rt, err := promconfig.NewTLSRoundTripper(tlsConfig, files, func(tlsConfig *tls.Config) (http.RoundTripper, error) {
		t := &http.Transport{
			Proxy: cfg.Proxy(), ProxyConnectHeader: cfg.GetProxyConnectHeader(), DialContext: dial,
			TLSClientConfig: tlsConfig, TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: maxHeaderBytes,
			DisableKeepAlives: true, Protocols: new(http.Protocols),
			DisableCompression: true, // Client decodes gzip, within bounds
			OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
				if resp.StatusCode != http.StatusOK {
					return proxyError(resp.StatusCode)
				}
				return nil
			},
		}
		t.Protocols.SetHTTP1(true)
		return t, nil
	})
	if err != nil || cfg.HTTPHeaders == nil {
		return rt, err
	}
	return promconfig.NewHeadersRoundTripper(cfg.HTTPHeaders, rt), nil
}

// fileSecret returns the reader of a file; nil if there is none.
func fileSecret(file string) promconfig.SecretReader {
	if file == "" {
		return nil
	}
	return promconfig.NewFileSecret(file)
}
