package simulator

import (
	"bytes"
	"context"
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
)

// plainClient follows no redirect and never repeats a request.
func plainClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func TestRespond(t *testing.T) {
	type told struct {
		Status  int
		Code    string
		Headers map[string]string
	}
	for name, c := range map[string]struct {
		fault Fault
		token string
		want  told
	}{
		"unavailable": {
			Fault{Status: 503, Header: http.Header{"Retry-After": {"9"}}},
			token,
			told{503, "unavailable", map[string]string{"RateLimit-Remaining": "119", "Retry-After": "9"}},
		},
		"limited":      {Fault{Status: 429}, token, told{429, "rate_limited", map[string]string{"RateLimit-Remaining": "119"}}},
		"revoked":      {Fault{Status: 401}, token, told{401, "invalid_token", map[string]string{"RateLimit-Remaining": "119"}}},
		"no token":     {Fault{Status: 401}, "", told{401, "unauthorized", map[string]string{}}},
		"invalid":      {Fault{Status: 400}, "", told{400, "invalid_parameter", map[string]string{}}},
		"gone":         {Fault{Status: 404}, "", told{404, "not_found", map[string]string{}}},
		"undocumented": {Fault{Status: 500}, "", told{500, "internal_server_error", map[string]string{}}},
		"own body":     {Fault{Status: 502, Body: []byte(`{"error":{"code":"mine"}}`)}, "", told{502, "mine", map[string]string{}}},
		"header only": {
			Fault{Header: http.Header{"Ratelimit-Remaining": {"0"}}},
			token,
			told{200, "", map[string]string{"RateLimit-Remaining": "0"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := withMain(Options{})
			s.Inject(c.fault)
			r := get(t, serve(t, s)+"/account", c.token)
			got := told{r.Status, text(r.object(t), "error", "code"), r.picked("RateLimit-Remaining", "Retry-After")}
			same(t, "answer", got, c.want)
			same(t, "logged status", s.Requests()[0].Status, c.want.Status)
		})
	}
}

func TestBrokenAnswers(t *testing.T) {
	s := New(Options{})
	s.Change(func(w *World) { w.GeneratedAt = "then" })
	base := serve(t, s)
	right := get(t, base+"/plans", "")
	type broken struct {
		Status, Logged int
		Location, Body string
		Err            error
	}
	for kind, want := range map[Kind]broken{
		Drop:      {Err: io.EOF},
		Truncated: {Status: 200, Logged: 200, Body: right.Body[:len(right.Body)/2], Err: io.ErrUnexpectedEOF},
		Redirect:  {Status: 302, Logged: 302, Location: "http://elsewhere.example/plans"},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			f := Fault{Path: "/plans", Kind: kind}
			if kind == Redirect {
				f.Header = http.Header{"Location": {want.Location}}
			}
			defer s.Inject(f)()
			r := do(t, plainClient(), http.MethodGet, base+"/plans", "")
			log := s.Requests()
			got := broken{r.Status, log[len(log)-1].Status, r.Header.Get("Location"), r.Body, r.Err}
			if errors.Is(r.Err, want.Err) {
				got.Err = want.Err // without the URL around it
			}
			same(t, "answer", got, want)
		})
	}
}

func TestGarbageIsNoJSON(t *testing.T) {
	s := New(Options{})
	s.Inject(Fault{Kind: Garbage})
	r := get(t, serve(t, s)+"/plans", "")
	same(t, "status", r.Status, http.StatusOK)
	same(t, "type", r.Header.Get("Content-Type"), "application/json")
	if json.Valid([]byte(r.Body)) {
		t.Errorf("body %q is JSON", r.Body)
	}
}

func TestEndlessGoesOnUntilTheClientLeaves(t *testing.T) {
	s := New(Options{})
	s.Inject(Fault{Kind: Endless})
	response, err := plainClient().Get(serve(t, s) + "/plans")
	if err != nil {
		t.Fatal(err)
	}
	const enough = 8 << 20
	got := make([]byte, enough)
	if _, err := io.ReadFull(response.Body, got); err != nil {
		t.Fatal(err)
	}
	want := append([]byte(`{"data":"`), bytes.Repeat([]byte("a"), enough)...)[:enough]
	if !bytes.Equal(got, want) {
		t.Errorf("the body starts with %.40q, want an unfinished string of a", got)
	}
	_ = response.Body.Close() // serve would not end if the server went on
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		client, _ := serveInMemory(t, s)
		s.Inject(Fault{Kind: Delay, Delay: 7 * time.Second})
		start := time.Now()
		r := do(t, client, http.MethodGet, "http://rental.example/api/v1/os", "")
		same(t, "status", r.Status, http.StatusOK)
		same(t, "ids", strings.Fields(r.ids(t))[0], "ubuntu-24-04")
		same(t, "time", time.Since(start), 7*time.Second)
	})
}

