package runner

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/expfmt"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// start is the time at which every synctest bubble starts.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// harness is a set of collectors with its client and publisher, and the simulated
// provider that it collects from.
type harness struct {
	*simtest.API
	t        *testing.T
	set      *Runner
	registry *prometheus.Registry
	log      *simtest.Log
	ctx      context.Context // of the present set; nil before run

	down atomic.Bool // connections are refused
}

// withHarness runs a test in a synctest bubble. The responses of the simulated
// provider do not depend on when they are requested, and are too old to have an age.
func withHarness(t *testing.T, f func(t *testing.T, h *harness)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &harness{API: simtest.StartInMemory(t, simulator.Options{}), t: t}
		h.Change(func(w *simulator.World) {
			w.GeneratedAt = "1999-01-01T00:00:00Z"
			w.Status["updated_at"] = "1999-01-01T00:00:00Z"
		})
		h.reset()
		f(t, h)
	})
}

// subtest is withHarness in a subtest.
func subtest(t *testing.T, name string, f func(t *testing.T, h *harness)) {
	t.Run(name, func(t *testing.T) { withHarness(t, f) })
}

// reset replaces set, client, publisher and log by new ones.
func (h *harness) reset() {
	h.t.Helper()
	transport, err := rentalapi.NewTransport(config.HTTPClientConfig{}, h.dial)
	if err != nil {
		h.t.Fatal(err)
	}
	h.log = &simtest.Log{}
	h.ctx = nil
	h.set = New(Options{Logger: h.log, UserAgent: "test/1", API: rentalapi.Settings{
		BaseURL: h.URL, Transport: transport, Timeout: 10 * time.Second, Limits: rentalapi.Limits{Public: 30, Account: 60, AccountBulk: 40},
	}})
	h.set.origin = time.Now
	h.registry = prometheus.NewPedanticRegistry()
	h.registry.MustRegister(h.set.Publisher, h.set.Client)
}

// dial connects to the provider, whatever the address.
func (h *harness) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if h.down.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	return h.Dial(ctx, network, address)
}

// run applies a configuration. The test ends when all that it started has ended.
func (h *harness) run(c Config) {
	if h.ctx == nil {
		ctx, stop := context.WithCancel(context.Background())
		set := h.set
		h.ctx = ctx
		h.t.Cleanup(func() {
			stop()
			set.Wait()
		})
	}
	h.set.ApplyConfig(h.ctx, c)
}

// settle waits until no fetch is under way.
func (h *harness) settle() {
	h.t.Helper()
	for range 600 {
		synctest.Wait()
		if !slices.ContainsFunc(h.set.Health(), func(c Health) bool { return !c.Next.After(time.Now()) }) {
			return
		}
		time.Sleep(time.Second)
	}
	h.t.Fatal("a fetch does not end")
}

// runFor runs for some time, and then until no fetch is under way.
func (h *harness) runFor(d time.Duration) {
	h.t.Helper()
	time.Sleep(d)
	h.settle()
}

// once returns the data of a new set that fetched everything once.
func (h *harness) once(c Config) map[string]float64 {
	h.t.Helper()
	h.reset()
	if err := h.set.Once(h.t.Context(), c); err != nil {
		h.t.Fatalf("Once: %v", err)
	}
	return h.data()
}

// configure returns a configuration in which the named collectors, or all, have the
// same settings, with the account main.
func configure(interval, maxAge time.Duration, names ...string) Config {
	c := Config{API: "test", Collectors: map[string]refresh.Settings{}, Accounts: []Account{testAccount("main", simtest.MainToken)}}
	for _, r := range collector.Resources() {
		if len(names) == 0 || slices.Contains(names, r.Name) {
			c.Collectors[r.Name] = refresh.Settings{Interval: interval, MaxAge: maxAge}
		}
	}
	return c
}

// withLab adds the account lab.
func (c Config) withLab() Config {
	c.Accounts = append(slices.Clone(c.Accounts), testAccount("lab", simtest.LabToken))
	return c
}

func testAccount(name, token string) Account {
	return Account{Name: name, Identity: token, Token: func() (string, error) { return token, nil }}
}

// exposition returns the published metrics of the families that are wanted, as text.
func (h *harness) exposition(wanted func(name string) bool) string {
	h.t.Helper()
	h.set.Publisher.Publish()
	text := gather(h.t, h.registry, wanted)
	simtest.AssertNoSecrets(h.t, "exposition", text)
	return text
}

func gather(t *testing.T, g prometheus.Gatherer, wanted func(name string) bool) string {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Errorf("Gather: %v", err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if !wanted(f.GetName()) {
			continue
		}
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Errorf("text format: %v", err)
		}
	}
	return b.String()
}

func all(string) bool { return true }

func (h *harness) scrape() simtest.Exposition {
	h.t.Helper()
	return simtest.ParseExposition(h.t, h.exposition(all), "text/plain")
}

// data returns the series of the provider's data. The time at which a plan was last
// seen in stock, which depends on the time of the last fetch, is 0.
func (h *harness) data() map[string]float64 {
	h.t.Helper()
	data := h.scrape().Data()
	for series := range data {
		if strings.HasPrefix(series, "server_rental_plan_last_in_stock_timestamp_seconds{") {
			data[series] = 0
		}
	}
	return data
}

