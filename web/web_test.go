package web

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/refresh"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fake is what the pages read, as a test wants it.
type fake struct {
	status  []collector.Status
	ready   bool
	servers []collector.Server // all accounts'
	err     error              // of ActiveServers
}

func (f *fake) Status() []collector.Status { return f.status }
func (f *fake) Ready() bool                { return f.ready }

func (f *fake) ActiveServers(account string) ([]collector.Server, error) {
	if f.err != nil || account == "" {
		return f.servers, f.err
	}
	var own []collector.Server
	for _, s := range f.servers {
		if s.Account == account {
			own = append(own, s)
		}
	}
	if own == nil {
		return nil, collector.ErrUnknownAccount
	}
	return own, nil
}

// open is everything that can be switched on.
func open() Options {
	return Options{
		Version: "1.2.3", API: func() string { return "rental.example" },
		MetricsPath: "/metrics", Metrics: text("metrics\n"),
		Reload: func() error { return nil }, Discovery: true,
	}
}

func text(s string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%s", s) })
}

// answer is the part of a response that is compared.
type answer struct {
	Status int
	Allow  string
	Body   string
}

func do(h http.Handler, method, target string) (answer, http.Header) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return answer{w.Code, strings.Join(w.Header().Values("Allow"), ", "), w.Body.String()}, w.Header()
}

func TestPathsAndMethods(t *testing.T) {
	const (
		notReady     = "not ready: not every collector has been tried yet\n"
		reloadOff    = "reloading over HTTP is off; start with --web.enable-lifecycle\n"
		discoveryOff = "service discovery tells the servers' addresses and is off; start with --web.enable-service-discovery\n"
	)
	refused := answer{405, "GET, HEAD", "method not allowed\n"}
	notFound := answer{404, "", "404 page not found\n"}
	with := func(f func(*Options)) Options {
		o := open()
		f(&o)
		return o
	}
	closed := with(func(o *Options) { o.Reload, o.Discovery = nil, false })
	elsewhere := with(func(o *Options) { o.MetricsPath = "/probe/rental" })

	for _, tc := range []struct {
		name    string
		options Options
		ready   bool
		path    string
		get     answer
		post    answer
	}{
		{"metrics", open(), false, "/metrics", answer{200, "", "metrics\n"}, refused},
		{"metrics below", open(), false, "/metrics/", notFound, notFound},
		{"metrics elsewhere", elsewhere, false, "/probe/rental", answer{200, "", "metrics\n"}, refused},
		{"metrics not at the usual place", elsewhere, false, "/metrics", notFound, notFound},
		{"healthy", open(), false, "/-/healthy", answer{200, "", "server_rental_exporter is healthy.\n"}, refused},
		{"before ready", open(), false, "/-/ready", answer{503, "", notReady}, refused},
		{"ready", open(), true, "/-/ready", answer{200, "", "server_rental_exporter is ready.\n"}, refused},
		{"reload", open(), true, "/-/reload", answer{405, "POST", "method not allowed\n"}, answer{200, "", "configuration reloaded.\n"}},
		{"reload closed", closed, true, "/-/reload", answer{403, "", reloadOff}, answer{403, "", reloadOff}},
		{"discovery", open(), true, "/sd/servers", answer{200, "", "[]\n"}, refused},
		{"discovery closed", closed, true, "/sd/servers", answer{403, "", discoveryOff}, refused},
		{"unknown", open(), true, "/favicon.ico", notFound, notFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := Handler(&fake{ready: tc.ready}, tc.options)
			for method, want := range map[string]answer{"GET": tc.get, "POST": tc.post} {
				if got, _ := do(h, method, tc.path); got != want {
					t.Errorf("%s %s:\ngot  %+v\nwant %+v", method, tc.path, got, want)
				}
			}
			// A server sends no body of an answer to HEAD, so status and Allow are what counts.
			if got, _ := do(h, "HEAD", tc.path); got.Status != tc.get.Status || got.Allow != tc.get.Allow {
				t.Errorf("HEAD %s: got status %d, Allow %q, want those of GET: %d, %q", tc.path, got.Status, got.Allow, tc.get.Status, tc.get.Allow)
			}
		})
	}
	t.Run("landing", func(t *testing.T) {
		h := Handler(&fake{}, open())
		for method, want := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405, "DELETE": 405} {
			if got, _ := do(h, method, "/"); got.Status != want {
				t.Errorf("%s /: got %d, want %d", method, got.Status, want)
			}
		}
	})
}

