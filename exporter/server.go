package exporter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/web"
)

// handler serves all paths. Collectors that a reload starts run until ctx ends.
func (e *exporter) handler(ctx context.Context) http.Handler {
	revision := version.GetRevision()
	o := web.Options{Version: "version " + version.Version + ", revision " + revision[:min(len(revision), 8)], MetricsPath: e.options.telemetryPath, Metrics: e.metrics()}
	o.Configured = func() web.Configured {
		l := e.loaded.Load()
		api := l.config.API.BaseURL.Host
		if e.demo != nil {
			api = "a simulated provider (--demo)"
		}
		return web.Configured{API: api, ReloadError: l.reloadError}
	}
	if e.options.overview {
		o.Published = e.runner.Publisher.Samples
	}
	if e.options.discovery {
		o.Discovery = func(account string) ([]collector.Server, error) {
			return collector.ActiveServers(e.runner.Accounts(), account)
		}
	}
	if e.options.lifecycle {
		o.Reload = func() error { return e.reload(ctx) }
	}
	return web.Handler(e.runner, o)
}

// listen returns the sockets of systemd, or listens at all addresses.
func listen(ctx context.Context, flags *toolkit.FlagConfig) ([]net.Listener, error) {
	if *flags.WebSystemdSocket {
		sockets, err := activation.Listeners() // nil for what is no stream socket
		switch {
		case err == nil && len(sockets) == 0:
			err = errors.New("systemd: no socket passed")
		case slices.Contains(sockets, nil):
			err = errors.New("systemd: a socket is no stream socket: the unit must use ListenStream")
		}
		return sockets, err
	}
	var all []net.Listener
	for _, address := range *flags.WebListenAddresses {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			for _, l := range all {
				_ = l.Close()
			}
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// maxClients bounds the memory that the connections to one listen address take. Others wait.
const maxClients = 512

// maxIdle is how long a connection may have no request while no more connections may come.
const maxIdle = 250 * time.Millisecond

// clients are the connections to one listen address.
type clients struct {
	mu      sync.Mutex
	idle    map[net.Conn]time.Time // since when each has no complete request; zero if it has one
	closing bool                   // whether closeIdle will be called
}

// changed is told when the state of a connection changes.
func (c *clients) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew, http.StateIdle:
		c.idle[conn] = time.Now()
	case http.StateActive:
		c.idle[conn] = time.Time{}
	case http.StateClosed:
		delete(c.idle, conn)
	}
	if len(c.idle) >= maxClients && !c.closing {
		c.closing = true
		time.AfterFunc(maxIdle, c.closeIdle)
	}
}

// closeIdle closes connections that are idle, again and again until more connections may come.
func (c *clients) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing = len(c.idle) >= maxClients; !c.closing {
		return
	}
	for conn, since := range c.idle {
		if !since.IsZero() && time.Since(since) >= maxIdle {
			go conn.Close() // with TLS, it takes up to 5 seconds
		}
	}
	time.AfterFunc(maxIdle, c.closeIdle)
}

// serveAt serves h, and sends the error of each listener that fails. Each has a server of its own,
// because exporter-toolkit changes the one that it serves with.
func (e *exporter) serveAt(listeners []net.Listener, h http.Handler) ([]*http.Server, <-chan error) {
	servers := make([]*http.Server, len(listeners))
	failed := make(chan error, len(listeners))
	logger := newSlogger(e.logger)
	errorLog := stdlog.New(&serverWriter{logger: e.logger, webConfig: *e.options.web.WebConfigFile}, "", 0)
	for i, l := range listeners {
		servers[i] = &http.Server{
			Handler:           h,
			ReadHeaderTimeout: 10 * time.Second,
			ReadTimeout:       30 * time.Second,
			WriteTimeout:      time.Minute,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    16 << 10,
			ErrorLog:          errorLog,
			ConnState:         (&clients{idle: map[net.Conn]time.Time{}}).changed,
			HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 1}, // or a client could hold 250 responses in memory
		}
		go func() {
			failed <- toolkit.Serve(netutil.LimitListener(l, maxClients), servers[i], e.options.web, logger)
		}()
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

// healthcheck returns an error unless an exporter with the same web flags serves at all its listen
// addresses. It takes at most 5 seconds.
func (o *options) healthcheck(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	errs := o.checkServer()
	if *o.web.WebSystemdSocket {
		errs = append(errs, errors.New("--healthcheck: conflicts with --web.systemd-socket: only systemd knows the addresses"))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	// The certificate names the host that Prometheus knows. No secret is sent.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} //nolint:gosec // see above
	for _, address := range *o.web.WebListenAddresses {
		if err := ask(ctx, transport, localURL(o.web, address)+web.HealthyPath[1:]); err != nil {
			errs = append(errs, fmt.Errorf("unhealthy: %s: %w", address, err))
		}
	}
	return errors.Join(errs...)
}

// ask returns an error if nothing serves at a URL. A server that refuses the client for its missing
// certificate or password works, and so does one that limits requests.
func ask(ctx context.Context, transport *http.Transport, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if opErr, ok := errors.AsType[*net.OpError](err); ok && opErr.Op == "remote error" { // TLS
		return nil
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if !slices.Contains([]int{http.StatusOK, http.StatusUnauthorized, http.StatusTooManyRequests}, response.StatusCode) {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}

// localURL returns the URL of a listen address for clients on this machine. Its host, if it is not
// specified, is a number: an image may have no /etc/hosts, which knows localhost.
func localURL(flags *toolkit.FlagConfig, address string) string {
	host, port, _ := net.SplitHostPort(address) // valid: see checkServer
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	var settings toolkit.Config // stay zero without a valid file
	if content, err := os.ReadFile(*flags.WebConfigFile); err == nil {
		_ = yaml.Unmarshal(content, &settings)
	}
	if settings.TLSConfig.IsEnabled() {
		scheme = "https"
	}
	return (&url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port), Path: "/"}).String()
}
