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
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/exposition"
	"github.com/server-rental-exporter/server_rental_exporter/web"
)

// handler serves all paths. Collectors that a reload starts run until ctx ends.
func (e *exporter) handler(ctx context.Context) http.Handler {
	metrics := &exposition.Handler{Publisher: e.runner.Publisher, Gatherer: e.registry, OnError: func(err error) {
		level.Error(e.logger).Log("msg", "cannot serve metrics", "err", err)
	}}
	o := web.Options{Version: fmt.Sprintf("version %s, revision %.8s", version.Version, version.GetRevision()), MetricsPath: e.options.telemetryPath, Metrics: metrics}
	if !e.options.disableExporterMetrics {
		o.Metrics = promhttp.InstrumentMetricHandler(e.registry, metrics)
	}
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
		o.Discovery = func(accounts []string) ([]collector.Server, error) {
			return collector.ActiveServers(e.runner.Accounts(), accounts...)
		}
	}
	if e.options.lifecycle {
		o.Reload = func() error { return e.reload(ctx) }
	}
	return web.Handler(e.runner, o)
}

// listen returns the sockets of systemd, or listens at all addresses.
func listen(ctx context.Context, flags *toolkit.FlagConfig) (all []net.Listener, err error) {
	if *flags.WebSystemdSocket {
		all, err = activation.Listeners()
		all = slices.DeleteFunc(all, func(l net.Listener) bool { return l == nil }) // no stream socket
		if err == nil && len(all) == 0 {
			err = errors.New("systemd: no stream socket passed: the unit must use ListenStream")
		}
		return all, err
	}
	for _, address := range *flags.WebListenAddresses {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// Bounds of the memory that clients take. Others wait.
const (
	maxConnections = 2048 // to one listen address, most of them idle
	maxRequests    = 100
)

// limit serves at most maxRequests requests at a time. Health and reloads, which hold no memory, do not
// count: a reload may hang, and slow clients must not make the process look dead.
func limit(h http.Handler) http.Handler {
	slots := semaphore.NewWeighted(maxRequests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != web.HealthyPath && r.URL.Path != web.ReloadPath {
			if slots.Acquire(r.Context(), 1) != nil {
				return // the client left
			}
			defer slots.Release(1)
		}
		h.ServeHTTP(w, r)
	})
}

// serveAt serves at each listener until ctx ends, and then completes requests in progress. Each
// listener has a server of its own, because exporter-toolkit changes the one that it serves with.
func (e *exporter) serveAt(ctx context.Context, group *errgroup.Group, listeners []net.Listener) {
	handler, logger := limit(e.handler(ctx)), newSlogger(e.logger)
	errorLog := stdlog.New(serverWriter{logger: e.logger, webConfig: *e.options.web.WebConfigFile}, "", 0)
	for _, l := range listeners {
		server := &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 10 * time.Second,
			ReadTimeout:       30 * time.Second,
			WriteTimeout:      time.Minute,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    16 << 10,
			ErrorLog:          errorLog,
			HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 1}, // or a client could have 250 requests wait
		}
		// Called after exporter-toolkit has put its handler around ours: its errors get the headers, too.
		server.BaseContext = func(net.Listener) context.Context {
			server.Handler = web.Harden(server.Handler)
			return context.Background()
		}
		group.Go(func() error {
			return toolkit.Serve(netutil.LimitListener(l, maxConnections), server, e.options.web, logger)
		})
		group.Go(func() error {
			<-ctx.Done()
			return server.Shutdown(context.WithoutCancel(ctx))
		})
	}
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
