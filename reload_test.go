package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
)

const (
	reloadedSeries = "server_rental_exporter_config_last_reload_successful{}"
	reloadedAt     = "server_rental_exporter_config_last_reload_success_timestamp_seconds{}"
)

// byHangup and byPost are the two ways to ask for a reload; they return when it is done.
func byHangup(p *program) {
	p.t.Helper()
	before := p.reloads()
	p.hangup <- syscall.SIGHUP
	eventually(p.t, "a reload is logged", func() bool { return p.reloads() > before })
}

func byPost(p *program) {
	p.t.Helper()
	if _, err := p.send("POST", p.url+"/-/reload"); err != nil {
		p.t.Fatal(err)
	}
}

// reloads counts those that the log tells of.
func (p *program) reloads() int {
	return strings.Count(p.log.String(), "configuration reloaded") + strings.Count(p.log.String(), "configuration refused")
}

func TestReload(t *testing.T) {
	t.Parallel()
	for way, reload := range map[string]func(*program){"SIGHUP": byHangup, "POST": byPost} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			a, dir := newAPI(t), t.TempDir()
			p := ready(t, "--web.enable-lifecycle", "--config.file="+a.configFile(t, dir, map[string]string{"main": mainToken}, ""))
			eventually(t, "all requests are answered", a.idle)
			asked, first := a.asked(), p.scrape()

			// A faulty configuration changes nothing.
			write(t, filepath.Join(dir, "rental.yml"), "api: {base_url: nowhere}\naccounts: [{name: main}]\n")
			reload(p)
			page := p.scrape()
			wantReload(t, page, 0, first.values[reloadedAt])
			if !reflect.DeepEqual(page.data(), first.data()) {
				t.Errorf("data after a refused reload:\ngot  %v\nwant %v", page.data(), first.data())
			}
			for _, cause := range []string{"rental.yml:1: api.base_url: not an absolute URL", "rental.yml:2: accounts[0].token_file: missing"} {
				if !strings.Contains(p.log.String(), cause) {
					t.Errorf("the log lacks %q:\n%s", cause, p.log)
				}
			}

			// A sound one adds an account. What was there goes on, so nothing is asked again.
			a.configFile(t, dir, map[string]string{"main": mainToken, "lab": labToken}, "")
			reload(p)
			p.becomesReady()
			eventually(t, "the new account is shown", func() bool {
				return reflect.DeepEqual(p.scrape().successes(), every(1, "main", "lab"))
			})
			page = p.scrape()
			if got := page.values[reloadedAt]; page.values[reloadedSeries] != 1 || got <= first.values[reloadedAt] {
				t.Errorf("the reload does not show: got %v at %v, before it %v", page.values[reloadedSeries], got, first.values[reloadedAt])
			}
			eventually(t, "all requests are answered", a.idle)
			got := a.asked()
			delete(got, labToken)
			if !maps.Equal(got, asked) {
				t.Errorf("requests by token without the new one's: got %v, want %v as before", got, asked)
			}

			// An account that is gone is not shown any more; the other stays.
			a.configFile(t, dir, map[string]string{"lab": labToken}, "collectors: {os: {enabled: false}}\n")
			reload(p)
			want := every(1, "lab")
			delete(want, "os")
			page = p.scrape()
			if got := page.successes(); !reflect.DeepEqual(got, want) {
				t.Errorf("collectors:\ngot  %v\nwant %v", got, want)
			}
			for series := range page.values {
				if strings.Contains(series, `account="main"`) || strings.Contains(series, "server_rental_os_image_") {
					t.Errorf("still shown: %s", series)
				}
			}
		})
	}
}

func wantReload(t *testing.T, page exposed, ok, at float64) {
	t.Helper()
	got := []float64{page.values[reloadedSeries], page.values[reloadedAt]}
	if want := []float64{ok, at}; !reflect.DeepEqual(got, want) {
		t.Errorf("last reload, and when one succeeded: got %v, want %v", got, want)
	}
}

func TestReloadAnswers(t *testing.T) {
	t.Parallel()
	a, dir := newAPI(t), t.TempDir()
	path := a.configFile(t, dir, nil, "")
	p := ready(t, "--web.enable-lifecycle", "--config.file="+path)
	post := func() (int, string) {
		got, err := p.send("POST", p.url+"/-/reload")
		if err != nil {
			t.Fatal(err)
		}
		return got.Status, got.Body
	}
	write(t, path, "api:\n  base_url: "+a.base+"\n  timeout: 0s\n  retries: 3\n")
	status, body := post()
	want := "the configuration was refused and the running one stays:\n" +
		path + ":3: api.timeout: 0s is too short: must be at least 1ms\n" +
		path + ":4: api.retries: unknown key: must be one of base_url, http, rate_limit, timeout\n"
	if status != 500 || body != want {
		t.Errorf("refused:\ngot  %d %s\nwant 500 %s", status, body, want)
	}
	a.configFile(t, dir, nil, "")
	if status, body := post(); status != 200 || body != "configuration reloaded.\n" {
		t.Errorf("accepted: got %d %s", status, body)
	}
}

