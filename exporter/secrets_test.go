package exporter

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// secrets are data of the provider that must not be exposed, by kind.
type secrets map[string][]string

// secretsOf collects the secrets of a provider.
func secretsOf(t *testing.T, a *simtest.API) secrets {
	t.Helper()
	s := secrets{}
	add := func(kind, text string) {
		if text != "" {
			s[kind] = append(s[kind], text)
		}
	}
	a.Change(func(w *simulator.World) {
		for token, account := range w.Accounts {
			add("token", token)
			add("e-mail address", simulator.Text(account.Account, "email"))
			for _, topup := range account.Topups {
				add("payment address", simulator.Text(topup, "payment", "address"))
				add("payment URI", simulator.Text(topup, "payment", "uri"))
				add("transaction hash", simulator.Text(topup, "tx_hash"))
			}
			for _, entry := range account.Transactions {
				add("description", simulator.Text(entry, "description"))
			}
			for _, key := range account.SSHKeys {
				add("public key", strings.Fields(simulator.Text(key, "public_key"))[1])
			}
			for _, server := range account.Servers {
				add("server address", simulator.Text(server, "ipv4"))
			}
		}
	})
	simtest.AssertEqual(t, "kinds of secrets", slices.Sorted(maps.Keys(s)), []string{
		"description", "e-mail address", "payment URI", "payment address", "public key", "server address", "token", "transaction hash",
	})
	return s
}

// assertNotIn fails the test if a text contains a secret.
func (s secrets) assertNotIn(t *testing.T, where, text string) {
	t.Helper()
	for kind, values := range s {
		for _, v := range values {
			if i := strings.Index(text, v); i >= 0 {
				t.Errorf("%s contains the %s %q: ...%s...", where, kind, v, text[max(0, i-100):min(len(text), i+len(v)+40)])
			}
		}
	}
}

// TestNoSecrets asserts that no response of the provider makes the exporter expose a
// secret in a page, a metric, an error or the log.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	t.Run("responses that spill", func(t *testing.T) {
		t.Parallel()
		a := simtest.Start(t, simulator.Options{})
		known, token := secretsOf(t, a), simtest.MainToken
		all, email := simtest.Encode(t, known), known["e-mail address"][0] // every secret in one text
		for _, fault := range []simtest.Fault{
			{Path: "/plans", Status: 500, Body: all},
			{Path: "/locations", Status: 400, Body: fmt.Appendf(nil, `{"error": {"code": %q, "message": %q}}`, token, all)},
			{Path: "/os", Status: 503, Header: http.Header{
				"Retry-After": {token}, "Ratelimit-Limit": {token}, "Ratelimit-Remaining": {"0 " + token},
				"Ratelimit-Reset": {token}, "Content-Type": {email}, "Date": {token},
			}},
			{Path: "/status", Status: 200, Body: all},
			{Path: "/account", Body: append([]byte("<html>"), all...)},
			{Path: "/servers", Body: fmt.Appendf(nil, `{"data": %s, "meta": %q}`, all, all)},
			{Path: "/ssh-keys", Body: fmt.Appendf(nil, `{"data": [%q, %s], "meta": {"count": %q, "total": 1, "pages": 1, "page": 1}}`, token, all, token)},
			{Path: "/topups", Kind: simtest.Truncated},
			{Path: "/transactions", Kind: simtest.Redirect, Header: http.Header{"Location": {"http://127.0.0.1:1/plans?token=" + token + "&email=" + email}}}, // where nothing listens
			{Path: "/configurations", Status: 401},
		} {
			a.Inject(fault)
		}
		known.assertNotExposed(t, a)
	})
	t.Run("fields that spill", func(t *testing.T) {
		t.Parallel()
		a := simtest.Start(t, simulator.Options{})
		known := secretsOf(t, a)
		a.Change(func(w *simulator.World) {
			own := w.Accounts[simtest.MainToken]
			topup, email := own.Topups[0], own.Account["email"]
			topup["confirmations"], topup["created_at"] = topup["payment"], email
			own.Servers[0]["renews_at"], own.Servers[1]["price"] = email, simtest.MainToken
			own.Servers[2]["created_at"] = own.Servers[2]["ipv4"]
			own.SSHKeys[0]["created_at"], own.SSHKeys[1]["id"] = own.SSHKeys[0]["public_key"], []any{own.SSHKeys[1]["public_key"]}
			own.Transactions[0]["id"], own.Transactions[1]["amount"] = own.Transactions[0]["description"], email
			own.Configurations[0]["in_stock"] = simtest.MainToken
			own.Account["balance"], own.Account["two_factor"] = simtest.MainToken, email
		})
		known.assertNotExposed(t, a)
	})
}