func TestReadyFollowsCollectors(t *testing.T) {
	f := &fake{}
	h := Handler(f, open())
	var got []int
	for _, ready := range []bool{false, true} {
		f.ready = ready
		a, _ := do(h, "GET", "/-/ready")
		got = append(got, a.Status)
	}
	if want := []int{503, 200}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReloadRefused(t *testing.T) {
	o := open()
	o.Reload = func() error { return errors.New("rental.yml:3: api.timeout: bad\nrental.yml:7: accounts: bad") }
	got, _ := do(Handler(&fake{}, o), "POST", "/-/reload")
	want := answer{500, "", "the configuration was refused and the running one stays:\nrental.yml:3: api.timeout: bad\nrental.yml:7: accounts: bad\n"}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Every answer, good or bad, tells the browser to make nothing more of it.
func TestHeaders(t *testing.T) {
	want := map[string]string{
		"X-Content-Type-Options":  "nosniff",
		"X-Frame-Options":         "DENY",
		"Referrer-Policy":         "no-referrer",
		"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
	h := Handler(&fake{}, open())
	for path, contentType := range map[string]string{
		"/":             "text/html; charset=utf-8",
		"/metrics":      "text/plain; charset=utf-8",
		"/-/healthy":    "text/plain; charset=utf-8",
		"/-/ready":      "text/plain; charset=utf-8",
		"/-/reload":     "text/plain; charset=utf-8",
		"/sd/servers":   "application/json",
		"/there/is/not": "text/plain; charset=utf-8",
	} {
		_, header := do(h, "GET", path)
		got := map[string]string{}
		for name := range want {
			got[name] = header.Get(name)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %v\nwant %v", path, got, want)
		}
		if got := header.Get("Content-Type"); got != contentType {
			t.Errorf("%s: got Content-Type %q, want %q", path, got, contentType)
		}
	}
}

func TestDiscovery(t *testing.T) {
	server := func(account, id string, addresses ...string) collector.Server {
		return collector.Server{
			Account: account, ID: id, Plan: "epyc-4464p", Location: "ams", OS: "debian-13",
			Hostname: id + ".example", Status: "active", IPv4: addresses,
		}
	}
	group := func(account, id, target string) string {
		return fmt.Sprintf(`{"targets":[%q],"labels":{"__meta_server_rental_account":%q,"__meta_server_rental_hostname":%q,`+
			`"__meta_server_rental_location":"ams","__meta_server_rental_os":"debian-13","__meta_server_rental_plan":"epyc-4464p",`+
			`"__meta_server_rental_server":%q,"__meta_server_rental_status":"active"}}`, target, account, id+".example", id)
	}
	list := func(groups ...string) answer { return answer{200, "", "[" + strings.Join(groups, ",") + "]\n"} }
	both := []collector.Server{server("lab", "s1", "192.0.2.1"), server("main", "s2", "192.0.2.2")}
	badPort := answer{400, "", "port: must be a number from 1 to 65535\n"}

	for _, tc := range []struct {
		name    string
		servers []collector.Server
		err     error
		query   string
		want    answer
	}{
		{"none", nil, nil, "", list()},
		{"none, with a port", nil, nil, "?port=9100", list()},
		{"all accounts", both, nil, "", list(group("lab", "s1", "192.0.2.1"), group("main", "s2", "192.0.2.2"))},
		{"all accounts, named empty", both, nil, "?account=", list(group("lab", "s1", "192.0.2.1"), group("main", "s2", "192.0.2.2"))},
		{"one account", both, nil, "?account=main", list(group("main", "s2", "192.0.2.2"))},
		{"one account and port", both, nil, "?account=lab&port=9100", list(group("lab", "s1", "192.0.2.1:9100"))},
		{"unknown account", both, nil, "?account=other", answer{404, "", "account: no such account is configured\n"}},
		{
			"incomplete", both, fmt.Errorf("%w: account main: no current list", collector.ErrIncomplete), "",
			answer{503, "", "servers: not all are known: account main: no current list\n"},
		},
		{"lowest port", both[:1], nil, "?port=1", list(group("lab", "s1", "192.0.2.1:1"))},
		{"highest port", both[:1], nil, "?port=65535", list(group("lab", "s1", "192.0.2.1:65535"))},
		{"port 0", both, nil, "?port=0", badPort},
		{"port too high", both, nil, "?port=65536", badPort},
		{"port negative", both, nil, "?port=-1", badPort},
		{"port empty", both, nil, "?port=", badPort},
		{"port with a zero before it", both, nil, "?port=09100", badPort},
		{"port by name", both, nil, "?port=http", badPort},
		{"port with a host", both, nil, "?port=9100@evil.example", badPort},
		{"IPv6", []collector.Server{server("main", "s1", "2001:db8::1")}, nil, "", list(group("main", "s1", "[2001:db8::1]"))},
		{"IPv6 and port", []collector.Server{server("main", "s1", "2001:db8::1")}, nil, "?port=9100", list(group("main", "s1", "[2001:db8::1]:9100"))},
		{"first of several", []collector.Server{server("main", "s1", "192.0.2.1", "192.0.2.9")}, nil, "?port=9100", list(group("main", "s1", "192.0.2.1:9100"))},
		{
			"without an address",
			[]collector.Server{server("main", "s1"), server("main", "s2", ""), server("main", "s3", "192.0.2.3")},
			nil, "",
			list(group("main", "s3", "192.0.2.3")),
		},
		{"no address at all", []collector.Server{server("main", "s1")}, nil, "", list()},
		{
			"not an address",
			[]collector.Server{server("main", "s1", "192.0.2.1"), server("main", "s2", "nowhere/metrics")},
			nil, "",
			answer{503, "", "servers: account main: server s2: ipv4: not an address\n"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, header := do(Handler(&fake{servers: tc.servers, err: tc.err}, open()), "GET", "/sd/servers"+tc.query)
			if got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
			if got.Status != 200 {
				return
			}
			// What Prometheus asks of a service discovery.
			if got := header.Get("Content-Type"); got != "application/json" {
				t.Errorf("got Content-Type %q, want application/json", got)
			}
			if got := header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("got Cache-Control %q, want no-store", got)
			}
			if !json.Valid([]byte(got.Body)) {
				t.Errorf("not JSON: %s", got.Body)
			}
		})
	}
}

// landingAt is the landing page at a fixed time.
func landingAt(t *testing.T, o Options, state func(now time.Time) *fake) string {
	t.Helper()
	var page answer
	synctest.Test(t, func(t *testing.T) {
		var header http.Header
		page, header = do(Handler(state(time.Now()), o), "GET", "/")
		if page.Status != 200 || header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("got status %d and %q", page.Status, header.Get("Content-Type"))
		}
	})
	return page.Body
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (-update rewrites it):\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

func TestLandingPage(t *testing.T) {
	closed := open()
	closed.Reload, closed.Discovery = nil, false
	closed.MetricsPath = "/probe"
	minute := refresh.Settings{Interval: time.Minute, MaxAge: 5 * time.Minute}

	t.Run("starting", func(t *testing.T) {
		golden(t, "starting.html", landingAt(t, closed, func(time.Time) *fake {
			return &fake{status: []collector.Status{{Collector: "plans", State: refresh.State{Settings: minute}}}}
		}))
	})
	t.Run("every state", func(t *testing.T) {
		golden(t, "states.html", landingAt(t, open(), func(now time.Time) *fake {
			row := func(name, account string, invalid int64, last time.Duration, next time.Duration, err error) collector.Status {
				s := collector.Status{Collector: name, Account: account, Invalid: invalid}
				s.State = refresh.State{Tried: true, Finished: true, Err: err, Next: now.Add(next), Settings: minute}
				if last > 0 {
					s.LastSuccess = now.Add(-last)
				}
				return s
			}
			down := errors.New("/account: connection refused")
			return &fake{ready: true, status: []collector.Status{
				row("plans", "", 0, 20*time.Second, 40*time.Second, nil),
				row("locations", "", 2, 20*time.Second, 40*time.Second, nil),
				row("account", "main", 0, 90*time.Second, 8*time.Second, down),
				row("topups", "main", 0, 6*time.Minute, 0, down),
				row("servers", "main", 0, 0, 8*time.Second, down),
				{Collector: "transactions", Account: "main", State: refresh.State{Tried: true, Settings: minute}},
			}}
		}))
	})
}

func TestLandingPageEscapes(t *testing.T) {
	const evil = `<script>alert("1")</script>`
	o := open()
	o.API = func() string { return evil }
	page := landingAt(t, o, func(time.Time) *fake {
		return &fake{status: []collector.Status{{
			Collector: "account", Account: evil, State: refresh.State{Tried: true, Finished: true, Err: errors.New(evil)},
		}}}
	})
	if strings.Contains(page, "<script") {
		t.Errorf("a script got into the page:\n%s", page)
	}
	if got := strings.Count(page, "&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;"); got != 3 {
		t.Errorf("got %d escaped texts, want 3 (source, account, error):\n%s", got, page)
	}
}

func TestCheckMetricsPath(t *testing.T) {
	for path, want := range map[string]string{
		"/metrics":      "",
		"/a/b.c_d-e~":   "",
		"/sd":           "",
		"/-/metrics":    "",
		"":              `"": must begin with / and not be the landing page`,
		"/":             `"/": must begin with / and not be the landing page`,
		"metrics":       `"metrics": must begin with / and not be the landing page`,
		"/metrics/":     `"/metrics/": write it as "/metrics"`,
		"//metrics":     `"//metrics": write it as "/metrics"`,
		"/a/../metrics": `"/a/../metrics": write it as "/metrics"`,
		"/-/healthy":    `"/-/healthy": is served by the exporter itself`,
		"/-/ready":      `"/-/ready": is served by the exporter itself`,
		"/-/reload":     `"/-/reload": is served by the exporter itself`,
		"/sd/servers":   `"/sd/servers": is served by the exporter itself`,
		"/{$}":          `"/{$}": has a character that does not belong into a path`,
		"/{x...}":       `"/{x...}": has a character that does not belong into a path`,
		"/a b":          `"/a b": has a character that does not belong into a path`,
		"/a\nb":         `"/a\nb": has a character that does not belong into a path`,
		"/mètres":       `"/mètres": has a character that does not belong into a path`,
		"/a%20b":        `"/a%20b": has a character that does not belong into a path`,
		"/metrics?x=1":  `"/metrics?x=1": has a character that does not belong into a path`,
		"/metrics#x":    `"/metrics#x": has a character that does not belong into a path`,
	} {
		got := ""
		if err := CheckMetricsPath(path); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", path, got, want)
		}
		if want != "" {
			continue
		}
		o := open()
		o.MetricsPath = path
		if got, _ := do(Handler(&fake{}, o), "GET", path); got.Body != "metrics\n" {
			t.Errorf("%q is allowed and not served: %+v", path, got)
		}
	}
}
