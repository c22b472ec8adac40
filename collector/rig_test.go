package collector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	kitlog "github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/expfmt"

	"server_rental_exporter/internal/memnet"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
)

const (
	prefix  = "/api/v1"
	apiHost = "rental.example:80"

	mainToken  = "secret-token-of-main"
	otherToken = "secret-token-of-other"
)

// rig is all collectors in front of a simulated provider.
type rig struct {
	t        testing.TB
	sim      *simulator.Simulator
	provider *provider
	network  *network
	client   *rentalapi.Client
	set      *Set
	registry *prometheus.Registry
	log      *journalLines
	ctx      context.Context // of the present set; nil before it runs
	timeout  time.Duration
	limits   rentalapi.Limits
}

// inBubble runs a test in fake time, with the provider behind a network in memory.
func inBubble(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, newRig(t, simulator.Options{}))
	})
}

// newRig must be called inside a bubble. The world has the account main, and
// nothing in it depends on when it is asked.
func newRig(t testing.TB, o simulator.Options) *rig {
	t.Helper()
	r := &rig{
		t: t, sim: simulator.New(o), network: newNetwork(),
		timeout: 10 * time.Second, limits: rentalapi.Limits{Public: 30, Account: 60, AccountBulk: 40},
	}
	r.provider = &provider{sim: r.sim, instead: map[string]http.HandlerFunc{}}
	r.sim.Change(func(w *simulator.World) {
		w.GeneratedAt = "2000-01-01T00:00:00Z"
		w.Status["updated_at"] = "2000-01-01T00:00:00Z"
		w.Accounts[mainToken] = simulator.ExampleAccount("main", time.Now())
	})
	r.network.serve(t, apiHost, r.provider)
	r.fresh()
	return r
}

// fresh gives the rig a set without a past.
func (r *rig) fresh() {
	r.t.Helper()
	transport, err := rentalapi.NewTransport(config.HTTPClientConfig{}, config.WithDialContextFunc(r.network.dial))
	if err != nil {
		r.t.Fatal(err)
	}
	base := &url.URL{Scheme: "http", Host: strings.TrimSuffix(apiHost, ":80"), Path: prefix}
	r.client = rentalapi.New("test/1", rentalapi.Settings{BaseURL: base, Transport: transport, Timeout: r.timeout, Limits: r.limits})
	r.log = &journalLines{}
	r.ctx = nil
	r.set = New(r.log.logger(), r.client)
	r.registry = prometheus.NewPedanticRegistry()
	r.registry.MustRegister(r.set, r.set.State(), r.client)
}

// run applies a configuration. The test ends when all that it started has ended.
func (r *rig) run(c Config) {
	r.t.Helper()
	if r.ctx == nil {
		ctx, stop := context.WithCancel(context.Background())
		set := r.set
		r.ctx = ctx
		r.t.Cleanup(func() {
			stop()
			set.Wait()
		})
	}
	r.set.Apply(r.ctx, c)
}

// settle waits until no fetch is under way.
func (r *rig) settle() {
	r.t.Helper()
	busy := func(s Status) bool { return !s.Next.After(time.Now()) }
	for range 600 {
		synctest.Wait()
		if !slices.ContainsFunc(r.set.Status(), busy) {
			return
		}
		time.Sleep(time.Second)
	}
	r.t.Fatal("collectors are fetching without an end")
}

// once returns what a new set shows after it fetched everything once.
func (r *rig) once(c Config) string {
	r.t.Helper()
	r.fresh()
	if err := r.set.Once(context.Background(), c); err != nil {
		r.t.Fatalf("Once: %v", err)
	}
	return r.data()
}

// every is a configuration in which all collectors of the account main have an interval.
func every(interval, maxAge time.Duration, names ...string) Config {
	c := Config{API: "test", Collectors: map[string]refresh.Settings{}, Accounts: []Account{accountOf("main", mainToken)}}
	for _, r := range Resources() {
		if len(names) == 0 || slices.Contains(names, r.Name) {
			c.Collectors[r.Name] = refresh.Settings{Interval: interval, MaxAge: maxAge}
		}
	}
	return c
}