// A reload may also lead to another API: nothing of the old one stays.
func TestReloadOtherAPI(t *testing.T) {
	t.Parallel()
	a, other, dir := newAPI(t), newAPI(t), t.TempDir()
	other.Change(func(w *simulator.World) { w.Plans = w.Plans[:3] })
	p := ready(t, "--config.file="+a.configFile(t, dir, nil, ""))
	other.configFile(t, dir, nil, "")
	byHangup(p)
	eventually(t, "the other API's plans are shown", func() bool { return len(p.scrape().with("server_rental_plan_info{")) == 3 })
	if page := p.get("/").Body; !strings.Contains(page, "data from "+other.host) {
		t.Errorf("the landing page names another API than %s:\n%s", other.host, page)
	}
}

// A refused token leaves the last data; the right one is used as soon as it is there.
func TestTokenReplaced(t *testing.T) {
	t.Parallel()
	const newToken = "token-of-main-2a90c4"
	a, dir := newAPI(t), t.TempDir()
	p := ready(t, "--config.file="+a.configFile(t, dir, map[string]string{"main": mainToken}, `collectors:
  account: {interval: 1s, max_age: 10m}
  topups: {enabled: false}
  transactions: {enabled: false}
  configurations: {enabled: false}
  ssh_keys: {enabled: false}
  servers: {enabled: false}
`))
	const success = `server_rental_exporter_collector_success{account="main",collector="account"}`
	const rejected = `server_rental_exporter_api_token_rejected{account="main"}`
	const balance = "server_rental_account_balance_usd{"
	file := filepath.Join(dir, "main.token")
	wantBalance := p.scrape().with(balance)
	if len(wantBalance) != 1 {
		t.Fatalf("got %v, want one balance", wantBalance)
	}
	for _, step := range []struct {
		name    string
		do      func()
		success float64
	}{
		{"revoked", func() {
			a.Change(func(w *simulator.World) {
				w.Accounts[newToken] = w.Accounts[mainToken]
				delete(w.Accounts, mainToken)
			})
		}, 0},
		{"replaced", func() { write(t, file, newToken) }, 1},
		{"unreadable", func() {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}, 0},
		{"there again", func() { write(t, file, newToken+"\n") }, 1},
		{"empty", func() { write(t, file, "") }, 0},
		{"written again", func() { write(t, file, "  "+newToken+"\n") }, 1},
	} {
		step.do()
		p.shows(success, step.success)
		page := p.scrape()
		got := map[string]any{"rejected": page.values[rejected], "balance": page.with(balance)}
		want := map[string]any{"rejected": 1 - step.success, "balance": wantBalance}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %v\nwant %v", step.name, got, want)
		}
	}
}

// A collector that waits long for its next try does not wait when its token changes.
func TestTokenChangeIsNoticed(t *testing.T) {
	t.Parallel()
	a, dir := newAPI(t), t.TempDir()
	wrong := "token-of-nobody"
	// Whoever has the wrong token is told to come back in an hour.
	a.Inject(simulator.Fault{Token: wrong, Status: 401, Header: map[string][]string{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"3600"}}})
	p := ready(t, "--config.file="+a.configFile(t, dir, map[string]string{"main": wrong}, ""))
	want := every(0, "main")
	for _, s := range specs() {
		if !s.Account {
			want[s.Name] = 1
		}
	}
	if got := p.scrape().successes(); !reflect.DeepEqual(got, want) {
		t.Errorf("with the wrong token:\ngot  %v\nwant %v", got, want)
	}
	backoff := fmt.Sprintf("server_rental_exporter_api_backoff_until_timestamp_seconds{account=%q}", "main")
	if until := p.scrape().values[backoff]; until < float64(time.Now().Add(50*time.Minute).Unix()) {
		t.Errorf("waits until %v, want about an hour from now", until)
	}
	write(t, filepath.Join(dir, "main.token"), mainToken)
	eventually(t, "every collector works", func() bool { return reflect.DeepEqual(p.scrape().successes(), every(1, "main")) })
	if _, waits := p.scrape().values[backoff]; waits {
		t.Error("still waits although the new token works")
	}
}
