package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"server_rental_exporter/internal/simulator"
)

// outcome is what a program leaves.
type outcome struct {
	Code     int
	Out, Log string
}

func (p *program) outcome() outcome { return outcome{p.code, p.out.String(), p.log.String()} }

func wantOutcome(t *testing.T, got, want outcome) {
	t.Helper()
	if got != want {
		t.Errorf("got status %d, output:\n%s\nlog:\n%s\nwant status %d, output:\n%s\nlog:\n%s", got.Code, got.Out, got.Log, want.Code, want.Out, want.Log)
	}
}

// What cannot start says why, one line for each fault, and serves nothing.
func TestStartRefused(t *testing.T) {
	t.Parallel()
	const base = "https://rental.example/api/v1"
	missing := filepath.Join(t.TempDir(), "missing")
	for _, tc := range []struct {
		name string
		env  environment
		args []string
		want string
	}{
		{"nothing", nil, nil, "nothing to export: set --api.base-url or --config.file, or start with --demo for a simulated provider\n"},
		{"nothing to check", nil, []string{"--config.check"}, "nothing to export: set --api.base-url or --config.file, or start with --demo for a simulated provider\n"},
		{"a token alone", environment{"SERVER_RENTAL_API_TOKEN": mainToken}, nil, "nothing to export: set --api.base-url or --config.file, or start with --demo for a simulated provider\n"},
		{"unknown flag", nil, []string{"--nope"}, "--nope: unknown flag; try --help\nnothing to export: set --api.base-url or --config.file, or start with --demo for a simulated provider\n"},
		{"an argument", nil, []string{"plans"}, "command line: unexpected plans; try --help\n"},
		{"a token on the command line", nil, []string{"--demo", "--api.token=" + mainToken}, "--api.token: unknown flag; try --help\n"},
		{"unknown log level", nil, []string{"--demo", "--log.level=loud"}, "--log.level: \"loud\": must be one of debug, info, warn, error\n"},
		{
			"everything at once", nil,
			[]string{"--bogus=1", "--no-bogus", "--log.level=loud", "--log.format=xml", "--api.base-url=ftp://x", "--api.token-file=" + missing, "--config.check", "--web.listen-address=here", "--web.listen-address=:99999"},
			"--bogus: unknown flag; try --help\n--no-bogus: unknown flag; try --help\n" +
				"--api.token-file: no such file or directory\n--api.base-url: not an absolute URL: must be like https://rental.example/api/v1\n" +
				"--log.level: \"loud\": must be one of debug, info, warn, error\n--log.format: \"xml\": must be one of logfmt, json\n" +
				"--web.listen-address: address here: missing port in address\n--web.listen-address: address :99999: the port must be at most 65535\n",
		},
		{"arguments besides", nil, []string{"--bogus", "plans"}, "--bogus: unknown flag; try --help\ncommand line: unexpected plans; try --help\n"},
		{"a port that is none", nil, []string{"--api.base-url=https://rental.example:99999/api/v1"}, "--api.base-url: has a port that is none: must be from 1 to 65535\n"},
		{"token file that is not there", nil, []string{"--api.base-url=" + base, "--api.token-file=" + missing}, "--api.token-file: no such file or directory\n"},
		{"configuration that is not there", nil, []string{"--config.file=" + missing}, missing + ": --config.file: no such file or directory\n"},
		{"demo with an account", environment{"SERVER_RENTAL_API_TOKEN": mainToken}, []string{"--demo"}, "SERVER_RENTAL_API_TOKEN: not together with --demo, which brings its own account\n"},
		{
			"plain http",
			environment{"SERVER_RENTAL_API_TOKEN": mainToken},
			[]string{"--api.base-url=http://rental.example/api/v1"},
			"--api.base-url: plain http: must be https, or a loopback address, where there are accounts: a token would travel in the clear\n",
		},
		{
			"paths of the web server", nil,
			[]string{"--demo", "--web.telemetry-path=/-/ready", "--web.config.file=" + missing},
			"--web.telemetry-path: \"/-/ready\": is served by the exporter itself\n--web.config.file: open " + missing + ": no such file or directory\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			wantOutcome(t, finish(t, tc.env, tc.args...).outcome(), outcome{1, "", tc.want})
		})
	}
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, account := range []string{"main", "lab"} {
		write(t, filepath.Join(dir, account+".token"), "token-of-"+account)
	}
	write(t, filepath.Join(dir, "empty.token"), "\n")
	sound := write(t, filepath.Join(dir, "sound.yml"), `api: {base_url: "https://rental.example/api/v1"}
accounts:
  - {name: main, token_file: main.token}
  - {name: lab, token_file: lab.token}
`)
	faulty := write(t, filepath.Join(dir, "faulty.yml"), `api:
  base_url: https://rental.example/api/v1
  timeout: forever
accounts:
  - {name: main, token_file: main.token}
  - {name: main, token_file: empty.token}
  - {name: lab, token_file: main.token}
collectors:
  plans: {interval: 10s}
  plants: {enabled: true}
`)
	t.Run("sound", func(t *testing.T) {
		wantOutcome(t, finish(t, nil, "--config.check", "--config.file="+sound).outcome(), outcome{0, `The configuration is sound. It costs, in requests per minute:
  public: 4.0 of 30
  account main: 3.6 (up to 9.6 with a long history) of 60
  account lab: 3.6 (up to 9.6 with a long history) of 60
`, ""})
	})
	t.Run("only public data", func(t *testing.T) {
		wantOutcome(t, finish(t, nil, "--config.check", "--api.base-url=https://rental.example/api/v1", "--no-collector.os").outcome(), outcome{
			0, "The configuration is sound. It costs, in requests per minute:\n  public: 4.0 of 30\n", "",
		})
	})
	t.Run("faulty", func(t *testing.T) {
		got := finish(t, nil, "--config.check", "--config.file="+faulty, "--web.telemetry-path=/").outcome()
		got.Log = strings.ReplaceAll(got.Log, dir+"/", "")
		wantOutcome(t, got, outcome{1, "", strings.Join([]string{
			`faulty.yml:3: api.timeout: not a duration: must be like 30s, 5m, 1h30m or 1d`,
			`faulty.yml:6: accounts[1].name: "main" is already the name of accounts[0]: must be unique`,
			`faulty.yml:6: accounts[1].token_file: empty: must be one token`,
			`faulty.yml:7: accounts[2].token_file: the same token as accounts[0].token_file: must differ, because each token has one request budget`,
			`faulty.yml:9: collectors.plans.interval: 10s is too short: must be at least 1m, because the API caches for 1m: a shorter interval costs requests and gives nothing fresher`,
			`faulty.yml:10: collectors.plants: unknown key: must be one of account, configurations, locations, os, plans, servers, ssh_keys, status, topups, transactions`,
			`--web.telemetry-path: "/": must begin with / and not be the landing page`,
		}, "\n") + "\n"})
	})
}

