package exporter

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

const nothing = "nothing to export: set --api.base-url or --config.file, or start with --demo for a simulated provider\n"

// TestStartErrors asserts that every error is printed on a line of its own, and that
// nothing is served.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	const base = "https://rental.example/api/v1"
	missing := filepath.Join(t.TempDir(), "missing")
	withToken := env("SERVER_RENTAL_API_TOKEN", simtest.MainToken)
	for _, tc := range []struct {
		name   string
		getenv func(string) string
		args   []string
		want   string
	}{
		{"nothing", nil, nil, nothing},
		{"nothing to check", nil, []string{"--config.check"}, nothing},
		{"only a token", withToken, nil, nothing},
		{"unknown flag", nil, []string{"--nope"}, "--nope: unknown flag; try --help\n" + nothing},
		{"argument", nil, []string{"plans"}, "command line: an argument belongs to no flag, or a flag has a value that it does not take; try --help\n"},
		{"unknown flag and argument", nil, []string{"--bogus", "plans"}, "--bogus: unknown flag; try --help\ncommand line: an argument belongs to no flag, or a flag has a value that it does not take; try --help\n"},
		{"token on the command line", nil, []string{"--demo", "--api.token=" + simtest.MainToken}, "--api.token: unknown flag; try --help\n"},
		{"log level", nil, []string{"--demo", "--log.level=loud"}, "--log.level: must be one of debug, info, warn, error\n"},
		{
			"everything at once", nil,
			[]string{"--bogus=1", "--no-bogus", "--log.level=loud", "--log.format=xml", "--api.base-url=ftp://x", "--api.token-file=" + missing, "--config.check", "--web.listen-address=here", "--web.listen-address=:99999"},
			"--bogus: unknown flag; try --help\n--no-bogus: unknown flag; try --help\n" +
				"--api.token-file: no such file or directory\n--api.base-url: invalid URL: must be http or https, like https://rental.example/api/v1\n" +
				"--log.level: must be one of debug, info, warn, error\n--log.format: must be one of logfmt, json\n" +
				"--web.listen-address: missing port in address\n--web.listen-address: the port must be at most 65535\n",
		},
		{"port of the base URL", nil, []string{"--api.base-url=https://rental.example:99999/api/v1"}, "--api.base-url: invalid port: must be from 1 to 65535\n"},
		{"missing token file", nil, []string{"--api.base-url=" + base, "--api.token-file=" + missing}, "--api.token-file: no such file or directory\n"},
		{"missing configuration", nil, []string{"--config.file=" + missing}, missing + ": --config.file: no such file or directory\n"},
		{"demo with a token", withToken, []string{"--demo"}, "SERVER_RENTAL_API_TOKEN: conflicts with --demo: must not be set, because the demo has its own account\n"},
		{
			"plain HTTP", withToken,
			[]string{"--api.base-url=http://rental.example/api/v1"},
			"--api.base-url: plain HTTP not allowed with accounts: must be https or a loopback address, because tokens would be sent unencrypted\n",
		},
		{
			"web server", nil,
			[]string{"--demo", "--web.telemetry-path=/-/ready", "--web.config.file=" + missing},
			"--web.telemetry-path: is served by the exporter itself\n--web.config.file: no such file or directory\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := finish(t, Environment{Getenv: tc.getenv}, tc.args...).outcome()
			simtest.AssertEqual(t, "outcome", got, outcome{1, "", tc.want})
		})
	}
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	// The rates are those of these collectors.
	const notAsked = "API and tokens not tested: run with --once to ask the API\n"
	known := []string{"plans", "locations", "os", "status", "account", "topups", "transactions", "configurations", "ssh_keys", "servers"}
	var names, noOthers []string
	for _, s := range collector.Resources() {
		names = append(names, s.Name)
		if !slices.Contains(known, s.Name) {
			noOthers = append(noOthers, "--no-collector."+s.Name)
		}
	}
	slices.Sort(names)
	dir := t.TempDir()
	for _, account := range []string{"main", "lab"} {
		simtest.WriteFile(t, filepath.Join(dir, account+".token"), "token-of-"+account)
	}
	simtest.WriteFile(t, filepath.Join(dir, "empty.token"), "\n")
	simtest.WriteFile(t, filepath.Join(dir, "valid.yml"), `api: {base_url: "https://rental.example/api/v1"}
accounts:
  - {name: main, token_file: main.token}
  - {name: lab, token_file: lab.token}
watches:
  - {name: cheap-in-europe, regions: [Europe], min_memory_gib: 64, max_usd_per_month: 100}
  - {name: gpu, families: [gpu], gpu: true, locations: [fra, ams]}
`)
	simtest.WriteFile(t, filepath.Join(dir, "invalid.yml"), `api:
  base_url: https://rental.example/api/v1
  timeout: forever
accounts:
  - {name: main, token_file: main.token}
  - {name: main, token_file: empty.token}
  - {name: lab, token_file: main.token}
collectors:
  plans: {interval: 10s}
  plants: {enabled: true}
watches:
  - {name: all}
`)
	for _, tc := range []struct {
		name string
		args []string
		want outcome
	}{
		{"valid", []string{"--config.file=" + dir + "/valid.yml"}, outcome{0, `configuration OK; requests per minute:
  public: 4.0 of 30
  account main: 3.6 (up to 9.6 with a long history) of 60
  account lab: 3.6 (up to 9.6 with a long history) of 60
watches:
  cheap-in-europe: any plan offered in Europe, 64 GiB or more, up to 100.00 USD a month
  gpu: any plan of family gpu offered in fra or ams, with a GPU
` + notAsked, ""}},
		{
			"public data only",
			[]string{"--api.base-url=https://rental.example/api/v1", "--no-collector.os"},
			outcome{0, "configuration OK; requests per minute:\n  public: 4.0 of 30\n" + notAsked, ""},
		},
		{"invalid", []string{"--config.file=" + dir + "/invalid.yml", "--web.telemetry-path=/"}, outcome{1, "", `invalid.yml:3: api.timeout: invalid duration: must be like 30s, 5m, 1h30m or 1d
invalid.yml:6: accounts[1].name: duplicate name "main": must be unique, already used by accounts[0]
invalid.yml:6: accounts[1].token_file: empty: must be a token
invalid.yml:7: accounts[2].token_file: duplicate token: must differ from accounts[0].token_file, because the rate limit applies to each token
invalid.yml:9: collectors.plans.interval: 10s is too short: must be at least 1m, because the API caches the response that long
invalid.yml:10: collectors.plants: unknown key: must be one of ` + strings.Join(names, ", ") + `
invalid.yml:12: watches[0]: no criterion: at least one must be set, because every plan would match
--web.telemetry-path: must begin with / and not be the landing page
`}},
	} {
		got := finish(t, Environment{}, slices.Concat([]string{"--config.check"}, noOthers, tc.args)...).outcome()
		got.Log = strings.ReplaceAll(got.Log, dir+"/", "")
		simtest.AssertEqual(t, tc.name, got, tc.want)
	}
}

