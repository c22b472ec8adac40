package simulator

import (
	"bytes"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
)

// Pages returns the paths of the website to which the links of plans, saved configurations
// and top-ups lead; one that ends in / stands for all below it.
func Pages() []string { return []string{"/servers/", "/order", "/account/topups/"} }

// withSite makes the links of a response lead to the configured website.
func (s *Simulator) withSite(body []byte) []byte {
	if s.site == "" {
		return body
	}
	return bytes.ReplaceAll(body, []byte(`"`+site+"/"), []byte(`"`+s.site+"/"))
}

// page returns a page of the website, which says what was opened; false if there is none
// at the path.
func page(r *http.Request) (response, bool) {
	known := slices.ContainsFunc(Pages(), func(p string) bool {
		return r.URL.Path == p || strings.HasSuffix(p, "/") && strings.HasPrefix(r.URL.Path, p)
	})
	if r.Method != http.MethodGet || !known {
		return response{}, false
	}
	title := html.EscapeString(r.URL.RequestURI())
	header := http.Header{"Content-Type": {"text/html; charset=utf-8"}, "Content-Security-Policy": {"default-src 'none'"}}
	return response{http.StatusOK, header, fmt.Appendf(nil, "<!DOCTYPE html>\n<html lang=\"en\">\n<title>%s</title>\n<h1>%s</h1>\n"+
		"<p>This is a simulated provider: nothing can be ordered or paid.</p>\n</html>\n", title, title)}, true
}
