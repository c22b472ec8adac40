package simtest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"

	"server_rental_exporter/internal/simulator"
)

// TestFaults has every kind of fault: what a client gets, and how long it takes.
func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := StartInMemory(t, simulator.Options{})
		right := a.Body("/account", MainToken)
		type result struct {
			status, logged int
			body           string
			err            error
			took           time.Duration
		}
		for name, c := range map[string]struct {
			fault Fault
			want  result
		}{
			"unavailable":  {Fault{Status: 503, Header: http.Header{"Retry-After": {"9"}}}, result{503, 503, `"code":"unavailable"`, nil, 0}},
			"undocumented": {Fault{Status: 500}, result{500, 500, `"code":"internal_server_error"`, nil, 0}},
			"own body":     {Fault{Status: 502, Body: []byte("mine")}, result{502, 502, "mine", nil, 0}},
			"header only":  {Fault{Header: http.Header{"Ratelimit-Remaining": {"0"}}}, result{200, 200, right, nil, 0}},
			"drop":         {Fault{Kind: Drop}, result{0, 0, "", io.EOF, 0}},
			"truncated":    {Fault{Kind: Truncated}, result{200, 200, right[:len(right)/2], io.ErrUnexpectedEOF, 0}},
			"delay":        {Fault{Kind: Delay, Delay: 7 * time.Second}, result{200, 200, right, nil, 7 * time.Second}},
			"a handler":    {Fault{Handler: Reply(418, nil, "tea")}, result{418, 0, "tea", nil, 0}},
		} {
			remove := a.Inject(c.fault)
			start := time.Now()
			r, err := Do(a.Client(), http.MethodGet, a.URL.String()+"/account", "Authorization", "Bearer "+MainToken)
			log := a.Requests()
			got := result{r.Status, log[len(log)-1].Status, r.Body, err, time.Since(start)}
			if errors.Is(err, c.want.err) {
				got.err = c.want.err // without the URL around it
			}
			if c.want.body != "" && strings.Contains(got.body, c.want.body) {
				got.body = c.want.body
			}
			AssertEqual(t, name, got, c.want)
			for key := range c.fault.Header {
				AssertEqual(t, name+": "+key, r.Header.Get(key), c.fault.Header.Get(key))
			}
			remove()
		}
	})
}

func TestFaultMatching(t *testing.T) {
	for name, c := range map[string]struct {
		faults []Fault
		want   string
	}{
		"a path":            {[]Fault{{Status: 500, Path: "/topups"}}, "200 200 500 500"},
		"a token":           {[]Fault{{Status: 500, Token: MainToken}}, "200 500 500 500"},
		"twice":             {[]Fault{{Status: 500, Times: 2}}, "500 500 200 200"},
		"a path goes first": {[]Fault{{Status: 500, Path: "/account"}, {Status: 502, Path: "/topups", Times: 1}, {Status: 503}}, "503 500 502 503"},
		"the newest first":  {[]Fault{{Status: 500}, {Status: 502, Times: 1}}, "502 500 500 500"},
	} {
		t.Run(name, func(t *testing.T) {
			a := Start(t, simulator.Options{})
			var removals []func()
			for _, f := range c.faults {
				removals = append(removals, a.Inject(f))
			}
			before := ""
			a.OnRequest(func(path string, query url.Values) { before += path + query.Encode() + " " })
			requests := func() string {
				var statuses []string
				for _, path := range []string{"/os", "/account", "/topups", "/topups?page=2"} {
					token := map[bool]string{true: LabToken, false: MainToken}[path == "/os"]
					r := ServeGet(a, a.URL.Path+path, "Authorization", "Bearer "+token)
					statuses = append(statuses, fmt.Sprint(r.Status))
				}
				return strings.Join(statuses, " ")
			}
			AssertEqual(t, "statuses", requests(), c.want)
			AssertEqual(t, "paths before the responses", before, "/os /account /topups /topupspage=2 ")
			for _, remove := range removals {
				remove()
				remove()
			}
			AssertEqual(t, "statuses after removal", requests(), "200 200 200 200")
		})
	}
}

func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := StartInMemory(t, simulator.Options{})
		a.Inject(Fault{Path: "/os", Kind: Drop})
		for _, path := range []string{"/api/v1/status", "/api/v1/topups?limit=7", "/plans", "/api/v1/os"} {
			_, _ = Do(a.Client(), http.MethodGet, "http://rental.example"+path, "Authorization", "Bearer secret") // /os is dropped
		}
		header := http.Header{"Authorization": {"Bearer secret"}, "User-Agent": {"Go-http-client/1.1"}, "Connection": {"close"}}
		now := time.Now()
		AssertEqual(t, "requests", a.Requests(), []Request{
			{now, "/status", url.Values{}, "secret", header, 200},
			{now, "/topups", url.Values{"limit": {"7"}}, "secret", header, 401},
			{now, "/plans", url.Values{}, "secret", header, 404},
			{now, "/os", url.Values{}, "secret", header, 0},
		})
	})
}

func TestParseExposition(t *testing.T) {
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c_total", Help: "A c_total counter."}, []string{"b", "a"})
	counter.WithLabelValues("2", "x\"\n").Add(3)
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Help: "A histogram.", Buckets: []float64{1}, NativeHistogramBucketFactor: 2})
	histogram.Observe(2)
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "g", Help: "A gauge."}, func() float64 { return 7 })
	registry.MustRegister(counter, histogram, gauge)
	h := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	series := Series("c_total", "b", "2", "a", "x\"\n")
	AssertEqual(t, "labels", Label(series, "a")+Label(series, "b")+Label(series, "c"), "x\"\n2")
	for _, format := range []expfmt.FormatType{expfmt.TypeTextPlain, expfmt.TypeProtoDelim} {
		r := ServeGet(h, "/metrics", "Accept", string(expfmt.NewFormat(format)))
		AssertEqual(t, string(expfmt.NewFormat(format)), r.Exposition(t), Exposition{
			Families: map[string]Family{
				"c_total": {Type: "counter", Help: "A c_total counter.", Labels: "a b"},
				"h":       {Type: "histogram", Help: "A histogram.", Classic: true},
				"g":       {Type: "gauge", Help: "A gauge."},
			},
			Values: map[string]float64{series: 3, "h{}": 1, "g{}": 7},
		})
	}
	e := ParseExposition(t, `server_rental_a 1
server_rental_exporter_collector_success{account="",collector="plans"} 1
server_rental_exporter_collector_success{account="main",collector="servers"} 0
`, "text/plain")
	AssertEqual(t, "data", e.Data(), map[string]float64{"server_rental_a{}": 1})
	AssertEqual(t, "success", e.CollectorSuccess(), map[string]float64{"plans": 1, "servers main": 0})
}