func accountOf(name, token string) Account {
	return Account{Name: name, Identity: token, Token: func() (string, error) { return token, nil }}
}

// expose is what a scrape shows of the families for which wanted is true. A
// scrape with an error, or one that tells a secret, fails the test.
func (r *rig) expose(wanted func(name string) bool) string {
	r.t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		r.t.Errorf("Gather: %v", err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if !wanted(f.GetName()) {
			continue
		}
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			r.t.Errorf("text format: %v", err)
		}
	}
	keepsSecrets(r.t, "exposition", b.String())
	return b.String()
}

// data is all that is shown of the provider, without the one value that depends
// on the moment of the last refresh.
func (r *rig) data() string {
	r.t.Helper()
	out := r.expose(func(name string) bool { return !strings.Contains(name, "_exporter_") })
	return lastInStock.ReplaceAllString(out, "$1 lately")
}

var lastInStock = regexp.MustCompile(`(plan_last_in_stock_timestamp_seconds\{[^}]*\}) \S+`)

// samples are the lines of the named family, without the name.
func (r *rig) samples(family string) []string {
	r.t.Helper()
	out := r.expose(func(name string) bool { return name == family })
	var lines []string
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(strings.TrimPrefix(line, family)))
		}
	}
	return lines
}

// without removes families from an exposition.
func without(exposition string, names ...string) string {
	var b strings.Builder
	for line := range strings.Lines(exposition) {
		name := strings.FieldsFunc(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), func(r rune) bool { return strings.ContainsRune("{ ", r) })[0]
		if !slices.Contains(names, name) {
			b.WriteString(line)
		}
	}
	return b.String()
}

func keepsSecrets(t testing.TB, where, text string) {
	t.Helper()
	for _, secret := range []string{
		mainToken, otherToken, "@customer.example", "bc1q", "bitcoin:", "tron:", "ssh-ed25519 ", "198.18.", "198.19.",
	} {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%s tells %q: %.200q", where, secret, text[max(0, i-80):])
		}
	}
}

// provider is the simulator and what a test puts in front of it.
type provider struct {
	sim *simulator.Simulator

	mu      sync.Mutex
	asked   []ask
	before  func(path string, query url.Values) // called before a request is answered
	instead map[string]http.HandlerFunc         // answers by path; "" is every path
}

// ask is one request.
type ask struct {
	path  string
	query url.Values
	token string
	at    time.Time
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, prefix)
	p.mu.Lock()
	p.asked = append(p.asked, ask{path, r.URL.Query(), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), time.Now()})
	before, instead := p.before, p.instead[path]
	if instead == nil {
		instead = p.instead[""]
	}
	p.mu.Unlock()
	if before != nil {
		before(path, r.URL.Query())
	}
	if instead != nil {
		instead(w, r)
		return
	}
	p.sim.ServeHTTP(w, r)
}

// answer has requests for a path answered by f until remove is called.
func (p *provider) answer(path string, f http.HandlerFunc) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.instead[path] = f
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.instead, path)
	}
}

func (p *provider) beforeEach(f func(path string, query url.Values)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = f
}

// requests are those received so far for a path, or all where it is empty.
func (p *provider) requests(path string) []ask {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []ask
	for _, a := range p.asked {
		if path == "" || a.path == path {
			found = append(found, a)
		}
	}
	return found
}

// paths counts the requests since the n-th by path.
func (p *provider) paths(n int) map[string]int {
	counts := map[string]int{}
	for _, a := range p.requests("")[n:] {
		counts[a.path]++
	}
	return counts
}

