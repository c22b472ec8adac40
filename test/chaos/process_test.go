package campaign_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
)

// soon bounds a wait in a test that fails; others wait as long as it takes.
const soon = 60 * time.Second

var builtDir string

func TestMain(m *testing.M) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "SERVER_RENTAL_") {
			_ = os.Unsetenv(name)
		}
	}
	code := m.Run()
	if builtDir != "" {
		_ = os.RemoveAll(builtDir)
	}
	os.Exit(code)
}

var build = sync.OnceValues(func() (string, error) {
	var err error
	if builtDir, err = os.MkdirTemp("", "campaign"); err != nil {
		return "", err
	}
	path := filepath.Join(builtDir, "server_rental_exporter")
	cmd := exec.Command("go", "build", "-o", path, "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v still not: %s", soon, what)
		}
	}
}

// rental is a simulated provider on a loopback address.
type rental struct {
	*simulator.Simulator
	base string
}

const (
	mainToken = "secret-token-of-main"
	labToken  = "secret-token-of-lab"
)

// newRental serves the accounts main and lab.
func newRental(t testing.TB) *rental {
	t.Helper()
	sim := simulator.New(simulator.Options{})
	sim.Change(func(w *simulator.World) {
		w.Accounts[mainToken] = simulator.ExampleAccount("main", time.Now())
		w.Accounts[labToken] = simulator.ExampleAccount("lab", time.Now())
	})
	server := httptest.NewServer(sim)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return &rental{sim, server.URL + "/api/v1"}
}

// asked counts the requests by token; empty for public.
func (r *rental) asked() map[string]int {
	n := map[string]int{}
	for _, q := range r.Requests() {
		n[q.Token]++
	}
	return n
}

func (r *rental) idle() bool {
	return !slices.ContainsFunc(r.Requests(), func(q simulator.Request) bool { return q.Status == 0 })
}

func write(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// configuration writes one with these accounts, by name, and further YAML.
func (r *rental) configuration(t testing.TB, dir string, tokens map[string]string, more string) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "api: {base_url: %q}\naccounts:\n", r.base)
	for _, account := range slices.Sorted(maps.Keys(tokens)) {
		write(t, filepath.Join(dir, account+".token"), tokens[account]+"\n")
		fmt.Fprintf(&b, "  - {name: %q, token_file: %q}\n", account, account+".token")
	}
	return write(t, filepath.Join(dir, "rental.yml"), b.String()+more)
}

func both() map[string]string { return map[string]string{"main": mainToken, "lab": labToken} }

// hourly lets every collector fetch once and then not again during a test.
const hourly = `collectors:
  plans: {interval: 1h}
  locations: {interval: 1h}
  os: {interval: 1h}
  status: {interval: 1h}
  account: {interval: 1h}
  topups: {interval: 1h}
  transactions: {interval: 1h}
  configurations: {interval: 1h}
  ssh_keys: {interval: 1h}
  servers: {interval: 1h}
`

// exporter is the built program, running as a process of its own.
type exporter struct {
	t       testing.TB
	cmd     *exec.Cmd
	out     *lines
	log     *lines
	address string
	ended   chan struct{}
	err     error // of the process; valid once ended is closed
}

var listening = regexp.MustCompile(`Listening on.* address=(\S+)`)

// launch starts the program; the test's end kills it.
func launch(t testing.TB, env []string, args ...string) *exporter {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return launchAs(t, exec.Command(path, append(args, "--web.listen-address=127.0.0.1:0")...), env)
}

func launchAs(t testing.TB, cmd *exec.Cmd, env []string) *exporter {
	t.Helper()
	e := &exporter{t: t, cmd: cmd, out: &lines{}, log: &lines{}, ended: make(chan struct{})}
	cmd.Env, cmd.Stdout, cmd.Stderr = env, e.out, e.log
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(e.ended)
		e.err = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-e.ended
	})
	return e
}

// start is launch until the program listens.
func start(t testing.TB, env []string, args ...string) *exporter {
	t.Helper()
	return launch(t, env, args...).listens()
}

func (e *exporter) listens() *exporter {
	e.t.Helper()
	eventually(e.t, "listening", func() bool {
		select {
		case <-e.ended:
			e.t.Fatalf("ended: %v; log:\n%s", e.err, e.log)
		default:
		}
		m := listening.FindStringSubmatch(e.log.String())
		if m != nil {
			e.address = m[1]
		}
		return m != nil
	})
	return e
}

// ready is start until everything was fetched.
func ready(t testing.TB, env []string, args ...string) *exporter {
	t.Helper()
	e := start(t, env, args...)
	eventually(t, "ready", func() bool {
		status, _ := e.get("/-/ready")
		return status == http.StatusOK
	})
	return e
}

func (e *exporter) signal(s syscall.Signal) {
	e.t.Helper()
	if err := e.cmd.Process.Signal(s); err != nil {
		e.t.Fatal(err)
	}
}

// wait returns the exit status.
func (e *exporter) wait() int {
	e.t.Helper()
	select {
	case <-e.ended:
		return e.cmd.ProcessState.ExitCode()
	case <-time.After(soon):
		e.t.Fatalf("did not end; log:\n%s", e.log)
		return -1
	}
}

func (e *exporter) get(path string) (int, string) {
	e.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+e.address+path, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// scrape returns what /metrics shows.
func (e *exporter) scrape() values {
	e.t.Helper()
	status, body := e.get("/metrics")
	if status != http.StatusOK {
		e.t.Fatalf("GET /metrics: status %d: %.300s", status, body)
	}
	v, err := parse([]byte(body), asText)
	if err != nil {
		e.t.Fatal(err)
	}
	return v
}

// memory returns a value of /proc/PID/status in bytes.
func (e *exporter) memory(name string) int {
	e.t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.cmd.Process.Pid))
	if err != nil {
		e.t.Skipf("no /proc: %v", err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, is := strings.CutPrefix(line, name+":"); is {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err == nil {
				return kib << 10
			}
		}
	}
	e.t.Fatalf("/proc: no %s:\n%s", name, raw)
	return 0
}

// processorTime returns what the process has used so far.
func (e *exporter) processorTime() time.Duration {
	e.t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", e.cmd.Process.Pid))
	if err != nil {
		e.t.Skipf("no /proc: %v", err)
	}
	_, after, _ := strings.Cut(string(raw), ") ") // the name before it may hold anything
	fields, ticks := strings.Fields(after), 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			e.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
