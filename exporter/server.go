package exporter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/sync/errgroup"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/web"
)

// handler serves all paths. What a reload starts runs until ctx ends.
func (e *exporter) handler(ctx context.Context) http.Handler {
	o := web.Options{Version: "version " + version.Version + ", revision " + version.GetRevision(), MetricsPath: e.options.telemetryPath, Metrics: e.metrics()}
	o.Configured = func() web.Configured {
		l := e.loaded.Load()
		api := l.config.API.BaseURL.Host
		if e.demo != nil {
			api = "a simulated provider (--demo)"
		}
		return web.Configured{API: api, Accounts: len(l.collected.Accounts), Watches: l.collected.Watches, ReloadFailed: !l.successful}
	}
	if e.options.overview {
		o.Published = e.Publisher
	}
	if e.options.discovery {
		o.Discovery = func(account string) (collector.Servers, error) {
			return collector.ActiveServers(e.Accounts(), account)
		}
	}
	if e.options.lifecycle {
		o.Reload = func() error { return e.reload(ctx) }
	}
	h := web.Handler(e, o)
	if e.demo == nil {
		return h
	}
	mux := http.NewServeMux() // adds the pages of the provider's website
	mux.Handle("/", h)
	for _, path := range simulator.Pages() {
		mux.Handle(path, e.demo)
	}
	return mux
}

// maxConnections bounds the memory that clients take who connect and do nothing.
const maxConnections = 512

// connections are those of clients, each with the time since when it waits for a request;
// zero while it has one.
type connections struct {
	mu    sync.Mutex
	since map[net.Conn]time.Time
}

// changed is called with each new state of a connection. If there are too many, it closes
// the one that has waited longest, so that clients which do nothing do not keep out others;
// without one that waits, the new one.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, open := c.since[conn]
	switch {
	case state == http.StateNew, open && state == http.StateIdle:
		c.since[conn] = time.Now()
	case open && state == http.StateActive:
		c.since[conn] = time.Time{}
	default:
		delete(c.since, conn)
	}
	if len(c.since) <= maxConnections {
		return
	}
	for other, since := range c.since {
		if !since.IsZero() && since.Before(c.since[conn]) {
			conn = other
		}
	}
	delete(c.since, conn)
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn() // closes at once: sends no last message, which could block
	}
	_ = conn.Close() // the server notices
}

func (e *exporter) newServer(h http.Handler, clients *connections) *http.Server {
	return &http.Server{
		Handler:           h,
		ConnState:         clients.changed,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(newSlogger(e.logger).Handler(), slog.LevelDebug), // clients cause its errors
		// Otherwise a client that reads nothing has 250 responses wait.
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1},
	}
}

// listen serves h at all addresses, or on all sockets of systemd, and sends the error of each
// that fails. Each has a server of its own, because exporter-toolkit changes the one that it
// serves with.
func (e *exporter) listen(h http.Handler) ([]*http.Server, <-chan error) {
	logger := newSlogger(e.logger)
	var starts []func(*http.Server) error
	if *e.options.web.WebSystemdSocket {
		sockets, _ := activation.Listeners() // never fails; without any, ListenAndServe does
		for _, socket := range sockets {
			starts = append(starts, func(s *http.Server) error { return toolkit.Serve(socket, s, e.options.web, logger) })
		}
	}
	if len(starts) == 0 {
		for _, address := range *e.options.web.WebListenAddresses {
			flags := *e.options.web
			flags.WebListenAddresses = &[]string{address}
			starts = append(starts, func(s *http.Server) error { return toolkit.ListenAndServe(s, &flags, logger) })
		}
	}
	clients := &connections{since: map[net.Conn]time.Time{}}
	servers := make([]*http.Server, len(starts))
	failed := make(chan error, len(starts))
	for i, start := range starts {
		servers[i] = e.newServer(h, clients)
		go func() { failed <- start(servers[i]) }()
	}
	return servers, failed
}

// shutdown completes requests in progress until ctx ends.
func shutdown(ctx context.Context, servers []*http.Server) error {
	var g errgroup.Group
	for _, server := range servers {
		g.Go(func() error {
			if err := server.Shutdown(ctx); err != nil {
				return errors.Join(fmt.Errorf("shutdown: %w", err), server.Close())
			}
			return nil
		})
	}
	return g.Wait()
}

// pageURL is the landing page's URL for a browser on this machine; empty if it is
// not known.
func pageURL(flags *toolkit.FlagConfig) string {
	host, port, err := net.SplitHostPort((*flags.WebListenAddresses)[0])
	if err != nil || *flags.WebSystemdSocket {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme(flags) + "://" + net.JoinHostPort(host, port) + "/"
}
