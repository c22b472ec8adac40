package web

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed *.html
var pages embed.FS

func newTemplate() *template.Template {
	return template.Must(template.New("landing.html").Funcs(template.FuncMap{
		"count": count, "join": join, "cut": cut, "duration": duration, "gibibytes": gibibytes, "money": money, "number": number, "text": text,
		"list":  func(texts ...string) []string { return texts },
		"words": func(texts ...string) string { return text(strings.TrimSpace(strings.Join(texts, " "))) },
	}).ParseFS(pages, "*.html"))
}

// maxPageAge is how long a rendered page is served. It bounds what requests cost, however many
// there are.
const maxPageAge = time.Second

// landingPage serves the landing page. All responses of a rendering write the same bytes, so
// that clients that do not read hold no copies.
type landingPage struct {
	source   Source
	options  Options
	template *template.Template

	rendering sync.Mutex // requests wait here for one rendering
	page      []byte     // immutable
	rendered  time.Time
}

// current returns the page, rendered anew if it is older than maxPageAge.
func (l *landingPage) current() ([]byte, error) {
	l.rendering.Lock()
	defer l.rendering.Unlock()
	if l.page != nil && time.Since(l.rendered) < maxPageAge {
		return l.page, nil
	}
	var b bytes.Buffer
	if err := l.template.Execute(&b, newView(l.source, l.options, time.Now())); err != nil {
		return nil, err
	}
	l.page, l.rendered = bytes.Clone(b.Bytes()), time.Now() // without the spare capacity of the buffer
	return l.page, nil
}

// ServeHTTP implements http.Handler.
func (l *landingPage) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	page, err := l.current()
	if err != nil {
		http.Error(w, "page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Refresh", "60") // seconds
	_, _ = w.Write(page)            // an error means that the client left
}
