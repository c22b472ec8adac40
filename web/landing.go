package web

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"time"

	"golang.org/x/sync/singleflight"
)

//go:embed *.html
var pages embed.FS

var landingTemplate = template.Must(template.New("landing.html").Funcs(template.FuncMap{
	"cut": cut, "duration": duration, "errorText": errorText, "gibibytes": gibibytes, "join": join, "labels": labels, "money": money, "number": number, "text": text,
	"list": func(texts ...string) []string { return texts },
}).ParseFS(pages, "*.html"))

// landing serves the landing page. It renders one at a time, for all requests that wait: hundreds would
// keep the processor from all else, and scrapes waiting behind them.
func landing(s Source, o Options) http.Handler {
	var rendering singleflight.Group
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, err, _ := rendering.Do("", func() (any, error) {
			var page bytes.Buffer
			err := landingTemplate.Execute(&page, newView(s, o, time.Now()))
			return page.Bytes(), err
		})
		if err != nil {
			http.Error(w, "page: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.Query().Has("refresh") { // only if asked: a reload loses the place of a reader
			w.Header().Set("Refresh", "60") // seconds
		}
		_, _ = w.Write(page.([]byte)) // an error means that the client left
	})
}
