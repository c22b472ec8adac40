package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// fakeSource is the data that the pages show.
type fakeSource struct {
	health  []health
	ready   bool
	watches []collector.Watch
	events  []collector.Event
}

func (f *fakeSource) Health() []health { return f.health }

func (f *fakeSource) Ready() bool { return f.ready }

func (f *fakeSource) Watches() []collector.Watch { return f.watches }

func (f *fakeSource) Events() []collector.Event { return f.events }

// allEnabled returns options with everything enabled.
func allEnabled() Options {
	return Options{
		Version:     "1.2.3",
		MetricsPath: "/metrics", Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "metrics") }),
		Reload: func() error { return nil }, Discovery: func([]string) ([]collector.Server, error) { return nil, nil },
		Configured: func() Configured { return Configured{API: "rental.example"} },
	}
}

// response is the part of an HTTP response that is compared.
type response struct {
	Status int
	Allow  string
	Body   string
}

// do also asserts the content type, and that the response restricts what a browser does
// with it.
func do(t *testing.T, h http.Handler, method, target string) (response, http.Header) {
	t.Helper()
	w := httptest.NewRecorder()
	Harden(h).ServeHTTP(w, httptest.NewRequest(method, target, nil))
	contentType := "text/plain; charset=utf-8"
	if path, _, _ := strings.Cut(target, "?"); w.Code == http.StatusOK {
		contentType = cmp.Or(map[string]string{"/": "text/html; charset=utf-8", "/sd/servers": "application/json"}[path], contentType)
	}
	want := map[string]string{
		"Content-Type":            contentType,
		"Cache-Control":           "no-store",
		"X-Content-Type-Options":  "nosniff",
		"Referrer-Policy":         "no-referrer",
		"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
	got := map[string]string{}
	for name := range want {
		got[name] = w.Header().Get(name)
	}
	simtest.AssertEqual(t, method+" "+target+": headers", got, want)
	return response{w.Code, strings.Join(w.Header().Values("Allow"), ", "), w.Body.String()}, w.Header()
}

func TestPathsAndMethods(t *testing.T) {
	const (
		notReady     = "not ready: not every collector has been tried yet\n"
		reloadOff    = "reloading over HTTP is off; start with --web.enable-lifecycle\n"
		discoveryOff = "service discovery exposes the servers' addresses and is off; start with --web.enable-service-discovery\n"
	)
	refused := response{405, "GET, HEAD", "Method Not Allowed\n"}
	notFound := response{404, "", "404 page not found\n"}
	faulty, closed := allEnabled(), allEnabled()
	faulty.Reload = func() error { return errors.New("line 1: fault") }
	closed.Reload, closed.Discovery = nil, nil
	for _, tc := range []struct {
		name    string
		options Options
		ready   bool
		path    string
		get     response
		post    response
	}{
		{"metrics", allEnabled(), false, "/metrics", response{200, "", "metrics\n"}, refused},
		{"healthy", allEnabled(), false, "/-/healthy", response{200, "", "server_rental_exporter is healthy.\n"}, refused},
		{"before ready", allEnabled(), false, "/-/ready", response{503, "", notReady}, refused},
		{"ready", allEnabled(), true, "/-/ready", response{200, "", "server_rental_exporter is ready.\n"}, refused},
		{"reload", allEnabled(), true, "/-/reload", response{405, "POST", "Method Not Allowed\n"}, response{200, "", "configuration reloaded.\n"}},
		{"reload failed", faulty, true, "/-/reload", response{405, "POST", "Method Not Allowed\n"}, response{500, "", "reload failed, keeping current configuration:\nline 1: fault\n"}},
		{"reload closed", closed, true, "/-/reload", response{403, "", reloadOff}, response{403, "", reloadOff}},
		{"discovery", allEnabled(), true, "/sd/servers", response{200, "", "[]\n"}, refused},
		{"discovery closed", closed, true, "/sd/servers", response{403, "", discoveryOff}, refused},
		{"unknown", allEnabled(), true, "/favicon.ico", notFound, notFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := Handler(&fakeSource{ready: tc.ready}, tc.options)
			for method, want := range map[string]response{"GET": tc.get, "POST": tc.post} {
				got, _ := do(t, h, method, tc.path)
				simtest.AssertEqual(t, method+" "+tc.path, got, want)
			}
			// A server sends no body in response to HEAD, so status and Allow are what counts.
			if got, _ := do(t, h, "HEAD", tc.path); got.Status != tc.get.Status || got.Allow != tc.get.Allow {
				t.Errorf("HEAD %s: got status %d, Allow %q, want those of GET: %d, %q", tc.path, got.Status, got.Allow, tc.get.Status, tc.get.Allow)
			}
		})
	}
	posted, _ := do(t, Handler(&fakeSource{}, allEnabled()), "POST", "/")
	simtest.AssertEqual(t, "POST /", posted, refused)
}

// TestOnePage has requests for the page that come while it is rendered.
func TestOnePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rendered, served atomic.Int64
		begin, o := make(chan struct{}), allEnabled()
		o.Configured = func() Configured {
			rendered.Add(1)
			<-begin
			return Configured{API: "rental.example"}
		}
		h := Handler(&fakeSource{}, o)
		for range 100 {
			go func() {
				if got, _ := do(t, h, "GET", "/"); got.Status == http.StatusOK && strings.Contains(got.Body, "rental.example") {
					served.Add(1)
				}
			}()
		}
		synctest.Wait()
		close(begin)
		synctest.Wait()
		simtest.AssertEqual(t, "rendered and served", []int64{rendered.Load(), served.Load()}, []int64{1, 100})
	})
}

