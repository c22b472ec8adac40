package exporter

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestScripts runs testdata/script in this process. $CONFIG is a configuration for a simulated
// provider; the command fault PATH STATUS makes it fail. The flag -update rewrites the files that
// outputs are compared with.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *simtest.Update,
		Setup: func(e *testscript.Env) error {
			a := startAPI(e.T().(testing.TB))
			e.Values["api"] = a
			e.Setenv("CONFIG", configFile(e.T().(testing.TB), a))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			name: func(ts *testscript.TestScript, fails bool, args []string) {
				code := Main(context.Background(), Environment{Args: args, Stdout: ts.Stdout(), Stderr: ts.Stderr(), Unlimited: true})
				if (code == 1) != fails || code > 1 {
					ts.Fatalf("exit status %d", code)
				}
			},
			"fault": func(ts *testscript.TestScript, _ bool, args []string) {
				status, err := strconv.Atoi(args[1])
				ts.Check(err)
				ts.Value("api").(*simtest.API).Inject(simtest.Fault{Path: args[0], Status: status})
			},
		},
	})
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestOutputFails has an output that nobody gets: the exit status says so.
func TestOutputFails(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"--demo --once", "--demo --config.check", "--version", "--help"} {
		var log simtest.Buffer
		code := Main(t.Context(), Environment{Args: strings.Fields(command), Stdout: fullDisk{}, Stderr: &log})
		if code != 1 || !strings.Contains(log.String(), "no space left on device") {
			t.Errorf("%s: got status %d, log:\n%s\nwant 1 and the cause", command, code, &log)
		}
	}
	closed, err := os.OpenFile(os.DevNull, os.O_RDWR, 0) // as Go's runtime does
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	var log simtest.Buffer
	code := Main(t.Context(), Environment{Args: []string{"--demo", "--once"}, Stdout: closed, Stderr: &log})
	simtest.AssertEqual(t, "closed: exit status", code, 1)
}

func TestSignals(t *testing.T) {
	t.Parallel()
	for _, stop := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(stop.String(), func(t *testing.T) {
			t.Parallel()
			p := simtest.StartProcess(t, "--demo")
			signalAndAwait(t, p, syscall.SIGHUP, `msg="configuration reloaded"`)
			signalAndAwait(t, p, stop, `msg="shutting down"`)
			simtest.AssertEqual(t, "exit status", p.Wait(), 0)
		})
	}
	for name, want := range map[string]string{"once": "exit status 1", "twice": "signal: interrupt"} {
		t.Run(name+", with a client that does not read", func(t *testing.T) {
			t.Parallel()
			p := simtest.StartProcess(t, serversConfig(t, longServers, longName())...)
			p.WaitReady()
			startScrape(t, strings.TrimPrefix(p.URL, "http://"))
			signalAndAwait(t, p, os.Interrupt, `msg="shutting down"`)
			began := time.Now()
			if name == "twice" {
				simtest.AssertEqual(t, "signal", p.Cmd.Process.Signal(os.Interrupt), nil)
			}
			p.Wait()
			simtest.AssertEqual(t, "end", p.Cmd.ProcessState.String(), want)
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("ended after %v", took)
			}
		})
	}
}

func signalAndAwait(t *testing.T, p *simtest.Process, signal os.Signal, message string) {
	t.Helper()
	simtest.AssertEqual(t, "signal", p.Cmd.Process.Signal(signal), nil)
	simtest.Eventually(t, message, func() bool { return strings.Contains(p.Log.String(), message) })
}

// TestUnknownVariables has misspelt variables, those of ours and those that Kubernetes makes, when the
// configuration is checked, has a fault, and is in use. What needs no configuration says nothing of them.
func TestUnknownVariables(t *testing.T) {
	_, o := newApplication(io.Discard)
	for _, name := range slices.Concat(o.variables, []string{"SERVER_RENTAL_EXPORTER_PORT", "SERVER_RENTAL", "MY_SERVER_RENTAL_SHARD"}) {
		if name != "" {
			t.Setenv(name, "")
		}
	}
	t.Setenv("SERVER_RENTAL_WEB_CONFIG", "s3cr3t")
	t.Setenv("SERVER_RENTAL_", "s3cr3t")
	want := "SERVER_RENTAL_WEB_CONFIG: unknown variable, which has no effect\nSERVER_RENTAL_: unknown variable, which has no effect\n"
	for command, want := range map[string]string{
		"--config.check --demo":              "0 " + want,
		"--help":                             "0 ",
		"--healthcheck --web.systemd-socket": "1 --healthcheck: conflicts with --web.systemd-socket: only systemd knows the addresses\n",
		"":                                   "1 nothing to export: set --api.base-url or --config.file, or start with --demo for a simulated provider\n" + want,
		"--once --demo":                      `0 ts=T level=warn msg="unknown environment variables" err="` + strings.ReplaceAll(strings.TrimSpace(want), "\n", `\n`) + "\"\n",
	} {
		p := finish(t, strings.Fields(command)...)
		log := regexp.MustCompile(`ts=\S+`).ReplaceAllString(p.log.String(), "ts=T")
		simtest.AssertEqual(t, command, fmt.Sprint(p.code, " ", log), want)
	}
}
