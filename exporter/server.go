package exporter

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"

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

func (e *exporter) newServer(h http.Handler) *http.Server {
	var open atomic.Int64
	return &http.Server{
		Handler: h,
		ConnState: func(conn net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				if open.Add(1) > maxConnections {
					_ = conn.Close() // the server notices
				}
			case http.StateClosed, http.StateHijacked:
				open.Add(-1)
			}
		},
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
