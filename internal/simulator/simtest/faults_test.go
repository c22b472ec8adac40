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
			"garbage":      {Fault{Kind: Garbage}, result{200, 200, "this is not JSON", nil, 0}},
			"redirect":     {Fault{Kind: Redirect, Header: http.Header{"Location": {"/elsewhere"}}}, result{302, 302, "", nil, 0}},
			"delay":        {Fault{Kind: Delay, Delay: 7 * time.Second}, result{200, 200, right, nil, 7 * time.Second}},
			"trickle":      {Fault{Kind: Trickle}, result{200, 200, right, nil, time.Duration(len(right)-1) * time.Second}},
			"a handler":    {Fault{Handler: Reply(418, nil, "tea")}, result{418, 418, "tea", nil, 0}},
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
