package rentalapi

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	promconfig "github.com/prometheus/common/config"
)

const (
	maxConnections = 16        // connections at a time, so that a process with 64 file descriptors can still serve
	maxHeaderBytes = 256 << 10 // bytes of a response header
	maxIdle        = 90 * time.Second
)

// Dial opens a connection. Its signature is that of net.Dialer.DialContext.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// NewTransport returns a transport with the settings of a configuration; dial may be nil. Unlike
// http.Transport, it sends no request twice, so that one permit of a rate limit is one request.
// After CloseIdleConnections, requests use new connections, also while old ones are in use.
func NewTransport(cfg promconfig.HTTPClientConfig, dial Dial) (http.RoundTripper, error) {
	tlsConfig, err := promconfig.NewTLSConfig(&cfg.TLSConfig)
	if err != nil {
		return nil, err
	}
	files := promconfig.TLSRoundTripperSettings{ // read again for each request
		CA: fileSecret(cfg.TLSConfig.CAFile), Cert: fileSecret(cfg.TLSConfig.CertFile), Key: fileSecret(cfg.TLSConfig.KeyFile),
	}
	newTransport := &http.Transport{
		Proxy: cfg.Proxy(), ProxyConnectHeader: cfg.GetProxyConnectHeader(), DialContext: dial,
		TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression: true, Protocols: new(http.Protocols), // Client decodes gzip, within bounds
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
			if resp.StatusCode != http.StatusOK {
				return proxyError(resp.StatusCode)
			}
			return nil
		},
	}
	newTransport.Protocols.SetHTTP1(true)
	newTransport.Protocols.SetHTTP2(cfg.EnableHTTP2)
	rt, err := promconfig.NewTLSRoundTripper(tlsConfig, files, func(tlsConfig *tls.Config) (http.RoundTripper, error) {
		t := newTransport.Clone()
		t.TLSClientConfig = tlsConfig
		return &transport{dialer: t}, nil
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

// transport makes each request on a connection that no other request uses meanwhile.
type transport struct {
	dialer *http.Transport

	mu         sync.Mutex
	idle       []*connection
	generation int // the connections of this generation may be used again
}

// connection is one connection to a server, directly or by a proxy.
type connection struct {
	*http.ClientConn
	origin     string // scheme and address of the server: no other may get the request
	generation int
	idleSince  time.Time // zero before its first response
}

// staleError is the failure of a request on a connection that was used before. Its server may have
// closed it meanwhile.
type staleError struct{ error }

// Unwrap returns the cause.
func (e staleError) Unwrap() error { return e.error }

// connected is the key of a function in the context of a request. It is called when there is a
// connection, just before the request is sent.
type connected struct{}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	c, err := t.connect(r)
	if err != nil {
		return nil, err
	}
	if f, ok := r.Context().Value(connected{}).(func()); ok {
		f()
	}
	resp, err := c.RoundTrip(r)
	if err != nil {
		_ = c.Close()
		if !c.idleSince.IsZero() && r.Context().Err() == nil {
			err = staleError{err}
		}
		return nil, err
	}
	resp.Body = &connectionBody{ReadCloser: resp.Body, release: func(complete bool) { t.release(c, complete) }}
	return resp, nil
}

// connect returns the connection that was used last, or else a new one.
func (t *transport) connect(r *http.Request) (*connection, error) {
	address := net.JoinHostPort(r.URL.Hostname(), r.URL.Port())
	origin := r.URL.Scheme + "://" + address
	t.mu.Lock()
	t.idle = slices.DeleteFunc(t.idle, func(c *connection) bool {
		dead := c.Available() == 0 || time.Since(c.idleSince) > maxIdle
		if dead {
			_ = c.Close()
		}
		return dead
	})
	c := &connection{origin: origin, generation: t.generation}
	for i, idle := range slices.Backward(t.idle) {
		if idle.origin == origin {
			t.idle = slices.Delete(t.idle, i, i+1)
			c = idle
			break
		}
	}
	t.mu.Unlock()
	if c.ClientConn != nil {
		return c, nil
	}
	var err error
	c.ClientConn, err = t.dialer.NewClientConn(r.Context(), r.URL.Scheme, address)
	return c, err
}

// release keeps a connection for a later request if its response was complete, else closes it.
func (t *transport) release(c *connection, complete bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !complete || c.generation != t.generation || c.Err() != nil {
		_ = c.Close()
		return
	}
	c.idleSince = time.Now()
	t.idle = append(t.idle, c)
}

// CloseIdleConnections closes idle connections, and those in use when their requests have ended.
func (t *transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.idle {
		_ = c.Close()
	}
	t.idle = nil
	t.generation++
}

// connectionBody is the body of a response. Its end releases the connection.
type connectionBody struct {
	io.ReadCloser
	complete bool
	release  func(complete bool)
}

// Read implements io.Reader.
func (b *connectionBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.complete = b.complete || errors.Is(err, io.EOF)
	return n, err
}

// Close implements io.Closer. It is called once.
func (b *connectionBody) Close() error {
	err := b.ReadCloser.Close()
	b.release(b.complete)
	return err
}
