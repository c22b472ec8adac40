package rentalapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	promconfig "github.com/prometheus/common/config"
)

// Transport makes each request on a connection of its own, which ends with the request: net/http then sends
// none twice, so that one permit of a rate limit is one request. The same holds for HTTP/1.1 only.
type Transport struct {
	Config promconfig.HTTPClientConfig // its files are read for each request
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := CheckFiles(t.Config); err != nil {
		return nil, &Error{Reason: Connection, Err: fmt.Errorf("api.http: %w", err)}
	}
	tlsConfig, err := promconfig.NewTLSConfig(&t.Config.TLSConfig)
	if err != nil {
		return nil, err
	}
	var rt http.RoundTripper = &http.Transport{
		Proxy: t.Config.Proxy(), ProxyConnectHeader: t.Config.GetProxyConnectHeader(), OnProxyConnectResponse: checkProxy,
		TLSClientConfig: tlsConfig, MaxResponseHeaderBytes: 256 << 10, DisableKeepAlives: true,
		DisableCompression: true, // Client decodes gzip, within bounds
		//nolint:contextcheck // the context that is given does not end with the request
		DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			conn, err := t.Dial(r.Context(), network, address)
			if err == nil {
				context.AfterFunc(r.Context(), func() { _ = conn.Close() })
			}
			return conn, err
		},
	}
	if t.Config.HTTPHeaders != nil {
		rt = promconfig.NewHeadersRoundTripper(t.Config.HTTPHeaders, rt)
	}
	return rt.RoundTrip(r)
}

// checkProxy returns the status with which a proxy refused a connection, in HTTP's own words: those of the
// proxy might repeat private data.
func checkProxy(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	text := fmt.Sprintf("proxy: status %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	return &Error{Reason: Connection, Err: errors.New(strings.TrimSpace(text))}
}

// CheckFiles returns an error, with its setting, if one of the files that are read for each request is no
// regular one: a pipe would block.
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
			return errors.New(setting + ": not a regular file")
		}
	}
	return nil
}