func TestOnce(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	config := a.configFile(t, t.TempDir(), map[string]string{"main": mainToken, "lab": labToken}, "")
	p := finish(t, nil, "--once", "--config.file="+config)
	if p.code != 0 || p.log.String() != "" {
		t.Errorf("got status %d, log:\n%s\nwant 0, none", p.code, p.log)
	}
	page := parseExposition(t, p.out.String(), textFormat)
	if got, want := page.successes(), every(1, "main", "lab"); !reflect.DeepEqual(got, want) {
		t.Errorf("collectors:\ngot  %v\nwant %v", got, want)
	}
	// The textfile collector refuses timestamps, and has such metrics of its own.
	for _, prefix := range []string{"go_", "process_", "promhttp_"} {
		if got := page.with(prefix); len(got) > 0 {
			t.Errorf("metrics that begin with %s: %v", prefix, got)
		}
	}
	if len(page.stamped) > 0 {
		t.Errorf("series with a timestamp: %v", page.stamped)
	}
	served := ready(t, "--config.file="+config).scrape().data()
	once := page.data()
	for _, values := range []map[string]float64{served, once} { // the moment of the fetch
		for series := range values {
			if strings.HasPrefix(series, "server_rental_plan_last_in_stock_timestamp_seconds{") {
				values[series] = 0
			}
		}
	}
	if !reflect.DeepEqual(once, served) {
		t.Errorf("shows other data than the served page:\ngot  %v\nwant %v", once, served)
	}
}

