package exporter

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestNoSecrets has responses, and fields, that contain the provider's secrets where they do not
// belong.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	responses, fields := startAPI(t), startAPI(t)
	var all []byte // every secret in one text
	const token, email = simtest.MainToken, "owner@customer.example"
	responses.Change(func(w *simulator.World) { all = append(simtest.Encode(t, w.Accounts[token]), token...) })
	for _, fault := range []simtest.Fault{
		{Path: "/plans", Status: 500, Body: all},
		{Path: "/locations", Status: 400, Body: fmt.Appendf(nil, `{"error": {"code": %q, "message": %q}}`, token, all)},
		{Path: "/os", Status: 503, Header: http.Header{
			"Retry-After": {token}, "Ratelimit-Limit": {token}, "Ratelimit-Remaining": {"0 " + token},
			"Ratelimit-Reset": {token}, "Content-Type": {email}, "Date": {token},
		}},
		{Path: "/status", Status: 200, Body: all},
		{Path: "/account", Body: append([]byte("<html>"), all...)},
		{Path: "/servers", Body: fmt.Appendf(nil, `{"data": %q, "meta": %q}`, all, all)},
		{Path: "/ssh-keys", Body: fmt.Appendf(nil, `{"data": [%q], "meta": {"count": %q, "total": 1, "pages": 1, "page": 1}}`, all, token)},
		{Path: "/topups", Kind: simtest.Truncated},
		{Path: "/transactions", Status: http.StatusFound, Header: http.Header{"Location": {"http://127.0.0.1:1/plans?token=" + token + "&email=" + email}}}, // where nothing listens
		{Path: "/configurations", Status: 401},
	} {
		responses.Inject(fault)
	}
	fields.Change(func(w *simulator.World) {
		own := w.Accounts[token]
		topup := own.Topups[0]
		topup["confirmations"], topup["created_at"] = topup["payment"], email
		own.Servers[0]["renews_at"], own.Servers[1]["price"] = email, token
		own.Servers[2]["created_at"] = own.Servers[2]["ipv4"]
		own.SSHKeys[0]["created_at"], own.SSHKeys[1]["id"] = own.SSHKeys[0]["public_key"], []any{own.SSHKeys[1]["public_key"]}
		own.Transactions[0]["id"], own.Transactions[1]["amount"] = own.Transactions[0]["description"], email
		own.Configurations[0]["in_stock"] = token
		own.Account["balance"], own.Account["two_factor"] = token, email
	})
	for name, a := range map[string]*simtest.API{"responses": responses, "fields": fields} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assertNotExposed(t, a)
		})
	}
}

// assertNotExposed runs the exporter of a provider and looks for secrets in all that it
// sends, prints and logs.
func assertNotExposed(t *testing.T, a *simtest.API) {
	t.Helper()
	dir := t.TempDir()
	config := a.ConfigFile(dir, simtest.Tokens(), "")
	p := startReady(t, "--log.level=debug", "--web.enable-lifecycle", "--config.file="+config)
	for _, path := range []string{"/metrics", "/", "/-/healthy", "/-/ready"} {
		got := p.Get(path, "Accept", "application/openmetrics-text;version=1.0.0")
		simtest.AssertNoSecrets(t, path, fmt.Sprintln(got.Header, got.Body))
	}
	// Secrets at invalid places of the configuration.
	simtest.WriteFile(t, config, fmt.Sprintf(`api:
  base_url: https://user:%[1]s@rental.example/api/v1?key=%[1]s
  http: {bearer_token: %[1]s, authorization: {credentials: %[1]s}}
accounts: [{name: main, token: %[1]s}, {name: lab, token_file: %[1]s}, %[1]s]
`, simtest.MainToken))
	reload := p.postReload()
	simtest.AssertEqual(t, "status of an invalid reload", reload.Status, 500)
	simtest.AssertNoSecrets(t, "/-/reload", fmt.Sprintln(reload.Header, reload.Body))
	p.terminate()
	once := finish(t, "--once", "--log.level=debug", "--config.file="+a.ConfigFile(dir, simtest.Tokens(), ""))
	for name, text := range map[string]fmt.Stringer{"the log": p.log, "the output": p.out, "the log of --once": once.log, "the output of --once": once.out} {
		simtest.AssertNoSecrets(t, name, text.String())
	}
}

// TestLibraryLog has responses with more bytes than they announce, which net/http logs of a connection
// that it keeps.
func TestLibraryLog(t *testing.T) {
	a := startAPI(t)
	a.Inject(simtest.Fault{Handler: func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		const body = `{"data":[]}`
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s%s", len(body), body, simtest.MainToken)
		time.Sleep(time.Second) // net/http logs only while the connection is open
		_ = conn.Close()
	}})
	p := simtest.StartProcess(t, "--log.level=debug", "--config.file="+configFile(t, a))
	p.WaitReady()
	for line := range strings.Lines(p.Log.String()) {
		if !strings.HasPrefix(line, "ts=") || strings.Contains(line, simtest.MainToken) {
			t.Errorf("line of another logger: %s", line)
		}
	}
}
