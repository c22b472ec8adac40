package rentalapi

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	promconfig "github.com/prometheus/common/config"
)

const maxHeaderBytes = 256 << 10 // bytes of a response header

// Dial opens a connection. Its signature is that of net.Dialer.DialContext.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// requestContext is the key of the context of a request, in itself.
type requestContext struct{}

// withRequest opens a connection that ends with its request. By itself, net/http goes on connecting
// after that, with a file descriptor.
func (d Dial) withRequest(ctx context.Context, network, address string) (net.Conn, error) {
	request, _ := ctx.Value(requestContext{}).(context.Context)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(request, cancel)() //nolint:contextcheck // net/http gives none that ends with the request
	conn, err := d(ctx, network, address)
	if err == nil {
		context.AfterFunc(request, func() { _ = conn.Close() }) //nolint:contextcheck // as above
	}
	return conn, err
}

// NewTransport returns a transport with the settings of a configuration; dial may be nil. It makes
// each request on a connection of its own: net/http then sends no request twice, so that one permit
// of a rate limit is one request. The same holds for HTTP/1.1 only.
func NewTransport(cfg promconfig.HTTPClientConfig, dial Dial) (http.RoundTripper, error) {
	tlsConfig, err := promconfig.NewTLSConfig(&cfg.TLSConfig)
	if err != nil {
		return nil, err
	}
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	files := promconfig.TLSRoundTripperSettings{ // read again for each request
		CA: fileSecret(cfg.TLSConfig.CAFile), Cert: fileSecret(cfg.TLSConfig.CertFile), Key: fileSecret(cfg.TLSConfig.KeyFile),
	}
	rt, err := promconfig.NewTLSRoundTripper(tlsConfig, files, func(tlsConfig *tls.Config) (http.RoundTripper, error) {
		t := &http.Transport{
			Proxy: cfg.Proxy(), ProxyConnectHeader: cfg.GetProxyConnectHeader(), DialContext: dial.withRequest,
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
	if err != nil {
		return nil, err
	}
	if cfg.HTTPHeaders != nil {
		rt = promconfig.NewHeadersRoundTripper(cfg.HTTPHeaders, rt)
	}
	return fileRoundTripper{rt, cfg}, nil
}

// fileRoundTripper reads no file that is a pipe, which would block.
type fileRoundTripper struct {
	http.RoundTripper
	cfg promconfig.HTTPClientConfig
}

// RoundTrip implements http.RoundTripper.
func (rt fileRoundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := CheckFiles(rt.cfg); err != nil {
		return nil, err
	}
	return rt.RoundTripper.RoundTrip(r)
}

// CheckFiles returns an error, with its setting, if one of the files that are read for each request is no
// regular one.
func CheckFiles(cfg promconfig.HTTPClientConfig) error {
	files := map[string]string{"tls_config.ca_file": cfg.TLSConfig.CAFile, "tls_config.cert_file": cfg.TLSConfig.CertFile, "tls_config.key_file": cfg.TLSConfig.KeyFile}
	if cfg.HTTPHeaders != nil {
		for name, header := range cfg.HTTPHeaders.Headers {
			for i, file := range header.Files {
				files[fmt.Sprintf("http_headers: %s: files[%d]", name, i)] = file
			}
		}
	}
	for _, setting := range slices.Sorted(maps.Keys(files)) {
		if info, err := os.Stat(files[setting]); err == nil && !info.Mode().IsRegular() {
			return fileError(setting + ": not a regular file")
		}
	}
	return nil
}

// fileError is what is wrong with a file of the HTTP client.
type fileError string

// Error returns it with its setting.
func (e fileError) Error() string { return string(e) }

// fileSecret returns the reader of a file; nil if there is none.
func fileSecret(file string) promconfig.SecretReader {
	if file == "" {
		return nil
	}
	return promconfig.NewFileSecret(file)
}
