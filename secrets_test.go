package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator"
)

// secrets are what the provider knows and nobody else may read, by kind.
type secrets map[string][]string

// secretsOf collects them from a provider's world.
func secretsOf(t *testing.T, a *api) secrets {
	t.Helper()
	s := secrets{}
	add := func(kind string, value any) {
		if text, is := value.(string); is && text != "" {
			s[kind] = append(s[kind], text)
		}
	}
	a.Read(func(w *simulator.World) {
		for token, account := range w.Accounts {
			add("token", token)
			add("e-mail address", account.Account["email"])
			for _, topup := range account.Topups {
				if payment, is := topup["payment"].(simulator.Object); is {
					add("payment address", payment["address"])
					add("payment URI", payment["uri"])
				}
				add("transaction hash", topup["tx_hash"])
			}
			for _, entry := range account.Transactions {
				add("description", entry["description"])
			}
			for _, key := range account.SSHKeys {
				add("public key", key["public_key"])
				add("public key", strings.Fields(fmt.Sprint(key["public_key"]))[1])
			}
			for _, server := range account.Servers {
				add("server address", server["ipv4"])
			}
		}
	})
	for _, kind := range []string{
		"token", "e-mail address", "payment address", "payment URI", "transaction hash", "description", "public key", "server address",
	} {
		if len(s[kind]) == 0 {
			t.Fatalf("the simulated world has no %s to look for", kind)
		}
	}
	return s
}

// kept fails the test where a text tells a secret.
func (s secrets) kept(t *testing.T, where, text string) {
	t.Helper()
	for kind, values := range s {
		for _, v := range values {
			if i := strings.Index(text, v); i >= 0 {
				t.Errorf("%s tells the %s %q: ...%s...", where, kind, v, text[max(0, i-100):min(len(text), i+len(v)+40)])
			}
		}
	}
}

