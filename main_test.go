package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/version"

	"server_rental_exporter/internal/simulator"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Tokens of the simulated accounts.
const (
	mainToken = "token-of-main-4f1d8c"
	labToken  = "token-of-lab-b7e20a"
)

// soon bounds a wait in a test that fails; others wait as long as it takes.
const soon = 45 * time.Second

func TestMain(m *testing.M) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "SERVER_RENTAL_") {
			_ = os.Unsetenv(name)
		}
	}
	_ = os.Unsetenv("COLUMNS") // --help would follow it
	version.Version = "1.2.3"
	code := m.Run()
	if builtDir != "" {
		_ = os.RemoveAll(builtDir)
	}
	os.Exit(code)
}

// builtDir is where the binary is, once a test has asked for it.
var builtDir string

var build = sync.OnceValues(func() (string, error) {
	var err error
	if builtDir, err = os.MkdirTemp("", "exporter"); err != nil {
		return "", err
	}
	path := filepath.Join(builtDir, name)
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// binary is the path of the exporter as a plain go build makes it.
func binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// buffer is what a program writes and a test reads meanwhile.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v still not: %s", soon, what)
		}
	}
}

// api is a simulated provider on a loopback address.
type api struct {
	*simulator.Simulator
	host string
	base string
}

// newAPI serves the accounts main and lab.
func newAPI(t testing.TB) *api {
	t.Helper()
	sim := simulator.New(simulator.Options{})
	sim.Change(func(w *simulator.World) {
		w.Accounts[mainToken] = simulator.ExampleAccount("main", time.Now())
		w.Accounts[labToken] = simulator.ExampleAccount("lab", time.Now())
	})
	server := httptest.NewUnstartedServer(sim)
	server.Config.ErrorLog = log.New(complaints{t}, "", 0)
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return &api{sim, strings.TrimPrefix(server.URL, "http://"), server.URL + "/api/v1"}
}

// complaints fails a test whose provider panics: it is the test that is wrong then.
type complaints struct{ t testing.TB }

func (c complaints) Write(p []byte) (int, error) {
	c.t.Errorf("the simulated provider: %s", p)
	return len(p), nil
}

// asked counts the requests by token; empty for public.
func (a *api) asked() map[string]int {
	n := map[string]int{}
	for _, r := range a.Requests() {
		n[r.Token]++
	}
	return n
}

// idle tells whether every request was answered.
func (a *api) idle() bool {
	return !slices.ContainsFunc(a.Requests(), func(r simulator.Request) bool { return r.Status == 0 })
}

// write puts a file into the test's folder and returns its path.
func write(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// configFile writes a configuration of accounts, by name, and returns its path;
// more is further YAML.
func (a *api) configFile(t testing.TB, dir string, tokens map[string]string, more string) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "api: {base_url: %q}\n", a.base)
	if len(tokens) > 0 {
		b.WriteString("accounts:\n")
	}
	for _, account := range slices.Sorted(maps.Keys(tokens)) {
		write(t, filepath.Join(dir, account+".token"), tokens[account]+"\n")
		fmt.Fprintf(&b, "  - {name: %s, token_file: %s.token}\n", account, account)
	}
	return write(t, filepath.Join(dir, "rental.yml"), b.String()+more)
}

// program is the exporter, running in this process.
type program struct {
	t        testing.TB
	out, log *buffer
	hangup   chan os.Signal
	stop     context.CancelFunc // as SIGTERM does
	ended    chan struct{}
	code     int // valid once ended is closed
	client   *http.Client
	url      string // of the first address
}

type environment map[string]string

// launch runs the exporter with these arguments; the test's end ends it.
func launch(t testing.TB, env environment, args ...string) *program {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p := &program{
		t: t, out: &buffer{}, log: &buffer{}, hangup: make(chan os.Signal, 1), stop: stop, ended: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}},
	}
	go func() {
		defer close(p.ended)
		p.code = run(ctx, invocation{
			args: args, getenv: func(name string) string { return env[name] },
			stdout: p.out, stderr: p.log, hangup: p.hangup,
		})
	}()
	t.Cleanup(func() {
		stop()
		p.wait()
	})
	return p
}

// wait returns the exit status.
func (p *program) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.code
	case <-time.After(soon):
		p.t.Fatalf("did not end; log:\n%s", p.log)
		return -1
	}
}

// finish is launch for a program that ends by itself.
func finish(t testing.TB, env environment, args ...string) *program {
	t.Helper()
	p := launch(t, env, args...)
	p.wait()
	return p
}

// start returns when the exporter listens, on a free port unless told otherwise.
func start(t testing.TB, args ...string) *program {
	t.Helper()
	return startIn(t, nil, args...)
}

func startIn(t testing.TB, env environment, args ...string) *program {
	t.Helper()
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--web.listen-address") }) {
		args = append(args, "--web.listen-address=127.0.0.1:0")
	}
	p := launch(t, env, args...)
	p.url = "http://" + p.addresses(1)[0]
	return p
}

// ready is start for a test that wants to begin with everything fetched.
func ready(t testing.TB, args ...string) *program {
	t.Helper()
	p := start(t, args...)
	p.becomesReady()
	return p
}

func (p *program) becomesReady() {
	p.t.Helper()
	eventually(p.t, "ready", func() bool { return p.get("/-/ready").Status == 200 })
}

