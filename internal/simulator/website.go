package simulator

import (
	"bytes"
	"fmt"
	"html"
	"net/http"
	"strings"
)

// Pages returns the paths of the website to which the links of plans, saved configurations
// and top-ups lead; one that ends in / stands for all below it.
func Pages() []string { return []string{planPages, orderForm, topupPages} }

const (
	planPages  = "/servers/"
	orderForm  = "/order"
	topupPages = "/account/topups/"
)

// withSite makes the links of a response lead to the configured website.
func (s *Simulator) withSite(body []byte) []byte {
	if s.site == "" {
		return body
	}
	return bytes.ReplaceAll(body, []byte(`"`+site+"/"), []byte(`"`+s.site+"/"))
}

// page returns a page of the website, which says what it would show or order; false if
// there is none at the path.
func (s *Simulator) page(c *call) (response, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.world
	var title string
	var item Object
	switch {
	case c.inPrefix || c.method != http.MethodGet:
		return response{}, false
	case c.path == orderForm && c.query.Has("plan"):
		item, _ = find(w.Plans, c.query.Get("plan"))
		title = "Order " + Text(item, "name")
	case c.path == orderForm:
		item = w.findInAccounts(c.query.Get("configuration"), func(a *Account) []Object { return a.Configurations })
		title = "Order the saved configuration " + Text(item, "hostname")
	case strings.HasPrefix(c.path, planPages):
		item, _ = find(w.Plans, strings.TrimPrefix(c.path, planPages))
		title = Text(item, "name")
	case strings.HasPrefix(c.path, topupPages):
		item = w.findInAccounts(strings.TrimPrefix(c.path, topupPages), func(a *Account) []Object { return a.Topups })
		title = fmt.Sprintf("Top-up of $%.2f: %s", number(item, "amount", "usd"), Text(item, "status"))
	}
	if item == nil {
		return response{}, false
	}
	header := http.Header{"Content-Type": {"text/html; charset=utf-8"}, "Content-Security-Policy": {"default-src 'none'"}}
	return response{http.StatusOK, header, pageOf(title, item)}, true
}

// findInAccounts returns an item of any account; nil if there is none with the id.
func (w *World) findInAccounts(id string, list func(*Account) []Object) Object {
	for _, a := range w.Accounts {
		if item, found := find(list(a), id); found {
			return item
		}
	}
	return nil
}

func pageOf(title string, item Object) []byte {
	lines := []string{"This is a simulated provider: nothing can be ordered or paid."}
	if price := number(item, "price", "monthly", "usd"); price > 0 {
		lines = append(lines, fmt.Sprintf("$%.2f a month, excluding VAT.", price))
	}
	if plan := Text(item, "plan"); plan != "" {
		lines = append(lines, fmt.Sprintf("Plan %s in %s with %s.", plan, Text(item, "location"), Text(item, "os")))
	}
	if At(item, "in_stock") == true || inStock(item) {
		lines = append(lines, "In stock.")
	}
	title = html.EscapeString(title)
	return fmt.Appendf(nil, "<!DOCTYPE html>\n<html lang=\"en\">\n<title>%s</title>\n<h1>%s</h1>\n<p>%s</p>\n</html>\n",
		title, title, html.EscapeString(strings.Join(lines, " ")))
}
