// Package web serves everything besides the metrics: the landing page, health and readiness, reload,
// and service discovery of the rented servers. It never makes a request to the API.
package web

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/runner"
)

type health = runner.Health

// Source holds the data of the pages.
type Source interface {
	Health() []health
	Ready() bool
	Watches() []collector.Watch
	Events() []collector.Event // newest first
}

// Options say what is served.
type Options struct {
	Version     string       // shown on the landing page
	MetricsPath string       // path of Metrics
	Metrics     http.Handler // the exposition

	// Published returns the samples of each defined metric, by name without namespace, sorted by
	// labels. If it is nil, the landing page shows only the state of the collectors.
	Published  func() map[string][]*sample
	Configured func() Configured
	// Reload reads the configuration again and returns why that failed. If it is nil,
	// POST /-/reload is forbidden.
	Reload func() error
	// Discovery returns the active servers of the named accounts, or of all if no name is given. If it
	// is nil, /sd/servers is forbidden.
	Discovery func(accounts []string) ([]collector.Server, error)
}

// Configured describes the configuration in force on the landing page.
type Configured struct {
	API         string // names the source of the data
	ReloadError error  // says why the last reload was refused; nil if it was not
}

// The paths that the exporter serves itself.
const (
	HealthyPath   = "/-/healthy" // its status is 200 while the process serves
	readyPath     = "/-/ready"
	ReloadPath    = "/-/reload"
	discoveryPath = "/sd/servers"
)

// plainPath is a clean path that net/http takes literally.
var plainPath = regexp.MustCompile(`^(/[\w:@~-][\w:@~.-]*)+$`)

// CheckMetricsPath returns an error if the metrics cannot be served at path.
func CheckMetricsPath(path string) error {
	if !plainPath.MatchString(path) {
		return errors.New("must be like /metrics: ASCII letters, digits and _-.~:@ between slashes")
	}
	if slices.Contains([]string{HealthyPath, readyPath, ReloadPath, discoveryPath}, path) {
		return errors.New("is served by the exporter itself")
	}
	return nil
}

// Handler returns the handler of all paths, to be served with [Harden]. The multiplexer accepts HEAD if it accepts
// GET, and refuses other methods.
func Handler(s Source, o Options) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+o.MetricsPath, o.Metrics)
	mux.Handle("GET /{$}", landing(s, o))
	mux.Handle("GET "+HealthyPath, respond(http.StatusOK, "server_rental_exporter is healthy."))
	mux.HandleFunc("GET "+readyPath, func(w http.ResponseWriter, _ *http.Request) {
		if !s.Ready() {
			http.Error(w, "not ready: not every collector has been tried yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "server_rental_exporter is ready.")
	})
	if o.Reload == nil {
		mux.Handle(ReloadPath, respond(http.StatusForbidden, "reloading over HTTP is off; start with --web.enable-lifecycle"))
	} else {
		reload := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if err := o.Reload(); err != nil {
				http.Error(w, "reload failed, keeping current configuration:\n"+err.Error(), http.StatusInternalServerError)
				return
			}
			fmt.Fprintln(w, "configuration reloaded.")
		})
		mux.Handle("POST "+ReloadPath, http.NewCrossOriginProtection().Handler(reload)) // refuses pages of other sites
	}
	if o.Discovery == nil {
		mux.Handle("GET "+discoveryPath, respond(http.StatusForbidden,
			"service discovery exposes the servers' addresses and is off; start with --web.enable-service-discovery"))
	} else {
		mux.Handle("GET "+discoveryPath, discovery(o.Discovery))
	}
	return mux
}

// Harden adds headers to all responses: no cache keeps what an exporter that has ended said, and a browser
// is restricted.
func Harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}

// respond serves a text with a status.
func respond(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, status) }
}