// printed parses the output of --once.
func (p *program) printed() simtest.Exposition {
	p.t.Helper()
	return simtest.ParseExposition(p.t, p.out.String(), textFormat)
}

func TestOnce(t *testing.T) {
	t.Parallel()
	// What is printed and what is served must be of the same day, on which renewals depend.
	midnight := time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)
	if left := time.Until(midnight); left < 30*time.Second {
		time.Sleep(left)
	}
	a := simtest.Start(t, simulator.Options{})
	file := configFile(t, a)
	p := finish(t, Environment{}, "--once", "--config.file="+file)
	simtest.AssertEqual(t, "exit status", p.code, 0)
	ids := map[string]any{}
	a.Change(func(w *simulator.World) {
		ids["lab"], ids["main"] = w.Accounts[simtest.LabToken].Account["id"], w.Accounts[simtest.MainToken].Account["id"]
	})
	simtest.AssertEqual(t, "log", regexp.MustCompile(` ts=\S+`).ReplaceAllString(p.log.String(), ""), fmt.Sprintf(
		"level=info msg=\"account found\" account=lab id=%s name=lab\nlevel=info msg=\"account found\" account=main id=%s name=main\n", ids["lab"], ids["main"]))
	page := p.printed()
	simtest.AssertEqual(t, "collectors", page.CollectorSuccess(), success(1, "main", "lab"))
	// The textfile collector refuses timestamps, and node_exporter has such metrics of
	// its own.
	for name, f := range page.Families {
		if !strings.HasPrefix(name, "server_rental_") || f.Timestamps {
			t.Errorf("family %s: timestamps: %t", name, f.Timestamps)
		}
	}
	served, once := startReady(t, "--config.file="+file).scrape().Data(), page.Data()
	for _, values := range []map[string]float64{served, once} { // the times of fetch and answer
		for series := range values {
			switch name, _, _ := strings.Cut(series, "{"); name {
			case "server_rental_plan_last_in_stock_timestamp_seconds", "server_rental_catalog_generated_timestamp_seconds",
				"server_rental_status_updated_timestamp_seconds":
				values[series] = 0
			}
		}
	}
	simtest.AssertEqual(t, "data, printed and served", once, served)
}

