package exporter

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-kit/log"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/runner"
	"server_rental_exporter/web"
)

// handler serves all paths. What a reload starts runs until ctx ends.
func (e *exporter) handler(ctx context.Context) http.Handler {
	process := processCollectors()
	if e.options.disableExporterMetrics {
		process = nil
	}
	o := web.Options{
		Version: version.Info(), API: e.apiDescription, MetricsPath: e.options.telemetryPath, Metrics: e.metrics.handler(e.logger, process),
		Discovery: e.options.discovery, Configured: e.configured,
	}
	if e.options.overview {
		o.Published = e.Publisher
	}
	if e.options.lifecycle {
		o.Reload = func(context.Context) error { return e.reload(ctx) }
	}
	h := web.Handler(pages{e.Runner}, o)
	if e.demo != nil {
		return e.demo.withPages(h)
	}
	return h
}

// configured returns what the landing page shows of the configuration in force.
func (e *exporter) configured() web.Configured {
	cfg := e.config.Load().Own(collector.Resources())
	c := web.Configured{Watches: cfg.Watches, ReloadFailed: !e.metrics.loaded.Load().successful}
	for _, a := range cfg.Accounts {
		c.Accounts = append(c.Accounts, a.Name)
	}
	return c
}

// NewHandler serves the data of a runner with the options of its pages, as the program
// does, without flags and sockets. It sets the handler of the metrics.
func NewHandler(r *runner.Runner, logger log.Logger, o web.Options) http.Handler {
	o.Metrics = newMetrics(r).handler(logger, processCollectors())
	return web.Handler(pages{r}, o)
}

// pages is what the pages read.
type pages struct{ *runner.Runner }

// ActiveServers implements web.Collectors.
func (p pages) ActiveServers(account string) ([]collector.Server, error) {
	return collector.ActiveServers(p.Accounts(), account)
}

// apiDescription says in words where the data comes from.
func (e *exporter) apiDescription() string {
	if e.demo != nil {
		return "a simulated provider (--demo)"
	}
	return e.config.Load().API.BaseURL.Host
}

// maxConnections bounds the memory that clients take who connect and do nothing.
const maxConnections = 512

// connections counts the open connections of a server.
type connections struct{ open atomic.Int64 }

// track closes a new connection if there are too many. It is a hook of http.Server.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if c.open.Add(1) > maxConnections {
			_ = conn.Close() // the server notices
		}
	case http.StateClosed, http.StateHijacked:
		c.open.Add(-1)
	}
}

func (e *exporter) newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ConnState:         new(connections).track,
		ReadHeaderTimeout: cmp.Or(e.timeouts.ReadHeader, 10*time.Second),
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          newErrorLog(e.logger),
	}
}

// pageURL is the landing page's URL for a browser on this machine; empty if it is
// not known.
func pageURL(flags *toolkit.FlagConfig) string {
	settings, err := readTLSConfig(*flags.WebConfigFile)
	if err != nil || *flags.WebSystemdSocket {
		return ""
	}
	host, port, err := net.SplitHostPort((*flags.WebListenAddresses)[0])
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return schemeOf(settings) + "://" + net.JoinHostPort(host, port) + "/"
}

// demoSite is the address at which a browser on this machine can reach the pages of a
// demo although only the exporter's port is published, as that of a container; empty if
// the exporter does not listen on all addresses.
func demoSite(flags *toolkit.FlagConfig) string {
	if page := pageURL(flags); strings.Contains(page, "://localhost:") {
		return strings.TrimSuffix(page, "/")
	}
	return ""
}
