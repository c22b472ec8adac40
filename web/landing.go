package web

import (
	_ "embed"
	"html/template"
	"net/http"
	"time"

	"server_rental_exporter/collector"
)

//go:embed landing.html
var landingHTML string

// row is a collector on the landing page.
type row struct {
	Collector, Account string
	State, Class       string
	LastSuccess, Age   string
	Next, Interval     string
	Errors             []string // of the last fetch, and of invalid items
	Invalid            int
}

type page struct {
	Options
	Ready bool
	Rows  []row
}

func landing(c Collectors, o Options) http.Handler {
	t := template.Must(template.New("landing").Parse(landingHTML))
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p := page{Options: o, Ready: c.Ready()}
		now := time.Now()
		for _, s := range c.Health() {
			p.Rows = append(p.Rows, newRow(s, now))
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = t.Execute(w, p) // an error means that the client left
	})
}

func newRow(s collector.Health, now time.Time) row {
	r := row{
		Collector: s.Collector, Account: s.Account, Invalid: s.Invalid.Items,
		LastSuccess: "never", Interval: s.Interval.String(), Next: "now",
	}
	r.State, r.Class = describeState(s, now)
	if !s.LastSuccess.IsZero() {
		r.LastSuccess = s.LastSuccess.UTC().Format(time.RFC3339)
		r.Age = now.Sub(s.LastSuccess).Round(time.Second).String()
	}
	if s.Next.After(now) {
		r.Next = "in " + s.Next.Sub(now).Round(time.Second).String()
	}
	if s.Err != nil {
		r.Errors = append(r.Errors, s.Err.Error())
	}
	if s.DuplicateOf != "" {
		r.Errors = append(r.Errors, "same provider account as "+s.DuplicateOf+": sums over accounts count it twice")
	}
	for _, c := range s.Invalid.Causes {
		r.Errors = append(r.Errors, c.Error())
	}
	return r
}

// describeState returns a collector's state in a few words, and its CSS class.
func describeState(s collector.Health, now time.Time) (word, class string) {
	expired := !now.Before(s.LastSuccess.Add(s.MaxAge))
	switch {
	case s.LastSuccess.IsZero() && s.Err == nil:
		return "fetching", "wait"
	case s.LastSuccess.IsZero():
		return "failing, no data", "bad"
	case expired:
		return "failing, data expired", "bad"
	case s.Err != nil:
		return "failing, last data shown", "warn"
	case s.Invalid.Items > 0:
		return "fresh, invalid items", "warn"
	default:
		return "fresh", "good"
	}
}
