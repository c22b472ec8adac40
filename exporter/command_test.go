package exporter

import (
	"bytes"
	"context"
	"io"
	"os"
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
				lookup := func(name string) (string, bool) { return ts.Getenv(name), ts.Getenv(name) != "" }
				environment := Environment{Args: args, LookupEnv: lookup, Stdout: ts.Stdout(), Stderr: ts.Stderr(), Unlimited: true}
				if code := Main(context.Background(), environment); (code == 1) != fails || code > 1 {
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
		code := Main(t.Context(), Environment{Args: strings.Fields(command), LookupEnv: unset, Stdout: fullDisk{}, Stderr: &log})
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
	code := Main(t.Context(), Environment{Args: []string{"--demo", "--once"}, LookupEnv: unset, Stdout: closed, Stderr: &log})
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
// configuration is checked, has a fault, and is in use.
func TestUnknownVariables(t *testing.T) {
	t.Parallel()
	o, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{
		"SERVER_RENTAL_WEB_CONFIG=/s3cr3t", "SERVER_RENTAL_TOTAL_SHARD=3", "SERVER_RENTAL_=", "SERVER_RENTAL_EXPORTER_PORT=tcp://10.0.0.1:10170",
		"SERVER_RENTAL=", "MY_SERVER_RENTAL_SHARD=1", "SERVER_RENTAL_API_TOKEN=s3cr3t",
	}
	for _, name := range o.variables {
		environ = append(environ, name+"=")
	}
	want := "SERVER_RENTAL_WEB_CONFIG: unknown variable, which has no effect\n" +
		"SERVER_RENTAL_TOTAL_SHARD: unknown variable, which has no effect\n" +
		"SERVER_RENTAL_: unknown variable, which has no effect\n"
	run := func(args ...string) (int, string) {
		var log bytes.Buffer
		code := Main(t.Context(), Environment{Args: args, LookupEnv: unset, Environ: environ, Stdout: io.Discard, Stderr: &log, Unlimited: true})
		return code, log.String()
	}
	code, log := run("--config.check", "--demo")
	simtest.AssertEqual(t, "check", []any{code, log}, []any{0, want})
	code, log = run()
	simtest.AssertEqual(t, "fault", []any{code, strings.HasPrefix(log, "nothing to export: "), strings.HasSuffix(log, want)}, []any{1, true, true})
	code, log = run("--once", "--demo")
	simtest.AssertEqual(t, "start", []any{code, strings.Count(log, "unknown variable"), strings.Contains(log, "s3cr3t")}, []any{0, 3, false})
}
