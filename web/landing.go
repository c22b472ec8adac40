package web

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"strconv"
	"sync"
	"time"
)

//go:embed *.html
var pages embed.FS

var landingTemplate = template.Must(template.New("landing.html").Funcs(template.FuncMap{
	"cut": cut, "duration": duration, "errorText": errorText, "gibibytes": gibibytes, "join": join, "labels": labels, "money": money, "number": number, "text": text,
	"list": func(texts ...string) []string { return texts },
}).ParseFS(pages, "*.html"))

// maxPageAge is how long a rendered page is served. It bounds the cost of any number of requests.
const maxPageAge = time.Second

// landing serves the landing page. All responses within maxPageAge send the same bytes, so that
// a client that does not read holds no copy.
func landing(s Source, o Options) http.Handler {
	var (
		rendering sync.Mutex // requests wait here for one rendering
		page      []byte     // immutable
		rendered  time.Time
	)
	current := func() ([]byte, error) {
		rendering.Lock()
		defer rendering.Unlock()
		if page != nil && time.Since(rendered) < maxPageAge {
			return page, nil
		}
		var b bytes.Buffer
		if err := landingTemplate.Execute(&b, newView(s, o, time.Now())); err != nil {
			return nil, err
		}
		page, rendered = bytes.Clone(b.Bytes()), time.Now() // a clone has no spare capacity
		return page, nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		page, err := current()
		if err != nil {
			http.Error(w, "page: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Refresh", "60") // seconds
		_, _ = w.Write(page)            // an error means that the client left
	})
}
