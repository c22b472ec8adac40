package collector

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/server-rental-exporter/server_rental_exporter/internal/exposition"
	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// fetchTest fetches a resource of the account main, again and again. It is its own
// rentalapi.Getter, whose responses come at once.
type fetchTest struct {
	*simulator.Simulator
	t        testing.TB
	account  *simulator.Account // tests may change it between two requests
	response rentalapi.Response
	body     []byte                 // of each response if there is no simulator
	before   func(query url.Values) // called before each request; may be nil
	requests []string               // queries of the last fetch
	resource Resource
	changes  Changes // up to the last fetch
	events   []Event // of the last fetch
}

// newFetchTest returns a test whose responses come from a simulated provider with one account.
func newFetchTest(t testing.TB, r Resource, a simulator.Account) *fetchTest {
	f := newBodyTest(t, r, nil)
	f.Simulator, f.account = simulator.New(simulator.Options{}), &a
	f.Change(func(w *simulator.World) { w.Accounts = map[string]*simulator.Account{simtest.MainToken: f.account} })
	return f
}

// newBodyTest returns a test whose responses all have the same body.
func newBodyTest(t testing.TB, r Resource, body []byte) *fetchTest {
	return &fetchTest{t: t, resource: r, body: body, response: rentalapi.Response{Received: today}}
}

// accountOf returns the account of a resource, empty for public ones.
func accountOf(r Resource) string {
	if r.Account {
		return "main"
	}
	return ""
}

// Get implements rentalapi.Getter.
func (f *fetchTest) Get(_ context.Context, path string, query url.Values, read func(*json.Decoder) error) (rentalapi.Response, error) {
	f.requests = append(f.requests, query.Encode())
	if f.before != nil {
		f.before(query)
	}
	body := f.body
	if f.Simulator != nil {
		body = []byte(f.Body(path+"?"+query.Encode(), simtest.MainToken))
	}
	return f.response, read(json.NewDecoder(bytes.NewReader(body)))
}

// fetch returns the snapshot of a fetch, with the metrics of the changes up to it. A panic, such
// as that of a sample without a value for each label, fails the test and not all others.
func (f *fetchTest) fetch() (Snapshot, error) {
	defer func() {
		if p := recover(); p != nil {
			f.t.Fatalf("%s: %v", f.resource.Name, p)
		}
	}()
	f.requests = nil
	s, err := f.resource.Fetch(f.t.Context(), f, accountOf(f.resource))
	if err == nil {
		shown := s // without items afterwards
		f.events = f.changes.Step(&f.resource, accountOf(f.resource), &shown, s.MadeAt)
		s.Metrics = slices.Concat(s.Metrics, f.changes.Metrics)
	}
	return s, err
}

// mustFetch is fetch if there must be no error.
func (f *fetchTest) mustFetch() Snapshot {
	f.t.Helper()
	s, err := f.fetch()
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// asked returns the requests of the last fetch.
func (f *fetchTest) asked() string { return strings.Join(f.requests, ", ") }

// assertFetch fetches and compares the requests, the series of the families that are
// wanted, and the number of invalid items.
func (f *fetchTest) assertFetch(what, requests string, want map[string]float64, invalid int) (s Snapshot) {
	f.t.Helper()
	s = f.mustFetch()
	family := func(series string) string { name, _, _ := strings.Cut(series, "{"); return name }
	families := map[string]bool{}
	for series := range want {
		families[family(series)] = true
	}
	got := exposed(f.t, s.Metrics)
	maps.DeleteFunc(got, func(series string, _ float64) bool { return !families[family(series)] })
	simtest.AssertEqual(f.t, what+": requests", f.asked(), requests)
	simtest.AssertEqual(f.t, what+": series", got, want)
	simtest.AssertEqual(f.t, what+": invalid items", s.Invalid.Items, invalid)
	return s
}

// textOf returns metrics in the text format.
func textOf(t testing.TB, metrics []*metric.Sample) string {
	t.Helper()
	for _, m := range metrics { // the publisher drops others
		if !slices.Contains(Definitions(), m.Definition) {
			t.Errorf("%s: not among the definitions: a metric.Set must define it", m.Definition.Name)
		}
	}
	p := exposition.NewPublisher(Definitions(), func(time.Time) ([]*metric.Sample, time.Time) { return metrics, time.Time{} })
	p.Publish()
	families, err := prometheus.Gatherers{p}.Gather()
	if err != nil {
		t.Errorf("Gather: %v", err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Errorf("text format: %v", err)
		}
	}
	simtest.AssertNoSecrets(t, "exposition", b.String())
	return b.String()
}

// exposed returns the series of metrics.
func exposed(t testing.TB, metrics []*metric.Sample) map[string]float64 {
	t.Helper()
	return simtest.ParseExposition(t, textOf(t, metrics), "text/plain").Values
}

func ptr[T any](v T) *T { return &v }
