// Package pipenet is a network within one process, for tests under simulated time:
// the clock of testing/synctest does not move while a real socket is waited for.
package pipenet

import (
	"context"
	"net"
	"sync"
	"time"
)

// Listener accepts what Dial connects. It must be made in the bubble that uses it.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	ending sync.Once

	mu   sync.Mutex
	lag  func() time.Duration
	open int
}

// Listen returns a listener to which connections come up at once.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{}), lag: func() time.Duration { return 0 }}
}

// Slow lets each connection take some time to come up from now on.
func (l *Listener) Slow(lag func() time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lag = lag
}

// Open returns how many connections were dialled and not closed.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// Dial connects, whatever the address. It has the form of net.Dialer.DialContext.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	l.mu.Lock()
	lag := l.lag()
	l.mu.Unlock()
	wait := time.NewTimer(lag)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	return &counted{Conn: ours, listener: l}, nil
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
	l.ending.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// counted is a connection of which the end is noticed.
type counted struct {
	net.Conn
	listener *Listener
	ending   sync.Once
}

func (c *counted) Close() error {
	c.ending.Do(func() {
		c.listener.mu.Lock()
		defer c.listener.mu.Unlock()
		c.listener.open--
	})
	return c.Conn.Close()
}
