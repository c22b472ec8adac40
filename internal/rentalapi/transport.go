package rentalapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/common/config"
)

// maxHeaderBytes bounds what is read from a connection until the header of the response is
// complete: the header itself, a TLS handshake and a proxy's response.
const maxHeaderBytes = 64 << 10

var errLongHeader = fmt.Errorf("header: more than %d bytes: %w", maxHeaderBytes, ErrTooLarge)

// NewTransport returns a transport of which one call is exactly one request at
// the provider, which the limiters rely on. net/http repeats a request silently
// when a kept connection turns out to be dead, and HTTP/2 when a stream is
// refused; so connections are used once and HTTP/1.1 is spoken. At a request
// every few seconds a handshake each costs nothing that matters.
//
// It connects with dial, or with that of package net if dial is nil.
func NewTransport(c config.HTTPClientConfig, dial config.DialContextFunc) (http.RoundTripper, error) {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	t, err := config.NewRoundTripperFromConfig(c, "server_rental",
		config.WithKeepAlivesDisabled(), config.WithHTTP2Disabled(), config.WithDialContextFunc(limitHeader(dial)))
	if err != nil {
		return nil, fmt.Errorf("transport: %w", err)
	}
	return t, nil
}

// headerLimitKey is the key of a context for the bytes that may still be read before the
// header of its response is complete. net/http has such a limit, but prometheus/common
// does not let it be set.
type headerLimitKey struct{}

func limitHeader(dial config.DialContextFunc) config.DialContextFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		left, limited := ctx.Value(headerLimitKey{}).(*atomic.Int64)
		if err != nil || !limited {
			return conn, err
		}
		return &limitedConn{conn, left}, nil
	}
}

// limitedConn is the only connection of a request.
type limitedConn struct {
	net.Conn
	left *atomic.Int64
}

// Read implements net.Conn.
func (c *limitedConn) Read(p []byte) (int, error) {
	left := c.left.Load()
	if left <= 0 {
		return 0, errLongHeader
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), left)])
	c.left.Add(-int64(n))
	return n, err
}