// Whatever happens, no secret gets into a page, a metric, an error or the log.
func TestSecretsAreKept(t *testing.T) {
	t.Parallel()
	// spill is a provider that tells everything it knows at the wrong place.
	spill := func(s secrets) []byte {
		all, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	fault := func(f func(s secrets) simulator.Fault) func(*testing.T, *api, secrets) {
		return func(_ *testing.T, a *api, s secrets) { a.Inject(f(s)) }
	}
	for name, befall := range map[string]func(*testing.T, *api, secrets){
		"nothing": func(*testing.T, *api, secrets) {},
		"401":     fault(func(secrets) simulator.Fault { return simulator.Fault{Status: 401} }),
		"429":     fault(func(secrets) simulator.Fault { return simulator.Fault{Status: 429} }),
		"500 that spills": fault(func(s secrets) simulator.Fault {
			return simulator.Fault{Status: 500, Body: spill(s)}
		}),
		"error that spills": fault(func(s secrets) simulator.Fault {
			return simulator.Fault{Status: 400, Body: fmt.Appendf(nil, `{"error": {"code": %q, "message": %q}}`, mainToken, spill(s))}
		}),
		"headers that spill": fault(func(s secrets) simulator.Fault {
			return simulator.Fault{Status: 503, Header: http.Header{
				"Retry-After": {mainToken}, "Ratelimit-Limit": {mainToken}, "Ratelimit-Remaining": {"0 " + mainToken},
				"Ratelimit-Reset": {mainToken}, "Content-Type": {s["e-mail address"][0]}, "Date": {mainToken},
			}}
		}),
		"200 that spills": fault(func(s secrets) simulator.Fault { return simulator.Fault{Status: 200, Body: spill(s)} }),
		"text that spills": fault(func(s secrets) simulator.Fault {
			return simulator.Fault{Status: 200, Body: []byte("<html>" + strings.Join(s["token"], " ") + string(spill(s)))}
		}),
		"data that spills": fault(func(s secrets) simulator.Fault {
			return simulator.Fault{Status: 200, Body: fmt.Appendf(nil, `{"data": %s, "meta": %q}`, spill(s), spill(s))}
		}),
		"items that spill": fault(func(s secrets) simulator.Fault {
			return simulator.Fault{Status: 200, Body: fmt.Appendf(nil, `{"data": [%q, %s], "meta": {"count": %q, "total": 1, "pages": 1, "page": 1}}`,
				mainToken, spill(s), mainToken)}
		}),
		"garbage":   fault(func(secrets) simulator.Fault { return simulator.Fault{Kind: simulator.Garbage} }),
		"truncated": fault(func(secrets) simulator.Fault { return simulator.Fault{Kind: simulator.Truncated} }),
		"dropped":   fault(func(secrets) simulator.Fault { return simulator.Fault{Kind: simulator.Drop} }),
		"redirect": func(t *testing.T, a *api, s secrets) {
			other := newAPI(t)
			a.Inject(simulator.Fault{Kind: simulator.Redirect, Header: http.Header{
				"Location": {other.base + "/plans?token=" + mainToken + "&email=" + s["e-mail address"][0]},
			}})
			t.Cleanup(func() {
				if got := other.Requests(); len(got) > 0 {
					t.Errorf("the redirect was followed: %v", got)
				}
			})
		},
		"fields that spill": func(_ *testing.T, a *api, _ secrets) {
			a.Change(func(w *simulator.World) {
				own := w.Accounts[mainToken]
				topup, email := own.Topups[0], own.Account["email"]
				topup["confirmations"], topup["created_at"] = topup["payment"], email
				own.Servers[0]["renews_at"], own.Servers[1]["price"] = email, mainToken
				own.Servers[2]["created_at"] = own.Servers[2]["ipv4"]
				own.SSHKeys[0]["created_at"], own.SSHKeys[1]["id"] = own.SSHKeys[0]["public_key"], []any{own.SSHKeys[1]["public_key"]}
				own.Transactions[0]["id"], own.Transactions[1]["amount"] = own.Transactions[0]["description"], email
				own.Configurations[0]["in_stock"] = mainToken
				own.Account["balance"], own.Account["two_factor"] = mainToken, email
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, dir := newAPI(t), t.TempDir()
			known := secretsOf(t, a)
			befall(t, a, known)
			config := a.configFile(t, dir, map[string]string{"main": mainToken, "lab": labToken}, "")
			p := ready(t, "--log.level=debug", "--web.enable-lifecycle", "--web.enable-service-discovery", "--config.file="+config)
			see := func(what string, got reply) { known.kept(t, what, fmt.Sprintln(got.Header, got.Body)) }
			for _, path := range []string{"/metrics", "/", "/-/healthy", "/-/ready"} {
				see(path, p.get(path))
			}
			see("OpenMetrics", p.get("/metrics", "Accept", "application/openmetrics-text;version=1.0.0"))

			// The one place that tells addresses tells nothing else.
			addresses := known["server address"]
			delete(known, "server address")
			see("/sd/servers", p.get("/sd/servers"))
			known["server address"] = addresses

			// Secrets where an operator does not mean them to be.
			write(t, config, fmt.Sprintf(`api:
  base_url: https://user:%[1]s@rental.example/api/v1?key=%[1]s
  http: {bearer_token: %[1]s, authorization: {credentials: %[1]s}}
accounts:
  - {name: main, token: %[1]s}
  - {name: lab, token_file: %[2]s}
  - token_file: lab.token
  - %[1]s
`, mainToken, labToken))
			got, err := p.send("POST", p.url+"/-/reload")
			if err != nil || got.Status != 500 {
				t.Errorf("reload: got status %d, error %v, want 500", got.Status, err)
			}
			see("/-/reload", got)

			p.stop()
			p.wait()
			known.kept(t, "the log", p.log.String())
			known.kept(t, "the output", p.out.String())
			once := finish(t, nil, "--once", "--log.level=debug", "--config.file="+a.configFile(t, dir, map[string]string{"main": mainToken, "lab": labToken}, ""))
			known.kept(t, "the log of --once", once.log.String())
			known.kept(t, "the output of --once", once.out.String())
		})
	}
}

// A token that stands in the environment is kept as well as one in a file.
func TestTokenInEnvironmentIsKept(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]simulator.Fault{
		"accepted": {Path: "/nowhere"},
		"refused":  {Status: 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t)
			a.Inject(f)
			env := environment{"SERVER_RENTAL_API_TOKEN": mainToken}
			p := startIn(t, env, "--log.level=debug", "--api.base-url="+a.base)
			p.becomesReady()
			known := secrets{"token": {mainToken}}
			for _, path := range []string{"/metrics", "/"} {
				known.kept(t, path, p.get(path).Body)
			}
			p.stop()
			p.wait()
			known.kept(t, "the log", p.log.String())
			if !slices.ContainsFunc(a.Requests(), func(r simulator.Request) bool { return r.Token == mainToken }) {
				t.Error("the token was never used")
			}
			check := finish(t, env, "--config.check", "--api.base-url="+a.base)
			known.kept(t, "--config.check", check.out.String()+check.log.String())
			if check.code != 0 {
				t.Errorf("--config.check: got status %d, want 0", check.code)
			}
		})
	}
}

// Nor does a proxy's password, when the proxy is not there.
func TestProxyPasswordIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.token"), mainToken)
	config := write(t, filepath.Join(dir, "rental.yml"), `api:
  base_url: https://rental.example/api/v1
  http: {proxy_url: "http://prometheus:open-sesame@127.0.0.1:1"}
accounts: [{name: main, token_file: main.token}]
`)
	p := ready(t, "--log.level=debug", "--config.file="+config)
	known := secrets{"token": {mainToken}, "proxy password": {"open-sesame"}}
	for _, path := range []string{"/metrics", "/"} {
		known.kept(t, path, p.get(path).Body)
	}
	p.stop()
	p.wait()
	known.kept(t, "the log", p.log.String())
	if !strings.Contains(p.log.String(), "proxyconnect") {
		t.Errorf("the proxy was not asked; log:\n%s", p.log)
	}
}