// values returns the values of one metric by label values, in the order of the
// definition and separated by spaces.
func (h *harness) values(d *metric.Definition) map[string]float64 {
	h.t.Helper()
	found := map[string]float64{}
	for series, v := range h.scrape().WithPrefix(d.Name + "{") {
		var labels []string
		for _, l := range d.Labels {
			labels = append(labels, simtest.Label(series, l))
		}
		found[strings.Join(labels, " ")] = v
	}
	return found
}

// without returns the series of which no part of the name and labels is one of the
// texts.
func without(data map[string]float64, texts ...string) map[string]float64 {
	rest := map[string]float64{}
	for series, v := range data {
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(series, text) }) {
			rest[series] = v
		}
	}
	return rest
}

// families returns the beginnings of the series of a resource's metrics, and of those
// that follow from them.
func families(r collector.Resource) []string {
	definitions := r.Metrics
	switch r.Name {
	case "plans", "locations":
		definitions = slices.Concat(definitions, collector.WatchDefinitions())
	case "account", "servers":
		definitions = slices.Concat(definitions, collector.FundingDefinitions())
	}
	var names []string
	for _, d := range definitions {
		names = append(names, d.Name+"{")
	}
	return names
}

// def returns the definition of a metric, whose name is given without namespace.
func def(name string) *metric.Definition {
	all := slices.Concat(collector.Definitions(), HealthDefinitions(), rentalapi.Definitions())
	return all[slices.IndexFunc(all, func(d *metric.Definition) bool { return d.Name == metric.Namespace+name })]
}

func (h *harness) assertEqual(what string, got, want any) {
	h.t.Helper()
	simtest.AssertEqual(h.t, what, got, want)
}

// assertSuccess compares collector_success: 0 for the failing resources, and 1 for all
// others that are enabled. A nil disabled means that all are.
func (h *harness) assertSuccess(disabled func(collector.Resource) bool, failing ...collector.Resource) {
	h.t.Helper()
	want := perCollector(1, 0, failing...)
	for _, r := range collector.Resources() {
		if disabled != nil && disabled(r) {
			delete(want, strings.TrimSpace(r.Name+" "+accountOf(r)))
		}
	}
	h.assertEqual("collector_success", h.scrape().CollectorSuccess(), want)
}

// perCollector returns a value for each collector, by name and account.
func perCollector(usual, value float64, special ...collector.Resource) map[string]float64 {
	values := map[string]float64{}
	for _, r := range collector.Resources() {
		v := usual
		if slices.ContainsFunc(special, func(s collector.Resource) bool { return s.Name == r.Name }) {
			v = value
		}
		values[strings.TrimSpace(r.Name+" "+accountOf(r))] = v
	}
	return values
}

func accountOf(r collector.Resource) string {
	if r.Account {
		return "main"
	}
	return ""
}

// apiErrors returns the counted errors of the API that are not 0, by endpoint and
// reason.
func (h *harness) apiErrors() map[string]float64 {
	h.t.Helper()
	counts := map[string]float64{}
	for series, n := range h.scrape().WithPrefix("server_rental_exporter_api_errors_total{") {
		if n > 0 {
			counts[simtest.Label(series, "endpoint")+" "+simtest.Label(series, "reason")] = n
		}
	}
	return counts
}

// logLine is a list of texts that a line of the log contains.
type logLine []string

func loggedBy(r collector.Resource) string {
	if r.Account {
		return "collector=" + r.Name + " account=main msg="
	}
	return "collector=" + r.Name + " msg="
}

func failed(r collector.Resource, parts ...string) logLine {
	return append(logLine{"level=error", loggedBy(r) + `"collector failed"`}, parts...)
}

func recovered(r collector.Resource) logLine {
	return logLine{"level=info", loggedBy(r) + `"collector recovered"`}
}

// assertLog takes the log and asserts that it has exactly these lines, in any order.
func (h *harness) assertLog(want ...logLine) {
	h.t.Helper()
	rest := h.log.Take(h.t)
	var missing []logLine
	for _, w := range want {
		i := slices.IndexFunc(rest, func(line string) bool {
			return !slices.ContainsFunc(w, func(part string) bool { return !strings.Contains(line, part) })
		})
		if i < 0 {
			missing = append(missing, w)
			continue
		}
		rest = slices.Delete(rest, i, i+1)
	}
	if len(rest)+len(missing) > 0 {
		h.t.Errorf("log:\nunexpected %.2000q\n   missing %q", rest, missing)
	}
}

// tokenOfLabAfter returns the token of main n times, and then that of lab.
func tokenOfLabAfter(n int) rentalapi.Token {
	return func() (string, error) {
		n--
		if n < 0 {
			return simtest.LabToken, nil
		}
		return simtest.MainToken, nil
	}
}

// documented returns a resource's response as the provider documents it.
func documented(t testing.TB, r collector.Resource) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("..", "..", "collector", "testdata", r.Name, "document.json"))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// resource returns the resource of a name.
func resource(name string) collector.Resource {
	all := collector.Resources()
	return all[slices.IndexFunc(all, func(r collector.Resource) bool { return r.Name == name })]
}