// assertNotExposed runs the exporter of a provider and looks for secrets in all that it
// sends, prints and logs.
func (s secrets) assertNotExposed(t *testing.T, a *simtest.API) {
	t.Helper()
	dir := t.TempDir()
	config := a.ConfigFile(dir, simtest.Tokens(), "")
	p := startReady(t, "--log.level=debug", "--web.enable-lifecycle", "--web.enable-service-discovery", "--config.file="+config)
	for _, path := range []string{"/metrics", "/", "/-/healthy", "/-/ready"} {
		got := p.get(path, "Accept", "application/openmetrics-text;version=1.0.0")
		s.assertNotIn(t, path, fmt.Sprintln(got.Header, got.Body))
	}
	// Service discovery exposes addresses and nothing else.
	others := maps.Clone(s)
	delete(others, "server address")
	discovery := p.get("/sd/servers")
	others.assertNotIn(t, "/sd/servers", fmt.Sprintln(discovery.Header, discovery.Body))

	// Secrets at invalid places of the configuration.
	simtest.WriteFile(t, config, fmt.Sprintf(`api:
  base_url: https://user:%[1]s@rental.example/api/v1?key=%[1]s
  http: {bearer_token: %[1]s, authorization: {credentials: %[1]s}}
accounts:
  - {name: main, token: %[1]s}
  - {name: lab, token_file: %[2]s}
  - token_file: lab.token
  - %[1]s
`, simtest.MainToken, simtest.LabToken))
	reload := p.postReload()
	simtest.AssertEqual(t, "status of an invalid reload", reload.Status, 500)
	s.assertNotIn(t, "/-/reload", fmt.Sprintln(reload.Header, reload.Body))
	p.terminate()
	once := finish(t, Environment{}, "--once", "--log.level=debug", "--config.file="+a.ConfigFile(dir, simtest.Tokens(), ""))
	for name, text := range map[string]fmt.Stringer{"the log": p.log, "the output": p.out, "the log of --once": once.log, "the output of --once": once.out} {
		s.assertNotIn(t, name, text.String())
	}
}

// TestNoSecretsOfSettings has a token in the environment, accepted and refused, and a
// password of a proxy that refuses connections.
func TestNoSecretsOfSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	simtest.WriteFile(t, filepath.Join(dir, "main.token"), simtest.MainToken)
	proxy := simtest.WriteFile(t, filepath.Join(dir, "rental.yml"), `api:
  base_url: https://rental.example/api/v1
  http: {proxy_url: "http://prometheus:open-sesame@127.0.0.1:1"}
accounts: [{name: main, token_file: main.token}]
`)
	withToken := Environment{LookupEnv: env("SERVER_RENTAL_API_TOKEN", simtest.MainToken)}
	accepting, refusing := simtest.Start(t, simulator.Options{}), simtest.Start(t, simulator.Options{})
	refusing.Inject(simtest.Fault{Status: 401})
	for _, tc := range []struct {
		environment  Environment
		flag, logged string
	}{
		{withToken, "--api.base-url=" + accepting.URL.String(), "starting server_rental_exporter"},
		{withToken, "--api.base-url=" + refusing.URL.String(), "status 401"},
		{Environment{}, "--config.file=" + proxy, "proxyconnect"},
	} {
		p := start(t, tc.environment, "--log.level=debug", tc.flag)
		p.waitReady()
		known := secrets{"token": {simtest.MainToken}, "proxy password": {"open-sesame"}}
		for _, path := range []string{"/metrics", "/"} {
			known.assertNotIn(t, path, p.get(path).Body)
		}
		p.terminate()
		known.assertNotIn(t, "the log", p.log.String())
		if !strings.Contains(p.log.String(), tc.logged) {
			t.Errorf("the log lacks %q:\n%s", tc.logged, p.log)
		}
		check := finish(t, tc.environment, "--config.check", tc.flag)
		known.assertNotIn(t, "--config.check", check.out.String()+check.log.String())
		simtest.AssertEqual(t, "status of --config.check", check.code, 0)
	}
	simtest.AssertEqual(t, "tokens used", slices.Sorted(maps.Keys(accepting.CountByToken())), []string{"", simtest.MainToken})
}
