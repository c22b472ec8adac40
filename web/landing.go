package web

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"time"
)

//go:embed *.html
var pages embed.FS

func newTemplate() *template.Template {
	return template.Must(template.New("landing.html").Funcs(template.FuncMap{
		"cut": cut, "duration": duration, "gibibytes": gibibytes, "grouped": grouped, "money": money, "number": number, "text": text,
		"list":  func(texts ...string) []string { return texts },
		"words": func(texts ...string) string { return text(strings.TrimSpace(strings.Join(texts, " "))) },
	}).ParseFS(pages, "*.html"))
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
		if time.Since(made) < pageInterval || ctx.Err() != nil { // the client left while it waited
			return body, nil
		}
		var b bytes.Buffer
		if err := t.Execute(&b, newView(c, o, time.Now())); err != nil {
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
