// Package memnet is an in-memory network for testing/synctest bubbles, of tests and of
// simulated time, whose clock stands still while a goroutine is blocked on a real
// socket.
package memnet

import (
	"context"
	"net"
	"sync"
	"time"
)

// Listener accepts the connections that Dial makes. It must be created in the
// bubble that uses it.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once // closes closed

	mu    sync.Mutex
	delay func() time.Duration
	open  int
}

// Listen returns a listener whose connections are established without delay.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{}), delay: func() time.Duration { return 0 }}
}

// SetDialDelay sets how long each later Dial takes.
func (l *Listener) SetDialDelay(delay func() time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = delay
}

// OpenConns returns the number of connections that the dialing side has not closed.
func (l *Listener) OpenConns() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// Dial connects to the listener and ignores the address. Its signature is that
// of net.Dialer.DialContext.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	l.mu.Lock()
	delay := l.delay()
	l.mu.Unlock()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	client, server := net.Pipe()
	select {
	case l.conns <- server:
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	return &countedConn{Conn: client, listener: l}, nil
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// countedConn is a client connection that Listener.OpenConns counts.
type countedConn struct {
	net.Conn
	listener *Listener
	once     sync.Once // decrements the count
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.once.Do(func() {
		c.listener.mu.Lock()
		defer c.listener.mu.Unlock()
		c.listener.open--
	})
	return c.Conn.Close()
}