func TestDiscovery(t *testing.T) {
	server := collector.Server{Account: "main", ID: "s1", Plan: "epyc-4464p", Location: "ams", OS: "debian-13", Hostname: "s1.example", Status: "active", IPv4: netip.MustParseAddr("192.0.2.1")}
	const labels = `"labels":{"__meta_server_rental_account":"main","__meta_server_rental_hostname":"s1.example","__meta_server_rental_location":"ams",` +
		`"__meta_server_rental_os":"debian-13","__meta_server_rental_plan":"epyc-4464p","__meta_server_rental_server":"s1","__meta_server_rental_status":"active"}`
	o := allEnabled()
	o.Discovery = func(accounts []string) ([]collector.Server, error) {
		switch strings.Join(accounts, ",") {
		case "":
			if accounts != nil {
				return nil, collector.ErrNoAccount
			}
			return []collector.Server{server, {ID: "without an address"}, server}, nil
		case "main", "main,none":
			return []collector.Server{server}, nil
		case "partial":
			return []collector.Server{server}, fmt.Errorf("%w: account partial: no current list", collector.ErrIncompleteServers)
		case "none":
			return nil, nil
		}
		return nil, collector.ErrNoAccount
	}
	cases := map[string]response{
		"":                         {200, "", `[{"targets":["192.0.2.1"],` + labels + `},{"targets":["192.0.2.1"],` + labels + "}]\n"},
		"?account=main&port=65535": {200, "", `[{"targets":["192.0.2.1:65535"],` + labels + "}]\n"},
		"?account=none&port=9100":  {200, "", "[]\n"},
		"?account=main&account=none&port=9100&port=9115": {200, "", `[{"targets":["192.0.2.1:9100","192.0.2.1:9115"],` + labels + "}]\n"},
		"?account=":               {404, "", "account: this exporter has no such account\n"},
		"?acount=main":            {400, "", "query: unknown parameter: must be account or port\n"},
		"?account=a;account=main": {400, "", "query: invalid semicolon separator in query\n"},
		"?account=other":          {404, "", "account: this exporter has no such account\n"},
		"?account=partial":        {503, "", "servers: list is incomplete: account partial: no current list\n"},
	}
	for _, port := range []string{"0", "65536", "-1", "", "09100", "http", "9100@evil.example"} {
		cases["?port="+port] = response{400, "", "port: must be a number from 1 to 65535\n"}
	}
	for query, want := range cases {
		got, _ := do(t, Handler(&fakeSource{}, o), "GET", "/sd/servers"+query)
		simtest.AssertEqual(t, query, got, want)
	}
}

// TestDiscoveryAddresses asserts that only addresses that lead to the server are targets.
func TestDiscoveryAddresses(t *testing.T) {
	for address, want := range map[string][]string{ // targets without and with a port
		"192.0.2.1": {"192.0.2.1", "192.0.2.1:9100"}, "::ffff:192.0.2.1": {"192.0.2.1", "192.0.2.1:9100"}, "2001:db8::1": {"[2001:db8::1]", "[2001:db8::1]:9100"},
		"127.0.0.53": nil, "::1": nil, "::ffff:127.0.0.1": nil, "0.0.0.0": nil, "10.0.0.1": {"10.0.0.1", "10.0.0.1:9100"}, "fd00::1": {"[fd00::1]", "[fd00::1]:9100"},
		"::": nil, "169.254.169.254": nil, "fe80::1": nil, "2001:db8::1%eth0": nil, "224.0.0.1": nil, "ff02::1": nil,
	} {
		var got []string
		for _, group := range targets([]collector.Server{{IPv4: netip.MustParseAddr(address)}}, []string{"", "9100"}) {
			got = append(got, group.Targets...)
		}
		simtest.AssertEqual(t, address, got, want)
	}
}

func TestCheckMetricsPath(t *testing.T) {
	const allowed = "<nil>"
	cases := map[string]string{"/metrics": allowed, "/a/b.c_d-e~:@": allowed, "/sd": allowed, "/-/metrics": allowed}
	for _, path := range []string{"", "/", "metrics", "/metrics/", "//metrics", "/a/../metrics", "/{$}", "/{x...}", "/a b", "/a\nb", "/mètres", "/a%20b", "/metrics?x=1", "/metrics#x"} {
		cases[path] = "must be like /metrics: ASCII letters, digits and _-.~:@ between slashes"
	}
	for _, path := range []string{"/-/healthy", "/-/ready", "/-/reload", "/sd/servers"} {
		cases[path] = "is served by the exporter itself"
	}
	for path, want := range cases {
		simtest.AssertEqual(t, path, fmt.Sprint(CheckMetricsPath(path)), want)
		if want != allowed {
			continue
		}
		o := allEnabled()
		o.MetricsPath = path
		if got, _ := do(t, Handler(&fakeSource{}, o), "GET", path); got.Body != "metrics\n" {
			t.Errorf("%q is allowed and not served: %+v", path, got)
		}
	}
}

// TestReloadFromOtherSite refuses what a browser sends for a page of another site.
func TestReloadFromOtherSite(t *testing.T) {
	for header, want := range map[string]int{"": 200, "same-origin": 200, "none": 200, "cross-site": 403, "same-site": 403} {
		r := httptest.NewRequest(http.MethodPost, ReloadPath, nil)
		if header != "" {
			r.Header.Set("Sec-Fetch-Site", header)
		}
		w := httptest.NewRecorder()
		Handler(&fakeSource{}, allEnabled()).ServeHTTP(w, r)
		simtest.AssertEqual(t, "Sec-Fetch-Site "+header, w.Code, want)
	}
}
