package web

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"io"
	"net/http"
	"sync"
	"time"

	"server_rental_exporter/collector"
)

//go:embed *.html
var pages embed.FS

// refreshSeconds is the interval at which a browser reloads the page.
const refreshSeconds = "60"

// page is the landing page.
type page struct {
	Options
	Ready      bool
	Now        string
	Overview   *view // nil with --no-web.overview
	Collectors table[collectorRow]
}

// functions are those of the templates.
var functions = template.FuncMap{
	"grouped": grouped,
	"list":    func(texts ...string) []string { return texts },
}

func newTemplate() *template.Template {
	return template.Must(template.New("landing.html").Funcs(functions).ParseFS(pages, "*.html"))
}

// landing serves the landing page.
func landing(c Collectors, o Options) http.Handler {
	t := newTemplate()
	var rendering sync.Mutex // bounds the memory that concurrent requests take
	render := func(ctx context.Context, w io.Writer) error {
		rendering.Lock()
		defer rendering.Unlock()
		if ctx.Err() != nil { // the client left while it waited
			return ctx.Err()
		}
		return t.Execute(w, newPage(c, o, time.Now()))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		if err := render(r.Context(), &body); err != nil {
			http.Error(w, "page: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Refresh", refreshSeconds)
		_, _ = body.WriteTo(w) // an error means that the client left
	})
}

func newPage(c Collectors, o Options, now time.Time) page {
	health := c.Health()
	p := page{Options: o, Ready: c.Ready(), Now: now.UTC().Format("2006-01-02 15:04:05")}
	if o.Published == nil {
		p.Collectors.Rows = collectors(health, now, false)
		return p
	}
	p.Collectors = cutCollectors(collectors(health, now, true))
	var configured Configured
	if o.Configured != nil {
		configured = o.Configured()
	}
	p.Overview = newView(health, collector.Samples(o.Published), configured, now)
	p.Overview.Tried = p.Overview.Tried && p.Ready
	return p
}
