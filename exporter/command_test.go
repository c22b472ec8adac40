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
	refused := simtest.WriteFile(t, filepath.Join(t.TempDir(), "web.yml"), "tls_server_config: {cert_file: /missing.pem, key_file: /missing.key}\n")
	faulty := simtest.WriteFile(t, filepath.Join(t.TempDir(), "faulty.yml"), "api: {base_url: \""+base+"\", timeout: 0s}\nwatches: [{name: all}]\naccounts: [{name: main, token_file: "+simtest.MainToken+"}]\n")
	for _, tc := range []struct {
		name   string
		getenv func(string) string
		args   []string
		want   string
	}{
		{"nothing", nil, nil, nothing},
		{"nothing to check", nil, []string{"--config.check"}, nothing},
		{"unknown flags", nil, []string{"--nope", "--no-colector.plans"}, "--nope: unknown flag; try --help\n--no-colector.plans: unknown flag; try --no-collector.plans\n" + nothing},
		{"argument", nil, []string{"plans"}, "command line: an argument belongs to no flag, or a flag has a value that it does not take; try --help\n"},
		{"unknown flag and argument", nil, []string{"--bogus", "plans"}, "--bogus: unknown flag; try --help\ncommand line: an argument belongs to no flag, or a flag has a value that it does not take; try --help\n"},
		{"token on the command line", nil, []string{"--demo", "--api.token=" + simtest.MainToken}, "--api.token: unknown flag; try --api.token-file\n"},
		{
			"everything at once", nil,
			[]string{"--bogus=1", "--no-bogus", "--log.level=loud", "--log.format=xml", "--api.base-url=ftp://x", "--api.token-file=" + missing, "--config.check", "--web.listen-address=here", "--web.listen-address=:99999", "--web.listen-address=:" + simtest.MainToken},
			"--bogus: unknown flag; try --help\n--no-bogus: unknown flag; try --help\n" +
				"--api.base-url: invalid URL: must be http or https, like https://rental.example/api/v1\n--api.token-file: no such file or directory: " + missing + "\n" +
				"--log.level: must be one of debug, info, warn, error\n--log.format: must be one of logfmt, json\n" +
				strings.Repeat("--web.listen-address: must be HOST:PORT, with a port of at most 65535\n", 3),
		},
		{"missing configuration", nil, []string{"--config.file=" + missing}, missing + ": --config.file: no such file or directory\n"},
		{"faults of the configuration and the command line", nil, []string{"--config.check", "--config.file=" + faulty, "--web.telemetry-path=/"}, faulty + ":1: api.timeout: 0s is out of range: must be from 1ms to 5m\n" +
			faulty + ":2: watches[0]: no criterion: at least one must be set, because every plan would match\n" +
			faulty + ":3: accounts[0].token_file: no such file or directory; relative paths begin at " + filepath.Dir(faulty) + "\n--web.telemetry-path: must be like /metrics: no spaces, other letters than of ASCII, {}?#%, relative or empty parts\n"},
		{"certificate of the web server", nil, []string{"--demo", "--web.config.file=" + refused}, "--web.config.file: failed to read cert_file (/missing.pem): open /missing.pem: no such file or directory\n"},
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
	const notAsked = "API and tokens not tested: run with --once to ask the API\n"
	// The rates are those of these collectors.
	known := []string{"plans", "locations", "os", "status", "account", "topups", "transactions", "configurations", "ssh_keys", "servers"}
	args := []string{"--config.check"}
	for _, s := range collector.Resources() {
		if !slices.Contains(known, s.Name) {
			args = append(args, "--no-collector."+s.Name)
		}
	}
	dir := t.TempDir()
	for _, account := range []string{"main", "lab"} {
		simtest.WriteFile(t, filepath.Join(dir, account+".token"), "token-of-"+account)
	}
	file := simtest.WriteFile(t, filepath.Join(dir, "valid.yml"), `api: {base_url: "https://rental.example/api/v1"}
accounts:
  - {name: main, token_file: main.token}
  - {name: lab, token_file: lab.token}
watches:
  - {name: cheap-in-europe, regions: [Europe], min_memory_gib: 64, max_usd_per_month: 100}
  - {name: gpu, families: [gpu], gpu: true, locations: [fra, ams]}
`)
	for _, tc := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--config.file=" + file, "--shard=1", "--total-shards=3"}, `configuration OK; requests per minute:
  public: 4.0 of 30
  account main: 3.6 (up to 9.6 with a long history) of 60
  account lab: 3.6 (up to 9.6 with a long history) of 60
shards:
  0: 4.0 requests per minute, 0 accounts: none
  1: 3.6 requests per minute, 1 accounts: main
  2: 3.6 requests per minute, 1 accounts: lab
watches:
  cheap-in-europe: any plan offered in Europe, 64 GiB or more, up to 100.00 USD a month
  gpu: any plan of family gpu offered in fra or ams, with a GPU
` + notAsked},
		{[]string{"--api.base-url=https://rental.example/api/v1"}, "configuration OK; requests per minute:\n  public: 4.0 of 30\n" + notAsked},
	} {
		simtest.AssertEqual(t, fmt.Sprint(tc.flags), finish(t, Environment{}, append(args, tc.flags...)...).outcome(), outcome{0, tc.want, ""})
	}
}

// printed parses the output of --once.
func (p *program) printed() simtest.Exposition {
	p.t.Helper()
	return simtest.ParseExposition(p.t, p.out.String(), textFormat)
}

func TestOnce(t *testing.T) {
	t.Parallel()
	a := simtest.Start(t, simulator.Options{})
	p := finish(t, Environment{}, "--once", "--config.file="+configFile(t, a))
	simtest.AssertEqual(t, "exit status", p.code, 0)
	ids := map[string]any{}
	a.Change(func(w *simulator.World) {
		ids["lab"], ids["main"] = w.Accounts[simtest.LabToken].Account["id"], w.Accounts[simtest.MainToken].Account["id"]
	})
	simtest.AssertEqual(t, "log", regexp.MustCompile(`ts=\S+ `).ReplaceAllString(p.log.String(), ""), fmt.Sprintf(
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
	simtest.AssertEqual(t, "failures in the log", strings.Count(p.log.String(), `msg="collector failed"`), 2)
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

// TestDemoOnce has a proxy, which the demo does not use.
func TestDemoOnce(t *testing.T) {
	t.Parallel()
	file := simtest.WriteFile(t, filepath.Join(t.TempDir(), "rental.yml"), "api: {http: {proxy_url: 'http://127.0.0.1:1'}}\n")
	p := finish(t, Environment{}, "--demo", "--once", "--config.file="+file)
	simtest.AssertEqual(t, "exit status", p.code, 0)
	simtest.AssertEqual(t, "collectors", p.printed().CollectorSuccess(), success(1, "main", "lab"))
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
	want := regexp.MustCompile(fmt.Sprintf(`^server_rental_exporter, version %s \(revision: \S+\)\n  go version: +%s\n  platform: +%s/%s\n`,
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
