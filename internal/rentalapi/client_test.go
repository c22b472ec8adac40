package rentalapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	promconfig "github.com/prometheus/common/config"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// harness is an API of a simulated provider in memory.
type harness struct {
	*simtest.API
	client   *API
	requests *prometheus.Registry // metrics of requests
	clients  map[string]*Client   // the newest of each account
	dialing  func()               // called before each connection
}

// withHarness runs f in a synctest bubble.
func withHarness(t *testing.T, f func(t *testing.T, h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &harness{API: simtest.StartInMemory(t, simulator.Options{}), requests: prometheus.NewRegistry(), clients: map[string]*Client{}, dialing: func() {}}
		transport := Transport{promconfig.DefaultHTTPClientConfig, func(ctx context.Context, network, address string) (net.Conn, error) {
			h.dialing()
			return h.Dial(ctx, network, address)
		}}
		h.client = New("test/1", Settings{
			BaseURL: h.URL, Transport: transport, Timeout: 10 * time.Second, Limits: Limits{Public: 59, Account: 120},
		}, h.requests)
		f(t, h)
	})
}

// account returns the client of an account with a fixed token.
func (h *harness) account(name, token string) *Client {
	return h.newClient(name, func() (string, error) { return token, nil })
}

func (h *harness) newClient(account string, token Token) *Client {
	h.clients[account] = h.client.Client(account, token)
	return h.clients[account]
}

func (h *harness) main() *Client   { return h.account("main", simtest.MainToken) }
func (h *harness) public() *Client { return h.newClient("", nil) }

// reply responds to all requests with a status and a body; header is names and values in turn.
func (h *harness) reply(status int, body string, header ...string) {
	set := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		set.Set(header[i], header[i+1])
	}
	h.Inject(simtest.Fault{Handler: simtest.Reply(status, set, body)})
}

// gatherNonZero returns the values of the client's metrics that are not 0, by series
// without the common prefix: of those that contain a text.
func (h *harness) gatherNonZero(t *testing.T, text string) map[string]float64 {
	t.Helper()
	families, err := h.requests.Gather()
	if err != nil {
		t.Fatal(err)
	}
	b := &metric.Builder{}
	for _, s := range h.clients {
		s.AddMetrics(b, time.Now())
	}
	values := simtest.NewExposition(t, families).Values
	for _, s := range b.Metrics() {
		values[simtest.Series(s.Definition.Name, "account", s.Labels[0])] = s.Value
	}
	found := map[string]float64{}
	for series, v := range values {
		if v != 0 && strings.Contains(series, text) {
			found[strings.TrimPrefix(series, "server_rental_exporter_api_")] = v
		}
	}
	return found
}

// goldenCases compares the outcome of each line of a file, which stands below it after =>.
func goldenCases(t *testing.T, file string, outcome func(t *testing.T, input string) string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "=> ") {
			continue
		}
		got.WriteString(line)
		if input := strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, "#") {
			got.WriteString("=> " + outcome(t, input) + "\n")
		}
	}
	simtest.Golden(t, file, got.String())
}

type testItem struct {
	ID   string
	Size *Count `api:"optional"`
}

// fetchList requests a list and returns the error, as a collector does.
func fetchList(ctx context.Context, s *Client, path string) error {
	_, err := GetList[testItem, struct{}](ctx, s, path, nil, 3)
	if err != nil && ctx.Err() == nil {
		s.api.CountFailure(path, err)
	}
	return err
}

// errorText is an error's text, empty for nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestBackoff(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		remove := h.Inject(simtest.Fault{Path: "/servers", Handler: simtest.Reply(503, http.Header{ // two minutes by the provider's clock
			"Date": {"Sun, 01 Mar 2026 15:00:00 GMT"}, "Retry-After": {"Sun, 01 Mar 2026 15:02:00 GMT"},
		}, "")})
		h.Inject(simtest.Fault{Path: "/plans", Handler: simtest.Reply(429, http.Header{"Retry-After": {"60"}}, "")})
		h.Inject(simtest.Fault{Handler: simtest.Reply(200, http.Header{"RateLimit-Limit": {"120"}}, `{"data":[]}`)})
		until := time.Now().Add(2 * time.Minute)
		main, other, lab, public := h.main(), h.account("other", simtest.MainToken), h.account("lab", simtest.LabToken), h.public()
		const noRequest = "no request made: the API asked to wait until 2000-01-01T00:02:00Z: status 503"
		fetch := func(c *Client, path string) string { return errorText(fetchList(t.Context(), c, path)) }
		simtest.AssertEqual(t, "errors",
			[]string{fetch(main, "/servers"), fetch(main, "/ssh-keys"), fetch(other, "/ssh-keys"), fetch(lab, "/topups"), fetch(public, "/locations"), fetch(public, "/plans")},
			[]string{"status 503", noRequest, noRequest, "", "", "status 429"})
		remove()
		failure := ErrorOf(fetchList(t.Context(), main, "/ssh-keys"))
		simtest.AssertEqual(t, "failure", []any{failure.Reason, failure.Until.Equal(until)}, []any{Unavailable, true})
		simtest.AssertEqual(t, "requests", len(h.Requests()), 4)
		main.record(&http.Response{StatusCode: 503}, main.LastToken(), Error{Until: until.Add(-time.Minute)}) // of a request that was on its way

		got := h.gatherNonZero(t, "")
		simtest.AssertEqual(t, "limits of an account and the public", []float64{got[`rate_limit{account="lab"}`], got[`rate_limit{account=""}`]}, []float64{120, 0})
		simtest.AssertEqual(t, "errors of requests that were not made", got[`errors_total{path="/ssh-keys",reason="unavailable"}`], 3.0)

		seconds := float64(until.UnixMilli()) / 1000
		assertBackoff := func(what string, want map[string]float64, wantExpiry time.Time) {
			t.Helper()
			simtest.AssertEqual(t, what, h.gatherNonZero(t, "backoff"), want)
			simtest.AssertEqual(t, what+": expiry", main.AddMetrics(&metric.Builder{}, time.Now()), wantExpiry)
		}
		series := func(account string) string {
			return simtest.Series("backoff_until_timestamp_seconds", "account", account)
		}
		assertBackoff("backoff", map[string]float64{series(""): seconds - 60, series("main"): seconds, series("other"): seconds}, until)
		time.Sleep(2*time.Minute - maxWait - 1)
		simtest.AssertEqual(t, "a new token", fetch(h.account("new", "secret-new"), "/topups"), "") // limiters that are as good as new are dropped
		assertBackoff("backoff before its end", map[string]float64{series("main"): seconds, series("other"): seconds}, until)
		simtest.AssertEqual(t, "before the end", fetch(main, "/ssh-keys"), noRequest)
		time.Sleep(time.Nanosecond)
		simtest.AssertEqual(t, "soon after the backoff", []any{fetch(main, "/servers"), time.Now().Equal(until)}, []any{"", true})
		assertBackoff("backoff at its end", map[string]float64{}, time.Time{})
	})
}

