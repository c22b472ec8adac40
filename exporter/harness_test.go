package exporter

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-kit/log"
	"github.com/prometheus/common/version"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

func TestMain(m *testing.M) {
	version.Version = "1.2.3"
	simtest.Main(m)
}

// newTestExporter wires an exporter that does nothing yet.
func newTestExporter(t testing.TB, args ...string) *exporter {
	t.Helper()
	o, err := parse(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := o.configure()
	if err != nil {
		t.Fatal(err)
	}
	return newExporter(o, Environment{Unlimited: true}, log.NewNopLogger(), cfg)
}

// program is the exporter, running in this process.
type program struct {
	simtest.Server
	out, log *simtest.Buffer
	hangup   chan os.Signal
	stop     context.CancelFunc // like SIGTERM
	ended    chan struct{}
	code     int // valid after ended was closed
}

// launch runs the exporter until the end of the test.
func launch(t testing.TB, args ...string) *program {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p := &program{
		Server: simtest.Server{T: t}, out: &simtest.Buffer{}, log: &simtest.Buffer{}, hangup: make(chan os.Signal, 1), stop: stop, ended: make(chan struct{}),
	}
	go func() {
		defer close(p.ended)
		p.code = Main(ctx, Environment{Args: args, Stdout: p.out, Stderr: p.log, Hangup: p.hangup, Unlimited: true})
	}()
	t.Cleanup(func() {
		stop()
		<-p.ended
		if t.Failed() {
			t.Logf("log of %v:\n%s", args, p.log)
		}
	})
	return p
}

// finish is launch for a command line that ends by itself.
func finish(t testing.TB, args ...string) *program {
	t.Helper()
	p := launch(t, args...)
	<-p.ended
	return p
}

// terminate stops the program and returns its exit status.
func (p *program) terminate() int {
	p.stop()
	<-p.ended
	return p.code
}

// start returns when the exporter listens, by default on a free port.
func start(t testing.TB, args ...string) *program {
	t.Helper()
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--web.listen-address") }) {
		args = append(args, "--web.listen-address=127.0.0.1:0")
	}
	p := launch(t, args...)
	p.URL = "http://" + p.addresses(1)[0]
	return p
}

// startAPI starts a provider without rate limits.
func startAPI(t testing.TB) *simtest.API {
	t.Helper()
	a := simtest.Start(t, simulator.Options{Unlimited: true})
	a.Settings = "timeout: 5m"
	return a
}

// pending returns how many requests have no response yet.
func pending(a *simtest.API) int {
	return len(slices.DeleteFunc(a.Requests(), func(r simtest.Request) bool { return r.Status != 0 }))
}

func awaitResponses(t testing.TB, a *simtest.API) {
	t.Helper()
	simtest.Eventually(t, "all requests have responses", func() bool { return pending(a) == 0 })
}

// startReady returns when the exporter has fetched everything once.
func startReady(t testing.TB, args ...string) *program {
	t.Helper()
	p := start(t, args...)
	p.WaitReady()
	return p
}

var listening = regexp.MustCompile(`Listening on" address=(\S+)|"address":"([^"]+)"[^\n]*"Listening on"`)

// addresses waits until the exporter listens on n addresses.
func (p *program) addresses(n int) []string {
	p.T.Helper()
	var found []string
	simtest.Eventually(p.T, fmt.Sprintf("listening on %d addresses", n), func() bool {
		select {
		case <-p.ended:
			p.T.Fatalf("ended with status %d", p.code)
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

func (p *program) postReload() simtest.Response {
	p.T.Helper()
	r, err := simtest.Do(http.MethodPost, p.URL+"/-/reload")
	if err != nil {
		p.T.Fatal(err)
	}
	return r
}

// configFile writes a configuration for the accounts main and lab, with a watch, that
// makes every collector fetch once during a test.
func configFile(t testing.TB, a *simtest.API) string {
	t.Helper()
	return a.ConfigFile(t.TempDir(), simtest.Tokens(), "watches: [{name: gpu, gpu: true}]\n"+hourly())
}

// hourly is YAML that makes every collector fetch once during a test, also one that waits for a
// restock.
func hourly() string {
	var b strings.Builder
	b.WriteString("collectors:\n")
	for _, s := range collector.Resources() {
		soldOut := ""
		if s.SoldOutInterval > 0 {
			soldOut = ", sold_out_interval: 0s"
		}
		fmt.Fprintf(&b, "  %s: {interval: 1h%s}\n", s.Name, soldOut)
	}
	return b.String()
}

// success is collector_success of all collectors with the same value.
func success(value float64, accounts ...string) map[string]float64 {
	all := map[string]float64{}
	for _, s := range collector.Resources() {
		if !s.Account {
			all[s.Name] = value
			continue
		}
		for _, a := range accounts {
			all[s.Name+" "+a] = value
		}
	}
	return all
}

// serversConfig starts a provider with one account of so many servers, whose hostnames have a
// prefix, and returns the arguments to export it.
func serversConfig(t testing.TB, servers int, prefix string) (args []string) {
	t.Helper()
	a := startAPI(t)
	a.Change(func(w *simulator.World) {
		w.Accounts[simtest.MainToken].Servers = simulator.Servers(servers, time.Now())
		for _, s := range w.Accounts[simtest.MainToken].Servers {
			s["hostname"] = prefix + simulator.Text(s, "hostname")
		}
	})
	return []string{"--config.file=" + a.ConfigFile(t.TempDir(), map[string]string{"main": simtest.MainToken}, hourly())}
}