func TestOnceFails(t *testing.T) {
	t.Parallel()
	a := simtest.Start(t, simulator.Options{})
	a.Inject(simtest.Fault{Path: "/plans", Status: 500})
	a.Inject(simtest.Fault{Path: "/servers", Token: simtest.LabToken, Kind: simtest.Garbage})
	p := finish(t, Environment{}, "--once", "--log.level=error", "--config.file="+configFile(t, a))
	simtest.AssertEqual(t, "exit status", p.code, 1)
	want := success(1, "main", "lab")
	want["plans"], want["servers lab"] = 0, 0
	page := p.printed()
	simtest.AssertEqual(t, "collectors", page.CollectorSuccess(), want)
	simtest.AssertEqual(t, "servers of account main", len(page.WithPrefix("server_rental_server_info{")), 5)
	for _, cause := range []string{"collector=plans msg=\"collector failed\" err=\"/plans: status 500", "collector=servers account=lab msg=\"collector failed\" err=\"/servers: "} {
		if !strings.Contains(p.log.String(), cause) {
			t.Errorf("the log lacks %q:\n%s", cause, p.log)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestOnceOutputFails(t *testing.T) {
	t.Parallel()
	var log simtest.Buffer
	code := Run(t.Context(), Environment{Args: []string{"--demo", "--once"}, Getenv: env(), Stdout: fullDisk{}, Stderr: &log})
	if code != 1 || !strings.Contains(log.String(), "no space left on device") {
		t.Errorf("got status %d, log:\n%s\nwant 1 and the cause", code, &log)
	}
}

func TestDemoOnce(t *testing.T) {
	t.Parallel()
	p := finish(t, Environment{}, "--demo", "--once")
	simtest.AssertEqual(t, "exit status", p.code, 0)
	simtest.AssertEqual(t, "collectors", p.printed().CollectorSuccess(), success(1, demoAccounts()...))
}

func TestHelp(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("--web.systemd-socket is a flag on Linux only")
	}
	help := finish(t, Environment{}, "--help").outcome()
	simtest.Golden(t, "testdata/help.txt", help.Out)
	simtest.AssertEqual(t, "--help", help, outcome{0, help.Out, ""})
	for _, args := range [][]string{{"-h"}, {"--demo", "--help"}, {"--help", "--bogus"}} {
		simtest.AssertEqual(t, fmt.Sprint(args), finish(t, Environment{}, args...).outcome(), help)
	}
	// The flags that are promised to users, those of further collectors, and no others.
	want := map[string]bool{}
	for _, s := range collector.Resources() {
		want["--[no-]collector."+s.Name] = true
	}
	for _, flag := range []string{
		"--api.base-url=URL", "--api.token-file=FILE", "--config.file=FILE", "--config.check", "--healthcheck",
		"--[no-]collector.plans", "--[no-]collector.locations", "--[no-]collector.os", "--[no-]collector.status",
		"--[no-]collector.account", "--[no-]collector.topups", "--[no-]collector.transactions",
		"--[no-]collector.configurations", "--[no-]collector.ssh_keys", "--[no-]collector.servers",
		"--demo", "--once", "--web.listen-address=:10170", `--web.config.file=""`, "--web.systemd-socket",
		`--web.telemetry-path="/metrics"`, "--web.overview", "--web.enable-lifecycle",
		"--web.enable-service-discovery",
		`--log.level="info"`, `--log.format="logfmt"`, "--version", "--help",
	} {
		want[flag] = true
	}
	got := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^ {2,6}(?:-h, )?(--\S+)`).FindAllStringSubmatch(help.Out, -1) {
		flag := m[1]
		if !strings.HasPrefix(flag, "--[no-]collector.") {
			flag = strings.Replace(flag, "[no-]", "", 1) // shown for every flag without a value
		}
		got[flag] = true
	}
	simtest.AssertEqual(t, "flags", got, want)
	for _, variable := range []string{
		"($SERVER_RENTAL_API_BASE_URL)", "($SERVER_RENTAL_API_TOKEN_FILE)", "$SERVER_RENTAL_API_TOKEN ", "($SERVER_RENTAL_CONFIG_FILE)",
		"($SERVER_RENTAL_WEB_LISTEN_ADDRESS)", "($SERVER_RENTAL_WEB_CONFIG_FILE)",
	} {
		if !strings.Contains(help.Out, variable) {
			t.Errorf("--help lacks %s", variable)
		}
	}
}

// TestVersion runs the binary, because VERSION is embedded into package main.
func TestVersion(t *testing.T) {
	t.Parallel()
	got := finish(t, Environment{}, "--version").outcome()
	if got.Code != 0 || got.Log != "" || !strings.HasPrefix(got.Out, "server_rental_exporter, version 1.2.3 (") {
		t.Errorf("got %+v", got)
	}
	if testing.Short() {
		t.Skip("builds the binary")
	}
	file, err := os.ReadFile("../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	p := simtest.StartCommand(t, exec.Command(simtest.Binary(t), "--version"))
	code := p.Wait()
	want := regexp.MustCompile(fmt.Sprintf(`^server_rental_exporter, version %s \(branch: .*, revision: \S+\)\n(?s:.*)  go version: +%s\n  platform: +%s/%s\n`,
		regexp.QuoteMeta(strings.TrimSpace(string(file))), regexp.QuoteMeta(runtime.Version()), runtime.GOOS, runtime.GOARCH))
	if code != 0 || p.Log.String() != "" || !want.MatchString(p.Out.String()) {
		t.Errorf("got status %d, %s%s, want 0 and %s", code, p.Out, p.Log, want)
	}
}

func TestSignals(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the binary")
	}
	for _, stop := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(stop.String(), func(t *testing.T) {
			t.Parallel()
			p := simtest.StartProcess(t, "--demo")
			for _, step := range []struct {
				signal os.Signal
				msg    string
			}{{syscall.SIGHUP, `msg="configuration reloaded"`}, {stop, `msg="shutting down"`}} {
				p.Signal(step.signal)
				simtest.Eventually(t, step.msg, func() bool { return strings.Contains(p.Log.String(), step.msg) })
			}
			simtest.AssertEqual(t, "exit status", p.Wait(), 0)
		})
	}
}