func reply(status int, header http.Header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// good is the body of the right answer.
func (r *rig) good(pathAndQuery string) string {
	req := httptest.NewRequest(http.MethodGet, "http://"+apiHost+prefix+pathAndQuery, nil)
	req.Header.Set("Authorization", "Bearer "+mainToken)
	w := httptest.NewRecorder()
	r.sim.ServeHTTP(w, req)
	if w.Code != http.StatusOK {
		r.t.Fatalf("%s: status %d: %s", pathAndQuery, w.Code, w.Body)
	}
	return w.Body.String()
}

// network connects to servers in the same process.
type network struct {
	mu      sync.Mutex
	hosts   map[string]*memnet.Listener
	dialled []string
	down    bool
	wrap    func(net.Conn) net.Conn // of the client's ends; nil for none
}

func newNetwork() *network { return &network{hosts: map[string]*memnet.Listener{}} }

var errRefused = errors.New("connection refused")

// serve must be called inside the bubble in which it is used.
func (n *network) serve(t testing.TB, address string, h http.Handler) {
	l := memnet.Listen()
	n.mu.Lock()
	n.hosts[address] = l
	n.mu.Unlock()
	server := &http.Server{Handler: h, ErrorLog: log.New(failingWriter{t}, "", 0)}
	done := make(chan struct{})
	go func() {
		_ = server.Serve(l)
		close(done)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dialled = append(n.dialled, address)
	l, wrap := n.hosts[address], n.wrap
	if n.down {
		l = nil
	}
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errRefused}
	}
	conn, err := l.Dial(ctx, "tcp", address)
	if err == nil && wrap != nil {
		conn = wrap(conn)
	}
	return conn, err
}

func (n *network) cut(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
}

// contacted are the hosts to which somebody wanted a connection.
func (n *network) contacted() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(n.dialled)))
}

type failingWriter struct{ t testing.TB }

func (w failingWriter) Write(p []byte) (int, error) {
	w.t.Errorf("the server logged: %s", p)
	return len(p), nil
}

// journalLines keeps what is logged, without debug messages.
type journalLines struct {
	mu    sync.Mutex
	lines []string
}

func (j *journalLines) logger() kitlog.Logger {
	return level.NewFilter(kitlog.LoggerFunc(func(keyvals ...any) error {
		var b bytes.Buffer
		if err := kitlog.NewLogfmtLogger(&b).Log(keyvals...); err != nil {
			fmt.Fprintf(&b, "log: %v", err)
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		j.lines = append(j.lines, strings.TrimSpace(b.String()))
		return nil
	}), level.AllowInfo())
}

// take returns what was logged since the last call, in the order of the alphabet.
func (j *journalLines) take(t testing.TB) []string {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	for _, l := range lines {
		keepsSecrets(t, "log", l)
	}
	slices.Sort(lines)
	return lines
}

// same compares whole values as they are printed.
func same(t testing.TB, what string, got, want any) {
	t.Helper()
	g, w := fmt.Sprint(got), fmt.Sprint(want)
	if g == w {
		return
	}
	if len(g)+len(w) < 2000 {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
		return
	}
	t.Errorf("%s: (- want, + got)\n%s", what, diff(w, g))
}

// diff shows the lines that only one of two texts has.
func diff(want, got string) string {
	count := map[string]int{}
	for l := range strings.Lines(want) {
		count[l]--
	}
	for l := range strings.Lines(got) {
		count[l]++
	}
	var out []string
	for l, n := range count {
		l = fmt.Sprintf("%.300s", strings.TrimSpace(l))
		switch {
		case n < 0:
			out = append(out, "- "+l)
		case n > 0:
			out = append(out, "+ "+l)
		}
	}
	slices.Sort(out)
	if len(out) == 0 {
		return "same lines in another order"
	}
	return strings.Join(out[:min(len(out), 60)], "\n")
}

// handedOver is a token that changes to another account's once it was read n times.
func handedOver(n int) rentalapi.Token {
	return func() (string, error) {
		n--
		if n < 0 {
			return otherToken, nil
		}
		return mainToken, nil
	}
}
