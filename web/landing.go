package web

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"server_rental_exporter/collector"
)

//go:embed *.html
var pages embed.FS

type page struct {
	Options
	Configured Configured
	Ready      bool
	Now        string
	Overview   *view // nil with --no-web.overview
	Collectors table[collectorRow]
}

var functions = template.FuncMap{
	"duration": duration, "gibibytes": gibibytes, "grouped": grouped, "money": money, "number": number, "text": text,
	"date":  func(seconds float64) string { return at(seconds).Format(time.DateOnly) },
	"list":  func(texts ...string) []string { return texts },
	"words": func(texts ...string) string { return text(strings.TrimSpace(strings.Join(texts, " "))) },
}

func newTemplate() *template.Template {
	return template.Must(template.New("landing.html").Funcs(functions).ParseFS(pages, "*.html"))
}

// pageInterval is the shortest time from one landing page to the next: whoever asks in
// between gets the same bytes.
const pageInterval = time.Second

func landing(c Collectors, o Options) http.Handler {
	t := newTemplate()
	var mu sync.Mutex // one page is made at a time
	var body []byte   // the last page; immutable
	var made time.Time
	latest := func(ctx context.Context) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if body != nil && time.Since(made) < pageInterval {
			return body, nil
		}
		if ctx.Err() != nil { // the client left while it waited
			return nil, ctx.Err()
		}
		var b bytes.Buffer
		if err := t.Execute(&b, newPage(c, o, time.Now())); err != nil {
			return nil, err
		}
		body, made = b.Bytes(), time.Now()
		return body, nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := latest(r.Context())
		if err != nil {
			http.Error(w, "page: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Refresh", "60") // seconds
		_, _ = w.Write(body)            // an error means that the client left
	})
}

func newPage(c Collectors, o Options, now time.Time) page {
	health, overview := c.Health(), o.Published != nil
	rows := collectors(health, now, overview)
	if len(rows) > maxLongRows { // those that fail are shown
		slices.SortStableFunc(rows, func(a, b collectorRow) int { return compareClasses(a.Class, b.Class) })
	}
	p := page{Options: o, Configured: o.Configured(), Ready: c.Ready(), Now: now.UTC().Format("2006-01-02 15:04:05"), Collectors: cut(rows, maxLongRows)}
	if overview {
		p.Overview = newView(health, collector.Samples(o.Published), p.Configured, now)
		p.Overview.Tried = p.Overview.Tried && p.Ready
	}
	return p
}
