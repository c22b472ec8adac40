package web

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"sync"
	"time"
)

//go:embed *.html
var pages embed.FS

var landingTemplate = template.Must(template.New("landing.html").Funcs(template.FuncMap{
	"cut": cut, "duration": duration, "errorText": errorText, "gibibytes": gibibytes, "join": join, "labels": labels, "money": money, "number": number, "text": text,
	"list": func(texts ...string) []string { return texts },
}).ParseFS(pages, "*.html"))

// landing serves the landing page. It renders one at a time: hundreds would keep the processor from
// all else.
func landing(s Source, o Options) http.Handler {
	var rendering sync.Mutex
	render := func(page *bytes.Buffer) error {
		rendering.Lock()
		defer rendering.Unlock()
		return landingTemplate.Execute(page, newView(s, o, time.Now()))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var page bytes.Buffer
		if err := render(&page); err != nil {
			http.Error(w, "page: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Refresh", "60") // seconds
		_, _ = page.WriteTo(w)          // an error means that the client left
	})
}
