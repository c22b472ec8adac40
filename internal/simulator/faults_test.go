package simulator_test

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

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

func TestRespond(t *testing.T) {
	type result struct {
		Status  int
		Code    string
		Headers map[string]string
	}
	for name, c := range map[string]struct {
		fault simulator.Fault
		token string
		want  result
	}{
		"unavailable": {
			simulator.Fault{Status: 503, Header: http.Header{"Retry-After": {"9"}}},
			simtest.MainToken,
			result{503, "unavailable", map[string]string{"RateLimit-Remaining": "119", "Retry-After": "9"}},
		},
		"limited":      {simulator.Fault{Status: 429}, simtest.MainToken, result{429, "rate_limited", map[string]string{"RateLimit-Remaining": "119"}}},
		"revoked":      {simulator.Fault{Status: 401}, simtest.MainToken, result{401, "invalid_token", map[string]string{"RateLimit-Remaining": "119"}}},
		"no token":     {simulator.Fault{Status: 401}, "", result{401, "unauthorized", map[string]string{}}},
		"invalid":      {simulator.Fault{Status: 400}, "", result{400, "invalid_parameter", map[string]string{}}},
		"gone":         {simulator.Fault{Status: 404}, "", result{404, "not_found", map[string]string{}}},
		"undocumented": {simulator.Fault{Status: 500}, "", result{500, "internal_server_error", map[string]string{}}},
		"own body":     {simulator.Fault{Status: 502, Body: []byte(`{"error":{"code":"mine"}}`)}, "", result{502, "mine", map[string]string{}}},
		"header only": {
			simulator.Fault{Header: http.Header{"Ratelimit-Remaining": {"0"}}},
			simtest.MainToken,
			result{200, "", map[string]string{"RateLimit-Remaining": "0"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := simtest.Start(t, simulator.Options{})
			a.Inject(c.fault)
			r := get(t, a, "/account", c.token)
			got := result{r.Status, simulator.Text(r.object(t), "error", "code"), r.headers("RateLimit-Remaining", "Retry-After")}
			simtest.AssertEqual(t, "answer", got, c.want)
			simtest.AssertEqual(t, "logged status", a.Requests()[0].Status, c.want.Status)
		})
	}
}

func TestBrokenAnswers(t *testing.T) {
	a := simtest.Start(t, simulator.Options{})
	a.Change(func(w *simulator.World) { w.GeneratedAt = "then" })
	right := get(t, a, "/plans", "")
	type broken struct {
		Status, Logged int
		Location, Body string
		Err            error
	}
	for kind, want := range map[simulator.Kind]broken{
		simulator.Drop:      {Err: io.EOF},
		simulator.Truncated: {Status: 200, Logged: 200, Body: right.Body[:len(right.Body)/2], Err: io.ErrUnexpectedEOF},
		simulator.Redirect:  {Status: 302, Logged: 302, Location: "http://elsewhere.example/plans"},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			f := simulator.Fault{Path: "/plans", Kind: kind}
			if kind == simulator.Redirect {
				f.Header = http.Header{"Location": {want.Location}}
			}
			defer a.Inject(f)()
			r := do(t, a, http.MethodGet, "/plans", "")
			log := a.Requests()
			got := broken{r.Status, log[len(log)-1].Status, r.Header.Get("Location"), r.Body, r.err}
			if errors.Is(r.err, want.Err) {
				got.Err = want.Err // without the URL around it
			}
			simtest.AssertEqual(t, "answer", got, want)
		})
	}
}

func TestGarbageIsNotJSON(t *testing.T) {
	a := simtest.Start(t, simulator.Options{})
	a.Inject(simulator.Fault{Kind: simulator.Garbage})
	r := get(t, a, "/plans", "")
	simtest.AssertEqual(t, "status", r.Status, http.StatusOK)
	simtest.AssertEqual(t, "type", r.Header.Get("Content-Type"), "application/json")
	if json.Valid([]byte(r.Body)) {
		t.Errorf("body %q is JSON", r.Body)
	}
}

func TestEndlessUntilTheClientCloses(t *testing.T) {
	a := simtest.Start(t, simulator.Options{})
	a.Inject(simulator.Fault{Kind: simulator.Endless})
	response, err := a.Client().Get(a.URL.String() + "/plans")
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
	_ = response.Body.Close() // Close of the API waits for the handler to end
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := simtest.StartInMemory(t, simulator.Options{})
		a.Inject(simulator.Fault{Kind: simulator.Delay, Delay: 7 * time.Second})
		start := time.Now()
		r := do(t, a, http.MethodGet, "/os", "")
		simtest.AssertEqual(t, "status", r.Status, http.StatusOK)
		simtest.AssertEqual(t, "ids", strings.Fields(r.ids(t))[0], "ubuntu-24-04")
		simtest.AssertEqual(t, "time", time.Since(start), 7*time.Second)
	})
}