var listening = regexp.MustCompile(`Listening on"?[ ,]"?address"?[=:]"?([^"\s]+)|"address":"([^"]+)"[^\n]*"Listening on"`)

// addresses waits until the exporter listens on so many addresses.
func (p *program) addresses(n int) []string {
	p.t.Helper()
	var found []string
	eventually(p.t, fmt.Sprintf("listening on %d addresses", n), func() bool {
		select {
		case <-p.ended:
			p.t.Fatalf("ended with status %d; log:\n%s", p.code, p.log)
		default:
		}
		found = nil
		for _, m := range listening.FindAllStringSubmatch(p.log.String(), -1) {
			found = append(found, m[1]+m[2])
		}
		return len(found) == n
	})
	return found
}

// reply is a whole answer.
type reply struct {
	Status int
	Header http.Header
	Body   string
}

// send makes a request; header is names and values in turn.
func (p *program) send(method, url string, header ...string) (reply, error) {
	r, err := http.NewRequestWithContext(context.Background(), method, url, nil)
	if err != nil {
		return reply{}, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := p.client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body)}, err
}

func (p *program) get(path string, header ...string) reply {
	p.t.Helper()
	got, err := p.send(http.MethodGet, p.url+path, header...)
	if err != nil {
		p.t.Fatalf("GET %s: %v; log:\n%s", path, err, p.log)
	}
	return got
}

// scrape returns what /metrics shows.
func (p *program) scrape() exposed {
	p.t.Helper()
	got := p.get("/metrics")
	if got.Status != 200 {
		p.t.Fatalf("GET /metrics: got status %d, want 200:\n%s", got.Status, got.Body)
	}
	return parseExposition(p.t, got.Body, got.Header.Get("Content-Type"))
}

// shows waits until a series has a value.
func (p *program) shows(series string, value float64) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("%s is %v", series, value), func() bool {
		got, ok := p.scrape().values[series]
		return ok && got == value
	})
}

// exposed is a page of metrics.
type exposed struct {
	families map[string]family  // by name
	values   map[string]float64 // by series; of a histogram its count
	native   []string           // families that are native histograms
	classic  []string           // families that are classic histograms
	stamped  []string           // series with a timestamp
}

type family struct {
	Type, Help string
	Labels     []string // sorted
}

// parseExposition reads a page of a content type.
func parseExposition(t testing.TB, body, contentType string) exposed {
	t.Helper()
	e := exposed{families: map[string]family{}, values: map[string]float64{}}
	format := expfmt.ResponseFormat(http.Header{"Content-Type": {contentType}})
	dec := expfmt.NewDecoder(strings.NewReader(body), format)
	for {
		var f dto.MetricFamily
		err := dec.Decode(&f)
		switch {
		case err == nil:
			e.add(&f)
		case errors.Is(err, io.EOF):
			return e
		default:
			t.Fatalf("parse %s: %v\n%s", contentType, err, body)
		}
	}
}

func (e *exposed) add(f *dto.MetricFamily) {
	known := family{Type: strings.ToLower(f.GetType().String()), Help: f.GetHelp()}
	for _, m := range f.GetMetric() {
		var names, labels []string
		for _, l := range m.GetLabel() {
			names = append(names, l.GetName())
			labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
		}
		slices.Sort(names)
		slices.Sort(labels)
		known.Labels = names
		series := f.GetName() + "{" + strings.Join(labels, ",") + "}"
		e.values[series] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue() +
			m.GetSummary().GetSampleSum() + float64(m.GetHistogram().GetSampleCount())
		if m.TimestampMs != nil {
			e.stamped = append(e.stamped, series)
		}
		if len(m.GetHistogram().GetPositiveSpan()) > 0 && !slices.Contains(e.native, f.GetName()) {
			e.native = append(e.native, f.GetName())
		}
		if len(m.GetHistogram().GetBucket()) > 0 && !slices.Contains(e.classic, f.GetName()) {
			e.classic = append(e.classic, f.GetName())
		}
	}
	e.families[f.GetName()] = known
}

// with returns the values of the series that begin so.
func (e exposed) with(prefix string) map[string]float64 {
	found := map[string]float64{}
	for series, v := range e.values {
		if strings.HasPrefix(series, prefix) {
			found[series] = v
		}
	}
	return found
}

// data is what is shown of the provider.
func (e exposed) data() map[string]float64 {
	found := e.with("server_rental_")
	maps.DeleteFunc(found, func(series string, _ float64) bool { return strings.HasPrefix(series, "server_rental_exporter_") })
	return found
}

// successes are the states of the collectors, by collector and account.
func (e exposed) successes() map[string]float64 {
	found := map[string]float64{}
	for series, v := range e.with("server_rental_exporter_collector_success{") {
		m := regexp.MustCompile(`account="(.*)",collector="(.*)"`).FindStringSubmatch(series)
		found[strings.TrimSuffix(m[2]+" "+m[1], " ")] = v
	}
	return found
}

// every gives all collectors of these accounts one state.
func every(state float64, accounts ...string) map[string]float64 {
	all := map[string]float64{}
	for _, s := range specs() {
		if !s.Account {
			all[s.Name] = state
			continue
		}
		for _, a := range accounts {
			all[s.Name+" "+a] = state
		}
	}
	return all
}
