package runner

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// start is the time at which every synctest bubble starts.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// harness is a set of collectors with its client and publisher, and the simulated
// provider that it collects from.
type harness struct {
	*simtest.API
	t       *testing.T
	limits  rentalapi.Limits
	set     *Runner
	metrics prometheus.Gatherer
	log     *simtest.Log
	ctx     context.Context // ends with the present set; nil before run
	stop    func()          // ends all that run started
}

// withHarness runs a test in a synctest bubble. The responses of the simulated
// provider do not depend on when they are requested, and are too old to have an age.
func withHarness(t *testing.T, f func(t *testing.T, h *harness)) {
	t.Helper()
	withProvider(t, simulator.Options{}, func(t *testing.T, h *harness) {
		h.Change(func(w *simulator.World) {
			w.GeneratedAt = "1999-01-01T00:00:00Z"
			w.Status["updated_at"] = "1999-01-01T00:00:00Z"
		})
		f(t, h)
	})
}

// withProvider is withHarness with another provider.
func withProvider(t *testing.T, o simulator.Options, f func(t *testing.T, h *harness)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &harness{API: simtest.StartInMemory(t, o), t: t, limits: rentalapi.Limits{Public: math.MaxInt, Account: math.MaxInt}}
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
	h.log, h.ctx = &simtest.Log{}, nil
	requests := prometheus.NewPedanticRegistry()
	h.set = New(h.log, rentalapi.New("test/1", rentalapi.Settings{
		BaseURL: h.URL, Transport: &http.Transport{DialContext: h.Dial, DisableKeepAlives: true}, Timeout: 10 * time.Second, Limits: h.limits,
	}, requests))
	h.metrics = prometheus.Gatherers{requests, h.set.Publisher}
}

// run applies a configuration. The test ends when all that it started has ended.
func (h *harness) run(c Spec) {
	if h.ctx == nil {
		ctx, cancel := context.WithCancel(context.Background())
		set := h.set
		h.ctx, h.stop = ctx, func() {
			cancel()
			set.Wait()
		}
		h.t.Cleanup(h.stop)
	}
	h.set.ApplyConfig(h.ctx, c)
}

// requestsFor returns the received requests for a path, in order.
func (h *harness) requestsFor(path string) []simtest.Request {
	return slices.DeleteFunc(h.Requests(), func(r simtest.Request) bool { return r.Path != path })
}

// sleepUntilAsked waits until a path is requested once more.
func (h *harness) sleepUntilAsked(path string) {
	for before := len(h.requestsFor(path)); len(h.requestsFor(path)) == before; synctest.Wait() {
		time.Sleep(time.Second)
	}
}

// settle waits until no fetch is under way.
func (h *harness) settle() {
	h.t.Helper()
	for range 600 {
		synctest.Wait()
		pending := func(c Health) bool { return c.Err == nil && c.LastSuccess.IsZero() || !c.Next.After(time.Now()) }
		if !slices.ContainsFunc(h.set.Health(), pending) {
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

// configure returns a configuration in which the named collectors, or all, have the
// same settings, with the account main.
func configure(interval, maxAge time.Duration, names ...string) Spec {
	c := Spec{API: "test", Collectors: map[string]collector.Timing{}, Accounts: []AccountSpec{testAccount("main", simtest.MainToken)}}
	for _, r := range collector.Resources() {
		if len(names) == 0 || slices.Contains(names, r.Name) {
			c.Collectors[r.Name] = collector.Timing{Interval: interval, MaxAge: maxAge}
		}
	}
	return c
}

// withLab adds the account lab.
func (c Spec) withLab() Spec {
	c.Accounts = append(slices.Clone(c.Accounts), testAccount("lab", simtest.LabToken))
	return c
}

func testAccount(name, token string) AccountSpec {
	return AccountSpec{Name: name, Identity: token, Token: func() (string, error) { return token, nil }}
}

// scrape returns what is published.
func (h *harness) scrape() simtest.Exposition {
	h.t.Helper()
	h.set.Publisher.Publish()
	families, err := h.metrics.Gather()
	if err != nil {
		h.t.Errorf("Gather: %v", err)
	}
	return simtest.NewExposition(h.t, families)
}

// data returns the series of the provider's data.
func (h *harness) data() map[string]float64 {
	h.t.Helper()
	return h.scrape().Data()
}

// values returns the values of one metric, whose name is given without namespace, by
// label values, in the order of the definition and separated by spaces.
func (h *harness) values(name string) map[string]float64 {
	h.t.Helper()
	all := Definitions()
	d := all[slices.IndexFunc(all, func(d *metric.Definition) bool { return d.Name == metric.Namespace+name })]
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

// families returns the beginnings of the series of a resource's metrics.
func families(r collector.Resource) (names []string) {
	for _, d := range r.Metrics {
		names = append(names, d.Name+"{")
	}
	return names
}

func (h *harness) assertEqual(what string, got, want any) {
	h.t.Helper()
	simtest.AssertEqual(h.t, what, got, want)
}

// assertSuccess compares collector_success: 0 for the failing resources, and 1 for all
// others.
func (h *harness) assertSuccess(failing ...collector.Resource) {
	h.t.Helper()
	want := map[string]float64{}
	for _, r := range collector.Resources() {
		want[strings.TrimSpace(r.Name+" "+accountOf(r))] = 1
	}
	for _, r := range failing {
		want[strings.TrimSpace(r.Name+" "+accountOf(r))] = 0
	}
	h.assertEqual("collector_success", h.scrape().CollectorSuccess(), want)
}

func accountOf(r collector.Resource) string {
	if r.Account {
		return "main"
	}
	return ""
}

// resource returns the resource of a name.
func resource(name string) collector.Resource {
	all := collector.Resources()
	return all[slices.IndexFunc(all, func(r collector.Resource) bool { return r.Name == name })]
}