func TestOnceFails(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.Inject(simulator.Fault{Path: "/plans", Status: 500})
	a.Inject(simulator.Fault{Path: "/servers", Token: labToken, Kind: simulator.Garbage})
	p := finish(t, nil, "--once", "--log.level=error", "--config.file="+a.configFile(t, t.TempDir(), map[string]string{"main": mainToken, "lab": labToken}, ""))
	if p.code != 1 {
		t.Errorf("got status %d, want 1", p.code)
	}
	page := parseExposition(t, p.out.String(), textFormat)
	want := every(1, "main", "lab")
	want["plans"], want["servers lab"] = 0, 0
	if got := page.successes(); !reflect.DeepEqual(got, want) {
		t.Errorf("collectors:\ngot  %v\nwant %v", got, want)
	}
	if got := len(page.with("server_rental_server_info{")); got != 5 {
		t.Errorf("got %d servers, want the 5 of main", got)
	}
	for _, cause := range []string{"plans: /plans: status 500", "servers of account lab: /servers: "} {
		if !strings.Contains(p.log.String(), cause) {
			t.Errorf("the log lacks %q:\n%s", cause, p.log)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestOnceOutputFails(t *testing.T) {
	t.Parallel()
	var log buffer
	code := run(t.Context(), invocation{
		args: []string{"--demo", "--once"}, getenv: func(string) string { return "" }, stdout: full{}, stderr: &log,
	})
	if code != 1 || !strings.Contains(log.String(), "no space left on device") {
		t.Errorf("got status %d, log:\n%s\nwant 1 and the cause", code, &log)
	}
}

func TestDemoOnce(t *testing.T) {
	t.Parallel()
	p := finish(t, nil, "--demo", "--once")
	got := parseExposition(t, p.out.String(), textFormat).successes()
	if want := every(1, "main", "lab"); p.code != 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("got status %d, collectors %v\nwant 0, %v", p.code, got, want)
	}
}

// execute runs the built binary in an empty environment.
func execute(t *testing.T, args ...string) outcome {
	t.Helper()
	var out, log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary(t), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{}, &out, &log
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), log.String()}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	const golden = "testdata/help.txt"
	got := execute(t, "--help")
	if *update {
		if err := os.WriteFile(golden, []byte(got.Out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, got, outcome{0, string(want), ""})
	wantOutcome(t, execute(t, "-h"), outcome{0, string(want), ""})
}

func TestVersion(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("VERSION")
	if err != nil {
		t.Fatal(err)
	}
	got := execute(t, "--version")
	want := regexp.MustCompile(fmt.Sprintf(`^server_rental_exporter, version %s \(branch: .*, revision: \S+\)\n(?s:.*)  go version: +%s\n  platform: +%s/%s\n`,
		regexp.QuoteMeta(strings.TrimSpace(string(file))), regexp.QuoteMeta(runtime.Version()), runtime.GOOS, runtime.GOARCH))
	if got.Code != 0 || got.Log != "" || !want.MatchString(got.Out) {
		t.Errorf("got %+v\nwant status 0 and %s", got, want)
	}
}

// The signals reach what the other tests call by hand.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, end := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(end.String(), func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), binary(t), "--demo", "--web.listen-address=127.0.0.1:0")
			log := &buffer{}
			cmd.Env, cmd.Stdout, cmd.Stderr = []string{}, io.Discard, log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			logged := func(msg string) func() bool {
				return func() bool { return strings.Contains(log.String(), msg) }
			}
			eventually(t, "listening", logged("Listening on"))
			for _, step := range []struct {
				signal os.Signal
				msg    string
			}{{syscall.SIGHUP, `msg="configuration reloaded"`}, {end, "msg=ending"}} {
				if err := cmd.Process.Signal(step.signal); err != nil {
					t.Fatal(err)
				}
				eventually(t, step.msg, logged(step.msg))
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("got %v, want exit status 0; log:\n%s", err, log)
			}
		})
	}
}
