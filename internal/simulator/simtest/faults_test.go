package simtest

import (
	"encoding/json"
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

// get requests a path with a token, if it is not empty, on a new connection.
func get(a *API, path, token string) (Response, error) {
	var header []string
	if token != "" {
		header = []string{"Authorization", "Bearer " + token}
	}
	return Do(a.Client(), http.MethodGet, a.URL.String()+path, header...)
}

func TestRespond(t *testing.T) {
	for name, c := range map[string]struct {
		fault Fault
		token string
		want  string // status, code, RateLimit-Remaining, Retry-After and the logged status
	}{
		"unavailable":  {Fault{Status: 503, Header: http.Header{"Retry-After": {"9"}}}, MainToken, "503 unavailable 119 9 503"},
		"limited":      {Fault{Status: 429}, MainToken, "429 rate_limited 119  429"},
		"revoked":      {Fault{Status: 401}, MainToken, "401 invalid_token 119  401"},
		"invalid":      {Fault{Status: 400}, "", "400 invalid_parameter   400"},
		"undocumented": {Fault{Status: 500}, "", "500 internal_server_error   500"},
		"own body":     {Fault{Status: 502, Body: []byte(`{"error":{"code":"mine"}}`)}, "", "502 mine   502"},
		"header only":  {Fault{Header: http.Header{"Ratelimit-Remaining": {"0"}}}, MainToken, "200  0  200"},
	} {
		t.Run(name, func(t *testing.T) {
			a := Start(t, simulator.Options{})
			a.Inject(c.fault)
			r, err := get(a, "/account", c.token)
			var body struct{ Error struct{ Code string } }
			if err := errors.Join(err, json.Unmarshal([]byte(r.Body), &body)); err != nil {
				t.Fatal(err)
			}
			AssertEqual(t, "response", fmt.Sprintf("%d %s %s %s %d", r.Status, body.Error.Code,
				r.Header.Get("RateLimit-Remaining"), r.Header.Get("Retry-After"), a.Requests()[0].Status), c.want)
		})
	}
}

func TestBrokenResponses(t *testing.T) {
	a := Start(t, simulator.Options{})
	right := a.Body("/os", "")
	const garbage = "\x00\xff<!doctype html> this is not JSON {{{"
	type broken struct {
		Status, Logged       int
		Location, Type, Body string
		Err                  error
	}
	for kind, want := range map[Kind]broken{
		Drop:      {Err: io.EOF},
		Truncated: {200, 200, "", "application/json", right[:len(right)/2], io.ErrUnexpectedEOF},
		Garbage:   {200, 200, "", "application/json", garbage, nil},
		Redirect:  {302, 302, "http://elsewhere.example/os", "application/json", "", nil},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			f := Fault{Path: "/os", Kind: kind}
			if kind == Redirect {
				f.Header = http.Header{"Location": {want.Location}}
			}
			defer a.Inject(f)()
			r, err := get(a, "/os", "")
			log := a.Requests()
			got := broken{r.Status, log[len(log)-1].Status, r.Header.Get("Location"), r.Header.Get("Content-Type"), r.Body, err}
			if errors.Is(err, want.Err) {
				got.Err = want.Err // without the URL around it
			}
			AssertEqual(t, "response", got, want)
		})
	}
}

func TestEndlessUntilTheClientCloses(t *testing.T) {
	a := Start(t, simulator.Options{})
	a.Inject(Fault{Kind: Endless})
	response, err := a.Client().Get(a.URL.String() + "/plans")
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 8<<20)
	if _, err := io.ReadFull(response.Body, got); err != nil {
		t.Fatal(err)
	}
	const start = `{"data":"`
	if text := string(got); text != start+strings.Repeat("a", len(got)-len(start)) {
		t.Errorf("the body starts with %.40q, want an unfinished string of a", text)
	}
	_ = response.Body.Close() // Close of the API waits for the handler to end
}

func TestSlowResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := StartInMemory(t, simulator.Options{})
		right := a.Body("/locations/nyc", "")
		for kind, want := range map[Kind]time.Duration{Delay: 7 * time.Second, Trickle: time.Duration(len(right)-1) * time.Second} {
			remove := a.Inject(Fault{Kind: kind, Delay: 7 * time.Second})
			start := time.Now()
			r, err := get(a, "/locations/nyc", "")
			AssertEqual(t, kind.String(), []any{r.Body, err, time.Since(start)}, []any{right, nil, want})
			remove()
		}
	})
}

func TestFaultMatching(t *testing.T) {
	for name, c := range map[string]struct {
		faults []Fault
		want   string
	}{
		"everybody":         {[]Fault{{Status: 500}}, "500 500 500 500"},
		"a path":            {[]Fault{{Status: 500, Path: "/topups"}}, "200 200 500 500"},
		"a token":           {[]Fault{{Status: 500, Token: MainToken}}, "200 500 500 500"},
		"a query":           {[]Fault{{Status: 500, Query: url.Values{"page": {"2"}}}}, "200 200 200 500"},
		"twice":             {[]Fault{{Status: 500, Times: 2}}, "500 500 200 200"},
		"later":             {[]Fault{{Status: 500, After: 3}}, "200 200 200 500"},
		"once, later":       {[]Fault{{Status: 500, After: 1, Times: 1}}, "200 500 200 200"},
		"another":           {[]Fault{{Status: 500, Token: "other"}}, "200 200 200 200"},
		"a path goes first": {[]Fault{{Status: 500, Path: "/account"}, {Status: 502, Path: "/topups", Times: 1}, {Status: 503}}, "503 500 502 503"},
		"the newest first":  {[]Fault{{Status: 500}, {Status: 502, Times: 1}}, "502 500 500 500"},
		"a handler":         {[]Fault{{Handler: Reply(418, nil, ""), Path: "/os"}, {Status: 500, Times: 1}}, "418 500 200 200"},
	} {
		t.Run(name, func(t *testing.T) {
			a := Start(t, simulator.Options{})
			var removals []func()
			for _, f := range c.faults {
				removals = append(removals, a.Inject(f))
			}
			before := ""
			removals = append(removals, a.OnRequest(func(path string, query url.Values) { before += path + query.Encode() + " " }))
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
			for _, remove := range removals {
				remove()
				remove()
			}
			AssertEqual(t, "statuses after removal", requests(), "200 200 200 200")
			AssertEqual(t, "paths before the responses", before, "/os /account /topups /topupspage=2 ")
		})
	}
}