func TestTrickle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		client, _ := serveInMemory(t, s)
		right := do(t, client, http.MethodGet, "http://rental.example/api/v1/locations/nyc", "")
		s.Inject(Fault{Kind: Trickle})
		start := time.Now()
		r := do(t, client, http.MethodGet, "http://rental.example/api/v1/locations/nyc", "")
		same(t, "body", r.Body, right.Body)
		same(t, "time", time.Since(start), time.Duration(len(right.Body)-1)*time.Second)
	})
}

func TestHangEndsWithTheClientOrTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		client, server := serveInMemory(t, s)
		s.Inject(Fault{Kind: Hang})
		client.Timeout = time.Hour
		start := time.Now()
		r := do(t, client, http.MethodGet, "http://rental.example/api/v1/os", "")
		if !errors.Is(r.Err, context.DeadlineExceeded) || time.Since(start) != time.Hour {
			t.Errorf("got %v after %v, want a deadline exceeded after an hour", r.Err, time.Since(start))
		}
		client.Timeout = 0
		time.AfterFunc(2*time.Hour, func() { _ = server.Close() })
		r = do(t, client, http.MethodGet, "http://rental.example/api/v1/os", "")
		if !errors.Is(r.Err, io.EOF) || time.Since(start) != 3*time.Hour {
			t.Errorf("got %v after %v, want EOF after three hours", r.Err, time.Since(start))
		}
		same(t, "logged statuses", []int{s.Requests()[0].Status, s.Requests()[1].Status}, []int{0, 0})
	})
}

func TestWhomAFaultBefalls(t *testing.T) {
	for name, c := range map[string]struct {
		faults []Fault
		want   string
	}{
		"everybody":   {[]Fault{{Status: 500}}, "500 500 500 500"},
		"a path":      {[]Fault{{Status: 500, Path: "/topups"}}, "200 200 500 500"},
		"a token":     {[]Fault{{Status: 500, Token: token}}, "200 500 500 500"},
		"a query":     {[]Fault{{Status: 500, Query: url.Values{"page": {"2"}}}}, "200 200 200 500"},
		"twice":       {[]Fault{{Status: 500, Times: 2}}, "500 500 200 200"},
		"another":     {[]Fault{{Status: 500, Token: "other"}}, "200 200 200 200"},
		"first wins":  {[]Fault{{Status: 500, Path: "/account"}, {Status: 502, Path: "/topups", Times: 1}, {Status: 503}}, "503 500 502 503"},
		"used up too": {[]Fault{{Status: 500, Times: 1}, {Status: 502, Times: 1}}, "500 502 200 200"},
	} {
		t.Run(name, func(t *testing.T) {
			s := withMain(Options{})
			var removals []func()
			for _, f := range c.faults {
				removals = append(removals, s.Inject(f))
			}
			requests := func() string {
				var statuses []string
				for _, path := range []string{"/os", "/account", "/topups", "/topups?page=2"} {
					as := token
					if path == "/os" {
						as = ""
					}
					statuses = append(statuses, fmt.Sprint(ask(s, path, as, "pipe").Status))
				}
				return strings.Join(statuses, " ")
			}
			same(t, "statuses", requests(), c.want)
			for _, remove := range removals {
				remove()
				remove()
			}
			same(t, "statuses after removal", requests(), "200 200 200 200")
		})
	}
}

func TestAFaultIsFixedOnceInjected(t *testing.T) {
	s := New(Options{})
	f := Fault{Status: 500, Header: http.Header{"X-A": {"1"}}, Body: []byte(`{"a":1}`)}
	s.Inject(f)
	f.Header.Set("X-A", "2")
	f.Body[5] = '2'
	r := ask(s, "/os", "", "pipe")
	same(t, "answer", []string{r.Header.Get("X-A"), r.Body}, []string{"1", `{"a":1}`})
}

func TestKindsHaveNames(t *testing.T) {
	var names []string
	for k := Respond - 1; k <= Redirect+1; k++ {
		names = append(names, k.String())
	}
	same(t, "names", strings.Join(names, " "), "unknown respond delay hang drop truncated garbage endless trickle redirect unknown")
}
