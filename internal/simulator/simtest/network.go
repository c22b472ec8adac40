package simtest

import (
	"context"
	"net"
	"sync"
	"time"
)

// Network is an in-memory network with one listener, for testing/synctest bubbles: their
// clock stands still while a goroutine is blocked on a real socket. It must be created
// in the bubble that uses it.
type Network struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once // closes closed

	mu    sync.Mutex
	delay func() time.Duration // nil for none
}

func newNetwork() *Network {
	return &Network{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// SetDialDelay sets how long each later Dial takes.
func (n *Network) SetDialDelay(delay func() time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delay = delay
}

func (n *Network) dialDelay() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.delay == nil {
		return 0
	}
	return n.delay()
}

// Dial connects to the listener, and ignores the address. Its signature is that
// of net.Dialer.DialContext.
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	timer := time.NewTimer(n.dialDelay())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-n.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	client, server := net.Pipe()
	select {
	case n.conns <- server:
	case <-n.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return client, nil
}

// Accept implements net.Listener.
func (n *Network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (n *Network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

// Addr implements net.Listener.
func (n *Network) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