// TestAccountMetrics follows an account from a refused token to one that cannot be read.
func TestAccountMetrics(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		limits := []string{"RateLimit-Limit", "120", "RateLimit-Remaining", "77"}
		rejected, limit, remaining := `token_rejected{account="main"}`, `rate_limit{account="main"}`, `rate_limit_remaining{account="main"}`
		token, tokenErr := "secret-wrong", error(nil)
		s := h.newClient("main", func() (string, error) { return token, tokenErr })
		assertAccount := func(what, wantErr string, want map[string]float64) {
			t.Helper()
			simtest.AssertEqual(t, what+": error", errorText(fetchList(t.Context(), s, "/servers")), wantErr)
			simtest.AssertEqual(t, what, h.gatherNonZero(t, "account="), want)
		}
		simtest.AssertEqual(t, "before the first request", h.gatherNonZero(t, ""), map[string]float64{})
		h.reply(401, "", limits...)
		assertAccount("wrong token", "status 401", map[string]float64{rejected: 1, limit: 120, remaining: 77})
		h.reply(500, "")
		assertAccount("no verdict", "status 500", map[string]float64{rejected: 1, limit: 120, remaining: 77})
		h.Inject(simtest.Fault{Handler: raw("")})
		assertAccount("no response", "connection closed before the response was complete", map[string]float64{rejected: 1, limit: 120, remaining: 77})
		token = "secret-right"
		h.reply(200, `{"data":[]}`, "RateLimit-Limit", "many", "RateLimit-Remaining", " 76 ")
		assertAccount("right token, unreadable limit", "", map[string]float64{limit: 120, remaining: 76})
		tokenErr = errors.New("cannot be read")
		assertAccount("unreadable token", "token file: cannot be read", map[string]float64{rejected: 1, limit: 120, remaining: 76})
		tokenErr = nil
		assertAccount("readable token", "", map[string]float64{limit: 120, remaining: 76})
	})
}

// TestApplySettings asserts that only later clients use a new base URL, and that backoffs of
// public requests are theirs alone, and end with the host that asked for them.
func TestApplySettings(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Inject(simtest.Fault{Path: "/plans", Handler: simtest.Reply(429, http.Header{"Retry-After": {"3600"}}, "")})
		h.Inject(simtest.Fault{Handler: simtest.Reply(200, nil, `{"data":[]}`)})
		before := h.public()
		simtest.AssertEqual(t, "error", errorText(fetchList(t.Context(), before, "/plans")), "status 429")
		h.main()
		simtest.AssertEqual(t, "backoff of an account without requests", h.gatherNonZero(t, "")[`backoff_until_timestamp_seconds{account="main"}`], 0.0)
		settings := *h.client.settings.Load()
		settings.BaseURL = h.URL.JoinPath("/elsewhere")
		h.client.ApplySettings(settings)
		simtest.AssertEqual(t, "error", errorText(fetchList(t.Context(), h.public(), "/locations")), "no request made: the API asked to wait until 2000-01-01T01:00:00Z: status 429")
		other := *settings.BaseURL
		other.Host = "other.example"
		settings.BaseURL = &other
		h.client.ApplySettings(settings)
		for _, c := range []*Client{before, h.public()} {
			simtest.AssertEqual(t, "error", fetchList(t.Context(), c, "/locations"), error(nil))
		}
		var got []string
		for _, r := range h.Requests() {
			got = append(got, r.Path)
		}
		simtest.AssertEqual(t, "paths", got, []string{"/plans", "/locations", "/elsewhere/locations"})
	})
}

// roundTripper is a transport.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// clientOver returns a public client with a transport.
func clientOver(base *url.URL, transport http.RoundTripper) *Client {
	return New("test/1", Settings{BaseURL: base, Timeout: time.Minute, Limits: Limits{Public: 59}, Transport: transport}, nil).Client("", nil)
}

// clientTo returns a public client of a base URL, with the transport of a configuration.
func clientTo(t *testing.T, base string, cfg promconfig.HTTPClientConfig, dial func(context.Context, string, string) (net.Conn, error)) *Client {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	return clientOver(u, Transport{cfg, dial})
}