func TestTrickle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := simtest.StartInMemory(t, simulator.Options{})
		right := do(t, a, http.MethodGet, "/locations/nyc", "")
		a.Inject(simulator.Fault{Kind: simulator.Trickle})
		start := time.Now()
		r := do(t, a, http.MethodGet, "/locations/nyc", "")
		simtest.AssertEqual(t, "body", r.Body, right.Body)
		simtest.AssertEqual(t, "time", time.Since(start), time.Duration(len(right.Body)-1)*time.Second)
	})
}

func TestHangEndsWithTheClientOrTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := simtest.StartInMemory(t, simulator.Options{})
		client, url := a.Client(), a.URL.String()+"/os"
		a.Inject(simulator.Fault{Kind: simulator.Hang})
		client.Timeout = time.Hour
		start := time.Now()
		_, err := simtest.Do(client, http.MethodGet, url)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Hour {
			t.Errorf("got %v after %v, want a deadline exceeded after an hour", err, time.Since(start))
		}
		client.Timeout = 0
		time.AfterFunc(2*time.Hour, a.Close)
		_, err = simtest.Do(client, http.MethodGet, url)
		if !errors.Is(err, io.EOF) || time.Since(start) != 3*time.Hour {
			t.Errorf("got %v after %v, want EOF after three hours", err, time.Since(start))
		}
		simtest.AssertEqual(t, "logged statuses", []int{a.Requests()[0].Status, a.Requests()[1].Status}, []int{0, 0})
	})
}

func TestFaultMatching(t *testing.T) {
	for name, c := range map[string]struct {
		faults []simulator.Fault
		want   string
	}{
		"everybody":   {[]simulator.Fault{{Status: 500}}, "500 500 500 500"},
		"a path":      {[]simulator.Fault{{Status: 500, Path: "/topups"}}, "200 200 500 500"},
		"a token":     {[]simulator.Fault{{Status: 500, Token: simtest.MainToken}}, "200 500 500 500"},
		"a query":     {[]simulator.Fault{{Status: 500, Query: url.Values{"page": {"2"}}}}, "200 200 200 500"},
		"twice":       {[]simulator.Fault{{Status: 500, Times: 2}}, "500 500 200 200"},
		"another":     {[]simulator.Fault{{Status: 500, Token: "other"}}, "200 200 200 200"},
		"first wins":  {[]simulator.Fault{{Status: 500, Path: "/account"}, {Status: 502, Path: "/topups", Times: 1}, {Status: 503}}, "503 500 502 503"},
		"used up too": {[]simulator.Fault{{Status: 500, Times: 1}, {Status: 502, Times: 1}}, "500 502 200 200"},
	} {
		t.Run(name, func(t *testing.T) {
			a := simtest.Start(t, simulator.Options{})
			var removals []func()
			for _, f := range c.faults {
				removals = append(removals, a.Inject(f))
			}
			requests := func() string {
				var statuses []string
				for _, path := range []string{"/os", "/account", "/topups", "/topups?page=2"} {
					as := simtest.MainToken
					if path == "/os" {
						as = ""
					}
					statuses = append(statuses, fmt.Sprint(ask(a, path, as, "pipe").Status))
				}
				return strings.Join(statuses, " ")
			}
			simtest.AssertEqual(t, "statuses", requests(), c.want)
			for _, remove := range removals {
				remove()
				remove()
			}
			simtest.AssertEqual(t, "statuses after removal", requests(), "200 200 200 200")
		})
	}
}

func TestInjectCopiesTheFault(t *testing.T) {
	s := simulator.New(simulator.Options{})
	f := simulator.Fault{Status: 500, Header: http.Header{"X-A": {"1"}}, Body: []byte(`{"a":1}`)}
	s.Inject(f)
	f.Header.Set("X-A", "2")
	f.Body[5] = '2'
	r := ask(s, "/os", "", "pipe")
	simtest.AssertEqual(t, "answer", []string{r.Header.Get("X-A"), r.Body}, []string{"1", `{"a":1}`})
}

func TestKindString(t *testing.T) {
	var names []string
	for k := simulator.Respond - 1; k <= simulator.Redirect+1; k++ {
		names = append(names, k.String())
	}
	simtest.AssertEqual(t, "names", strings.Join(names, " "), "unknown respond delay hang drop truncated garbage endless trickle redirect unknown")
}
